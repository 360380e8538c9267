// Linked into the tests for the thread sanitizer: ops use two threads in every test that does not ask for
// another number.
#define CATCH_CONFIG_EXTERNAL_INTERFACES   // declares the base of listeners
#include <catch2/catch.hpp>

#include "tapedeck/threads.h"

namespace {

struct TwoThreads : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo&) override { tapedeck::set_num_threads(2); }
};
CATCH_REGISTER_LISTENER(TwoThreads)

}   // namespace
