// Groups of nodes in one pass, bit for bit against the kernels that they are made of, one after the other.
#include <limits>
#include <random>

#include "core/bytes.h"
#include "op/rules.h"
#include "program_builder.h"
#include "tapedeck/simd/partials.h"
#include "tapedeck/threads.h"

using namespace tapedeck;
using namespace tapedeck::program;
using kernels::Fused, kernels::map_kernel;

namespace {

struct NoNumber {
  static constexpr int sign() { return 0; }
};
struct PartialA : NoNumber {
  static constexpr unsigned read = 0b10;
  template <class V> static V at(const V&, const V& b, const V&) { return b; }
};
struct PartialB : NoNumber {
  static constexpr unsigned read = 0b01;
  template <class V> static V at(const V& a, const V&, const V&) { return a; }
};
struct OfTanh : NoNumber {
  static constexpr unsigned read = 0b10;
  template <class V> static V at(const V&, const V& y) { return V(1) - y * y; }
};
struct Twice : NoNumber {
  static constexpr unsigned read = 0b01;
  template <class V> static V at(const V& x, const V&) { return x + x; }
};

constexpr auto kAdd = [](auto a, auto b) { return a + b; };
constexpr auto kSub = [](auto a, auto b) { return a - b; };
constexpr auto kMul = [](auto a, auto b) { return a * b; };
constexpr auto kDiv = [](auto a, auto b) { return a / b; };
constexpr auto kNeg = [](auto a) { return -a; };
constexpr auto kTanh = [](auto a) { return tanh(a); };
constexpr auto kMulAdd = [](auto a, auto b, auto c) { return a * b + c; };

const kernels::MapKernel add_map = map_kernel<decltype(kAdd), 2>, sub_map = map_kernel<decltype(kSub), 2>,
                         mul_map = map_kernel<decltype(kMul), 2>, div_map = map_kernel<decltype(kDiv), 2>,
                         neg_map = map_kernel<decltype(kNeg), 1>, tanh_map = map_kernel<decltype(kTanh), 1>,
                         mul_add_map = map_kernel<decltype(kMulAdd), 3>;
const kernels::VjpKernel
    mul_vjp = Fused<PartialA, PartialB>::vjp_kernel(),
    tanh_vjp = Fused<OfTanh>::vjp_kernel(),
    product_vjp =
        Fused<detail::Partial<std::remove_const_t<decltype(partial::of_mul_in_a)>, 2>,
              detail::Partial<std::remove_const_t<decltype(partial::of_mul_in_b)>, 2>>::vjp_kernel(),
    sum_vjp = Fused<detail::Partial<std::remove_const_t<decltype(partial::of_add_in_a)>, 2>,
                    detail::Partial<std::remove_const_t<decltype(partial::of_add_in_b)>, 2>>::vjp_kernel(),
    square_vjp = Fused<Twice>::vjp_kernel();

// Among ordinary numbers some zeros, infinities, NaN, and numbers that are almost zero.
Tensor numbers(DType dtype, const Shape& shape, std::mt19937& random, bool special) {
  Tensor x = allocate({dtype, shape});
  const auto fill = [&](auto one) {
    using T = decltype(one);
    const T rare[] = {T(0),
                      -T(0),
                      std::numeric_limits<T>::infinity(),
                      std::numeric_limits<T>::quiet_NaN(),
                      std::numeric_limits<T>::denorm_min(),
                      std::numeric_limits<T>::max()};
    std::normal_distribution<T> normal;
    for (T *p = elements<T>(x), *end = p + x.size(); p < end; ++p)
      *p = special && random() % 32 == 0 ? rare[random() % 6] : normal(random);
  };
  dtype == DType::f32 ? fill(float{}) : fill(double{});
  return x;
}

class RandomProgram {
 public:
  RandomProgram(DType dtype, std::int64_t n, unsigned seed, bool special) : random_(seed), n_(n) {
    for (int k = 0; k < 3; ++k)
      full_.push_back(b.argument(numbers(dtype, {n}, random_, special)));
    for (int k = 0; k < 2; ++k)
      one_.push_back(b.argument(numbers(dtype, {}, random_, special)));
    const ValueId long_one = b.argument(numbers(dtype, {2 * n + 3}, random_, special));
    full_.push_back(b.part(b.part(long_one, 1, {2 * n + 2}), 2, {n, 1}));
    one_.push_back(b.part(long_one, n, {}));
  }
  ProgramBuilder b;

