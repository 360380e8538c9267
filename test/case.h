// Case: inputs, expected values and tolerance of one case of test/data/cases.json. It fails the test where a
// leaf of `expected` was never compared. Where the environment names a file TAPEDECK_CASES_REPORT, each case
// adds a line to it.
#pragma once
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "tapedeck/tapedeck.h"

namespace tapedeck::test {

using Json = nlohmann::json;

// Actual values as the file writes them: none is null, slices are an object.
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

  /// Compares with expected[name], where a slash goes deeper: "error/kind".
  template <class T> void check(const std::string& name, const T& actual) { compare(name, json_of(actual)); }
  template <class T> void check(const std::string& name, std::initializer_list<T> actual) {
    compare(name, json_of(std::vector<T>(actual)));
  }
  /// For a leaf that states a property in words: whether it holds.
  void holds(const std::string& name, bool property);
  /// For a leaf that belongs to another version: the row of docs/from_tensorflow.md that says which one is
  /// built.
  void superseded(const std::string& name, const std::string& row);
  /// For an error: f throws the library's counterpart of its kind, with this text.
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
  /// Removes the leaves below name from those that are left; false where there are none.
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
