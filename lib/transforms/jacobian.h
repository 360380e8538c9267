// What Jacobians of tapes and of functions share.
#pragma once
#include "op/stacked.h"
#include "tape/tape.h"

namespace tapedeck {

/// Rows [first, first + count) of the n × n identity; not recorded.
Tensor identity_rows(std::int64_t first, std::int64_t count, std::int64_t n, DType dtype);
/// GradientTape::jacobian(); messages begin with `name`.
std::vector<Tensor> jacobians(Tape& tape, const Source& target, const Sources& sources,
                              const JacobianOptions& options, std::string_view name);

/// Throws ShapeError unless batch_jacobian() is defined for such a target and source.
void check_batch(const Spec& y, const Spec& x);
/// Unit vectors for every row of a batch: [count] + the shape, of which those in place i have a one at
/// element first + i of the row.
Tensor batch_units(std::int64_t first, std::int64_t count, const Spec& of);

}   // namespace tapedeck
