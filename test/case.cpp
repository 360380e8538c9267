// Reads the file of cases, and compares its values with tensors and gradients.
#include "case.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>

#include "data_folder.h"

namespace tapedeck::test {
namespace {

const Json& all_cases() {
  static const Json cases = [] {
    std::ifstream file(data_folder() / "cases.json");
    return Json::parse(file);
  }();
  return cases;
}

const Json& find_case(const std::string& id) {
  for (const Json& c : all_cases())
    if (c.at("id") == id) return c;
  throw std::runtime_error("no case " + id);
}

/// The file has the names of infinite numbers, since JSON cannot represent them.
Json number(double v) { return std::isinf(v) ? Json(v > 0 ? "inf" : "-inf") : Json(v); }

/// Nested lists of `values`, from `next` on. A complex number is an object with its two parts.
Json nested(const Tensor& x, const std::vector<std::complex<double>>& values, int axis, std::size_t& next) {
  if (axis == x.ndim()) {
    const std::complex<double> v = values[next++];
    if (is_complex(x.dtype())) return {{"re", number(v.real())}, {"im", number(v.imag())}};
    return x.dtype() == DType::boolean ? Json(v != 0.0) : number(v.real());
  }
  Json list = Json::array();
  for (std::int64_t i = 0; i < x.shape()[axis]; ++i)
    list.push_back(nested(x, values, axis + 1, next));
  return list;
}

void flatten(const Json& list, int depth, Shape& shape, std::vector<std::complex<double>>& values) {
  if (list.is_object())
    return values.emplace_back(list.at("re").get<double>(), list.at("im").get<double>()), void();
  if (!list.is_array()) return values.push_back(list == "-0" ? -0.0 : list.get<double>());
  if (depth == shape.ndim()) shape.push_back(static_cast<std::int64_t>(list.size()));
  for (const Json& e : list)
    flatten(e, depth + 1, shape, values);
}

bool agree(const Json& expected, const Json& actual, const Json& tolerance) {
  if (expected == "-0")
    return actual.is_number() && actual.get<double>() == 0 && std::signbit(actual.get<double>());
  if (expected.is_number() && actual.is_number()) {
    const double e = expected.get<double>(), a = actual.get<double>();
    return std::abs(a - e) <=
           tolerance.at("atol").get<double>() + tolerance.at("rtol").get<double>() * std::abs(e);
  }
  if (expected.is_array() && actual.is_array()) {
    if (expected.size() != actual.size()) return false;
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (!agree(expected[i], actual[i], tolerance)) return false;
    return true;
  }
  if (expected.is_object() && actual.is_object()) {
    for (const auto& [key, value] : expected.items())
      if (!actual.contains(key) || !agree(value, actual[key], tolerance)) return false;
    return true;
  }
  return expected == actual;
}

/// The library's counterpart of a kind of TensorFlow's errors; nullptr if it has none.
const std::type_info* counterpart(const std::string& kind) {
  static const std::map<std::string_view, const std::type_info*> counterparts = {
      {"ValueError", &typeid(ArgumentError)},
      {"TypeError", &typeid(DTypeError)},
      {"RuntimeError", &typeid(GradientError)},
      {"LookupError", &typeid(GradientError)},
  };
  const auto found = counterparts.find(kind);
  return found == counterparts.end() ? nullptr : found->second;
}

}   // namespace

Json json_of(const Tensor& x) {
  std::size_t next = 0;
  return nested(x, x.to_vector<std::complex<double>>(), 0, next);
}

Json json_of(const Gradient& g) {
  if (!g.defined()) return nullptr;
  if (g.is_dense()) return json_of(g.dense());
  const IndexedSlices& s = *g.slices();
  const Json dense_shape =
      s.dense_shape ? Json(std::vector<std::int64_t>(s.dense_shape->begin(), s.dense_shape->end())) : Json();
  return {{"values", json_of(s.values)}, {"indices", json_of(s.indices)}, {"dense_shape", dense_shape}};
}

std::set<DType> dtypes_of(const Tensor& x) { return {x.dtype()}; }
std::set<DType> dtypes_of(const Gradient& g) {
  if (!g.defined()) return {};
  return {g.is_dense() ? g.dense().dtype() : g.slices()->values.dtype()};
}

Json json_of(const std::vector<Variable>& variables) {
  Json names = Json::array();
  for (const Variable& v : variables)
    names.push_back(v.name());
  return names;
}

void add_tensors(std::vector<Tensor>& all, const Tensor& x) { all.push_back(x); }
void add_tensors(std::vector<Tensor>& all, const Gradient& g) {
  if (const IndexedSlices* s = g.slices())
    all.push_back(s->values), all.push_back(s->indices);
  else
    all.push_back(g.defined() ? g.dense() : Tensor());
}

Case::Case(std::string id, DType dtype, Kept& kept)
    : id_(std::move(id)),
      dtype_(dtype),
      kept_(kept),
      case_(find_case(id_)),
      exceptions_(std::uncaught_exceptions()) {
  const Json leaves = case_.at("expected").flatten();
  for (const auto& [pointer, value] : leaves.items())
    left_.insert(pointer);
  leaves_ = left_.size();
}
Case::Case(std::string id, DType dtype, Kept& kept, const std::vector<Tensor>& inputs)
    : id_(std::move(id)), dtype_(dtype), kept_(kept), given_(&inputs), case_(find_case(id_)) {}

Case::~Case() {
  if (!compares()) return;
  if (std::uncaught_exceptions() > exceptions_)
    failed_ = true;
  else
    for (const std::string& leaf : left_)
      fail(leaf + " was never compared");
  if (const char* report = std::getenv("TAPEDECK_CASES_REPORT"))
    std::ofstream(report, std::ios::app) << id_ << ' ' << leaves_ - left_.size() << ' '
                                         << (failed_ ? "failed" : "passed") << ' ' << recorded_ << '\n';
}

Tensor Case::input(const std::string& name, DType dtype) {
  if (given_) return given_->at(next_input_++);   // so that the file is not read in a recording
  Shape shape;
  std::vector<std::complex<double>> values;
  flatten(case_.at("inputs").at(name), 0, shape, values);
  return input(astype(tensor(values, shape), dtype));
}
Tensor Case::input(const Tensor& value) {
  if (given_) return given_->at(next_input_++);
  inputs_.push_back(value);
  return value;
}

Variable Case::variable(const Tensor& value, VariableOptions options) {
  const std::size_t made = kept_.size();
  const Variable& v = keep([&] { return Variable(value, std::move(options)); });
  if (kept_.size() == made) v.assign(value);
  return v;
}

double Case::number(const std::string& name) const { return case_.at("inputs").at(name).get<double>(); }

void Case::fail(const std::string& what) {
  failed_ = true;
  FAIL_CHECK(id_ << ": " << what);
}

bool Case::take(const std::string& name) {
  const std::string path = "/" + name;
  const bool found = std::erase_if(
      left_, [&](const std::string& leaf) { return leaf == path || leaf.starts_with(path + "/"); });
  if (!found) fail(name + " is not among the expected leaves, or was compared before");
  return found;
}

void Case::compare(const std::string& name, const Json& actual, const std::set<DType>& dtypes, DType dtype) {
  if (!take(name)) return;
  const Json& expected = case_.at("expected").at(Json::json_pointer("/" + name));
  CHECK(true);
  if (!agree(expected, actual, case_.at("tolerance")))
    fail(name + " is " + actual.dump() + ", expected " + expected.dump());
  for (const DType d : dtypes)
    if (d != dtype)
      fail(name + " is " + std::string(name_of(d)) + ", expected " + std::string(name_of(dtype)));
}

void Case::holds(const std::string& name, bool property) {
  if (compares() && take(name) && !property)
    fail("does not hold: " + case_.at("expected").at(Json::json_pointer("/" + name)).dump());
}

void Case::superseded(const std::string& name, const std::string&) {
  if (compares()) take(name);
}

void Case::compare_error(const Error* e, const std::string& text, const std::type_info* kind) {
  const std::string theirs = case_.at("expected").at("error").at("kind").get<std::string>();
  if (compares() && !take("error")) return;
  if (!kind) kind = counterpart(theirs);
  if (!e)
    fail("nothing was thrown, expected " + theirs);
  else if (!kind || typeid(*e) != *kind)
    fail("another kind than " + theirs + ": " + typeid(*e).name() + ": " + e->what());
  else if (e->what() != text)
    fail("the text is: " + std::string(e->what()));
}

}   // namespace tapedeck::test
