// Precompiled for all samples, to build faster. Each file still includes what it uses.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"
