// Everything but the opt-in headers (map.h, xtensor.h) and what defines and tests ops (op.h, gradcheck.h).
#pragma once
#if __cplusplus < 202002L
#error "tapedeck needs C++20: compile with -std=c++20"
#endif
#include "tapedeck/build_info.h"
#include "tapedeck/control.h"
#include "tapedeck/custom_gradient.h"
#include "tapedeck/debug.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/gradients.h"
#include "tapedeck/ops.h"
#include "tapedeck/optimizer.h"
#include "tapedeck/threads.h"
