// A determinant by its minors: expanded along the first row, down to single entries, without sharing minors.
#pragma once
#include "suite.h"

namespace gradbench::det {

struct Input {
  Values a;   // [n, n]
  int n;
};
Forms forms(const std::shared_ptr<const Input>& in);
Eval eval();

/// The determinant of the rows from `row` on and of the columns listed.
template <class T> static T minor_of(const T* a, int n, int row, const std::vector<int>& columns) {
  if (columns.size() == 1) return a[row * n + columns[0]];
  T sum = 0;
  std::vector<int> rest(columns.begin() + 1, columns.end());
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const T term = a[row * n + columns[j]] * minor_of(a, n, row + 1, rest);
    if (j % 2)
      sum -= term;
    else
      sum += term;
    if (j < rest.size()) rest[j] = columns[j];
  }
  return sum;
}
template <class T> static T objective(const Input& in, const T* a) {
  std::vector<int> columns(static_cast<std::size_t>(in.n));
  for (int j = 0; j < in.n; ++j)
    columns[static_cast<std::size_t>(j)] = j;
  return minor_of(a, in.n, 0, columns);
}

}   // namespace gradbench::det
