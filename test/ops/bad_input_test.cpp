// Bad input for every op, made from its samples: other ranks, dtypes and extents, no elements, NaN,
// infinities and arbitrary integers. The result is a typed error, or outputs of the inferred specs with
// gradients of the inputs' specs; never a crash.
//   TAPEDECK_RANDOM_CALLS=1000000 build/test/tapedeck_test 'bad input*'     makes that many calls
#include <catch2/catch.hpp>
#include <cstdlib>
#include <limits>
#include <random>

#include "ops/op_samples.h"

namespace bad_input_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine_); }
  double pick(std::initializer_list<double> of) { return of.begin()[below(static_cast<int>(of.size()))]; }

 private:
  std::mt19937 engine_;
};

Shape other_shape(const Shape& shape, Random& random) {
  std::vector<std::int64_t> dims(shape.begin(), shape.end());
  const auto axis = [&] { return dims.begin() + random.below(static_cast<int>(dims.size())); };
  switch (random.below(5)) {
    case 0:
      if (!dims.empty()) dims.erase(axis());
      break;
    case 1:
      if (dims.size() < 8)
        dims.insert(dims.begin() + random.below(static_cast<int>(dims.size()) + 1), random.below(3));
      break;
    case 2:
      if (!dims.empty()) *axis() = 0;
      break;
    case 3:
      if (!dims.empty()) ++*axis();
      break;
    default:
      if (!dims.empty()) --*axis();
  }
  for (std::int64_t& d : dims)
    d = std::max<std::int64_t>(d, 0);
  return Shape(dims);
}

// x with some or all of its values replaced by extreme values of its dtype.
Tensor extreme(const Tensor& x, Random& random) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  Numbers v = numbers_of(x);
  const int share = 1 + random.below(4);
  for (Number& e : v)
    if (random.below(share) == 0)
      e = random.pick(
          {std::nan(""), inf, -inf, 0, -1, 1, 1e30, -1e30, 5, 2147483647, -2147483648.0, 9e18, 1e-40});
  return astype(tensor(v, x.shape()), x.dtype());
}

Tensor other(const Tensor& x, Random& random) {
  switch (random.below(3)) {
    case 0: {
      const Shape shape = other_shape(x.shape(), random);
      return x.size() ? tiled(x, shape) : zeros(shape, x.dtype());
    }
    case 1:
      return astype(x, static_cast<DType>(random.below(kDTypes)));
    default:
      return extreme(x, random);
  }
}

// Whether the call has one of the outcomes that the library guarantees.
bool stands(const Op& op, const Tensors& x, const OwnedAttrs& attrs) {
  try {
    GradientTape tape;
    for (const Tensor& t : x)
      if (is_trainable(t.dtype())) tape.watch(t);
    const Tensors y = run(op, x, attrs);
    if (specs_of(y) != inferred(op, x, attrs)) return false;
    if (op.rule.kind == RuleKind::none) return true;
    Tensors targets, sources;
    for (const Tensor& t : y)
      if (is_trainable(t.dtype())) targets.push_back(t);
    for (const Tensor& t : x)
      if (is_trainable(t.dtype())) sources.push_back(t);
    if (targets.empty() || sources.empty()) return true;
    const std::vector<Gradient> dx = tape.gradient(Targets(targets), Sources(sources));
    for (std::size_t i = 0; i < dx.size(); ++i)
      if (dx[i].defined() && dx[i].dense().spec() != sources[i].spec()) return false;
    return true;
  } catch (const InternalError&) {
    return false;
  } catch (const Error&) {
    return true;
  }
}

std::string described(const Tensors& x) {
  std::string text;
  for (const Tensor& t : x)
    text += to_string(t.spec()) + " " + (t.size() <= 64 ? to_string(t) : "…") + "\n";
  return text;
}

}   // namespace

TEST_CASE("bad input gives an error or a right answer", "[op][bad_input]") {
  set_warning_handler([](std::string_view) {});
  const char* asked = std::getenv("TAPEDECK_RANDOM_CALLS");
  const long calls = asked ? std::atol(asked) : 100'000;
  struct Seed {
    const Op* op;
    Sample sample;
  };
  std::vector<Seed> seeds;
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      for (Sample& s : samples_of(*op))
        if (!s.inputs.empty()) seeds.push_back({op, std::move(s)});

  Random random(7);
  long fell = 0;
  for (long call = 0; call < calls; ++call) {
    const Seed& seed = seeds[static_cast<std::size_t>(call) % seeds.size()];
    Tensors x = seed.sample.inputs;
    for (int n = 1 + random.below(3); n > 0; --n) {
      Tensor& t = x[static_cast<std::size_t>(random.below(static_cast<int>(x.size())))];
      t = other(t, random);
    }
    if (stands(*seed.op, x, seed.sample.attrs)) continue;
    UNSCOPED_INFO("call " << call << ": " << seed.op->name << " of\n" << described(x));
    if (++fell == 20) break;
  }
  CHECK(fell == 0);
  set_warning_handler({});
}

}   // namespace bad_input_test