  void add_node() {
    const auto pick = [&](auto& from) { return from[random_() % from.size()]; };
    const auto full = [&] { return pick(full_); };
    const auto any = [&] { return random_() % 3 ? pick(full_) : pick(one_); };
    const std::pair<const kernels::MapKernel*, std::string_view> two[] = {
        {&add_map, "add"}, {&sub_map, "sub"}, {&mul_map, "mul"}, {&div_map, "div"}};
    switch (random_() % 14) {
      case 0:
        return push(b.map(neg_map, {full()}, "neg"));
      case 1:
        return push(b.map(tanh_map, {full()}));
      case 2:
        return push(b.map(mul_add_map, {any(), full(), any()}));
      case 3: {
        const ValueId y = full();
        return push(b.pull(tanh_vjp, {full()}, y, full(), 1, {random_() % 2 ? full() : kNoValue})[0]);
      }
      case 4:
        return push(b.pull(square_vjp, {full()}, full(), full(), 1, {random_() % 2 ? full() : kNoValue})[0]);
      case 5: {
        const ValueId x = any(), y = any();
        const bool adds_x = size_of_value(x) == n_ && random_() % 2,
                   adds_y = size_of_value(y) == n_ && random_() % 2;
        const auto dx = b.pull(product(), {x, y}, full(), full(), 1 + static_cast<unsigned>(random_() % 3),
                               {adds_x ? full() : kNoValue, adds_y ? full() : kNoValue});
        for (const ValueId v : dx)
          if (v != kNoValue) push(v);
        return;
      }
      case 6:
        return random_() % 3 ? push(b.pull_twice(product(), full(), full()))
                             : push(b.full_sum(full(), random_() % 2));
      default: {   // often of what the node before gave
        const auto& [kernel, op] = two[random_() % 4];
        const ValueId x = random_() % 2 ? full_.back() : any(), y = random_() % 3 ? any() : full_.back();
        return push(b.map(*kernel, {x, y}, random_() % 4 ? op : ""));
      }
    }
  }
  void choose_outputs() {
    for (std::size_t v = 0; v < b.outputs.size(); ++v)
      b.outputs[v] = b.program.values[v].from == Value::From::node && random_() % 8 == 0;
    b.outputs.back() = true;
  }

 private:
  const kernels::VjpKernel& product() { return random_() % 2 ? mul_vjp : product_vjp; }   // the op's
  std::int64_t size_of_value(ValueId v) const { return b.of(v).size(); }
  void push(ValueId v) {
    if (size_of_value(v) == n_) full_.push_back(v);
    if (size_of_value(v) == 1) one_.push_back(v);
  }

  std::mt19937 random_;
  std::int64_t n_;
  std::vector<ValueId> full_, one_;
};

}   // namespace

TEST_CASE("groups compute the bits of their kernels", "[program]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const std::int64_t n = GENERATE(1, 2, 7, 16, 17, 63, 64, 65, 127, 128, 129, 1000, 4095, 4097, 40000);
  for (unsigned seed = 0; seed < 8; ++seed) {
    CAPTURE(name_of(dtype), n, seed);
    RandomProgram program(dtype, n, seed, seed % 2);
    for (int k = 0; k < 40; ++k)
      program.add_node();
    program.choose_outputs();
    CHECK(program.b.check() > 0);
  }
}

namespace {

// A group over a matrix, with rows, columns, single elements, slices, comparisons, choices, and gradients of
// rows.
class RandomMatrixProgram {
 public:
  RandomMatrixProgram(DType dtype, std::int64_t rows, std::int64_t columns, unsigned seed)
      : random_(seed), dtype_(dtype), shape_{rows, columns} {
    for (int k = 0; k < 3; ++k)
      full_.push_back(argument(shape_));
    few_ = {argument({columns}), argument({rows, 1}), argument({1, columns}), argument({}), argument({1, 1})};
    wide_ = argument({rows + 2, 2 * columns + 1});
    bools_.push_back(b.argument(astype(numbers(dtype, shape_, random_, false) > 0, DType::boolean)));
  }
  ProgramBuilder b;

