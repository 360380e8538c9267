// Catch2's runner, compiled once and without optimisation, because it is the slowest test file to compile.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdlib>

// For the address sanitizer: too large an allocation fails instead of ending the program.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

int main(int argc, char** argv) {
  setenv("TAPEDECK_FAULTS_THROW", "1", 1);   // a plan that its verifier refuses fails the test that made it
  return Catch::Session().run(argc, argv);
}
