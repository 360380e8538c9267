// Case: inputs, expected values and tolerance of one case of test/data/cases.json. It fails the test if a
// leaf of `expected` was never compared. If the environment variable TAPEDECK_CASES_REPORT names a file, each
// case adds a line to it.
#pragma once
#include <set>
#include <string>
#include <typeinfo>

#include <nlohmann/json.hpp>

#include "tapedeck/tapedeck.h"

namespace tapedeck::test {

using Json = nlohmann::json;

// Actual values in the form of the file: none is null, slices are an object.
Json json_of(const Tensor& x);
Json json_of(const Gradient& g);
Json json_of(const std::vector<Variable>& variables);   // their names
template <class T> Json json_of(const T& value) {
  if constexpr (requires { Json(value); }) {
    return Json(value);
  } else {
    Json all = Json::array();
    for (const auto& e : value)
      all.push_back(json_of(e));
    return all;
  }
}

/// The dtypes of the tensors among actual values; of slices, of their values.
std::set<DType> dtypes_of(const Tensor& x);
std::set<DType> dtypes_of(const Gradient& g);
template <class T> std::set<DType> dtypes_of(const T& value) {
  std::set<DType> all;
  if constexpr (!requires { Json(value); } && !std::is_same_v<T, std::vector<Variable>>)
    for (const auto& e : value)
      all.merge(dtypes_of(e));
  return all;
}

class Case {
 public:
  /// `dtype` is that of the inputs and of the tensors that come out. TensorFlow's tests use f32 where the
  /// file says nothing.
  explicit Case(std::string id, DType dtype = DType::f32);
  ~Case();
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  Tensor input(const std::string& name) const { return input(name, dtype_); }
  Tensor input(const std::string& name, DType dtype) const;
  double number(const std::string& name) const;

  /// Compares with expected[name], and the dtype of tensors with the case's. A slash in the name goes one
  /// level deeper: "error/kind".
  template <class T> void check(const std::string& name, const T& actual) { check(name, actual, dtype_); }
  template <class T> void check(const std::string& name, const T& actual, DType dtype) {
    compare(name, json_of(actual), dtypes_of(actual), dtype);
  }
  template <class T> void check(const std::string& name, std::initializer_list<T> actual) {
    check(name, std::vector<T>(actual));
  }
  /// For a leaf that states a property in words: checks that it holds.
  void holds(const std::string& name, bool property);
  /// For a leaf that states behaviour of an early TensorFlow version, where the library follows a later one:
  /// `row` is the number of this difference in the project's specification, such as V5.
  void superseded(const std::string& name, const std::string& row);
  /// For an error: checks that f throws exactly the library's counterpart of its kind, with this text.
  /// docs/testing.md has the table of counterparts; E names another one where the library tells more kinds
  /// apart than TensorFlow.
  template <class E = void, class F> void check_error(const F& f, const std::string& text) {
    const std::type_info* const kind = std::is_void_v<E> ? nullptr : &typeid(E);
    try {
      f();
    } catch (const Error& e) {
      return compare_error(&e, text, kind);
    }
    compare_error(nullptr, text, kind);
  }

 private:
  void compare(const std::string& name, const Json& actual, const std::set<DType>& dtypes, DType dtype);
  void compare_error(const Error* e, const std::string& text, const std::type_info* kind);
  /// Removes the leaves below name from those that remain to be compared; false if there are none.
  bool take(const std::string& name);
  void fail(const std::string& what);

  std::string id_;
  DType dtype_;
  Json case_;
  std::set<std::string> left_;   // leaves of `expected`, as JSON pointers
  std::size_t leaves_ = 0;
  int exceptions_ = 0;
  bool failed_ = false;
};

}   // namespace tapedeck::test
