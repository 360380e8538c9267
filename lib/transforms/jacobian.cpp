// Jacobians from a tape. In: a target and sources. Out: for each source, the gradients of all elements of the
// target, computed together in batches of limited size.
#include "transforms/jacobian.h"

#include <algorithm>

#include "core/format.h"
#include "tape/imperative_grad.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

/// Jacobians without rows: an empty tensor for each source to which a path leads, as one backward pass
/// determines.
std::vector<Tensor> no_rows(Tape& tape, const Tensor& y, std::span<const Tensor> xs) {
  const std::vector<Gradient> g = imperative_grad(kGradients, tape, {&y, 1}, xs, {});
  std::vector<Tensor> result(xs.size());
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (g[i].defined()) result[i] = zeros(behind({0}, xs[i].shape()), xs[i].dtype());
  return result;
}

/// Computes rows of a Jacobian: for each source a tensor of shape [rows] + the source's shape, undefined if
/// there is no path. seeds(first, count) returns the cotangents of rows [first, first + count), each in the
/// shape of the target.
template <class Seeds> std::vector<Tensor> rows_of(Tape& tape, const Tensor& y, std::span<const Tensor> xs,
                                                   std::int64_t rows, const JacobianOptions& options,
                                                   const Seeds& seeds) {
  if (rows == 0) return no_rows(tape, y, xs);
  const Tape::Most most = tape.most();
  const bool together = options.vectorize && most.ndim < Shape::kMaxRank;
  const std::int64_t at_once =
      together ? std::max<std::int64_t>(1, options.max_bytes / std::max<std::int64_t>(1, most.nbytes)) : 1;
  std::vector<std::vector<Tensor>> parts(xs.size());
  for (std::int64_t first = 0, count = 0; first < rows; first += count) {
    count = std::min(at_once, rows - first);
    const Tensor seed = seeds(first, count);
    const GradientOptions seeded{.output_gradients = {together ? seed : reshape(seed, y.shape())}};
    const PassOptions pass{.directions = together ? count : 0, .keep_entries = first + count < rows};
    const std::vector<Gradient> g = imperative_grad(kGradients, tape, {&y, 1}, xs, seeded, pass);
    for (std::size_t i = 0; i < xs.size(); ++i)
      if (g[i].defined()) parts[i].push_back(together ? g[i].dense() : expand_dims(g[i].dense(), 0));
  }
  std::vector<Tensor> result(xs.size());
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (!parts[i].empty()) result[i] = parts[i].size() == 1 ? std::move(parts[i][0]) : concat(parts[i], 0);
  return result;
}

void check(const Tape& tape, const Tensor& y, std::span<const Tensor> xs, const JacobianOptions& options,
           std::string_view name) {
  require_usable(tape);
  check_options(name, options);
  if (options.mode == JacobianMode::forward)
    throw_error<ArgumentError>("{}: a tape supports reverse mode only; use forward mode with a function",
                               name);
  if (is_complex(y.dtype()))
    throw_error<DTypeError>("{}: the target is {}; only real numbers have a Jacobian here", name, y.spec());
  for (const Tensor& x : xs)
    if (is_complex(x.dtype()))
      throw_error<DTypeError>("{}: a source is {}; only real numbers have a Jacobian here", name, x.spec());
}

std::int64_t rows_in(const Tensor& y, const Shape& shape) {
  return is_trainable(y.dtype()) ? shape.size() : 0;
}

}   // namespace

void check_rank(std::string_view name, const Spec& y, const Spec& x, int rank) {
  if (rank > Shape::kMaxRank)
    throw_error<ShapeError>(
        "{}: the derivative of {} in {} has {} axes, but a tensor has at most {}; reshape one of them to a "
        "vector first",
        name, y, x, rank, Shape::kMaxRank);
}

