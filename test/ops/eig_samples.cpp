// Samples of the ops in lib/ops/linalg/eig.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples eig_table[] = {
    {.op = "eig",
     .takes_complex = true,
     .real_differs = "LAPACK orders the values of real and of complex matrices differently",
     .floor = 1e-14,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({1, 1}, -1, 1)}},
               {.inputs = {uniform({0, 0}, -1, 1)}},
               {.inputs = {uniform({3, 3}, -1, 1)}},
               {.inputs = {uniform({2, 4, 4}, -1, 1, 1)}},
               {.inputs = {spread({4, 4})}},
               {.inputs = {f64({{1, -8}, {2, 1}})},
                .expected = {c128({{1, 4}, {1, -4}}),
                             reshape(c128({{1, 0}, {1, 0}, {0, -0.5}, {0, 0.5}}), {2, 2})},
                .oracle = "(lambda w, v: (w, v / v[np.abs(v).argmax(0), np.arange(2)]))(*np.linalg.eig(x))"},
               {.inputs = {f64({{2, 0.5, 0}, {0, 3, 0}, {1, 0, -1}})},
                .expected = {c128({{-1, 0}, {2, 0}, {3, 0}}), reshape(c128({{0, 0},
                                                                            {1, 0},
                                                                            {0.5, 0},
                                                                            {0, 0},
                                                                            {0, 0},
                                                                            {1, 0},
                                                                            {1, 0},
                                                                            {0.3333333333333333, 0},
                                                                            {0.125, 0}}),
                                                                      {3, 3})},
                .oracle =
                    "(lambda w, v: (w, v / v[np.abs(v).argmax(0), np.arange(3)]))(*np.linalg.eig(x + 0j))"}};
         }},
};

}   // namespace

std::span<const OpSamples> eig_samples() { return eig_table; }

}   // namespace tapedeck::test
