// Parsed once for all files of the library, to build faster. Each file includes what it uses all the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/format.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "core/visit.h"
#include "op/elementwise.h"
#include "op/rules.h"
#include "ops/axes.h"
#include "ops/infer.h"
#include "tapedeck/ops.h"
