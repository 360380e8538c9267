// The inputs with which a random program is replayed.
#include "programs_replay.h"

#include <cmath>
#include <cstring>

#include "core/bytes.h"

namespace tapedeck::fuzz {
namespace {

/// Functions whose shapes depend on integers or bools.
constexpr std::string_view kShapesByValues[] = {
    "boolean_mask", "dynamic_partition",     "dynamic_stitch",     "nonzero",     "segment_max",
    "segment_mean", "segment_min",           "segment_prod",       "segment_sum", "sparse_segment_mean",
    "unique",       "sparse_segment_sqrt_n", "sparse_segment_sum",
};

std::uint64_t bits_of(const std::vector<Tensor>& x) {
  std::uint64_t all = x.size(), v = 0;
  for (const Tensor& t : x)
    for (std::int64_t i = 0; i + 8 <= t.nbytes(); i += 8) {
      std::memcpy(&v, t.raw() + i, sizeof v);
      all = (all ^ v) * 0x9e3779b97f4a7c15u;
    }
  return all;
}

}   // namespace

Replay::Replay(const Run& run, const std::vector<Step>& steps, const std::vector<Tensor>& inputs)
    : d_(bits_of(inputs), steps.size()) {
  d_.tame = true;
  collect(run, steps);
}

void Replay::collect(const Run& run, const std::vector<Step>& steps) {
  for (const Step& s : steps) {
    if (s.frozen) {
      captured_.insert(captured_.end(), s.values.begin(), s.values.end());
      continue;
    }
    control_flow_ |= s.kind == Step::branch || s.kind == Step::loop || s.kind == Step::scan;
    if (s.indices.defined()) captured_.push_back(s.indices);
    if (s.kind == Step::call) {
      const Function& f = run.function_of(s);
      shapes_ |= std::find(std::begin(kShapesByValues), std::end(kShapesByValues), f.name()) !=
                 std::end(kShapesByValues);
      int number = 0;
      const std::unique_ptr<Function> own = f.clone();   // whose tensors are those of f
      own->each_tensor([&](Tensor& x) {
        const Others::Place place(&s, number++);
        if (!x.defined()) return;
        if (is_trainable(x.dtype())) return captured_.push_back(x);
        places_.push_back(place);
        integers_.push_back(x);
      });
      number = 0;
      // Where the regions of fractional pools begin is no number of a replay: with a key that is an argument
      // they throw TraceError.
      if (!f.name().starts_with("fractional_"))
        own->each_key([&](random::Key& k) {
          places_of_keys_.emplace_back(&s, number++);
          keys_.push_back(k);
        });
    }
    collect(run, s.body);
  }
}

Tensor Replay::other(const Tensor& x, int call) {
  if (call == 0 || x.size() == 0) return x;
  if (call % 2) return d_.tensor(x.shape(), x.dtype());
  if (is_complex(x.dtype())) return x * 0.75;
  std::vector<double> v = x.to_vector();
  std::rotate(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  constexpr double some[] = {0.0, -0.0, 1.0, -1.0, 0.0, -0.0, INFINITY, -INFINITY};
  if (call == 4)
    for (double& e : v)
      if (d_.chance(30)) e = some[d_.in(0, d_.chance(10) ? 7 : 5)];
  return astype(tensor(v, x.shape()), x.dtype());
}

std::pair<std::vector<Tensor>, std::vector<random::Key>> Replay::draw(int call) {
  if (call == 0) return {integers_, keys_};
  std::vector<Tensor> all;
  for (const Tensor& x : integers_) {
    std::vector<std::int64_t> v = x.to_vector<std::int64_t>();
    if (v.empty() || d_.chance(20)) {
      all.push_back(x);
      continue;
    }
    const bool ascends = std::is_sorted(v.begin(), v.end());
    const std::int64_t low = *std::min_element(v.begin(), v.end()),
                       most = *std::max_element(v.begin(), v.end());
    if (x.dtype() == DType::boolean || d_.chance(50))
      for (std::int64_t& e : v)
        e = x.dtype() == DType::boolean
                ? d_.in(0, 1)
                : low + static_cast<std::int64_t>(d_.bits() % static_cast<std::uint64_t>(most - low + 1));
    else
      std::rotate(v.begin(), v.begin() + 1, v.end());
    if (ascends && x.dtype() != DType::boolean && d_.chance(80))
      std::sort(v.begin(), v.end()), v.back() = most;
    all.push_back(astype(tensor(v, x.shape()), x.dtype()));
  }
  std::vector<random::Key> keys;
  for (std::size_t i = 0; i < keys_.size(); ++i)
    keys.push_back({.seed = d_.bits(), .stream = d_.bits() % 3});
  return {all, keys};
}

Others Replay::others_of(const std::vector<Tensor>& integers, const std::vector<random::Key>& keys) const {
  Others o;
  for (std::size_t i = 0; i < places_.size(); ++i)
    o.tensors[places_[i]] = integers[i];
  for (std::size_t i = 0; i < places_of_keys_.size(); ++i)
    o.keys[places_of_keys_[i]] = keys[i];
  return o;
}

}   // namespace tapedeck::fuzz
