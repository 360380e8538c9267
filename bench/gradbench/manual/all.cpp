#include "works.h"

namespace gradbench {
namespace {

using namespace GRADBENCH_KIND;

template <class Input> void add() {
  peers<Input>().push_back([](const std::shared_ptr<const Input>& in) -> std::optional<Form> {
    return Form{kSuite ? "suite" : "manual", [in] { return works(in); }};
  });
}
template <> void add<ode::Input>() {
  peers<ode::Input>().push_back([](const std::shared_ptr<const ode::Input>& in) -> std::optional<Form> {
    if (!has_closed_form(*in)) return {};
    return Form{kSuite ? "suite" : "manual", [in] { return works(in); }};
  });
  if (kSuite) return;
  peers<ode::Input>().push_back([](const std::shared_ptr<const ode::Input>& in) -> std::optional<Form> {
    return Form{"loop", [in] { return backward_works(in); }};
  });
}

void add_all() {
  add<ba::Input>();
  add<det::Input>();
  add<gmm::Input>();
  add<hello::Input>();
  add<ht::Input>();
  add<kmeans::Input>();
  add<llsq::Input>();
  add<lse::Input>();
  add<lstm::Input>();
  add<ode::Input>();
  add<particle::Input>();
  add<saddle::Input>();
}

}   // namespace

#ifdef GRADBENCH_SUITE
void add_suite() { add_all(); }
#else
void add_manual() { add_all(); }
#endif

}   // namespace gradbench
