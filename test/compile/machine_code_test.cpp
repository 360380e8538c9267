// Machine code: traced functions of ops, random code and the memory of code. The reference is the meaning of
// each operation for one lane (compile/machine/lane.h), and for functions of ops also their own loops.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <thread>

#include "compile/machine/lane.h"
#include "compile/machine/machine_code.h"
#include "compile/machine/registers.h"
#include "core/sanitizers.h"
#include "core/trace.h"
#include "kernels/elementwise/vjp.h"
#include "tapedeck/error.h"
#include "tapedeck/op.h"

namespace machine_code_test {

using namespace tapedeck;
using namespace tapedeck::compiled;
using detail::kEqual, detail::kLess, detail::kLessEqual, detail::kUnequal;

namespace {

template <class T> using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T> using Words = std::vector<Word<T>>;

/// The results of code, computed lane by lane.
template <class T>
std::vector<Words<T>> interpret(const Code& code, const std::vector<Words<T>>& streams, std::size_t results) {
  const std::size_t n = streams[0].size();
  std::vector<Words<T>> values, all(results);
  for (const CodeNode& node : code.nodes) {
    Words<T> v(n);
    const auto operand = [&](int k, std::size_t i) {
      return k < node.operands() ? values[node.x[k]][i] : Word<T>(0);
    };
    for (std::size_t i = 0; i < n; ++i)
      v[i] = node.op == LaneOp::constant ? static_cast<Word<T>>(node.imm)
             : node.op == LaneOp::stream
                 ? streams[node.imm][i]
                 : lane_result<T>(node.op, node.imm, operand(0, i), operand(1, i), operand(2, i));
    if (node.op == LaneOp::store) all[node.imm] = v;
    values.push_back(std::move(v));
  }
  return all;
}

CodePlaces places_of(std::size_t streams, std::size_t results) {
  CodePlaces p;
  for (std::uint32_t s = 0; s < streams; ++s)
    p.streams.push_back(1 + s);
  for (std::uint32_t r = 0; r < results; ++r)
    p.results.push_back(r);
  return p;
}

/// The machine code of one function.
std::shared_ptr<const MachineCode> made_of(const Code& code, std::size_t streams, std::size_t results,
                                           const VectorSet& set = kVectors) {
  const auto made = machine_code({{code, places_of(streams, results)}}, set);
  return made.empty() ? nullptr : made[0];
}

/// The sets of vectors that this processor has.
std::vector<VectorSet> vector_sets() {
  std::vector<VectorSet> all = {kAvx2, kAvx2.shortest_for(16)};
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    all.insert(all.end(), {kAvx512, kAvx512.shortest_for(32), kAvx512.shortest_for(16)});
#endif
  return all;
}

/// Runs machine code on memory whose neighbourhood must stay as it is, as must its operands.
template <class T> std::vector<Words<T>> run(const MachineCode& code, const std::vector<Words<T>>& streams,
                                             const Words<T>& singles, std::size_t results, std::size_t n) {
  const std::size_t lanes = 64 / sizeof(T);
  std::vector<Words<T>> in = streams, out(results, Words<T>(n + 2 * lanes, Word<T>(0xabcdabcd)));
  alignas(64) static thread_local Word<T> repeated[64 * 16];
  std::vector<const void*> from;
  std::vector<void*> to;
  for (std::size_t s = 0; s < singles.size(); ++s)
    std::fill_n(repeated + s * lanes, lanes, singles[s]);
  from.push_back(repeated);
  for (const Words<T>& x : in)
    from.push_back(x.data());
  for (Words<T>& y : out)
    to.push_back(y.data() + lanes);
  code.run(from.data(), to.data(), static_cast<std::int64_t>(n * sizeof(T)));
  CHECK((in == streams));
  for (Words<T>& y : out) {
    for (std::size_t i = 0; i < lanes; ++i)
      if (y[i] != Word<T>(0xabcdabcd) || y[n + lanes + i] != Word<T>(0xabcdabcd))
        FAIL_CHECK("memory beside a result has changed");
    y = Words<T>(y.begin() + static_cast<std::ptrdiff_t>(lanes),
                 y.end() - static_cast<std::ptrdiff_t>(lanes));
  }
  return out;
}
template <class T> bool same(Word<T> a, Word<T> b) {
  return a == b || (std::isnan(std::bit_cast<T>(a)) && std::isnan(std::bit_cast<T>(b)));
}

/// Numbers of all magnitudes, and all that is special.
template <class T> Words<T> numbers(std::size_t n, std::uint64_t seed) {
  using Limits = std::numeric_limits<T>;
  const T special[] = {0,
                       -T(0),
                       1,
                       -1,
                       T(0.5),
                       2,
                       Limits::infinity(),
                       -Limits::infinity(),
                       Limits::quiet_NaN(),
                       Limits::min(),
                       -Limits::min(),
                       Limits::denorm_min(),
                       -Limits::denorm_min(),
                       Limits::max(),
                       Limits::lowest(),
                       Limits::epsilon(),
                       T(3.5),
                       T(-2.5),
                       100,
                       -100,
                       T(1e6),
                       T(-1e-6)};
  std::mt19937_64 random(seed);
  Words<T> all(n);
  for (Word<T>& w : all)
    switch (random() % 8) {
      case 0:
        w = std::bit_cast<Word<T>>(special[random() % std::size(special)]);
        break;
      case 1:
        w = static_cast<Word<T>>(random());
        break;
      default: {
        const T x = static_cast<T>(std::ldexp(static_cast<double>(random() >> 11), -53));
        w = std::bit_cast<Word<T>>(T(random() % 2 ? x * 4 - 2 : (x - T(0.5)) * 60));
      }
    }
  return all;
}

/// Receives the kernel of a vjp.
struct VjpListener : Trace {
  const kernels::VjpKernel* kernel = nullptr;
  void on_vjp(const Op&, const kernels::VjpKernel& k, const Tensor&, const Tensor* const*, const Tensor&,
              const Tensor*, unsigned) override {
    kernel = &k;
  }
  void run(const Call& c, std::span<Tensor> y, void (*k)(const Call&, std::span<Tensor>)) override {
    k(c, y);
  }
  void on_map(const kernels::MapKernel&, Refs, const Tensor&) override {}
  void on_user_map(const kernels::UserLoops&, const Attrs&, const kernels::PassTensors&) override {}
  void on_view(const Tensor&, const Tensor&, std::int64_t) override {}
  void on_select(const Tensor&, const Tensor&, const kernels::StridedView&) override {}
  void on_host_tensor(const Tensor&) override {}
  void on_host_read(const Tensor&, std::string_view) override {}
  void on_variable(detail::VariableCell&) override {}
  void on_read(detail::VariableCell&, const Tensor&) override {}
  void on_assign(detail::VariableCell&, const Tensor&) override {}
  std::vector<Tensor> act(std::vector<Tensor>, std::span<const Spec>, Action) override { return {}; }
  bool attempt(const std::function<void()>& f) override { return f(), true; }
  void become(const Op&, std::span<const Tensor>, std::span<const Tensor>, const random::Key&,
              KeyedAction) override {}
  void on_throw(std::string_view) override {}
  random::Key on_split(const random::Key&, std::uint64_t, const random::Key& part) override { return part; }
  random::Key on_split(const random::Key& key, const Tensor&) override { return key; }
  void on_key_read(std::uint64_t) override {}
  bool records() const override { return false; }
  bool has_values() const override { return true; }
  bool is_computed(const Tensor&) override { return false; }
  std::vector<Tensor> branch(std::string_view, const Tensor&, std::span<const Tensor>,
                             std::span<const Branch>, bool) override {
    return {};
  }
  std::vector<Tensor> loop(const Loop&, std::span<const Tensor>) override { return {}; }
  void on_recorder(std::uint64_t, std::string_view, std::string_view) override {}
};
const kernels::VjpKernel* vjp_of(const Op& op, int inputs) {
  const std::vector<Tensor> x(static_cast<std::size_t>(inputs), full({2}, 0.5));
  const Tensor dy = ones({2});
  std::vector<Tensor> y = op.run(x, {});
  const Tensor* refs[kernels::kMaxOperands];
  for (std::size_t i = 0; i < x.size(); ++i)
    refs[i] = &x[i];
  const Tensor* out = &y[0];
  std::vector<Gradient> cotangent(1, Gradient(dy)), dx(x.size());
  VjpListener listener;
  struct Scope {
    ~Scope() { thread_state.trace = nullptr; }
  } scope;
  thread_state.trace = &listener;
  op.rule.vjp({.op = op, .x = {refs, inputs}, .y = {&out, 1}, .wanted = (1u << inputs) - 1}, cotangent, dx);
  return listener.kernel;
}

/// Compares traced code, interpreted and as machine code, with the results of a kernel's loop.
template <class T> void compare(const CodeBuilder& builder, const std::vector<Words<T>>& x,
                                const std::vector<Words<T>>& wanted) {
  const std::size_t n = x[0].size();
  const Code code = builder.finish();
  const auto interpreted = interpret<T>(code, x, wanted.size());
  const auto count_wrong = [&](const std::vector<Words<T>>& y) {
    std::size_t wrong = 0;
    for (std::size_t r = 0; r < wanted.size(); ++r)
      for (std::size_t i = 0; i < n; ++i)
        wrong += !same<T>(y[r][i], wanted[r][i]);
    return wrong;
  };
  CHECK(count_wrong(interpreted) == 0);
  for (const VectorSet& set : vector_sets()) {
    CAPTURE(set.bytes);
    const auto made = made_of(code, x.size(), wanted.size(), set);
    REQUIRE(made);
    CHECK(count_wrong(run<T>(*made, x, {}, wanted.size(), n)) == 0);
  }
}
template <class T> T* as(Words<T>& w) { return reinterpret_cast<T*>(w.data()); }
template <class T> const T* as(const Words<T>& w) { return reinterpret_cast<const T*>(w.data()); }

constexpr std::size_t kNumbers = 1 << 14;

template <class T> bool compare_map(const kernels::MapKernel& k) {
  const auto tracer = sizeof(T) == 4 ? k.traced_f32 : k.traced_f64;
  CodeBuilder builder(sizeof(T));
  std::vector<Words<T>> x;
  LaneValue in[kernels::kMaxOperands], out = kNoValue;
  for (int i = 0; i < k.operands; ++i) {
    in[i] = builder.leaf(LaneOp::stream, static_cast<std::uint64_t>(i));
    x.push_back(numbers<T>(kNumbers, static_cast<std::uint64_t>(7 * i + 1)));
  }
  if (!builder.trace([&] { out = tracer(in); })) return false;
  builder.store(out, 0);
  std::vector<Words<T>> y(1, Words<T>(kNumbers));
  kernels::Stream<T> streams[kernels::kMaxOperands];
  for (std::size_t i = 0; i < x.size(); ++i)
    streams[i] = {as<T>(x[i]), -1};
  if constexpr (sizeof(T) == 4)
    k.f32(as<T>(y[0]), streams, kNumbers);
  else
    k.f64(as<T>(y[0]), streams, kNumbers);
  compare<T>(builder, x, y);
  return true;
}
template <class T> bool compare_vjp(const kernels::VjpKernel& k) {
  const auto tracer = sizeof(T) == 4 ? k.traced_f32 : k.traced_f64;
  CodeBuilder builder(sizeof(T));
  std::vector<Words<T>> x;
  LaneValue in[kernels::kMaxOperands], out[kernels::kFusedInputs];
  for (int i = 0; i < k.inputs + 2; ++i) {
    in[i] = builder.leaf(LaneOp::stream, static_cast<std::uint64_t>(i));
    x.push_back(numbers<T>(kNumbers, static_cast<std::uint64_t>(5 * i + 3)));
  }
  if (!builder.trace([&] { tracer(in, out); })) return false;
  std::vector<Words<T>> dx(static_cast<std::size_t>(k.inputs), Words<T>(kNumbers));
  kernels::VjpRow<T> row{};
  row.n = kNumbers;
  for (std::size_t i = 0; i < x.size(); ++i)
    row.x[i] = {as<T>(x[i]), -1};
  for (std::size_t i = 0; i < dx.size(); ++i) {
    builder.store(out[i], i);
    row.out[i] = as<T>(dx[i]);
    row.put[i] = kernels::Put::store;
  }
  if constexpr (sizeof(T) == 4)
    k.f32(row);
  else
    k.f64(row);
  compare<T>(builder, x, dx);
  return true;
}

/// Random code of all operations. What it has to compute is found as it is built, so that what the builder
/// makes of the operations is tested, too.
template <class T> class RandomCode {
 public:
  /// A value, its lanes, and which of them depend on a NaN that an operation has made: its sign and payload
  /// may be those of either operand.
  struct Known {
    LaneValue id;
    Words<T> lanes;
    std::vector<bool> is_nan;
  };
  std::vector<Words<T>> streams;
  Words<T> singles;
  std::vector<Known> results;

  explicit RandomCode(std::uint64_t seed)
      : random_(seed), n_(64 / sizeof(T) * (1 + random_() % 9)), builder_(sizeof(T), 1 << random_() % 3) {
    for (std::size_t s = 1 + random_() % 16; s > 0; --s) {
      const std::size_t number = streams.size();
      streams.push_back(numbers<T>(n_, random_()));
      reals_.push_back({builder_.leaf(LaneOp::stream, number), streams.back(), std::vector<bool>(n_)});
    }
    singles = numbers<T>(random_() % 5, random_());
    for (std::size_t s = 0; s < singles.size(); ++s)
      reals_.push_back({builder_.leaf(LaneOp::single, s), Words<T>(n_, singles[s]), std::vector<bool>(n_)});
    for (const double c : {1.0, -1.0, 0.0, 0.75}) {
      const auto bits = static_cast<Word<T>>(builder_.bits_of(c));
      reals_.push_back({builder_.constant(bits), Words<T>(n_, bits), std::vector<bool>(n_)});
    }
    builder_.trace([&] { append(reals_, masks_, 1 + random_() % 120, 0); });
    for (std::size_t r = 1 + random_() % 6; r > 0; --r)
      results.push_back(
          reals_[random_() % 3 ? reals_.size() - 1 - random_() % std::min<std::size_t>(reals_.size(), 12)
                               : random_() % reals_.size()]);
    for (std::size_t r = 0; r < results.size(); ++r)
      builder_.store(results[r].id, r);
  }
  Code code() const { return builder_.finish(); }
  std::size_t size() const { return n_; }

 private:
  using List = std::vector<Known>;
  const Known& any(const List& of) {
    return of[random_() % 2 ? of.size() - 1 - random_() % std::min<std::size_t>(of.size(), 6)
                            : random_() % of.size()];
  }
  Known known(LaneValue id, LaneOp op, std::uint64_t imm, const Known& a, const Known& b,
              const Known& c) const {
    Known y{id, Words<T>(n_), std::vector<bool>(n_)};
    const bool is_real = op >= LaneOp::add && op <= LaneOp::round;
    const int operands = operands_of(op);
    for (std::size_t i = 0; i < n_; ++i) {
      y.lanes[i] = lane_result<T>(op, imm, a.lanes[i], b.lanes[i], c.lanes[i]);
      y.is_nan[i] = a.is_nan[i] || (operands > 1 && b.is_nan[i]) || (operands > 2 && c.is_nan[i]) ||
                    (is_real && std::isnan(std::bit_cast<T>(y.lanes[i])));
    }
    return y;
  }
  Known put(LaneOp op, const Known& a, const Known& b, const Known& c, std::uint64_t imm = 0) {
    const int operands = operands_of(op);
    const LaneValue id =
        detail::trace_lanes(op, a.id, operands > 1 ? b.id : kNoValue, operands > 2 ? c.id : kNoValue, imm);
    return known(id, op, imm, a, b, c);
  }
  void append(List& reals, List& masks, std::uint64_t operations, int depth) {
    using enum LaneOp;
    for (std::uint64_t i = 0; i < operations; ++i) {
      const Known a = any(reals), b = any(reals), c = any(reals);
      static constexpr LaneOp of_two[] = {add, sub, mul,    div,     min,     max,     add,
                                          sub, mul, bit_or, bit_and, bit_xor, int_add, int_sub};
      static constexpr std::uint64_t how[] = {kEqual, kLess, kLessEqual, kUnequal};
      switch (random_() % 12) {
        case 0:
        case 1:
          reals.push_back(put(fma, a, b, c));
          break;
        case 2:
          reals.push_back(put(sqrt, random_() % 4 ? put(mul, a, a, a) : a, b, c));
          break;
        case 3:
          reals.push_back(put(round, a, b, c, random_() % 4));
          break;
        case 4:
          masks.push_back(put(compare, a, b, c, how[random_() % 4]));
          break;
        case 5:
          masks.push_back(put(random_() % 2 ? int_equal : int_greater, a, b, c));
          break;
        case 6:
          if (!masks.empty()) reals.push_back(put(select, a, b, any(masks)));
          break;
        case 7:
          if (!masks.empty()) {
            const Known p = any(masks), q = any(masks);
            masks.push_back(put(random_() % 2 ? bit_and : bit_xor, p, q, q));
          }
          break;
        case 8:
          reals.push_back(
              put(random_() % 2 ? shift_left : shift_right, a, b, c, random_() % (8 * sizeof(T))));
          break;
        case 9:
          if (!masks.empty() && depth < 2 && random_() % 2) {
            reals.push_back(rarely_computed(reals, masks, depth));
            break;
          }
          [[fallthrough]];
        default:
          reals.push_back(put(of_two[random_() % std::size(of_two)], a, b, c));
      }
    }
  }
  Known rarely_computed(const List& reals, const List& masks, int depth) {
    const Known mask = any(masks), usual = any(reals);
    List inner = reals, inner_masks = masks;
    detail::begin_rarely();
    append(inner, inner_masks, 1 + random_() % 8, depth + 1);
    if (random_() % 3 == 0) {
      double (*const functions[])(double) = {std::sin, std::cos};
      const Known a = any(inner), b = any(inner);
      inner.push_back(
          put(LaneOp::large_angle, a, b, b, reinterpret_cast<std::uintptr_t>(functions[random_() % 2])));
    }
    const Known rare = put(LaneOp::select, inner.back(), usual, mask);   // usual in other lanes
    return known(detail::end_rarely(mask.id, usual.id, rare.id), LaneOp::rarely, 0, usual, rare, mask);
  }

  std::mt19937_64 random_;
  std::size_t n_;
  CodeBuilder builder_;
  List reals_, masks_;
};

/// By how the code was made: how many lanes were compared.
struct Compared {
  std::size_t unrolled[5] = {}, spilled = 0, rare = 0;
};
template <class T> void compare_random(std::uint64_t seed, const VectorSet& set, Compared& all) {
  const RandomCode<T> random(seed);
  const Code code = random.code();
  std::size_t compared = 0, wrong = 0;
  const auto compare_first = [&](const Code& c, std::size_t n) {
    const auto made = made_of(c, random.streams.size(), random.results.size(), set);
    REQUIRE(made);
    const auto y = run<T>(*made, random.streams, random.singles, random.results.size(), n);
    for (std::size_t k = 0; k < y.size(); ++k)
      for (std::size_t i = 0; i < n; ++i)
        if (!random.results[k].is_nan[i]) ++compared, wrong += y[k][i] != random.results[k].lanes[i];
  };
  compare_first(code, random.size());
  const std::size_t of_code = compared;
  Code one = code;   // of one vector at a time
  one.most_vectors = 1;
  compare_first(one, static_cast<std::size_t>(set.bytes) / sizeof(T));
  if (wrong > 0)
    FAIL_CHECK("random code " << seed << ", lanes of " << sizeof(T) << " bytes, vectors of " << set.bytes
                              << ": " << wrong << " of " << compared << " are wrong");
  const RegisterPlan plan = plan_registers(code, set);
  all.unrolled[plan.unroll] += of_code;
  if (plan.slots > 0) all.spilled += of_code;
  if (std::any_of(code.nodes.begin(), code.nodes.end(), [](const CodeNode& n) { return n.region > 0; }))
    all.rare += of_code;
}

/// x·x + c of one stream.
Code small_code(double c) {
  CodeBuilder b(4);
  const LaneValue x = b.leaf(LaneOp::stream, 0);
  b.store(b.add(LaneOp::fma, x, x, b.constant(b.bits_of(c))), 0);
  return b.finish();
}
bool computes(const MachineCode& code, float c) {
  std::vector<float> x(32), y(32);
  std::iota(x.begin(), x.end(), 0.0f);
  const void* from[] = {nullptr, x.data()};
  void* to[] = {y.data()};
  code.run(from, to, 128);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (y[i] != std::fma(x[i], x[i], c)) return false;
  return true;
}
/// Runs f in a child process, and returns whether it returned true.
bool in_child(bool (*f)()) {
  const pid_t child = fork();
  if (child == 0) _exit(f() ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

}   // namespace

TEST_CASE("functions of ops are traced as their loops compute", "[machine_code]") {
  if (!makes_machine_code()) return;
  std::size_t maps = 0, vjps = 0;
  std::string untraced;
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops) {
      const kernels::MapKernel* const k = op->forward.loops;
      if (!k) continue;
      INFO(op->name);
      const bool single = compare_map<float>(*k), wide = compare_map<double>(*k);
      maps += single && wide;
      if (!single || !wide) untraced += " " + std::string(op->name);
      if (op->rule.kind != RuleKind::partials) continue;
      if (const kernels::VjpKernel* const vjp = vjp_of(*op, k->operands))
        vjps += compare_vjp<float>(*vjp) && compare_vjp<double>(*vjp);
    }
  // Others call functions that are not vectors of the library.
  INFO(maps << " functions and " << vjps << " vjps are traced; not:" << untraced);
  CHECK(maps >= 58);
  CHECK(vjps >= 69);
}

TEST_CASE("random code computes what its operations mean", "[machine_code]") {
  if (!makes_machine_code()) return;
  for (const VectorSet& set : vector_sets()) {
    Compared all;
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
      compare_random<float>(seed, set, all);
      compare_random<double>(seed + 1'000'000, set, all);
    }
    CAPTURE(set.bytes, all.unrolled[1], all.unrolled[2], all.unrolled[4], all.spilled, all.rare);
    CHECK(std::min({all.unrolled[1], all.unrolled[2], all.unrolled[4], all.spilled, all.rare}) > 20'000);
  }
}

TEST_CASE("equal code is made once, as long as it is in use", "[machine_code]") {
  if (!makes_machine_code()) return;
  auto a = made_of(small_code(1), 1, 1);
  CHECK(made_of(small_code(1), 1, 1) == a);
  const auto b = made_of(small_code(2), 1, 1);
  CHECK(b != a);
  CHECK(reinterpret_cast<std::uintptr_t>(b->run) % 64 == 0);
  CHECK((computes(*a, 1) && computes(*b, 2)));
  const std::weak_ptr<const MachineCode> watched = a;
  a = nullptr;
  CHECK(watched.expired());
  CHECK(computes(*made_of(small_code(1), 1, 1), 1));
}

TEST_CASE("code that is made together is found and kept one by one", "[machine_code]") {
  if (!makes_machine_code()) return;
  const auto placed = [](double c) { return PlacedCode{small_code(c), places_of(1, 1)}; };
  const auto known = made_of(small_code(7), 1, 1);
  auto all = machine_code({placed(5), placed(7), placed(6), placed(5)});
  REQUIRE(all.size() == 4);
  CHECK(all[1] == known);
  CHECK(all[3] == all[0]);
  const auto six = all[2];
  CHECK(reinterpret_cast<std::uintptr_t>(six->run) % 64 == 0);
  CHECK(computes(*all[0], 5));
  all.clear();
  CHECK(computes(*six, 6));
}

TEST_CASE("several threads make code, and forget it", "[machine_code]") {
  if (!makes_machine_code()) return;
  std::vector<int> right(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&right, t] {
      std::vector<std::shared_ptr<const MachineCode>> kept;
      for (int i = 0; i < 3000; ++i) {   // some of it is equal, and some is forgotten
        const float c = static_cast<float>(i + 100 * t);
        kept.push_back(made_of(small_code(c), 1, 1));
        right[static_cast<std::size_t>(t)] += computes(*kept.back(), c);
        if (i % 700 == 0) kept.clear();
      }
    });
  for (std::thread& t : threads)
    t.join();
  CHECK(right == std::vector<int>(4, 3000));
}

TEST_CASE("a child process makes code of its own", "[machine_code]") {
  if (!makes_machine_code() || kThreadSanitizer) return;
  static const auto before = made_of(small_code(-1), 1, 1);
  CHECK(in_child([] {
    const auto mine = made_of(small_code(-2), 1, 1);
    return mine && computes(*mine, -2) && computes(*before, -1);
  }));
  const auto after = made_of(small_code(-3), 1, 1);
  CHECK((computes(*after, -3) && computes(*before, -1)));
}

TEST_CASE("without memory for machine code there is none, and a warning", "[machine_code]") {
  if (!makes_machine_code() || kSanitized) return;   // sanitizers need memory themselves
  CHECK(in_child([] {
    static int warnings = 0;
    set_warning_handler([](std::string_view text) { warnings += text.find("machine code") != text.npos; });
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_DATA, &none);   // of memory that may be written; what the heap has is left
    for (int i = 0; i < 3; ++i)
      if (made_of(small_code(0.5 + i), 1, 1)) return false;
    return warnings == 1 && !makes_machine_code();
  }));
  CHECK(makes_machine_code());
}

}   // namespace machine_code_test
