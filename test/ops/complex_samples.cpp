// Samples of the ops in lib/ops/elementwise/complex.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

Tensor points() { return c128({{3, -4}, {-5, 12}, {0, 1}, {-2, 0}}); }
Tensor parts(const Tensor& z, bool imaginary) {
  std::vector<double> v;
  for (const std::complex<double>& e : z.to_vector<std::complex<double>>())
    v.push_back(imaginary ? e.imag() : e.real());
  return tensor(v, z.shape());
}
std::vector<Sample> of_points(Tensor y, std::string_view oracle) {
  return {{.inputs = {spread({2, 3})}}, {.inputs = {points()}, .expected = {std::move(y)}, .oracle = oracle}};
}

constexpr OpSamples complex_table[] = {
    {.op = "complex",
     .oracle = "re + 1j * im",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, -2, 2), uniform({2, 3}, -2, 2, 1)}},
               {.inputs = {parts(points(), false), parts(points(), true)}, .expected = {points()}}};
         }},

    {.op = "real",
     .oracle = "np.real(z)",
     .samples =
         [] {
           return of_points(f64({3, -5, 0, -2}), "np.real(z)");
         }},

    {.op = "imag",
     .oracle = "np.imag(z)",
     .samples =
         [] {
           return of_points(f64({-4, 12, 1, 0}), "np.imag(z)");
         }},

    {.op = "conj",
     .oracle = "np.conj(z)",
     .samples =
         [] {
           return of_points(c128({{3, 4}, {-5, -12}, {0, -1}, {-2, 0}}), "np.conj(z)");
         }},

    {.op = "complex_abs",
     .oracle = "np.abs(z)",
     .samples =
         [] {
           return of_points(f64({5, 13, 1, 2}), "np.abs(z)");
         }},

    {.op = "angle",
     .oracle = "np.angle(z)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {spread({2, 3})}},
                                      {.inputs = {c128({{3, -4}, {-5, 12}, {0, 1}, {-2, 1}})},
                                       .expected = {f64({-0.9272952180016122, 1.965587446494658,
                                                         1.5707963267948966, 2.677945044588987})}}};
         }},

    {.op = "conjugate_transpose",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 37}, -1, 1)}},
               {.inputs = {spread({3, 2})}},
               {.inputs = {reshape(points(), {2, 2})},
                .expected = {reshape(c128({{3, 4}, {0, -1}, {-5, -12}, {-2, 0}}), {2, 2})},
                .oracle = "np.conj(x.T)"}};
         }},
};

}   // namespace

std::span<const OpSamples> complex_samples() { return complex_table; }

}   // namespace tapedeck::test
