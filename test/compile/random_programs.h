// Random programs of elementwise nodes, over vectors and over matrices.
#pragma once
#include <limits>
#include <random>

#include "core/bytes.h"
#include "op/rules.h"
#include "program_builder.h"
#include "tapedeck/simd/partials.h"

namespace tapedeck {

using kernels::Fused, kernels::map_kernel;

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

inline constexpr auto kAdd = [](auto a, auto b) { return a + b; };
inline constexpr auto kSub = [](auto a, auto b) { return a - b; };
inline constexpr auto kMul = [](auto a, auto b) { return a * b; };
inline constexpr auto kDiv = [](auto a, auto b) { return a / b; };
inline constexpr auto kNeg = [](auto a) { return -a; };
inline constexpr auto kTanh = [](auto a) { return tanh(a); };
inline constexpr auto kMulAdd = [](auto a, auto b, auto c) { return a * b + c; };

inline const kernels::MapKernel add_map = map_kernel<decltype(kAdd), 2>,
                                sub_map = map_kernel<decltype(kSub), 2>,
                                mul_map = map_kernel<decltype(kMul), 2>,
                                div_map = map_kernel<decltype(kDiv), 2>,
                                neg_map = map_kernel<decltype(kNeg), 1>,
                                tanh_map = map_kernel<decltype(kTanh), 1>,
                                mul_add_map = map_kernel<decltype(kMulAdd), 3>;
inline const kernels::VjpKernel
    mul_vjp = Fused<PartialA, PartialB>::vjp_kernel(),
    tanh_vjp = Fused<OfTanh>::vjp_kernel(),
    // Its first gradient, -dy, is written before the second one is computed.
    early_vjp = Fused<detail::Partial<std::remove_const_t<decltype(partial::of_sub_in_b)>, 2>,
                      detail::Partial<std::remove_const_t<decltype(partial::of_mul_in_a)>, 2>>::vjp_kernel(),
    sum_vjp = Fused<detail::Partial<std::remove_const_t<decltype(partial::of_add_in_a)>, 2>,
                    detail::Partial<std::remove_const_t<decltype(partial::of_add_in_b)>, 2>>::vjp_kernel(),
    square_vjp = Fused<Twice>::vjp_kernel();

// Ordinary numbers; if `special`, also some zeros, infinities, NaN, and the smallest and largest numbers.
inline Tensor numbers(DType dtype, const Shape& shape, std::mt19937& random, bool special) {
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
    const Shape shape = n == 1 ? Shape{} : Shape{n};   // of one rank, as what broadcasts to them
    for (int k = 0; k < 3; ++k)
      full_.push_back(b.argument(numbers(dtype, shape, random_, special)));
    for (int k = 0; k < 2; ++k)
      one_.push_back(b.argument(numbers(dtype, {}, random_, special)));
    const Access long_one = b.argument(numbers(dtype, {2 * n + 3}, random_, special));
    full_.push_back(ProgramBuilder::part(ProgramBuilder::part(long_one, 1, {2 * n + 2}), 2, shape));
    one_.push_back(ProgramBuilder::part(long_one, n, {}));
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
        const Access y = full();
        return push(b.vjp(tanh_vjp, {full()}, y, full(), 1, {random_() % 2 ? full() : Access()})[0]);
      }
      case 4:
        return push(b.vjp(square_vjp, {full()}, full(), full(), 1, {random_() % 2 ? full() : Access()})[0]);
      case 5: {
        const Access x = any(), y = any();
        const bool adds_x = size_of_value(x) == n_ && random_() % 2,
                   adds_y = size_of_value(y) == n_ && random_() % 2;
        const auto dx = b.vjp(product(), {x, y}, full(), full(), 1 + static_cast<unsigned>(random_() % 3),
                              {adds_x ? full() : Access(), adds_y ? full() : Access()});
        for (const Access& v : dx)
          if (v.reads()) push(v);
        return;
      }
      case 6:
        return random_() % 3 ? push(b.vjp_twice(product(), full(), full()))
                             : push(b.full_sum(full(), random_() % 2));
      default: {   // often uses the result of the previous node
        const auto& [kernel, op] = two[random_() % 4];
        const Access x = random_() % 2 ? full_.back() : any(), y = random_() % 3 ? any() : full_.back();
        return push(b.map(*kernel, {x, y}, random_() % 4 ? op : ""));
      }
    }
  }
  void choose_outputs() {
    for (const ValueId v : ids_of(b.outputs))
      b.outputs[v] = b.program[v].from == Value::From::node && random_() % 8 == 0;
    b.outputs[ValueId(b.outputs.size() - 1)] = true;
  }

 private:
  const kernels::VjpKernel& product() { return random_() % 2 ? mul_vjp : early_vjp; }
  static std::int64_t size_of_value(const Access& v) { return v.size(); }
  void push(const Access& v) {
    if (size_of_value(v) == n_) full_.push_back(v);
    if (size_of_value(v) == 1) one_.push_back(v);
  }

  std::mt19937 random_;
  std::int64_t n_;
  std::vector<Access> full_, one_;
};

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
        const kernels::VjpKernel& k = random_() % 3 ? random_() % 2 ? early_vjp : mul_vjp : sum_vjp;
        for (const Access& v : b.vjp(k, {pick(full_), any()}, pick(full_), pick(full_),
                                     1 + static_cast<unsigned>(random_() % 3)))
          if (v.reads()) push(v);
        return;
      }
      default:
        return push(b.map(random_() % 2 ? add_map : mul_map, {pick(full_), any()}));
    }
  }
  void choose_outputs() {
    for (const ValueId v : ids_of(b.outputs))
      b.outputs[v] = b.program[v].from == Value::From::node && random_() % 6 == 0;
    b.outputs[ValueId(b.outputs.size() - 1)] = true;
  }

 private:
  Access argument(const Shape& shape) { return b.argument(numbers(dtype_, shape, random_, true)); }
  Access pick(const std::vector<Access>& from) { return from[random_() % from.size()]; }
  Access select() {
    const auto all = kernels::sliced(wide_.spec.shape, {static_cast<std::int64_t>(random_() % 3), 1}, shape_,
                                     {1, 1 + static_cast<std::int64_t>(random_() % 2)});
    const Access row = pick(few_);
    return random_() % 2 ? b.select(wide_, all, shape_)
                         : b.select(row, kernels::broadcast(row.spec.shape, shape_), shape_);
  }
  void push(const Access& v) {
    if (v.spec.shape == shape_)
      full_.push_back(v);
    else
      few_.push_back(v);
  }

  std::mt19937 random_;
  DType dtype_;
  Shape shape_;
  std::vector<Access> full_, few_, bools_;
  Access wide_;
};

}   // namespace tapedeck
