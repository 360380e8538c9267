// Attention. For each head and block of 64 or 128 queries, the scores are a matrix product, the weights are
// the softmax of the masked scores, and the result is the product of weights and values. The gradient
// recomputes the weights (Dao et al. 2022, section 3.2, with a single block of all keys). Threads split heads
// and blocks; in the gradient, heads.
#include "kernels/nn/attention.h"

#include <algorithm>
#include <limits>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/layout/scratch.h"
#include "kernels/linalg/gemm.h"
#include "kernels/nn/softmax.h"
#include "kernels/simd/lanes.h"

namespace tapedeck::kernels {
namespace {

constexpr double kAttentionGrain = 1 << 20;   // least multiplications per thread

/// The queries [begin, end) of a head, and the keys [0, keys) that they may attend to.
struct Block {
  std::int64_t batch, head, begin, end, keys;

  std::int64_t rows() const { return end - begin; }
};

// The least number of tasks per thread, if each task has `queries` queries of a head.
std::int64_t tasks_at_least(const Attention& a, std::int64_t queries) {
  const double work =
      static_cast<double>(queries) * static_cast<double>(a.keys) * static_cast<double>(a.depth + a.outputs);
  return static_cast<std::int64_t>(kAttentionGrain / std::max(work, 1.0)) + 1;
}

// The queries of a block. In causal order, the number of keys differs between blocks, so that shorter blocks
// do less work in total.
std::int64_t rows_of_block(const Attention& a) { return a.causal && !a.mask ? 64 : 128; }
std::int64_t blocks_of(const Attention& a) { return (a.queries + rows_of_block(a) - 1) / rows_of_block(a); }

Block block_at(const Attention& a, std::int64_t batch, std::int64_t head, std::int64_t i) {
  const std::int64_t rows = rows_of_block(a), begin = i * rows, end = std::min(begin + rows, a.queries),
                     ahead = a.keys - a.queries;
  // With a mask, or before the first key, a query may attend to no key. Its result is then the mean over all
  // keys.
  const bool fewer = a.causal && !a.mask && begin + ahead >= 0;
  return {batch, head, begin, end, fewer ? std::min(a.keys, end + ahead) : a.keys};
}

/// The rows of one head in a tensor, `step` elements apart.
template <class T> struct AttentionRows {
  T* data;
  std::int64_t step;

  T* at(std::int64_t row) const { return data + row * step; }
};
template <class T> AttentionRows<T> rows_of(T* data, const Block& b, std::int64_t length, std::int64_t heads,
                                            std::int64_t depth) {
  return {data + (b.batch * length * heads + b.head) * depth, heads * depth};
}

/// Sets scores [rows, keys] of a block to `value` where the mask forbids them.
template <class T> void put_in_masked(const Attention& a, const Block& b, T value, T* scores) {
  const std::int64_t ahead = a.keys - a.queries;
  for (std::int64_t i = 0; i < b.rows(); ++i) {
    T* row = scores + i * b.keys;
    if (a.causal) {
      const std::int64_t first = std::clamp<std::int64_t>(b.begin + i + ahead + 1, 0, b.keys);
      std::fill(row + first, row + b.keys, value);
    }
    if (!a.mask) continue;
    const bool* mask =
        a.mask + b.batch * a.mask_steps[0] + b.head * a.mask_steps[1] + (b.begin + i) * a.mask_steps[2];
    for (std::int64_t j = 0; j < b.keys; ++j)
      row[j] = mask[j * a.mask_steps[3]] ? row[j] : value;
  }
}

/// The weights of a block, [rows, keys], and its scaled queries, [rows, depth].
template <class T>
void find_weights(const Attention& a, const Block& b, const T* q, const T* k, T* scaled, T* weights) {
  const AttentionRows<const T> queries = rows_of(q, b, a.queries, a.heads, a.depth),
                               keys = rows_of(k, b, a.keys, a.heads, a.depth);
  for (std::int64_t i = 0; i < b.rows(); ++i)
    for (std::int64_t c = 0; c < a.depth; ++c)
      scaled[i * a.depth + c] = queries.at(b.begin + i)[c] * static_cast<T>(a.scale);
  if (a.depth == 0)
    std::fill_n(weights, b.rows() * b.keys, T(0));
  else
    gemm(MatrixProduct<T>{.m = b.rows(),
                          .n = b.keys,
                          .k = a.depth,
                          .a = scaled,
                          .b = keys.data,
                          .y = weights,
                          .b_transposed = true,
                          .lda = a.depth,
                          .ldb = keys.step,
                          .ldy = b.keys});
  // Finite, so that a row that is masked entirely has a softmax.
  put_in_masked(a, b, std::numeric_limits<T>::lowest(), weights);
  softmax_rows(weights, b.rows(), b.keys);
}

template <class T> void forward(const Attention& a, const T* q, const T* k, const T* v, T* y) {
  const std::int64_t blocks = blocks_of(a), rows = rows_of_block(a);
  const OneBlasThread guard;
  parallel_for(a.batch * a.heads * blocks, tasks_at_least(a, std::min(rows, a.queries)),
               [&](std::int64_t first, std::int64_t last) {
                 const auto scaled = scratch_for<T>(rows * a.depth + 1),
                            weights = scratch_for<T>(rows * a.keys);
                 for (std::int64_t task = first; task < last; ++task) {
                   const std::int64_t pair = task / blocks;
                   const Block b = block_at(a, pair / a.heads, pair % a.heads, task % blocks);
                   find_weights(a, b, q, k, scaled.get(), weights.get());
                   const AttentionRows<const T> values = rows_of(v, b, a.keys, a.heads, a.outputs);
                   const AttentionRows<T> results = rows_of(y, b, a.queries, a.heads, a.outputs);
                   gemm(MatrixProduct<T>{.m = b.rows(),
                                         .n = a.outputs,
                                         .k = b.keys,
                                         .a = weights.get(),
                                         .b = values.data,
                                         .y = results.at(b.begin),
                                         .lda = b.keys,
                                         .ldb = values.step,
                                         .ldy = results.step});
                 }
               });
}

template <class T> void zero(const AttentionRows<T>& x, std::int64_t rows, std::int64_t n) {
  for (std::int64_t i = 0; i < rows; ++i)
    std::fill_n(x.at(i), n, T(0));
}

// A task is a head. Its blocks add to the gradients of keys and values in order.
template <class T>
void gradient(const Attention& a, const T* dy, const T* q, const T* k, const T* v, T* dq, T* dk, T* dv) {
  const std::int64_t rows = rows_of_block(a);
  const OneBlasThread guard;
  parallel_for(a.batch * a.heads, tasks_at_least(a, 5 * a.queries / 2),
               [&](std::int64_t first, std::int64_t last) {
                 const auto scaled = scratch_for<T>(rows * a.depth + 1),
                            weights = scratch_for<T>(rows * a.keys), ds = scratch_for<T>(rows * a.keys);
                 for (std::int64_t pair = first; pair < last; ++pair) {
                   const Block whole = block_at(a, pair / a.heads, pair % a.heads, 0);
                   const AttentionRows<T> dkeys = rows_of(dk, whole, a.keys, a.heads, a.depth),
                                          dvalues = rows_of(dv, whole, a.keys, a.heads, a.outputs),
                                          dqueries = rows_of(dq, whole, a.queries, a.heads, a.depth);
                   const AttentionRows<const T> keys = rows_of(k, whole, a.keys, a.heads, a.depth),
                                                values = rows_of(v, whole, a.keys, a.heads, a.outputs),
                                                results = rows_of(dy, whole, a.queries, a.heads, a.outputs);
                   zero(dkeys, a.keys, a.depth);
                   zero(dvalues, a.keys, a.outputs);
                   for (std::int64_t i = 0; i < blocks_of(a); ++i) {
                     const Block b = block_at(a, whole.batch, whole.head, i);
                     find_weights(a, b, q, k, scaled.get(), weights.get());
                     gemm(MatrixProduct<T>{.m = b.keys,
                                           .n = a.outputs,
                                           .k = b.rows(),
                                           .a = weights.get(),
                                           .b = results.at(b.begin),
                                           .y = dvalues.data,
                                           .a_transposed = true,
                                           .lda = b.keys,
                                           .ldb = results.step,
                                           .ldy = dvalues.step,
                                           .add = true});
                     gemm(MatrixProduct<T>{.m = b.rows(),
                                           .n = b.keys,
                                           .k = a.outputs,
                                           .a = results.at(b.begin),
                                           .b = values.data,
                                           .y = ds.get(),
                                           .b_transposed = true,
                                           .lda = results.step,
                                           .ldb = values.step,
                                           .ldy = b.keys});
                     softmax_derivative_rows(weights.get(), b.rows(), b.keys, ds.get());
                     put_in_masked(a, b, T(0), ds.get());
                     if (a.depth == 0) continue;
                     gemm(MatrixProduct<T>{.m = b.keys,
                                           .n = a.depth,
                                           .k = b.rows(),
                                           .a = ds.get(),
                                           .b = scaled.get(),
                                           .y = dkeys.data,
                                           .a_transposed = true,
                                           .lda = b.keys,
                                           .ldb = a.depth,
                                           .ldy = dkeys.step,
                                           .add = true});
                     gemm(MatrixProduct<T>{.m = b.rows(),
                                           .n = a.depth,
                                           .k = b.keys,
                                           .a = ds.get(),
                                           .b = keys.data,
                                           .y = dqueries.at(b.begin),
                                           .lda = b.keys,
                                           .ldb = keys.step,
                                           .ldy = dqueries.step});
                     for (std::int64_t row = b.begin; row < b.end; ++row)
                       for (std::int64_t c = 0; c < a.depth; ++c)
                         dqueries.at(row)[c] *= static_cast<T>(a.scale);
                   }
                 }
               });
}

}   // namespace

void set_mask(Attention& a, const Tensor& mask) {
  a.mask = elements<bool>(mask);
  const int rank = mask.ndim();
  std::int64_t step = 1;
  for (int axis = 1; axis <= rank; ++axis) {   // from the last one
    const std::int64_t n = mask.shape()[rank - axis];
    a.mask_steps[static_cast<std::size_t>(4 - axis)] = n == 1 ? 0 : step;
    step *= n;
  }
}

void attention(const Attention& a, const Tensor& q, const Tensor& k, const Tensor& v, Tensor& y) {
  if (y.size() == 0) return;
  visit_floating(y.dtype(), [&](auto one) {
    using T = decltype(one);
    forward(a, elements<T>(q), elements<T>(k), elements<T>(v), elements<T>(y));
  });
}

void attention_gradient(const Attention& a, const Tensor& dy, const Tensor& q, const Tensor& k,
                        const Tensor& v, Tensor& dq, Tensor& dk, Tensor& dv) {
  visit_floating(dy.dtype(), [&](auto one) {
    using T = decltype(one);
    if (a.batch == 0 || a.queries == 0 || a.keys == 0 || a.outputs == 0) {
      for (Tensor* t : {&dq, &dk, &dv})
        std::fill_n(elements<T>(*t), t->size(), T(0));
      return;
    }
    gradient(a, elements<T>(dy), elements<T>(q), elements<T>(k), elements<T>(v), elements<T>(dq),
             elements<T>(dk), elements<T>(dv));
  });
}

}   // namespace tapedeck::kernels
