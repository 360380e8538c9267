#include "particle.h"

#include "modes.h"

namespace gradbench::particle {

Forms forms(const std::shared_ptr<const Input>& in) {
  return with_peers(
      {in_modes("natural", [in]<programs::Mode outer, programs::Mode inner>(
                               Values& out) { out.assign(1, programs::particle<outer, inner>(in->w)); })},
      in);
}

Eval eval() {
  const Size size = {"w=0", [] { return forms(std::make_shared<Input>(Input{0})); }};
  return {"particle", {"rr", "ff", "fr", "rf"}, false, {size}, {size}};
}

}   // namespace gradbench::particle
