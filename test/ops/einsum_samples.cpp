// Samples of the ops in lib/ops/linalg/einsum.cpp.
#include "ops/linalg/einsum.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

OwnedAttrs einsum_of_two(Labels a, Labels b, Labels output) {
  return Attrs(EinsumAttrs{std::move(a), std::move(b), std::move(output)});
}
OwnedAttrs einsum_of_one(Labels a, Labels output) {
  return Attrs(EinsumAttrs{std::move(a), {}, std::move(output)});
}

constexpr OpSamples einsum_table[] = {
    {.op = "einsum",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({5, 37}, -1, 1), uniform({37, 3}, -1, 1, 1)},
                .attrs = einsum_of_two("ij", "jk", "ik")},
               {.inputs = {uniform({2, 3, 5}, -1, 1), uniform({4, 5, 2}, -1, 1, 1)},
                .attrs = einsum_of_two("bij", "kjb", "kbi")},
               {.inputs = {uniform({2, 1, 3}, -1, 1), uniform({5, 3}, -1, 1, 1)},
                .attrs = einsum_of_two("\2\1i", "\1i", "\2\1")},
               {.inputs = {uniform({2, 1, 3}, -1, 1), uniform({5, 3}, -1, 1, 1)},
                .attrs = einsum_of_two("\2\1i", "\1j", "ij")},
               {.inputs = {uniform({2, 3}, -1, 1), uniform({4, 5}, -1, 1, 1)},
                .attrs = einsum_of_two("ij", "kl", "ki")},
               {.inputs = {uniform({2, 3}, -1, 1), uniform({2, 3}, -1, 1, 1)},
                .attrs = einsum_of_two("ij", "ij", "ji")},
               {.inputs = {uniform({}, -1, 1), uniform({2, 3}, -1, 1, 1)},
                .attrs = einsum_of_two("", "ij", "ij")},
               {.inputs = {uniform({2, 0}, -1, 1), uniform({0, 3}, -1, 1, 1)},
                .attrs = einsum_of_two("ij", "jk", "ik")},
               {.inputs = {uniform({2, 3, 37}, -1, 1)}, .attrs = einsum_of_one("ijk", "ki")},
               {.inputs = {uniform({2, 3}, -1, 1)}, .attrs = einsum_of_one("ij", "ij")},
               {.inputs = {uniform({}, -1, 1)}, .attrs = einsum_of_one("", "")},
               {.inputs = {tensor({{1, 2}, {3, 4}}, DType::i64), tensor({{1, 0}, {2, 1}}, DType::i64)},
                .attrs = einsum_of_two("ij", "jk", "ki"),
                .expected = {tensor({{5, 11}, {2, 4}}, DType::i64)},
                .oracle = "np.einsum('ij,jk->ki', x[0], x[1])"},
               {.inputs = {f64({{1, 2}, {3, 4}}), f64({{1, 0}, {2, 1}})},
                .attrs = einsum_of_two("ij", "ik", "jk"),
                .expected = {f64({{7, 3}, {10, 4}})},
                .oracle = "np.einsum('ij,ik->jk', x[0], x[1])"},
               {.inputs = {f64({{1, 2}, {3, 4}})},
                .attrs = einsum_of_one("ij", "j"),
                .expected = {f64({4, 6})},
                .oracle = "np.einsum('ij->j', x)"}};
         }},
};

}   // namespace

std::span<const OpSamples> einsum_samples() { return einsum_table; }

}   // namespace tapedeck::test
