// Checks that a replay leaves arguments, variables, captured tensors and earlier results unchanged, by copies
// of their bytes; and compares results with those of the function itself.
#pragma once
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "tapedeck/variable.h"

namespace tapedeck::test {

namespace detail {

// Whether a number, read as an integer of its width, is a NaN.
template <class T> bool is_nan_of(const std::byte* p, T infinity) {
  T v;
  std::memcpy(&v, p, sizeof v);
  constexpr T sign = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
  return static_cast<T>(v & static_cast<T>(~sign)) > infinity;
}
// As is_nan_of; for a complex number, of one of its parts.
inline bool is_nan_at(const std::byte* p, DType type) {
  switch (type) {
    case DType::f16:
      return is_nan_of<std::uint16_t>(p, 0x7c00);
    case DType::bf16:
      return is_nan_of<std::uint16_t>(p, 0x7f80);
    case DType::f32:
      return is_nan_of<std::uint32_t>(p, 0x7f800000);
    case DType::f64:
      return is_nan_of<std::uint64_t>(p, 0x7ff0000000000000);
    default:
      return false;
  }
}

inline std::string number_at(const Tensor& x, std::size_t part, std::size_t width) {
  std::ostringstream out;
  out.precision(17);
  const std::byte* const p = x.raw() + part * width;
  float f = 0;
  double d = 0;
  if (real_of(x.dtype()) == DType::f32) {
    std::memcpy(&f, p, sizeof f), out << f;
  } else if (real_of(x.dtype()) == DType::f64) {
    std::memcpy(&d, p, sizeof d), out << d;
  } else {
    std::int64_t v = 0;
    std::memcpy(&v, p, width), out << "bits " << v;
  }
  return out.str();
}

}   // namespace detail

/// "" if both have the same spec and the same bits, except that any two NaN are equal; else a description of
/// the first difference. Both may be undefined. The sign of zero counts.
inline std::string difference(const Tensor& actual, const Tensor& wanted) {
  if (actual.defined() != wanted.defined()) return actual.defined() ? "is defined" : "is undefined";
  if (!actual.defined()) return "";
  if (actual.spec() != wanted.spec())
    return "is " + to_string(actual.spec()) + " in place of " + to_string(wanted.spec());
  const auto bytes = static_cast<std::size_t>(wanted.nbytes());
  if (bytes == 0 || std::memcmp(actual.raw(), wanted.raw(), bytes) == 0) return "";
  const DType type = real_of(wanted.dtype());
  const auto width = static_cast<std::size_t>(size_of(type));
  std::size_t different = 0, first = 0;
  for (std::size_t i = 0; i < bytes / width; ++i) {
    const std::byte *const a = actual.raw() + i * width, *const w = wanted.raw() + i * width;
    if (std::memcmp(a, w, width) == 0) continue;
    if (detail::is_nan_at(a, type) && detail::is_nan_at(w, type)) continue;
    if (different++ == 0) first = i;
  }
  if (different == 0) return "";
  return to_string(wanted.spec()) + " differs in " + std::to_string(different) + " of " +
         std::to_string(bytes / width) + " numbers, first in number " + std::to_string(first) + ": " +
         detail::number_at(actual, first, width) + " in place of " + detail::number_at(wanted, first, width);
}
inline bool same(const Tensor& actual, const Tensor& wanted) { return difference(actual, wanted).empty(); }

/// The first difference of two lists, or "".
inline std::string difference(const std::vector<Tensor>& actual, const std::vector<Tensor>& wanted) {
  if (actual.size() != wanted.size())
    return std::to_string(actual.size()) + " results in place of " + std::to_string(wanted.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    if (const std::string d = difference(actual[i], wanted[i]); !d.empty())
      return "result " + std::to_string(i) + " " + d;
  return "";
}

/// Copies of bytes. Keeps no handles, so that it does not cause memory to be shared: tensors that are added
/// must outlive it.
class Unchanged {
 public:
  Unchanged() = default;
  explicit Unchanged(const std::vector<Tensor>& x, const std::string& name = "argument") { add(x, name); }

  void add(const Tensor& x, std::string name) {
    if (!x.defined() || x.size() == 0) return;
    all_.push_back({std::move(name), x.raw(), bytes_of(x), {}, x.spec()});
  }
  void add(const std::vector<Tensor>& x, const std::string& name) {
    for (std::size_t i = 0; i < x.size(); ++i)
      add(x[i], name + " " + std::to_string(i));
  }
  /// Adds the value of a variable.
  void add(const Variable& v, std::string name) {
    const Tensor x = v.value();
    all_.push_back({std::move(name), nullptr, bytes_of(x), v, x.spec()});
  }
  void add(const std::vector<Variable>& v, const std::string& name) {
    for (std::size_t i = 0; i < v.size(); ++i)
      add(v[i], name + " " + std::to_string(i));
  }

  /// "" if all bytes are unchanged, else a description of the change.
  std::string changed() const {
    for (const Copy& c : all_) {
      const Tensor now = c.variable ? c.variable->value() : Tensor();
      const std::byte* const p = c.variable ? now.raw() : c.memory;
      if (c.bytes.empty() || std::memcmp(p, c.bytes.data(), c.bytes.size()) == 0) continue;
      std::size_t i = 0;
      while (p[i] == c.bytes[i])
        ++i;
      return c.name + " " + to_string(c.spec) + " has changed, first in element " +
             std::to_string(i / static_cast<std::size_t>(size_of(c.spec.dtype)));
    }
    return "";
  }

 private:
  static std::vector<std::byte> bytes_of(const Tensor& x) {
    return {x.raw(), x.raw() + static_cast<std::size_t>(x.nbytes())};
  }

  struct Copy {
    std::string name;
    const std::byte* memory;   // null for a variable
    std::vector<std::byte> bytes;
    std::optional<Variable> variable;
    Spec spec;
  };
  std::vector<Copy> all_;
};

}   // namespace tapedeck::test
