#include "lse.h"

#include "random.h"
#include "tensors.h"

namespace gradbench::lse {
namespace {

Tensor natural(Inputs x) { return td::logsumexp(x[0]); }

/// Written for a compiled function, whose gradient reuses the exponentials.
Tensor expert(Inputs x) {
  const Tensor most = td::stop_gradient(td::max(x[0]));
  return td::log(td::sum(td::exp(x[0] - most))) + most;
}

Size size(std::size_t n) {
  return {std::to_string(n), [=] { return forms(std::make_shared<Input>(Input{Random().uniforms(n)})); }};
}

}   // namespace

Forms forms(const std::shared_ptr<const Input>& in) {
  const Tensors x = {td::tensor(in->x)};
  return with_peers({eager("natural", x, natural, gradients_of(natural)),
                     recorded("expert", x, expert, gradients_of(expert))},
                    in);
}

Eval eval() {
  return {"lse", {"primal", "gradient"}, true, {size(2500), size(80'000), size(1'280'000)}, {size(37)}};
}

}   // namespace gradbench::lse
