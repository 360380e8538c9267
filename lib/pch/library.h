// Parsed once for all files of the library, to build faster. Each file includes what it uses all the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "autodiff/rules.h"
#include "base/format.h"
#include "base/parallel.h"
#include "base/visit.h"
#include "kernels/map.h"
#include "ops/axes.h"
#include "ops/infer.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"
#include "tensor/storage.h"
