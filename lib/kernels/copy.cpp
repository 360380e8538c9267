// Elements moved. In: where they come from and go to, as strides. Out: runs, fills, tiles, or xtensor's strided loops.
#include "kernels/copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <xtensor/xadapt.hpp>
#include <xtensor/xnoalias.hpp>

#include "base/convert.h"
#include "base/parallel.h"
#include "base/visit.h"
#include "kernels/transpose_tile.h"
#include "tensor/storage.h"

namespace tapedeck::kernels {
namespace {

using Strides = std::array<std::int64_t, Shape::kMaxRank>;

constexpr std::int64_t kGrain = 1 << 16;   // elements that are worth a thread
constexpr std::int64_t kBand = 64;         // rows of a transposition that one thread writes at a time

Strides strides_of(const Shape& shape) {
  Strides strides{};
  std::int64_t step = 1;
  for (int d = shape.ndim(); d-- > 0; step *= shape[d]) strides[static_cast<std::size_t>(d)] = step;
  return strides;
}

std::int64_t offset_of(const Shape& begin, const Strides& strides) {
  std::int64_t offset = 0;
  for (int d = 0; d < begin.ndim(); ++d) offset += begin[d] * strides[static_cast<std::size_t>(d)];
  return offset;
}

struct Axis { std::int64_t extent, from, to; };

// Elements in order: how many along each axis, and how far one step goes in the source and in the target.
struct Walk {
  std::array<Axis, Shape::kMaxRank + 1> axes{};
  int ndim = 0;

  // Axes that continue each other become one; there is at least one.
  Walk(const Shape& shape, const Strides& from, const Strides& to) {
    for (int d = 0; d < shape.ndim(); ++d) {
      const auto i = static_cast<std::size_t>(d);
      if (shape[d] != 1) append({shape[d], from[i], to[i]});
    }
    if (ndim == 0) append({1, 1, 1});
  }

  Axis& inner() { return axes[static_cast<std::size_t>(ndim - 1)]; }
  const Axis& inner() const { return axes[static_cast<std::size_t>(ndim - 1)]; }

  void append(const Axis& a) {
    if (ndim && inner().from == a.from * a.extent && inner().to == a.to * a.extent) inner() = {inner().extent * a.extent, a.from, a.to};
    else axes[static_cast<std::size_t>(ndim++)] = a;
  }

  // The number of positions along all axes but the last `without` ones.
  std::int64_t count(int without) const {
    std::int64_t n = 1;
    for (int d = 0; d < ndim - without; ++d) n *= axes[static_cast<std::size_t>(d)].extent;
    return n;
  }
  // Calls f(from, to) with the offsets of positions [begin, end) of count(without).
  template <class F> void each(int without, std::int64_t begin, std::int64_t end, F f) const {
    std::array<std::int64_t, Shape::kMaxRank + 1> index{};
    std::int64_t from = 0, to = 0;
    const auto step = [&](std::size_t d, std::int64_t by) {
      index[d] += by;
      from += by * axes[d].from;
      to += by * axes[d].to;
    };
    const auto outer = static_cast<std::size_t>(ndim - without);
    for (std::size_t d = outer, rest = static_cast<std::size_t>(begin); d-- > 0;) {
      const auto extent = static_cast<std::size_t>(axes[d].extent);
      step(d, static_cast<std::int64_t>(rest % extent));
      rest /= extent;
    }
    for (std::int64_t position = begin; position < end; ++position) {
      f(from, to);
      for (std::size_t d = outer; d-- > 0;) {
        step(d, 1);
        if (index[d] < axes[d].extent) break;
        step(d, -axes[d].extent);
      }
    }
  }
};

// Calls run(from, to, n) for the elements along the inner axis, or for pieces of them where that is the only one.
template <class Run> void each_run(const Walk& w, Run run) {
  const Axis inner = w.inner();
  if (w.ndim == 1)
    return parallel_for(inner.extent, kGrain, [&](std::int64_t begin, std::int64_t end) { run(begin * inner.from, begin * inner.to, end - begin); });
  parallel_for(w.count(1), std::max(std::int64_t{1}, kGrain / inner.extent), [&](std::int64_t begin, std::int64_t end) {
    w.each(1, begin, end, [&](std::int64_t from, std::int64_t to) { run(from, to, inner.extent); });
  });
}

// Rows [0, rows) of the target, which are columns of the source.
template <class T> void transpose_rows(const T* from, std::int64_t from_step, T* to, std::int64_t to_step, std::int64_t rows, std::int64_t columns) {
  std::int64_t i = 0;
  for (; i + kTile<T> <= rows; i += kTile<T>) {
    std::int64_t j = 0;
    for (; j + kTile<T> <= columns; j += kTile<T>) transpose_tile(from + j * from_step + i, from_step, to + i * to_step + j, to_step);
    for (; j < columns; ++j)
      for (std::int64_t k = i; k < i + kTile<T>; ++k) to[k * to_step + j] = from[j * from_step + k];
  }
  for (; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) to[i * to_step + j] = from[j * from_step + i];
}

// The last two axes of the walk: contiguous in the source along the first of them, in the target along the second.
template <class T> void transpose_all(const Walk& w, const T* from, T* to) {
  const Axis rows = w.axes[static_cast<std::size_t>(w.ndim - 2)], columns = w.inner();
  const std::int64_t bands = (rows.extent + kBand - 1) / kBand;
  const std::int64_t grain = std::max(std::int64_t{1}, kGrain / (std::min(kBand, rows.extent) * columns.extent));
  parallel_for(w.count(2) * bands, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const std::int64_t first = piece % bands * kBand, matrix = piece / bands;
      w.each(2, matrix, matrix + 1, [&](std::int64_t from_matrix, std::int64_t to_matrix) {
        transpose_rows(from + from_matrix + first, columns.from, to + to_matrix + first * rows.to, rows.to, std::min(kBand, rows.extent - first), columns.extent);
      });
    }
  });
}

