// Functions of IndexedSlices. In: slices, which are validated here. Out: the same gradient in another form,
// computed by ops.
#include <algorithm>
#include <limits>
#include <sstream>

#include "core/format.h"
#include "core/trace.h"
#include "kernels/layout/index_check.h"
#include "ops/infer.h"
#include "tapedeck/indexed_slices.h"
#include "tapedeck/ops/index.h"
#include "tapedeck/ops/sort.h"

namespace tapedeck {
namespace {

constexpr std::int64_t kLarge = 100'000'000;   // to_dense warns from this number of elements on

std::string describe(const IndexedSlices& s) {
  return fmt::format("values is {}, indices is {}, dense_shape is {}", s.values.spec(), s.indices.spec(),
                     s.dense_shape ? to_string(*s.dense_shape) : "not given");
}

template <class E> [[noreturn]] void throw_invalid(const IndexedSlices& s, std::string_view caller,
                                                   std::string_view variable, std::string_view what) {
  throw_error<E>("{}: {}: {}{}", caller, what, describe(s),
                 variable.empty() ? "" : fmt::format(", variable is \"{}\"", variable));
}

bool shapes_fit(const IndexedSlices& s) {
  const Shape& values = s.values.shape();
  if (s.indices.ndim() != 1 || values.ndim() == 0 || values[0] != s.indices.size()) return false;
  if (!s.dense_shape) return true;
  Shape rows = *s.dense_shape;
  if (rows.ndim() > 0) rows.set(0, values[0]);
  return rows == values;
}

}   // namespace

void validate(const IndexedSlices& s, std::string_view caller, std::string_view variable) {
  if (!s.values.defined() || !s.indices.defined())
    throw_error<ArgumentError>("{}: the slices have undefined {}", caller,
                               s.values.defined() ? "indices" : "values");
  if (!holds_indices(s.indices))
    throw_invalid<DTypeError>(s, caller, variable, "the indices of slices must be integers");
  if (!shapes_fit(s))
    throw_invalid<ShapeError>(s, caller, variable, "the parts of the slices do not fit together");
  if (thread_state.trace && !thread_state.trace->has_values()) return;
  const std::int64_t extent = s.dense_shape ? (*s.dense_shape)[0] : std::numeric_limits<std::int64_t>::max();
  if (const auto o = kernels::first_outside(s.indices, extent))
    throw_invalid<ShapeError>(
        s, caller, variable,
        fmt::format("index {} at position {} of the slices is out of range", o->index, o->position));
}

Tensor to_dense(const IndexedSlices& s) {
  validate(s, "to_dense");
  if (!s.dense_shape)
    throw_invalid<ArgumentError>(s, "to_dense", {}, "the slices do not say how many rows the tensor has");
  if (s.dense_shape->size() >= kLarge)
    warn(fmt::format("to_dense: slices become a dense tensor of {} elements: {}", s.dense_shape->size(),
                     Spec{s.values.dtype(), *s.dense_shape}));
  return scatter_add(s.values, s.indices, *s.dense_shape);
}

IndexedSlices sum_duplicates(const IndexedSlices& s) {
  validate(s, "sum_duplicates");
  const Unique found = unique(s.indices);
  const std::int64_t n = found.values.size();
  if (n == s.indices.size()) return s;
  Shape shape = s.values.shape();
  shape.set(0, n);
  return {scatter_add(s.values, found.inverse, shape), found.values, s.dense_shape};
}

std::ostream& operator<<(std::ostream& out, const IndexedSlices& s) {
  return out << "values: " << s.values << "\nindices: " << s.indices
             << "\ndense_shape: " << (s.dense_shape ? to_string(*s.dense_shape) : "not given");
}
std::string to_string(const IndexedSlices& s) {
  std::ostringstream out;
  out << s;
  return out.str();
}

}   // namespace tapedeck
