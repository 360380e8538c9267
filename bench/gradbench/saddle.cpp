#include "saddle.h"

#include "modes.h"

namespace gradbench::saddle {
namespace {

Tensor objective(const Tensor& a, const Tensor& b) { return td::sum(td::square(a)) - td::sum(td::square(b)); }

/// The b with the largest objective.
Tensor best(char mode, const Tensor& a, const Tensor& start) {
  const auto negative = [&](const Tensor& b) { return -objective(a, b); };
  return argmin(
      negative, [&](const Tensor& b) { return gradient(mode, negative, b); }, start);
}

Tensor search(char outer, char inner, const Tensor& start) {
  const Tensor start_of_b = td::identity(start);   // not the same unknown as a's
  const auto largest = [=](const Tensor& a) { return objective(a, best(inner, a, start_of_b)); };
  const Tensor a = argmin(
      largest, [=](const Tensor& p) { return gradient(outer, largest, p); }, start);
  return td::concat({a, best(inner, a, start_of_b)}, 0);
}

}   // namespace

Forms forms(const std::shared_ptr<const Input>& in) {
  return with_peers({in_modes("natural", td::tensor(Values{in->start[0], in->start[1]}), search)}, in);
}

Eval eval() {
  const Size size = {"1,1", [] { return forms(std::make_shared<Input>(Input{{1, 1}})); }};
  return {"saddle", {"rr", "ff", "fr", "rf"}, false, {size}, {size}};
}

}   // namespace gradbench::saddle
