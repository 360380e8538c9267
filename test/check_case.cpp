// Runs a case: by itself, and as a compiled function of its inputs.
#include <fstream>
#include <map>

#include "case.h"
#include "closeness.h"
#include "data_folder.h"
#include "tapedeck/compile.h"

namespace tapedeck::test {
namespace {

using Tensors = std::vector<Tensor>;

/// Why cases cannot be recorded, by their ids.
const std::map<std::string, std::string>& reasons() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> read;
    std::ifstream file(data_folder() / "cases_not_recorded.txt");
    for (std::string line; std::getline(file, line);)
      if (const std::size_t space = line.find(' '); !line.starts_with('#') && space != std::string::npos)
        read[line.substr(0, space)] = line.substr(space + 1);
    return read;
  }();
  return all;
}

Tensors others(const Tensors& x) {
  Tensors all;
  for (const Tensor& t : x)
    all.push_back(is_trainable(t.dtype()) ? t * 1.0625 + 0.0078125 : t);
  return all;
}

bool same(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tensor& x, const Tensor& y) {
    return x.defined() == y.defined() && (!x.defined() || same_bits(x, y));
  });
}

/// A case as a function of its inputs.
struct CaseFunction {
  std::string id;
  DType dtype;
  const std::function<void(Case&)>& body;
  Kept& kept;

  Tensors operator()(const Tensors& x) const {
    Case call(id, dtype, kept, x);
    body(call);
    return call.results();
  }
};

/// `eager` has been called once, by `first`. The compiled function makes variables and optimizers of its own
/// in its first call, is recorded in the first or second one, and replayed in the others.
void check_recorded(const Case& first, const CaseFunction& eager) {
  Kept kept;
  const auto recorded = compile(CaseFunction{eager.id, eager.dtype, eager.body, kept}, {.name = eager.id});
  if (!same(recorded(first.inputs()), first.results())) throw std::runtime_error("call 0 has other bits");
  int call = 0;
  for (const Tensors& x : {first.inputs(), first.inputs(), others(first.inputs())}) {
    ++call;
    Tensors wanted;
    try {
      wanted = eager(x);
    } catch (const Error&) {   // not every case takes others
      if (call < 3) throw;
      break;
    }
    if (!same(recorded(x), wanted))
      throw std::runtime_error("call " + std::to_string(call) + " has other bits than eager");
  }
  const auto programs = recorded.programs();
  if (programs.size() != 1 || programs[0].calls == 0) throw std::runtime_error("it was not replayed");
}

/// How the case was recorded, or why not.
std::string record(Case& c, const CaseFunction& f) {
  if (c.results().empty()) return "no tensors";
  const auto reason = reasons().find(f.id);
  try {
    check_recorded(c, f);
    if (reason != reasons().end()) c.fail("can be recorded; remove it from cases_not_recorded.txt");
    return "recorded";
  } catch (const std::exception& e) {
    if (reason != reasons().end()) return "not recorded: " + reason->second;
    c.fail(std::string("as a compiled function: ") + e.what() +
           "; if that has to be, give the reason in cases_not_recorded.txt");
  }
  return "failed";
}

}   // namespace

void check_case(const std::string& id, DType dtype, const std::function<void(Case&)>& body) {
  Kept kept;
  Case c(id, dtype, kept);
  body(c);
  c.note(record(c, {id, dtype, body, kept}));
}

}   // namespace tapedeck::test
