// Arguments of a function that is differentiated: each has derivatives of its own.
#pragma once
#include <algorithm>
#include <vector>

#include "op/primitives.h"

namespace tapedeck {

/// A tensor that is there twice becomes two tensors, by the op identity.
inline void set_apart(std::vector<Tensor>& x) {
  for (auto i = x.begin(); i != x.end(); ++i)
    if (i->defined() && std::any_of(x.begin(), i, [&](const Tensor& t) { return t.id() == i->id(); }))
      *i = identity(*i);
}

}   // namespace tapedeck
