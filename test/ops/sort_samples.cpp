// Samples of the ops in lib/ops/sort/sort.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "ops/sort/sort.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples sort_table[] = {
    {.op = "sort",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({37})}, .attrs = Attrs(SortAttrs{false})},
               {.inputs = {distinct({2, 3, 5})}, .attrs = Attrs(SortAttrs{true})},
               {.inputs = {distinct({2, 501})}, .attrs = Attrs(SortAttrs{true})},
               {.inputs = {distinct({5, 3, 4})}, .attrs = Attrs(SortAttrs{false, -2})},
               {.inputs = {zeros({2, 0}, DType::f64)}, .attrs = Attrs(SortAttrs{false})},
               {.inputs = {i64({{3, 1, 2, 1}, {-1, -2, 5, 0}})},
                .attrs = Attrs(SortAttrs{true, -2}),
                .expected = {i64({{3, 1, 5, 1}, {-1, -2, 2, 0}}), i64({{0, 0, 1, 0}, {1, 1, 0, 1}})},
                .oracle = "(-np.sort(-x, axis=0), np.argsort(-x, axis=0, kind='stable'))"},
               {.inputs = {i64({{3, 1, 2, 1}, {-1, -2, 5, 0}})},
                .attrs = Attrs(SortAttrs{false}),
                .expected = {i64({{1, 1, 2, 3}, {-2, -1, 0, 5}}), i64({{1, 3, 2, 0}, {1, 0, 3, 2}})},
                .oracle = "(np.sort(x, axis=-1), np.argsort(x, axis=-1, kind='stable'))"},
               {.inputs = {tensor({3, 1, 2, 1}, DType::i32)},
                .attrs = Attrs(SortAttrs{true}),
                .expected = {tensor({3, 2, 1, 1}, DType::i32), i64({0, 2, 1, 3})},
                .oracle = "(-np.sort(-x), np.argsort(-x, kind='stable'))"}};
         }},

    {.op = "argsort",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({2, 501})}, .attrs = Attrs(SortAttrs{true})},
               {.inputs = {zeros({2, 0}, DType::f64)}, .attrs = Attrs(SortAttrs{false})},
               {.inputs = {f64({{3, 1, 2, 1}, {-1, -2, 5, 0}})},
                .attrs = Attrs(SortAttrs{false}),
                .expected = {i64({{1, 3, 2, 0}, {1, 0, 3, 2}})},
                .oracle = "np.argsort(x, axis=-1, kind='stable')"},
               {.inputs = {tensor({3, 1, 2, 1}, DType::u8)},
                .attrs = Attrs(SortAttrs{true}),
                .expected = {i64({0, 2, 1, 3})},
                .oracle = "np.argsort(-x.astype(int), kind='stable')"}};
         }},

    {.op = "top_k",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({37})}, .attrs = Attrs(SortAttrs{true, -1, 3})},
               {.inputs = {distinct({2, 3, 5})}, .attrs = Attrs(SortAttrs{true, -1, 4})},
               {.inputs = {distinct({3, 4})}, .attrs = Attrs(SortAttrs{true, -1, 0})},
               {.inputs = {distinct({5, 3, 4})}, .attrs = Attrs(SortAttrs{true, -3, 2})},
               {.inputs = {i64({{3, 1}, {-1, 7}, {5, 0}})},
                .attrs = Attrs(SortAttrs{true, -2, 2}),
                .expected = {i64({{5, 7}, {3, 1}}), i64({{2, 1}, {0, 0}})},
                .oracle = "(-np.sort(-x, axis=0)[:2], np.argsort(-x, axis=0, kind='stable')[:2])"},
               {.inputs = {i64({{3, 1, 3, 2, 1, 0, 0, 0, 3}})},
                .attrs = Attrs(SortAttrs{true, -1, 2}),
                .expected = {i64({{3, 3}}), i64({{0, 2}})},
                .oracle = "(-np.sort(-x, axis=-1)[:, :2], np.argsort(-x, axis=-1, kind='stable')[:, :2])"}};
         }},

    {.op = "nth_element",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {distinct({37})}, .attrs = Attrs(NthAttrs{11, false})},
                                      {.inputs = {distinct({2, 3, 5})}, .attrs = Attrs(NthAttrs{1, true})},
                                      {.inputs = {f64({{3, 1, 2, 1}, {-1, -2, 5, 0}})},
                                       .attrs = Attrs(NthAttrs{2, false}),
                                       .expected = {f64({2, 0})},
                                       .oracle = "np.sort(x, axis=-1)[:, 2]"},
                                      {.inputs = {tensor({3, 1, 2, 1}, DType::i64)},
                                       .attrs = Attrs(NthAttrs{0, true}),
                                       .expected = {tensor(3, DType::i64)},
                                       .oracle = "np.sort(x)[::-1][0]"}};
         }},

    {.op = "unique",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {zeros({0}, DType::f64)}},
               {.inputs = {i64({{2, 1, 2}, {0, 1, 2}})},
                .expected = {i64({2, 1, 0}), i64({{0, 1, 0}, {2, 1, 0}}), i64({3, 2, 1})}},
               {.inputs = {tensor({1, 1, 2, 4, 4, 4, 7, 8, 8}, DType::i32)},
                .expected = {tensor({1, 2, 4, 7, 8}, DType::i32), i64({0, 0, 1, 2, 2, 2, 3, 4, 4}),
                             i64({2, 1, 3, 1, 2})}}};
         }},

    {.op = "searchsorted",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {f64({{1, 2, 3}, {4, 5, 6}}), f64({{2, 0}, {5.5, 9}})},
                .attrs = Attrs(SearchAttrs{false}),
                .expected = {i64({{1, 0}, {2, 3}})},
                .oracle = "torch.searchsorted(torch.tensor(sorted), torch.tensor(values))"},
               {.inputs = {f64({1, 2, 2, 3}), f64({2, 0, 3, 7})},
                .attrs = Attrs(SearchAttrs{false}),
                .expected = {i64({1, 0, 3, 4})},
                .oracle = "np.searchsorted(sorted, values)"},
               {.inputs = {tensor({1, 2, 2, 3}, DType::i32), tensor({2, 0, 3, 7}, DType::i32)},
                .attrs = Attrs(SearchAttrs{true}),
                .expected = {i64({3, 0, 4, 4})},
                .oracle = "np.searchsorted(sorted, values, side='right')"},
               {.inputs = {zeros({0}, DType::f64), f64({1})},
                .attrs = Attrs(SearchAttrs{true}),
                .expected = {i64({0})},
                .oracle = "np.searchsorted(sorted, values, side='right')"}};
         }},

    {.op = "nonzero",
     .oracle = "np.argwhere(x)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {f64(3)},
                .expected = {zeros({1, 0}, DType::i64)},
                .oracle = "np.zeros((1, 0), np.int64)"},
               {.inputs = {zeros({2, 0}, DType::f64)}},
               {.inputs = {f64({{1, 0, -2}, {0, 0, 3}})}, .expected = {i64({{0, 0}, {0, 2}, {1, 2}})}},
               {.inputs = {tensor({0, 1, 1}, DType::boolean)}, .expected = {reshape(i64({1, 2}), {2, 1})}}};
         }},

    {.op = "invert_permutation",
     .oracle = "np.argsort(perm).astype(perm.dtype)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {i64({3, 4, 0, 2, 1})}, .expected = {i64({2, 4, 3, 0, 1})}},
               {.inputs = {tensor<std::int32_t>({1, 0})}, .expected = {tensor<std::int32_t>({1, 0})}},
               {.inputs = {zeros({0}, DType::i64)}}};
         }},
};

}   // namespace

std::span<const OpSamples> sort_samples() { return sort_table; }

}   // namespace tapedeck::test
