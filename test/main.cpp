// Catch2's main, compiled once and without optimisation, because it is the slowest test file to compile.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