  void add_node() {
    const auto any = [&] { return random_() % 2 ? pick(full_) : pick(few_); };
    constexpr std::string_view comparisons[] = {"less",          "less_equal", "greater",
                                                "greater_equal", "equal",      "not_equal"};
    switch (random_() % 12) {
      case 0:
        return push(b.op("where", {pick(bools_), any(), any()}));
      case 1:
        return bools_.push_back(b.op(comparisons[random_() % 6], {pick(full_), any()}));
      case 2:
        return bools_.push_back(
            b.op(random_() % 2 ? "logical_and" : "logical_or", {pick(bools_), pick(bools_)}));
      case 3:
        return bools_.push_back(b.op("logical_not", {pick(bools_)}));
      case 4:
        return push(b.cast(pick(bools_), dtype_));
      case 5:
        return push(select());
      case 6:
        return push(b.map(mul_add_map, {any(), pick(full_), any()}));
      case 7:
      case 8: {
        const kernels::VjpKernel& k = random_() % 3 ? random_() % 2 ? product_vjp : mul_vjp : sum_vjp;
        for (const ValueId v : b.pull(k, {pick(full_), any()}, pick(full_), pick(full_),
                                      1 + static_cast<unsigned>(random_() % 3)))
          if (v != kNoValue) push(v);
        return;
      }
      default:
        return push(b.map(random_() % 2 ? add_map : mul_map, {pick(full_), any()}));
    }
  }
  void choose_outputs() {
    for (std::size_t v = 0; v < b.outputs.size(); ++v)
      b.outputs[v] = b.program.values[v].from == Value::From::node && random_() % 6 == 0;
    b.outputs.back() = true;
  }

 private:
  ValueId argument(const Shape& shape) { return b.argument(numbers(dtype_, shape, random_, true)); }
  ValueId pick(const std::vector<ValueId>& from) { return from[random_() % from.size()]; }
  ValueId select() {
    const auto all = kernels::sliced(b.of(wide_).shape(), {static_cast<std::int64_t>(random_() % 3), 1},
                                     shape_, {1, 1 + static_cast<std::int64_t>(random_() % 2)});
    const ValueId row = pick(few_);
    return random_() % 2 ? b.select(wide_, all, shape_)
                         : b.select(row, kernels::broadcast(b.of(row).shape(), shape_), shape_);
  }
  void push(ValueId v) {
    if (b.of(v).shape() == shape_)
      full_.push_back(v);
    else
      few_.push_back(v);
  }

  std::mt19937 random_;
  DType dtype_;
  Shape shape_;
  std::vector<ValueId> full_, few_, bools_;
  ValueId wide_;
};

}   // namespace

TEST_CASE("groups over matrices compute the bits of their kernels", "[program]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const std::int64_t rows = GENERATE(1, 2, 7, 100, 3000), columns = GENERATE(1, 2, 3, 16, 33, 130);
  for (unsigned seed = 0; seed < 4; ++seed) {
    CAPTURE(name_of(dtype), rows, columns, seed);
    RandomMatrixProgram program(dtype, rows, columns, seed);
    for (int k = 0; k < 30; ++k)
      program.add_node();
    program.choose_outputs();
    CHECK(program.b.check() > 0);
  }
}

TEST_CASE("a node that nothing is fused with is no group", "[program]") {
  std::mt19937 random(7);
  ProgramBuilder b;
  const ValueId x = b.argument(numbers(DType::f32, {100}, random, false)), y = b.map(tanh_map, {x});
  b.outputs[static_cast<std::size_t>(y)] = true;
  CHECK(b.check() == 0);
  b.outputs[static_cast<std::size_t>(b.map(neg_map, {y}, "neg"))] = true;
  CHECK(b.check() == 1);
}

TEST_CASE("rows that are summed in one band are one piece", "[program]") {
  std::mt19937 random(7);
  ProgramBuilder b;
  const ValueId x = b.argument(numbers(DType::f32, {5, 30000}, random, false)),
                row = b.argument(numbers(DType::f32, {30000}, random, false));
  b.outputs[static_cast<std::size_t>(b.pull(product_vjp, {x, row}, x, x, 2)[1])] = true;
  b.outputs[static_cast<std::size_t>(b.map(neg_map, {x}, "neg"))] = true;
  CHECK(b.check() == 1);
  const Group group(b.program, b.steps()[0], std::vector<bool>(b.values.size(), true));
  CHECK(group.scratch_bytes() < 30000 * 4 + 2048);   // the sums, and what one piece needs
}

TEST_CASE("groups on several threads compute the bits of their kernels", "[program]") {
  const int before = num_threads();
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    for (const std::int64_t columns : {1, 3, 64, 1000, 30000, 50000}) {
      CAPTURE(threads, columns);
      const std::int64_t rows = std::max<std::int64_t>(150000 / columns, 5);   // of 30000: one band
      RandomMatrixProgram program(DType::f32, rows, columns, static_cast<unsigned>(columns));
      for (int k = 0; k < 40; ++k)
        program.add_node();
      program.choose_outputs();
      program.b.check();
    }
    for (const std::int64_t n : {131072, 200001, 32768 * 9 + 1}) {
      CAPTURE(threads, n);
      RandomProgram program(DType::f32, n, static_cast<unsigned>(n), false);
      for (int k = 0; k < 20; ++k)
        program.add_node();
      program.choose_outputs();
      program.b.check();
    }
  }
  set_num_threads(before);
}

