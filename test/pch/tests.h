// Parsed once for all tests, to build faster. Each file includes what it uses all the same.
#include <catch2/catch.hpp>
#include "case.h"
#include "ops/op_samples.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/tapedeck.h"
