// Prints all samples that have expected outputs, one line of JSON each, for scripts/oracle to recompute.
#include <algorithm>
#include <cmath>
#include <complex>
#include <iostream>

#include <nlohmann/json.hpp>

#include "ops/samples.h"
#include "ops/shown_attrs.h"

using namespace tapedeck;
using Json = nlohmann::json;

namespace {

// JSON has no NaN and no infinity, so these are strings. Complex numbers are pairs of numbers.
Json number(double v) {
  return std::isnan(v) ? Json("nan") : std::isinf(v) ? Json(v > 0 ? "inf" : "-inf") : Json(v);
}

Json json_of(const Tensor& x) {
  Json data = Json::array();
  for (const std::complex<double>& v : x.to_vector<std::complex<double>>()) {
    data.push_back(number(v.real()));
    if (is_complex(x.dtype())) data.push_back(number(v.imag()));
  }
  return {{"dtype", name_of(x.dtype())},
          {"shape", std::vector<std::int64_t>(x.shape().begin(), x.shape().end())},
          {"data", std::move(data)}};
}

// The last name stands for all further inputs. If there are several of them, it names their list.
Json arguments(const Op& op, const std::vector<Tensor>& x) {
  std::size_t names = 0;
  while (names < kMaxInputs && !op.args[names].empty())
    ++names;
  Json args = Json::object();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::string name(op.args[std::min(i, names - 1)]);
    if (i + 1 < names || x.size() <= names)
      args[name] = json_of(x[i]);
    else
      args[name].push_back(json_of(x[i]));
  }
  return args;
}

}   // namespace

int main() {
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops) {
      int number = 0;
      for (const Sample& s : test::samples_of(*op)) {
        Json line = {{"op", op->name},
                     {"sample", number++},
                     {"oracle", s.oracle.empty() ? test::entry_of(*op).oracle : s.oracle},
                     {"attrs", test::shown(s.attrs.view())},
                     {"args", arguments(*op, s.inputs)},
                     {"expected", Json::array()}};
        for (const Tensor& y : s.expected)
          line["expected"].push_back(json_of(y));
        line["actual"] = Json::array();
        for (const Tensor& y : op->run(s.inputs, s.attrs.view()))
          line["actual"].push_back(json_of(y));
        std::cout << line << '\n';
      }
    }
}
