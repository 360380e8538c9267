// What particle and saddle share: gradients in either mode, and what the descent asks of a point of tensors.
#pragma once
#include "descent.h"
#include "tensors.h"

namespace gradbench {

template <> struct Space<Tensor> {
  static double norm(const Tensor& x) { return td::euclidean_norm(x).item(); }
  static Tensor minus(const Tensor& x, double by, const Tensor& y) { return x - by * y; }
  static double number(const Tensor& x) { return x.item(); }
};

/// The gradient of f(x), a number: 'r', by a tape, or 'f', by tangents.
template <class F> Tensor gradient(char mode, const F& f, const Tensor& x) {
  return mode == 'r' ? td::grad(f, x).dense() : td::jacobian(f, x, {.mode = td::JacobianMode::forward});
}

/// A form with a function for each pair of modes: f(outer, inner, x).
template <class F> Form in_modes(std::string name, const Tensor& x, F f) {
  return {
      std::move(name), [=] {
        std::vector<Work> works;
        for (const char* modes : {"rr", "ff", "fr", "rf"})
          works.push_back(tensor_work([f, modes](Inputs in) { return f(modes[0], modes[1], in[0]); }, {x}));
        return works;
      }};
}

}   // namespace gradbench
