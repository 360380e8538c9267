// All ops.
#pragma once
#include "tapedeck/operators.h"
#include "tapedeck/ops/array.h"
#include "tapedeck/ops/compare.h"
#include "tapedeck/ops/elementary.h"
#include "tapedeck/ops/conv.h"
#include "tapedeck/ops/index.h"
#include "tapedeck/ops/linalg.h"
#include "tapedeck/ops/math.h"
#include "tapedeck/ops/nn.h"
#include "tapedeck/ops/parts.h"
#include "tapedeck/ops/random.h"
#include "tapedeck/ops/reduce.h"
