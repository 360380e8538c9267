// Short notation for tests: tensors of f64 from numbers, and their elements.
#pragma once
#include <vector>

#include "tapedeck/tensor.h"

namespace tapedeck::test {

using Values = std::vector<double>;

inline Tensor f64(double v) { return tensor(v, DType::f64); }
inline Tensor f64(std::initializer_list<double> v) { return tensor(v, DType::f64); }
inline Tensor matrix(std::initializer_list<std::initializer_list<double>> v) { return tensor(v, DType::f64); }

}   // namespace tapedeck::test
