#include "particle.h"

#include "modes.h"

namespace gradbench::particle {
namespace {

Tensor potential(const Tensor& charges, const Tensor& at) {
  return td::sum(td::rsqrt(td::sum(td::square(charges - at), {1})));
}

/// Where the particle crosses the axis, squared: Euler's method, and a straight line for the last step.
Tensor flight(char mode, const Tensor& w) {
  const double dt = 0.1;
  const Tensor ten = scalar(10), zero = scalar(0);
  const Tensor charges = td::reshape(td::stack({ten, 10 - w, ten, zero}), {2, 2});
  Tensor x = td::tensor(Values{0, 8}), velocity = td::tensor(Values{0.75, 0});
  while (true) {
    const Tensor slope = gradient(
        mode, [&](const Tensor& at) { return potential(charges, at); }, x);
    x = x + dt * velocity;
    if (x[1].item() <= 0) {
      const Tensor end = x - x[1] / velocity[1] * velocity;
      return td::square(end[0]);
    }
    velocity = velocity - dt * slope;
  }
}

Tensor search(char outer, char inner, const Tensor& start) {
  const auto objective = [=](const Tensor& w) { return flight(inner, w); };
  return argmin(
      objective, [=](const Tensor& w) { return gradient(outer, objective, w); }, start);
}

}   // namespace

Forms forms(const std::shared_ptr<const Input>& in) {
  return with_peers({in_modes("natural", scalar(in->w), search)}, in);
}

Eval eval() {
  const Size size = {"w=0", [] { return forms(std::make_shared<Input>(Input{0})); }};
  return {"particle", {"rr", "ff", "fr", "rf"}, false, {size}, {size}};
}

}   // namespace gradbench::particle
