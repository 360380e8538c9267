// The module that unload.cpp loads; it uses the library.
#include "tapedeck/tapedeck.h"

extern "C" [[gnu::visibility("default")]] double use_library() {
  tapedeck::set_num_threads(2);
  const tapedeck::Tensor x = tapedeck::ones({600, 1000});
  tapedeck::GradientTape tape;
  tape.watch(x);
  return tape.gradient(tapedeck::sum(tapedeck::tanh(x) * x), x).dense().at({1, 1});
}
