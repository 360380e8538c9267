// Makes the arguments of a differentiated function distinct, so that each has a derivative of its own.
#pragma once
#include <algorithm>
#include <vector>

#include "op/primitives.h"

namespace tapedeck {

/// Replaces further occurrences of a tensor in x by new tensors, made by the op identity.
inline void make_distinct(std::vector<Tensor>& x) {
  for (auto i = x.begin(); i != x.end(); ++i)
    if (i->defined() && std::any_of(x.begin(), i, [&](const Tensor& t) { return t.id() == i->id(); }))
      *i = identity(*i);
}

}   // namespace tapedeck
