// Catch2's main, compiled once and without optimisation, because it is the slowest test file to compile.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

// For the address sanitizer: too large an allocation fails instead of ending the program.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
