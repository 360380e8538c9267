// Case: inputs, expected values and tolerance of one case of test/data/cases.json. It fails the test if a
// leaf of `expected` was never compared. If the environment variable TAPEDECK_CASES_REPORT names a file, each
// case adds a line to it.
#pragma once
#include <set>
#include <string>

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

class Case {
 public:
  explicit Case(std::string id);
  ~Case();
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  Tensor input(const std::string& name, DType dtype = DType::f32) const;
  double number(const std::string& name) const;

  /// Compares with expected[name]. A slash in the name goes one level deeper: "error/kind".
  template <class T> void check(const std::string& name, const T& actual) { compare(name, json_of(actual)); }
  template <class T> void check(const std::string& name, std::initializer_list<T> actual) {
    compare(name, json_of(std::vector<T>(actual)));
  }
  /// For a leaf that states a property in words: checks that it holds.
  void holds(const std::string& name, bool property);
  /// For a leaf that states behaviour of an early TensorFlow version, where the library follows a later one:
  /// `row` is the number of this difference in the project's specification, such as V5.
  void superseded(const std::string& name, const std::string& row);
  /// For an error: checks that f throws the library's counterpart of its kind, with this text.
  template <class F> void check_error(const F& f, const std::string& text) {
    try {
      f();
    } catch (const Error& e) {
      return compare_error(&e, text);
    }
    compare_error(nullptr, text);
  }

 private:
  void compare(const std::string& name, const Json& actual);
  void compare_error(const Error* e, const std::string& text);
  /// Removes the leaves below name from those that remain to be compared; false if there are none.
  bool take(const std::string& name);
  void fail(const std::string& what);

  std::string id_;
  Json case_;
  std::set<std::string> left_;   // leaves of `expected`, as JSON pointers
  std::size_t leaves_ = 0;
  int exceptions_ = 0;
  bool failed_ = false;
};

}   // namespace tapedeck::test
