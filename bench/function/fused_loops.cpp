// Elementwise functions and their gradients, compared with loops written by hand that read and write each
// element once.
#include "cases.h"
#include "tapedeck/simd/elementary.h"

namespace bench {
namespace {

using Vector = xsimd::batch<float>;
constexpr auto kWidth = static_cast<std::int64_t>(Vector::size);
using Tensors = std::vector<td::Tensor>;

Vector at(const float* p, std::int64_t i) { return Vector::load_unaligned(p + i); }
void put(const Vector& v, float* p, std::int64_t i) { v.store_unaligned(p + i); }
const float* data(const td::Tensor& x) { return x.data<float>().data(); }

volatile float sink;

/// Four partial sums, so that additions need not wait for each other.
struct Sums {
  Vector s[4] = {Vector(0.f), Vector(0.f), Vector(0.f), Vector(0.f)};
  void add(const Vector& v, std::int64_t i) { s[i / kWidth % 4] += v; }
  ~Sums() { sink = xsimd::hadd((s[0] + s[1]) + (s[2] + s[3])); }
};

struct Case {
  std::string name;
  double at_least;
  Tensors x;
  std::function<Tensors(const Tensors&)> eager;
  /// Writes the results that `eager` returns to existing memory.
  std::function<void(const float* const* x, float* const* y, std::int64_t n)> by_hand;
};

Tensors dense(const std::vector<td::Gradient>& gradients) {
  Tensors all;
  for (const td::Gradient& g : gradients)
    all.push_back(g.dense());
  return all;
}

void run(const Case& c) {
  if (!is_chosen(c.name)) return;
  const std::int64_t n = c.x[0].size();
  const auto recorded = td::compile(c.eager);
  std::vector<const float*> x;
  for (const td::Tensor& t : c.x)
    x.push_back(data(t));
  std::vector<std::vector<float>> results(3 + 1, std::vector<float>(static_cast<std::size_t>(n + 64)));
  std::vector<float*> y;
  for (std::size_t i = 0; i < results.size(); ++i)
    y.push_back(results[i].data() + 16 * i);   // at different offsets within pages
  Tensors mine;
  const Run runs[] = {[&] { (void)c.eager(c.x); }, [&] { recorded.into(mine, c.x); },
                      [&] { c.by_hand(x.data(), y.data(), n); }, [&] { (void)recorded(c.x); }};
  const Race race(runs);
  char fresh[40];
  std::snprintf(fresh, sizeof fresh, ", fresh results %.2f", race.ratio(2, 3));
  report(c.name, race.ratio(2, 1), "of a fused loop", {.at_least = c.at_least},
         beside_eager(race, 1, 0) + fresh);
}

td::Tensor tanh_sum(const Tensors& x) { return td::sum(td::tanh(x[0] * x[1] + x[2])); }

void run_tanh(std::int64_t n, double forward, double gradients) {
  const Tensors x = {numbers({n}, 1, -1), numbers({n}, 2, -1), numbers({n}, 3, -1)};
  const std::string size = ", n=" + std::to_string(n);
  run({"sum of tanh(x w + b)" + size, forward, x, [](const Tensors& t) { return Tensors{tanh_sum(t)}; },
       [](const float* const* p, float* const*, std::int64_t count) {
         Sums sum;
         for (std::int64_t i = 0; i < count; i += kWidth)
           sum.add(td::tanh(at(p[0], i) * at(p[1], i) + at(p[2], i)), i);
       }});
  run({"sum of tanh(x w + b), gradients" + size, gradients, x,
       [](const Tensors& t) {
         td::GradientTape tape;
         for (const td::Tensor& v : t)
           tape.watch(v);
         const td::Tensor y = tanh_sum(t);
         Tensors all = dense(tape.gradient(td::Targets(y), td::Sources(t)));
         all.push_back(y);
         return all;
       },
       [](const float* const* p, float* const* r, std::int64_t count) {
         Sums sum;
         for (std::int64_t i = 0; i < count; i += kWidth) {
           const Vector x0 = at(p[0], i), w = at(p[1], i), y = td::tanh(x0 * w + at(p[2], i)),
                        d = 1.f - y * y;
           sum.add(y, i);
           put(d * w, r[0], i), put(d * x0, r[1], i), put(d, r[2], i);
         }
       }});
}

Tensors bell(const Tensors& t) {
  td::GradientTape tape;
  for (const td::Tensor& v : t)
    tape.watch(v);
  const td::Tensor y = t[1] * td::exp(-t[2] * td::square(t[0]));
  Tensors all = dense(tape.gradient(td::Targets(y), td::Sources(t)));
  all.push_back(y);
  return all;
}
void run_bell(std::int64_t n, double full, double scalar) {
  const std::string size = ", n=" + std::to_string(n);
  run({"a exp(-b x^2), gradients" + size,
       full,
       {numbers({n}, 1, -1), numbers({n}, 2), numbers({n}, 3)},
       bell,
       [](const float* const* p, float* const* r, std::int64_t count) {
         for (std::int64_t i = 0; i < count; i += kWidth) {
           const Vector x = at(p[0], i), a = at(p[1], i), b = at(p[2], i), q = x * x, e = td::exp(-b * q),
                        y = a * e;
           put(y, r[3], i), put(e, r[1], i), put(-(y * q), r[2], i), put(-2.f * y * b * x, r[0], i);
         }
       }});
  run({"a exp(-b x^2), gradients, scalar a, b" + size,
       scalar,
       {numbers({n}, 1, -1), td::tensor(1.25f), td::tensor(0.75f)},
       bell,
       [](const float* const* p, float* const* r, std::int64_t count) {
         const Vector a(*p[1]), b(*p[2]);
         Sums of_a, of_b;
         for (std::int64_t i = 0; i < count; i += kWidth) {
           const Vector x = at(p[0], i), q = x * x, e = td::exp(-b * q), y = a * e;
           of_a.add(e, i), of_b.add(y * q, i);
           put(y, r[3], i), put(-2.f * y * b * x, r[0], i);
         }
       }});
}

}   // namespace

void run_fused_loops() {
  run_tanh(10'000, 0.95, 0.85);
  run_tanh(1'000'000, 0.95, 0.9);
  run_tanh(16'000'000, 0.95, 0.95);
  run_bell(10'000, 0.65, 0.6);
  run_bell(1'000'000, 0.85, 0.6);
}

}   // namespace bench
