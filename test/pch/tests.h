// Precompiled for all tests, to build faster. Each file still includes what it uses.
#include <catch2/catch.hpp>
#include "case.h"
#include "ops/op_samples.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/tapedeck.h"
