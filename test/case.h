// check_case: runs a case of test/data/cases.json, with its inputs, expected values and tolerance. It fails
// the test if a leaf of `expected` was never compared, and runs the case once more as a compiled function. If
// the environment variable TAPEDECK_CASES_REPORT names a file, each case adds a line to it.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <typeinfo>

#include <nlohmann/json.hpp>

#include "tapedeck/tapedeck.h"

namespace tapedeck::test {

using Json = nlohmann::json;

// Converts actual values to the form of the file: none is null, slices are an object.
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

/// The dtypes of the tensors among actual values; for slices, the dtype of their values.
std::set<DType> dtypes_of(const Tensor& x);
std::set<DType> dtypes_of(const Gradient& g);
template <class T> std::set<DType> dtypes_of(const T& value) {
  std::set<DType> all;
  if constexpr (!requires { Json(value); } && !std::is_same_v<T, std::vector<Variable>>)
    for (const auto& e : value)
      all.merge(dtypes_of(e));
  return all;
}

/// Appends the tensors among actual values, in order; for a gradient, the tensors that it consists of, or an
/// undefined one.
void add_tensors(std::vector<Tensor>& all, const Tensor& x);
void add_tensors(std::vector<Tensor>& all, const Gradient& g);
template <class T> void add_tensors(std::vector<Tensor>& all, const T& value) {
  if constexpr (!requires { Json(value); } && !std::is_same_v<T, std::vector<Variable>>)
    for (const auto& e : value)
      add_tensors(all, e);
}

/// The objects that a case keeps between calls, in the order in which it requests them.
using Kept = std::vector<std::shared_ptr<void>>;

/// A call of a case.
class Case {
 public:
  /// A call with the inputs of the file; results are compared with it.
  Case(std::string id, DType dtype, Kept& kept);
  /// A call with these inputs, in the order in which the case requests them; nothing is compared.
  Case(std::string id, DType dtype, Kept& kept, const std::vector<Tensor>& inputs);
  ~Case();
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  Tensor input(const std::string& name) { return input(name, dtype_); }
  Tensor input(const std::string& name, DType dtype);
  /// An input that the file does not have.
  Tensor input(const Tensor& value);
  double number(const std::string& name) const;
  /// A variable of that value; the first call creates it, later calls assign to it.
  Variable variable(const Tensor& value, VariableOptions options = {});
  /// The object that make() returned in the first call, such as an optimizer.
  template <class F> auto& keep(const F& make) {
    using T = std::invoke_result_t<F>;
    if (next_kept_ == kept_.size()) kept_.push_back(std::make_shared<T>(make()));
    return *static_cast<T*>(kept_[next_kept_++].get());
  }

  /// Compares with expected[name], and the dtype of tensors with the case's. A slash in the name goes one
  /// level deeper: "error/kind".
  template <class T> void check(const std::string& name, const T& actual) { check(name, actual, dtype_); }
  template <class T> void check(const std::string& name, const T& actual, DType dtype) {
    add_tensors(results_, actual);
    if (compares()) compare(name, json_of(actual), dtypes_of(actual), dtype);
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
  /// docs/inside/testing/cases.md has the table of counterparts; E names another one if the library
  /// distinguishes more kinds than TensorFlow.
  template <class E = void, class F> void check_error(const F& f, const std::string& text) {
    const std::type_info* const kind = std::is_void_v<E> ? nullptr : &typeid(E);
    try {
      f();
    } catch (const TraceError&) {
      throw;
    } catch (const Error& e) {
      return compare_error(&e, text, kind);
    }
    compare_error(nullptr, text, kind);
  }

  /// Whether this call compares with the file. Other checks of numbers in the body must hold only in such a
  /// call.
  bool compares() const { return !given_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  /// The tensors that were checked.
  const std::vector<Tensor>& results() const { return results_; }
  void fail(const std::string& what);
  /// For the report: how the case was recorded, or why not.
  void note(std::string recorded) { recorded_ = std::move(recorded); }

 private:
  void compare(const std::string& name, const Json& actual, const std::set<DType>& dtypes, DType dtype);
  void compare_error(const Error* e, const std::string& text, const std::type_info* kind);
  /// Removes the leaves below name from those that remain to be compared; false if there are none.
  bool take(const std::string& name);

  std::string id_;
  DType dtype_;
  Kept& kept_;
  std::size_t next_kept_ = 0, next_input_ = 0;
  const std::vector<Tensor>* given_ = nullptr;
  std::vector<Tensor> inputs_, results_;
  std::string recorded_;
  const Json& case_;
  std::set<std::string> left_;   // leaves of `expected`, as JSON pointers
  std::size_t leaves_ = 0;
  int exceptions_ = 0;
  bool failed_ = false;
};

/// Calls `body` with the case: once with the inputs of the file, to compare with the expected values, and
/// further times as a compiled function of its inputs, whose results must have the same bits. Cases that
/// cannot be recorded are listed in test/data/cases_not_recorded.txt, each with the reason.
///
/// `dtype` is the dtype of the inputs and of the results. TensorFlow's tests use f32 if the file does not
/// specify one.
void check_case(const std::string& id, DType dtype, const std::function<void(Case&)>& body);
inline void check_case(const std::string& id, const std::function<void(Case&)>& body) {
  check_case(id, DType::f32, body);
}

}   // namespace tapedeck::test
