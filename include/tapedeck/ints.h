// Ints: a list of integers as an argument.
#pragma once
#include <concepts>
#include <initializer_list>
#include <span>

#include "tapedeck/shape.h"

namespace tapedeck {

/// Integers, such as one for each axis: {1, 2}, a std::vector, std::array or std::span of std::int64_t, or
/// the extents of a Shape. It only refers to them, so use it as a parameter type: a variable of this type
/// must not be constructed from braces or a temporary.
class Ints {
 public:
  constexpr Ints() = default;
  constexpr Ints(std::initializer_list<std::int64_t> list) : list_(list.begin(), list.size()) {}
  template <class List>
  requires requires(const List& list) {
    { list.data() } -> std::convertible_to<const std::int64_t*>;
    { list.size() } -> std::convertible_to<std::size_t>;
  }
  constexpr Ints(const List& list) : list_(list.data(), list.size()) {}
  constexpr Ints(const Shape& shape) : list_(shape.dims()) {}

  /// The integers; their number; one of them, unchecked.
  constexpr std::span<const std::int64_t> span() const { return list_; }
  constexpr std::size_t size() const { return list_.size(); }
  constexpr bool empty() const { return list_.empty(); }
  constexpr std::int64_t operator[](std::size_t i) const { return list_[i]; }
  constexpr auto begin() const { return list_.begin(); }
  constexpr auto end() const { return list_.end(); }

 private:
  std::span<const std::int64_t> list_;
};

}   // namespace tapedeck
