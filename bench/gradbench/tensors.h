// Forms written with tapedeck: functions of a list of tensors.
#pragma once
#include <span>
#include <utility>

#include "suite.h"
#include "tapedeck/compile.h"
#include "tapedeck/tapedeck.h"

namespace gradbench {

namespace td = tapedeck;
using td::Tensor;
using Tensors = std::vector<Tensor>;
using Inputs = std::span<const Tensor>;

inline Tensor scalar(double x) { return td::tensor(x, td::DType::f64); }

inline Tensors dense(std::vector<td::Gradient> gradients) {
  Tensors all;
  for (td::Gradient& g : gradients)
    all.push_back(std::move(g).dense());
  return all;
}
/// The function that returns the gradients of f(x), a number, with respect to all of x.
template <class F> auto gradients_of(F f) {
  return [f](Inputs x) { return dense(td::grad(f, Tensors(x.begin(), x.end()))); };
}

inline Values flat(const Tensor& x) { return x.to_vector(); }
inline Values flat(const Tensors& list) {
  Values all;
  for (const Tensor& x : list) {
    const Values part = x.to_vector();
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

template <class F> Work tensor_work(F f, Tensors x) {
  using Result = decltype(f(x));
  auto result = std::make_shared<Result>();
  const auto run = [f = std::move(f), x = std::move(x), result] {
    *result = Result();   // first, so that its memory is reused
    *result = f(x);
  };
  return {run, [result] { return flat(*result); }};
}

/// The functions f… of x, run eagerly.
template <class... F> Form eager(std::string name, Tensors x, F... f) {
  return {std::move(name), [=] { return std::vector<Work>{tensor_work(f, x)...}; }};
}

/// The functions f… of x, compiled and replayed.
template <class F> Work recorded_work(F f, const Tensors& x) {
  Work w = tensor_work(td::compile(std::move(f)), x);
  w.run();   // records
  return w;
}
template <class... F> Form recorded(std::string name, Tensors x, F... f) {
  return {std::move(name), [=] { return std::vector<Work>{recorded_work(f, x)...}; }};
}

}   // namespace gradbench