void check_options(std::string_view name, const JacobianOptions& options) {
  check_mode(name, options.unconnected);
  if (options.mode < JacobianMode::automatic || options.mode > JacobianMode::forward)
    throw_error<ArgumentError>(
        "{}: unknown value for mode: {}; use JacobianMode::automatic, reverse or forward", name,
        static_cast<int>(options.mode));
  if (options.max_bytes < 0)
    throw_error<ArgumentError>("{}: max_bytes is {}; use 0 or more", name, options.max_bytes);
}

Tensor identity_rows(std::int64_t first, std::int64_t count, std::int64_t n, DType dtype) {
  const StopRecording unrecorded;
  const Tensor square = eye(count, count, dtype);
  return count == n ? square : pad(square, {0, first}, {0, n - first - count});
}

Tensor batch_units(std::int64_t first, std::int64_t count, const Spec& of) {
  const StopRecording unrecorded;
  const Shape row(of.shape.dims().subspan(1));
  return broadcast_to(reshape(identity_rows(first, count, row.size(), of.dtype), behind({count, 1}, row)),
                      behind({count}, of.shape));
}

void check_batch(const Spec& y, const Spec& x) {
  if (y.shape.ndim() < 2)
    throw_error<ShapeError>("batch_jacobian: the target is {}; it must have rank 2 or more", y);
  if (x.shape.ndim() < 2)
    throw_error<ShapeError>("batch_jacobian: the source is {}; it must have rank 2 or more", x);
  if (y.shape[0] != x.shape[0])
    throw_error<ShapeError>("batch_jacobian: first extents differ: the target is {}, the source {}", y, x);
}

std::vector<Gradient> jacobians(Tape& tape, const Source& target, const Sources& sources,
                                const JacobianOptions& options, std::string_view name) {
  const Tensor y = tensors_of(target, "target")[0];
  const std::vector<Tensor> xs = tensors_of(sources, "source");
  check(tape, y, xs, options, name);
  for (const Tensor& x : xs)
    check_rank(name, y.spec(), x.spec(), y.ndim() + x.ndim());
  const std::int64_t n = rows_in(y, y.shape());
  const TapeUse use(tape);
  const std::vector<Tensor> rows =
      rows_of(tape, y, xs, n, options, [&](std::int64_t first, std::int64_t count) {
        return reshape(identity_rows(first, count, n, y.dtype()), behind({count}, y.shape()));
      });
  std::vector<Gradient> result;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const Shape shape = behind(y.shape(), xs[i].shape());
    if (rows[i].defined())
      result.push_back(reshape(rows[i], shape));
    else if (options.unconnected == UnconnectedGradients::zero)
      result.push_back(zeros(shape, xs[i].dtype()));
    else
      result.push_back(explained_none("Jacobian", tape, {&y, 1}, sources.all()[i]));
  }
  return result;
}

std::vector<Gradient> GradientTape::jacobians_of(const Source& target, const Sources& sources,
                                                 const JacobianOptions& options) {
  return jacobians(*tape_, target, sources, options, "jacobian");
}

Tensor GradientTape::batch_jacobian(const Source& target, const Source& source,
                                    const JacobianOptions& options) {
  const Tensor y = tensors_of(target, "target")[0], x = tensors_of(source, "source")[0];
  check(*tape_, y, {&x, 1}, options, "batch_jacobian");
  check_batch(y.spec(), x.spec());
  check_rank("batch_jacobian", y.spec(), x.spec(), y.ndim() + x.ndim() - 1);
  const Shape row(y.shape().dims().subspan(1)), of_x(x.shape().dims().subspan(1));
  const std::int64_t batch = y.shape()[0], n = rows_in(y, row);
  const TapeUse use(*tape_);
  // All rows of the batch at once, since each affects only its own part of the gradient.
  const Tensor rows = rows_of(*tape_, y, {&x, 1}, n, options, [&](std::int64_t first, std::int64_t count) {
    return batch_units(first, count, y.spec());
  })[0];
  const Shape shape = behind(behind({batch}, row), of_x);
  if (!rows.defined()) return zeros(shape, x.dtype());
  return reshape(transpose(reshape(rows, {n, batch, of_x.size()}), {1, 0, 2}), shape);
}

}   // namespace tapedeck
