// Networks: layers, losses, metrics, and a training loop. Opt-in, since everything here can be written with
// the rest of the library.
#pragma once
#include "tapedeck/nn/attention.h"
#include "tapedeck/nn/conv.h"
#include "tapedeck/nn/dense.h"
#include "tapedeck/nn/dropout.h"
#include "tapedeck/nn/fit.h"
#include "tapedeck/nn/initializers.h"
#include "tapedeck/nn/losses.h"
#include "tapedeck/nn/metrics.h"
#include "tapedeck/nn/normalization.h"
#include "tapedeck/nn/recurrent.h"
#include "tapedeck/nn/run.h"
#include "tapedeck/nn/sequential.h"
#include "tapedeck/nn/summary.h"
#include "tapedeck/nn/variables.h"