template <class T> auto adapted(const Walk& w, T* data, std::int64_t Axis::*step) {
  std::vector<std::size_t> shape;
  std::vector<std::ptrdiff_t> strides;
  for (int d = 0; d < w.ndim; ++d) {
    const Axis& a = w.axes[static_cast<std::size_t>(d)];
    shape.push_back(static_cast<std::size_t>(a.extent));
    strides.push_back(a.*step);
  }
  return xt::adapt(data, static_cast<std::size_t>(w.count(0)), xt::no_ownership(), shape, strides);
}

template <class T> void copy(Walk w, const T* from, T* to) {
  const Axis inner = w.inner();
  if (inner.from == 1 && inner.to == 1)
    return each_run(w, [&](std::int64_t f, std::int64_t t, std::int64_t n) { std::memcpy(to + t, from + f, static_cast<std::size_t>(n) * sizeof(T)); });
  if (inner.from == 0 && inner.to == 1)
    return each_run(w, [&](std::int64_t f, std::int64_t t, std::int64_t n) { std::fill_n(to + t, n, from[f]); });

  const auto end = w.axes.begin() + w.ndim - 1;
  const auto contiguous = std::find_if(w.axes.begin(), end, [](const Axis& a) { return a.from == 1; });
  if (inner.to != 1 || contiguous == end) {
    auto target = adapted(w, to, &Axis::to);
    xt::noalias(target) = adapted(w, from, &Axis::from);
    return;
  }
  std::rotate(contiguous, contiguous + 1, end);
  transpose_all(w, from, to);
}

void copy(const Walk& w, const Tensor& x, std::int64_t first_from, Tensor& y, std::int64_t first_to) {
  if (x.size() == 0 || y.size() == 0) return;
  visit_size(y.dtype(), [&](auto t) {
    using T = decltype(t);
    copy(w, elements<T>(x) + first_from, elements<T>(y) + first_to);
  });
}

}  // namespace

void transpose(const Tensor& x, std::span<const std::int8_t> perm, Tensor& y) {
  const Strides strides = strides_of(x.shape());
  Strides from{};
  for (std::size_t d = 0; d < perm.size(); ++d) from[d] = strides[static_cast<std::size_t>(perm[d])];
  copy(Walk(y.shape(), from, strides_of(y.shape())), x, 0, y, 0);
}

void broadcast(const Tensor& x, Tensor& y) {
  const Strides strides = strides_of(x.shape());
  Strides from{};
  const int extra = y.ndim() - x.ndim();
  for (int d = 0; d < x.ndim(); ++d)
    if (x.shape()[d] != 1) from[static_cast<std::size_t>(d + extra)] = strides[static_cast<std::size_t>(d)];
  copy(Walk(y.shape(), from, strides_of(y.shape())), x, 0, y, 0);
}

void copy_part(const Tensor& x, const Shape& begin, Tensor& y) {
  const Strides from = strides_of(x.shape());
  copy(Walk(y.shape(), from, strides_of(y.shape())), x, offset_of(begin, from), y, 0);
}

void copy_into(const Tensor& x, Tensor& y, const Shape& begin) {
  const Strides to = strides_of(y.shape());
  copy(Walk(x.shape(), strides_of(x.shape()), to), x, 0, y, offset_of(begin, to));
}

void cast(const Tensor& x, Tensor& y) {
  visit(x.dtype(), [&](auto f) {
    visit(y.dtype(), [&](auto t) {
      using From = decltype(f);
      using To = decltype(t);
      const From* in = elements<From>(x);
      To* out = elements<To>(y);
      parallel_for(x.size(), kGrain, [&](std::int64_t begin, std::int64_t end) { std::transform(in + begin, in + end, out + begin, convert<To, From>); });
    });
  });
}

}  // namespace tapedeck::kernels
