// The ops that dispatch, rules and tapes call. lib/op and lib/tape may call no others:
//
//   add sub mul div neg   conj   astype   add_n   sum   identity reshape broadcast_to   concat stack unstack
//
// They are defined in lib/ops, a higher layer. Functions that create tensors, such as zeros, are no ops.
#pragma once
#include "tapedeck/ops/array.h"
#include "tapedeck/ops/complex.h"
#include "tapedeck/ops/join.h"
#include "tapedeck/ops/math.h"
#include "tapedeck/ops/reduce.h"
