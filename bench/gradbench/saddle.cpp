#include "saddle.h"

#include "modes.h"

namespace gradbench::saddle {

Forms forms(const std::shared_ptr<const Input>& in) {
  return with_peers({in_modes("natural",
                              [in]<programs::Mode outer, programs::Mode inner>(Values& out) {
                                const auto found = programs::saddle<outer, inner>(in->start);
                                out.assign(found.begin(), found.end());
                              })},
                    in);
}

Eval eval() {
  const Size size = {"1,1", [] { return forms(std::make_shared<Input>(Input{{1, 1}})); }};
  return {"saddle", {"rr", "ff", "fr", "rf"}, false, {size}, {size}};
}

}   // namespace gradbench::saddle
