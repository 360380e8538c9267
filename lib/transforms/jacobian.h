// Helpers shared by the Jacobians of tapes and of functions.
#pragma once
#include "op/stacked_shapes.h"
#include "tape/tape.h"

namespace tapedeck {

/// Rows [first, first + count) of the n × n identity; not recorded.
Tensor identity_rows(std::int64_t first, std::int64_t count, std::int64_t n, DType dtype);
/// The implementation of GradientTape::jacobian(); error messages begin with `name`.
std::vector<Gradient> jacobians(Tape& tape, const Source& target, const Sources& sources,
                                const JacobianOptions& options, std::string_view name);

/// Throws ArgumentError if the value of an option is invalid.
void check_options(std::string_view name, const JacobianOptions& options);
/// Throws ShapeError if the derivative of y with respect to x would exceed the maximum rank of tensors;
/// `rank` is its rank.
void check_rank(std::string_view name, const Spec& y, const Spec& x, int rank);
/// Throws ShapeError unless batch_jacobian() is defined for such a target and source.
void check_batch(const Spec& y, const Spec& x);
/// One-hot directions for all rows of a batch: [count] + the shape. Entry i of the first axis has a one at
/// element first + i of every row of the batch.
Tensor batch_units(std::int64_t first, std::int64_t count, const Spec& of);

}   // namespace tapedeck
