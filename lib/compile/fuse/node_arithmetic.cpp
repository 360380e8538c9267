// In: a node. Out: the arithmetic of groups whose results have the same bits.
#include "compile/fuse/node_arithmetic.h"

#include <map>
#include <type_traits>

#include "compile/fuse/ops_by_name.h"
#include "op/rules.h"
#include "tapedeck/simd/partials.h"

namespace tapedeck::compiled {
namespace {

template <class... F> auto loop_of(F...) {
  return kernels::Fused<detail::Partial<F, static_cast<int>(sizeof...(F))>...>::vjp_kernel().f32;
}

constexpr int dy = VjpStep::kCotangent, last = VjpStep::kLast;
constexpr VjpStep negative[] = {{Arithmetic::neg, dy, dy}}, times_a[] = {{Arithmetic::mul, dy, 0}},
                  times_b[] = {{Arithmetic::mul, dy, 1}}, square[] = {{Arithmetic::of_square, dy, 0}},
                  sqrt[] = {{Arithmetic::of_sqrt, dy, 1}}, log[] = {{Arithmetic::of_log, dy, 0}},
                  tanh[] = {{Arithmetic::of_tanh, dy, 1}}, sigmoid[] = {{Arithmetic::of_sigmoid, dy, 1}},
                  div_in_a[] = {{Arithmetic::of_div_in_a, dy, 1}},
                  div_in_b[] = {
                      {Arithmetic::neg, 2, 2}, {Arithmetic::div, last, 1}, {Arithmetic::mul, dy, last}};
// The steps of ops with one operand, in the order in which steps_of lists them.
constexpr VjpSteps of_one[][1] = {{negative}, {square}, {sqrt}, {times_b}, {log}, {tanh}, {sigmoid}};
constexpr VjpSteps add[] = {{}, {}}, sub[] = {{}, negative}, mul[] = {times_b, times_a},
                   div[] = {div_in_a, div_in_b};

}   // namespace

Arithmetic arithmetic_of(const OpNode& node) {
  static constexpr std::pair<std::string_view, Arithmetic> names[] = {
      {"add", Arithmetic::add},        {"sub", Arithmetic::sub},         {"mul", Arithmetic::mul},
      {"div", Arithmetic::div},        {"maximum", Arithmetic::maximum}, {"minimum", Arithmetic::minimum},
      {"square", Arithmetic::mul},     {"neg", Arithmetic::neg},         {"sqrt", Arithmetic::sqrt},
      {"exp", Arithmetic::exp},        {"log", Arithmetic::log},         {"tanh", Arithmetic::tanh},
      {"sigmoid", Arithmetic::sigmoid}};
  static const auto& ops = ops_by_name<Arithmetic>(names);
  const auto found = ops.find(node.op);
  return found == ops.end() ? Arithmetic::none : found->second;
}

std::span<const VjpSteps> steps_of(const kernels::VjpKernel& k) {
  using namespace partial;
  static const auto& known = *new std::map<kernels::VjpLoop<float>, std::span<const VjpSteps>>{
      {loop_of(of_neg), of_one[0]},
      {loop_of(of_square), of_one[1]},
      {loop_of(of_sqrt), of_one[2]},
      {loop_of(of_exp), of_one[3]},
      {loop_of(of_log), of_one[4]},
      {loop_of(of_tanh), of_one[5]},
      {loop_of(of_sigmoid), of_one[6]},
      {loop_of(of_add_in_a, of_add_in_b), add},
      {loop_of(of_sub_in_a, of_sub_in_b), sub},
      {loop_of(of_mul_in_a, of_mul_in_b), mul},
      {loop_of(of_div_in_a, of_div_in_b), div}};
  const auto found = known.find(k.f32);
  return found == known.end() ? std::span<const VjpSteps>() : found->second;
}

}   // namespace tapedeck::compiled
