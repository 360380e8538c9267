// Tensors, ops, variables, differentiation and optimizers. Not included here: elementwise user functions
// (map.h), compiled functions (compile.h), layers (nn.h), diagnostics (debug.h), more on training
// (gradient_transform.h, moving_average.h, training.h, minimize.h, distribute.h), files and data
// (checkpoint.h, safetensors.h, npy.h, csv.h, dataset.h, training_log.h), user-defined ops and optimizers
// (op.h, gradcheck.h, update_rule.h), and conversion from and to xtensor (xtensor.h).
#pragma once
#if __cplusplus < 202002L
#error "tapedeck needs C++20: compile with -std=c++20"
#endif
#include "tapedeck/build_info.h"
#include "tapedeck/control.h"
#include "tapedeck/custom_gradient.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/grad.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/keras.h"
#include "tapedeck/memory.h"
#include "tapedeck/ops.h"
#include "tapedeck/optimizer.h"
#include "tapedeck/threads.h"
