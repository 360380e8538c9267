// Ids of values, nodes, keys and steps: distinct types, so that they cannot be confused, and vectors that are
// indexed by one type of id only.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapedeck::compiled {

/// An index into a list. A default-constructed id is none, and converts to false.
template <class Tag> class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : n_(static_cast<std::uint32_t>(index)) {}
  constexpr std::size_t index() const { return n_; }
  constexpr explicit operator bool() const { return n_ != kNone; }
  friend constexpr bool operator==(const Id&, const Id&) = default;
  friend constexpr auto operator<=>(const Id&, const Id&) = default;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t n_ = kNone;
};

using ValueId = Id<struct ValueTag>;
using NodeId = Id<struct NodeTag>;
using KeyId = Id<struct KeyTag>;
using StepId = Id<struct StepTag>;

/// A vector that is indexed by ids.
template <class I, class T> class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t n, const T& value = T()) : list_(n, value) {}

  typename std::vector<T>::reference operator[](I i) { return list_[i.index()]; }
  typename std::vector<T>::const_reference operator[](I i) const { return list_[i.index()]; }
  I push_back(T&& value) {
    list_.push_back(std::move(value));
    return I(list_.size() - 1);
  }
  I push_back(const T& value) { return push_back(T(value)); }
  void reserve(std::size_t n) { list_.reserve(n); }
  void resize(std::size_t n) { list_.resize(n); }
  std::size_t size() const { return list_.size(); }
  auto begin() { return list_.begin(); }
  auto end() { return list_.end(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  std::vector<T> list_;
};

/// The ids of a list of n elements, for range-based for loops.
template <class I> class IdsOf {
 public:
  explicit IdsOf(std::size_t n) : n_(n) {}
  class Iterator {
   public:
    explicit Iterator(std::size_t at) : at_(at) {}
    I operator*() const { return I(at_); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    std::size_t at_;
  };
  Iterator begin() const { return Iterator(0); }
  Iterator end() const { return Iterator(n_); }

 private:
  std::size_t n_;
};
template <class I, class T> IdsOf<I> ids_of(const IdVector<I, T>& list) { return IdsOf<I>(list.size()); }

}   // namespace tapedeck::compiled
