// The functions of each eval with derivatives by hand.
#pragma once
#include "../ba.h"
#include "../det.h"
#include "../gmm.h"
#include "../hello.h"
#include "../ht.h"
#include "../kmeans.h"
#include "../llsq.h"
#include "../lse.h"
#include "../lstm.h"
#include "../ode.h"
#include "../particle.h"
#include "../saddle.h"
#include "kind.h"

namespace gradbench::GRADBENCH_KIND {

std::vector<Work> works(const std::shared_ptr<const ba::Input>& in);
std::vector<Work> works(const std::shared_ptr<const det::Input>& in);
std::vector<Work> works(const std::shared_ptr<const gmm::Input>& in);
std::vector<Work> works(const std::shared_ptr<const hello::Input>& in);
std::vector<Work> works(const std::shared_ptr<const ht::Input>& in);
std::vector<Work> works(const std::shared_ptr<const kmeans::Input>& in);
std::vector<Work> works(const std::shared_ptr<const llsq::Input>& in);
std::vector<Work> works(const std::shared_ptr<const lse::Input>& in);
std::vector<Work> works(const std::shared_ptr<const lstm::Input>& in);
std::vector<Work> works(const std::shared_ptr<const ode::Input>& in);
std::vector<Work> works(const std::shared_ptr<const particle::Input>& in);
std::vector<Work> works(const std::shared_ptr<const saddle::Input>& in);

/// ode's derivative by a backward pass through the steps; works() has a closed form instead.
std::vector<Work> backward_works(const std::shared_ptr<const ode::Input>& in);
/// Whether the closed form is the derivative of the steps. They are exact up to the fourth y, and reach at
/// most four y per step; beyond that, the closed form underflows.
inline bool has_closed_form(const ode::Input& in) {
  return in.x.size() <= 4 || (in.x.size() >= 1000 && in.x.size() > 4 * static_cast<std::size_t>(in.s));
}

}   // namespace gradbench::GRADBENCH_KIND
