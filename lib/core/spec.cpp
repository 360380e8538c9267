// Checked sizes in bytes of dtypes and shapes, and their names.
#include <algorithm>
#include <atomic>

#include "core/format.h"
#include "core/visit.h"
#include "tapedeck/shape.h"

fmt::format_context::iterator fmt::formatter<tapedeck::Shape>::format(const tapedeck::Shape& s,
                                                                      fmt::format_context& c) const {
  const std::string text = tapedeck::to_string(s);
  return std::copy(text.begin(), text.end(), c.out());
}
fmt::format_context::iterator fmt::formatter<tapedeck::Spec>::format(const tapedeck::Spec& s,
                                                                     fmt::format_context& c) const {
  const std::string text = tapedeck::to_string(s);
  return std::copy(text.begin(), text.end(), c.out());
}
fmt::format_context::iterator fmt::formatter<tapedeck::DType>::format(tapedeck::DType t,
                                                                      fmt::format_context& c) const {
  const std::string_view text = tapedeck::name_of(t);
  return std::copy(text.begin(), text.end(), c.out());
}

namespace tapedeck {

std::int64_t Spec::nbytes() const {
  std::int64_t n;
  if (__builtin_mul_overflow(shape.size(), size_of(dtype), &n) || n > (std::int64_t{1} << 62))
    throw ShapeError("shape: too many bytes: " + to_string(*this));
  return n;
}

std::string to_string(const Spec& spec) { return std::string(name_of(spec.dtype)) + to_string(spec.shape); }

namespace {
constinit std::atomic<DType> the_default = DType::f32;
}
DType default_dtype() noexcept { return the_default.load(std::memory_order_relaxed); }
void set_default_dtype(DType t) {
  if (t != DType::f32 && t != DType::f64)
    throw_error<DTypeError>("set_default_dtype: {} cannot be the default; use f32 or f64", t);
  the_default.store(t, std::memory_order_relaxed);
}

void detail::throw_no_dtype(int number) {
  throw DTypeError("dtype: no dtype has the number " + std::to_string(number) + "; use f32, f64, …");
}

void throw_not_taken(DType t) {
  throw DTypeError("the op does not take " + std::string(name_of(t)) + ", use astype");
}

}   // namespace tapedeck