TEST_CASE("sums of n elements are those of the kernels for every n", "[program]") {
  for (const std::int64_t n :
       {1, 3, 15, 16, 31, 64, 65, 1023, 1024, 4096, 4100, 32767, 32768, 32769, 32784, 98305}) {
    CAPTURE(n);
    std::mt19937 random(1);
    for (const DType dtype : {DType::f32, DType::f64}) {
      ProgramBuilder b;
      const ValueId x = b.argument(numbers(dtype, {n}, random, false)),
                    c = b.argument(numbers(dtype, {}, random, false)), y = b.map(mul_map, {x, c});
      const auto dx = b.pull(mul_vjp, {y, c}, y, x, 3);
      for (const ValueId v : {b.full_sum(x, false), b.full_sum(y, true), dx[1]})
        b.outputs[static_cast<std::size_t>(v)] = true;
      CHECK(b.check() == 1);
    }
  }
}

TEST_CASE("the sum of one element is the element", "[program]") {
  ProgramBuilder b;
  const ValueId x = b.map(mul_map, {b.argument(tensor(-0.0)), b.argument(tensor(1.0))}, "mul");
  b.outputs[static_cast<std::size_t>(b.full_sum(x, false))] = true;
  CHECK(b.check() == 1);
}

TEST_CASE("a group reads and writes what others read alone", "[program]") {
  std::mt19937 random(1);
  ProgramBuilder b;
  const ValueId x = b.argument(numbers(DType::f32, {100}, random, false)), y = b.map(tanh_map, {x}),
                z = b.map(mul_map, {y, x});
  std::vector<bool> kept(b.values.size(), false);
  kept[static_cast<std::size_t>(z)] = true;
  const Group group(b.program, b.steps()[0], kept);
  CHECK(std::vector(group.reads().begin(), group.reads().end()) == std::vector{x});
  CHECK(std::vector(group.writes().begin(), group.writes().end()) == std::vector{z});
}

TEST_CASE("a long chain takes few registers", "[program]") {
  std::mt19937 random(1);
  ProgramBuilder b;
  const ValueId x = b.argument(numbers(DType::f32, {1 << 16}, random, false));
  ValueId y = x;
  for (int k = 0; k < 1000; ++k)
    y = b.map(k % 2 ? add_map : mul_map, {y, x});
  std::vector<bool> kept(b.values.size(), false);
  kept.back() = true;
  CHECK(b.steps().size() == 1);
  CHECK(Group(b.program, b.steps()[0], kept).scratch_bytes() < 4096);
}

TEST_CASE("gradients of the op's products are products", "[program]") {
  std::mt19937 random(1);
  ProgramBuilder b;
  const ValueId x = b.argument(numbers(DType::f32, {100}, random, false)),
                c = b.argument(numbers(DType::f32, {}, random, false));
  b.pull(product_vjp, {x, c}, x, x, 3, {x});
  const std::vector<bool> kept(b.values.size(), true);
  const GroupCode code = make_group_code(b.program, b.steps()[0], kept);
  std::vector<std::uint16_t> codes;
  for (const GroupInstruction& i : code.instructions)
    codes.push_back(i.code);
  using Kind = GroupInstruction::Kind;
  CHECK(codes == std::vector{code_of(Then::add, Form::moving, Form::single, Form::moving),
                             code_of(Arithmetic::mul, Form::moving, Form::moving), code_of(Kind::held_sum),
                             code_of(Kind::end)});
}

TEST_CASE("elements that are selected several times are fetched once", "[program]") {
  std::mt19937 random(1);
  ProgramBuilder b;
  const ValueId x = b.argument(numbers(DType::f32, {20, 10}, random, false));
  const auto part = [&](std::int64_t first) {
    return b.select(x, kernels::sliced({20, 10}, {first, 1}, {18, 8}), {18, 8});
  };
  const ValueId once = part(1), other = part(2), again = part(1);
  for (const ValueId y : {other, again})
    b.outputs[static_cast<std::size_t>(b.map(mul_map, {once, y}, "mul"))] = true;
  b.outputs[static_cast<std::size_t>(again)] = true;
  const std::vector<ProgramStep> steps = b.steps();
  const GroupCode code = make_group_code(b.program, steps[0], std::vector<bool>(b.values.size(), false));
  CHECK(code.views.size() == 2);
  CHECK(b.check() == 1);
}
