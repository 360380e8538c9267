// Signatures: which calls of a compiled function can use the same program.
#pragma once
#include <string>
#include <vector>

#include "tapedeck/compile.h"

namespace tapedeck::compiled {

/// For each tensor of a list, the index of the first one that is identical.
std::vector<std::size_t> first_tensors(std::span<const Tensor> x);

/// The properties of arguments that a program depends on: types, dtypes, shapes, numbers, and which tensors
/// and which keys are identical.
struct Signature {
  std::vector<Spec> specs;
  std::vector<std::size_t> tensors, keys;   // for each, the index of the first one that is identical
  std::string rest;

  explicit Signature(const detail::Arguments& x);
  bool matches(const detail::Arguments& x) const;
  std::string text() const;

 private:
  bool are_the_same(std::span<const Tensor> x) const;
};

/// The tensors as new ones that share their memory, so that a captured tensor that is also passed as an
/// argument remains distinct from it. Identical ones stay identical.
std::vector<Tensor> with_fresh_ids(std::span<const Tensor> x);

}   // namespace tapedeck::compiled
