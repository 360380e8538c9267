#include "ba.h"
#include "det.h"
#include "gmm.h"
#include "hello.h"
#include "ht.h"
#include "kmeans.h"
#include "llsq.h"
#include "lse.h"
#include "lstm.h"
#include "ode.h"
#include "particle.h"
#include "saddle.h"

namespace gradbench {

const std::vector<Eval>& evals() {
  static const std::vector<Eval> all = {hello::eval(), gmm::eval(),    ba::eval(),       ht::eval(),
                                        lstm::eval(),  kmeans::eval(), llsq::eval(),     lse::eval(),
                                        det::eval(),   ode::eval(),    particle::eval(), saddle::eval()};
  return all;
}

}   // namespace gradbench
