// The options of a layer's variables, which are a part of the layer's options.
#pragma once
#include "tapedeck/nn/initializers.h"

namespace tapedeck::nn {

template <class Options> LayerOptions variables_of(const Options& o) {
  return {
      .use_bias = o.use_bias, .defaults = o.defaults, .kernel = o.kernel, .bias = o.bias, .dtype = o.dtype};
}

}   // namespace tapedeck::nn
