// Catch2's main, compiled once and without optimisation: it is the slowest file of all tests.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
