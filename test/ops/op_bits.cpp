// Prints a hash of the bits of each op's results and gradients, for its samples in f64 and f32: which
// compilers and instruction sets must agree in. Used by scripts/test --levels.
#include <bit>
#include <cstdio>

#include "ops/op_samples.h"

namespace {

using namespace tapedeck;
using namespace tapedeck::test;

// FNV-1a over the elements; all NaN are one.
class Hash {
 public:
  void add(const Tensor& x) {
    if (x.defined() && is_complex(x.dtype())) return add(real(x)), add(imag(x));
    if (!x.defined()) return;
    for (const double v : x.to_vector()) {   // which has the bits of all dtypes but large integers
      const auto bits = v != v ? ~std::uint64_t{} : std::bit_cast<std::uint64_t>(v);
      for (int i = 0; i < 64; i += 8)
        value_ = (value_ ^ (bits >> i & 255)) * 0x100000001b3;
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

// Inputs of one shape as long vectors, so that the loops over whole vectors run, too.
Tensors longer(const Tensors& x) {
  constexpr std::int64_t n = 1003;
  Tensors all;
  for (const Tensor& t : x) {
    if (t.shape() != x[0].shape() || t.size() == 0 || !is_floating(t.dtype())) return {};
    const Tensor flat = reshape(t, {-1});
    Tensor repeated = gather(flat, floor_mod(arange(n), tensor(t.size())));
    all.push_back(repeated * (1.0 + astype(arange(n), t.dtype()) * 0x1p-14));
  }
  return all;
}

void add(Hash& hash, const Op& op, const Tensors& x, const OwnedAttrs& attrs) {
  GradientTape tape({.persistent = true, .watch_accessed_variables = false});
  for (const Tensor& t : trainable(x))
    tape.watch(t);
  const Tensors y = run(op, x, attrs);
  tape.stop();
  for (const Tensor& t : y) {
    hash.add(t);
    if (!t.defined() || !is_trainable(t.dtype()) || !has_derivative(op)) continue;
    for (const Gradient& g :
         tape.gradient(Targets(t), Sources(trainable(x)), {.unconnected = UnconnectedGradients::none}))
      if (g.defined()) hash.add(g.dense());
  }
}

void print(const Op& op, const char* what, const Tensors& x, const OwnedAttrs& attrs) {
  Hash hash;
  try {
    add(hash, op, x, attrs);
  } catch (const Error&) {
    return;   // it does not take these
  }
  std::printf("%.*s %s %016llx\n", static_cast<int>(op.name.size()), op.name.data(), what,
              static_cast<unsigned long long>(hash.value()));
}

}   // namespace

int main() {
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      for (const Sample& s : samples_of(*op)) {
        print(*op, "f64", s.inputs, s.attrs);
        print(*op, "f32", in_f32(s.inputs), s.attrs);
        const Tensors more = s.inputs.empty() ? Tensors() : longer(s.inputs);
        if (more.empty()) continue;
        print(*op, "long f64", more, s.attrs);
        print(*op, "long f32", in_f32(more), s.attrs);
      }
}
