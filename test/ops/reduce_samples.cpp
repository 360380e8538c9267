// Samples of the ops in lib/ops/reduce/reduce.cpp.
#include "ops/reduce/reduce.h"
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

OwnedAttrs over(unsigned axes, bool keepdims = false) { return Attrs(ReduceAttrs{axes, keepdims}); }

constexpr OpSamples reduce_table[] = {
    {.op = "sum",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({}, -1, 1)}, .attrs = over(0)},
                                      {.inputs = {uniform({37}, -1, 1)}, .attrs = over(1)},
                                      {.inputs = {uniform({3, 37, 2}, -1, 1)}, .attrs = over(0b101, true)},
                                      {.inputs = {uniform({2, 0, 3}, -1, 1)}, .attrs = over(0b010)},
                                      {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                                       .attrs = over(0b10),
                                       .expected = {f64({5, 7, 9})},
                                       .oracle = "np.sum(x, axis=0)"},
                                      {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})},
                                       .attrs = over(0b01, true),
                                       .expected = {tensor(std::vector<double>{6, 15}, {2, 1})},
                                       .oracle = "np.sum(x, axis=1, keepdims=True)"},
                                      {.inputs = {tensor({{1, 2}, {3, 4}}, DType::i64)},
                                       .attrs = over(0b11),
                                       .expected = {tensor(10, DType::i64)},
                                       .oracle = "np.sum(x)"}};
         }},

    {.op = "prod",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({}, 0.5, 1.5)}, .attrs = over(0)},
                                      {.inputs = {uniform({37}, 0.5, 1.5)}, .attrs = over(1)},
                                      {.inputs = {uniform({3, 37, 2}, 0.8, 1.2)}, .attrs = over(0b101, true)},
                                      {.inputs = {uniform({2, 0, 3}, -1, 1)}, .attrs = over(0b010)},
                                      {.inputs = {f64({{1, 0, 3, 2}, {4, 0, 0, 6}, {-1, 2, 3, 4}})},
                                       .attrs = over(0b01),
                                       .expected = {f64({0, 0, -24})},
                                       .oracle = "np.prod(x, axis=1)"},
                                      {.inputs = {f64({{1, 0, 3, 2}, {4, 0, 0, 6}, {-1, 2, 3, 4}})},
                                       .attrs = over(0b10, true),
                                       .expected = {f64({{-4, 0, 0, 48}})},
                                       .oracle = "np.prod(x, axis=0, keepdims=True)"},
                                      {.inputs = {tensor({{1, 2}, {3, 4}}, DType::i32)},
                                       .attrs = over(0b11),
                                       .expected = {tensor(24, DType::i32)},
                                       .oracle = "np.prod(x, dtype=x.dtype)"}};
         }},

    {.op = "prod_of_others",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 1}, -2, 2)}},
               {.inputs = {uniform({0, 3}, -2, 2)}},
               {.inputs = {uniform({2, 3, 5}, -2, 2)}},
               {.inputs = {uniform({101}, 0.8, 1.2)}},
               {.inputs = {f64({{1, 2, 3, 4}, {1, 0, 3, 4}, {0, 2, 0, 4}})},
                .expected = {f64({{24, 12, 8, 6}, {0, 12, 0, 0}, {0, 0, 0, 0}})},
                .oracle = "np.prod(np.where(np.eye(4, dtype=bool), 1, x[..., None, :]), axis=-1)"}};
         }},

    {.op = "mean",
     .takes_complex = true,
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({}, -1, 1)}, .attrs = over(0)},
                                      {.inputs = {uniform({37}, -1, 1)}, .attrs = over(1)},
                                      {.inputs = {uniform({3, 37, 2}, -1, 1)}, .attrs = over(0b101)},
                                      {.inputs = {f64({{1, 2, 4}, {4, 6, 5}})},
                                       .attrs = over(0b10),
                                       .expected = {f64({2.5, 4, 4.5})},
                                       .oracle = "np.mean(x, axis=0)"},
                                      {.inputs = {f64({{1, 2, 6}, {4, 6, 5}})},
                                       .attrs = over(0b01, true),
                                       .expected = {tensor(std::vector<double>{3, 5}, {2, 1})},
                                       .oracle = "np.mean(x, axis=1, keepdims=True)"}};
         }},

    {.op = "max",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({}, -1, 1)}, .attrs = over(0)},
                                      {.inputs = {distinct({37})}, .attrs = over(1)},
                                      {.inputs = {distinct({3, 37, 2})}, .attrs = over(0b101, true)},
                                      {.inputs = {f64({{1, -2, 3}, {-4, 5, 6}})},
                                       .attrs = over(0b10),
                                       .expected = {f64({1, 5, 6})},
                                       .oracle = "np.max(x, axis=0)"},
                                      {.inputs = {tensor({{1, -2}, {-3, 4}, {0, 2}}, DType::i32)},
                                       .attrs = over(0b01, true),
                                       .expected = {tensor({{1}, {4}, {2}}, DType::i32)},
                                       .oracle = "np.max(x, axis=1, keepdims=True)"}};
         }},

    {.op = "min",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({}, -1, 1)}, .attrs = over(0)},
                                      {.inputs = {distinct({37})}, .attrs = over(1)},
                                      {.inputs = {distinct({3, 37, 2})}, .attrs = over(0b101, true)},
                                      {.inputs = {f64({{1, -2, 3}, {-4, 5, 6}})},
                                       .attrs = over(0b10),
                                       .expected = {f64({-4, -2, 3})},
                                       .oracle = "np.min(x, axis=0)"},
                                      {.inputs = {tensor({{1, -2}, {-3, 4}, {0, 2}}, DType::i32)},
                                       .attrs = over(0b01, true),
                                       .expected = {tensor({{-2}, {-3}, {0}}, DType::i32)},
                                       .oracle = "np.min(x, axis=1, keepdims=True)"}};
         }},

    {.op = "share_of_extreme",
     .samples =
         [] {
           const Tensor some = distinct({3, 37, 2}), ties = f64({{1, 3, 3}, {2, 2, 2}, {5, -1, 0}});
           return std::vector<Sample>{
               {.inputs = {f64(2), f64(2)}, .attrs = over(0)},
               {.inputs = {some, max(some, {0, 2}, {.keepdims = true})}, .attrs = over(0b101, true)},
               {.inputs = {some, max(some, {1})}, .attrs = over(0b010)},
               {.inputs = {some, max(some, {0})}, .attrs = over(0b100)},
               {.inputs = {ties, f64({3, 2, 5})},
                .attrs = over(0b01),
                .expected = {f64({{0, 0.5, 0.5}, {1 / 3., 1 / 3., 1 / 3.}, {1, 0, 0}})},
                .oracle = "(x == best[:, None]) / (x == best[:, None]).sum(axis=1, keepdims=True)"},
               {.inputs = {ties, f64({1, -1, 0})},
                .attrs = over(0b10),
                .expected = {f64({{1, 0, 0}, {0, 0, 0}, {0, 1, 1}})},
                .oracle = "(x == best) / (x == best).sum(axis=0)"},
               {.inputs = {f64({{2, 1}, {2, 2}}), f64(2)},
                .attrs = over(0b11),
                .expected = {f64({{1 / 3., 0}, {1 / 3., 1 / 3.}})},
                .oracle = "(x == best) / (x == best).sum()"}};
         }},

    {.op = "argmax",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {distinct({3, 37, 2})}, .attrs = over(0b010, true)},
                                      {.inputs = {f64({{1, -2, 3}, {-4, 5, 5}})},
                                       .attrs = over(0b01),
                                       .expected = {tensor({2, 1}, DType::i64)},
                                       .oracle = "np.argmax(x, axis=1)"},
                                      {.inputs = {f64({{1, -2, 3}, {-4, 5, 5}})},
                                       .attrs = over(0b10),
                                       .expected = {tensor({0, 1, 1}, DType::i64)},
                                       .oracle = "np.argmax(x, axis=0)"}};
         }},

    {.op = "argmin",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {distinct({3, 37, 2})}, .attrs = over(0b010, true)},
                                      {.inputs = {f64({{1, -2, 3}, {5, -4, -4}})},
                                       .attrs = over(0b01),
                                       .expected = {tensor({1, 1}, DType::i64)},
                                       .oracle = "np.argmin(x, axis=1)"},
                                      {.inputs = {f64({{1, -2, 3}, {-4, 5, 5}})},
                                       .attrs = over(0b10),
                                       .expected = {tensor({1, 0, 0}, DType::i64)},
                                       .oracle = "np.argmin(x, axis=0)"}};
         }},

    {.op = "any",
     .samples =
         [] {
           const Tensor x = tensor({{0, 0, 1}, {0, 0, 0}, {1, 0, 1}}, DType::boolean);
           return std::vector<Sample>{{.inputs = {x},
                                       .attrs = over(0b01),
                                       .expected = {tensor({1, 0, 1}, DType::boolean)},
                                       .oracle = "np.any(x, axis=1)"},
                                      {.inputs = {x},
                                       .attrs = over(0b10, true),
                                       .expected = {tensor({{1, 0, 1}}, DType::boolean)},
                                       .oracle = "np.any(x, axis=0, keepdims=True)"}};
         }},

    {.op = "all",
     .samples =
         [] {
           const Tensor x = tensor({{1, 0, 1}, {1, 1, 1}, {1, 0, 0}}, DType::boolean);
           return std::vector<Sample>{{.inputs = {x},
                                       .attrs = over(0b01),
                                       .expected = {tensor({0, 1, 0}, DType::boolean)},
                                       .oracle = "np.all(x, axis=1)"},
                                      {.inputs = {x},
                                       .attrs = over(0b10, true),
                                       .expected = {tensor({{1, 0, 0}}, DType::boolean)},
                                       .oracle = "np.all(x, axis=0, keepdims=True)"}};
         }},

    {.op = "euclidean_norm",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({}, 1, 2)}, .attrs = over(0)},
                                      {.inputs = {uniform({37}, -1, 1)}, .attrs = over(1)},
                                      {.inputs = {uniform({3, 37, 2}, -1, 1)}, .attrs = over(0b101, true)},
                                      {.inputs = {uniform({0, 3}, -1, 1)}, .attrs = over(0b01)},
                                      {.inputs = {f64({{3, -4}, {5, 12}})},
                                       .attrs = over(0b01),
                                       .expected = {f64({5, 13})},
                                       .oracle = "np.linalg.norm(x, axis=1)"},
                                      {.inputs = {f64({{3, 5, 1}, {-4, 12, 0}})},
                                       .attrs = over(0b10, true),
                                       .expected = {f64({{5, 13, 1}})},
                                       .oracle = "np.linalg.norm(x, axis=0, keepdims=True)"}};
         }},

    {.op = "logsumexp",
     .oracle = "np.logaddexp.reduce(x, axis=-1)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({37}, -2, 2)}},
                                      {.inputs = {uniform({2, 3, 5}, -2, 2)}},
                                      {.inputs = {uniform({0, 3}, -2, 2)}},
                                      {.inputs = {f64({{1, 2, 3}, {-1000, -1001, -1002}})},
                                       .expected = {f64({3.4076059644443806, -999.5923940355556})}}};
         }},

    {.op = "logsumexp_and_softmax",
     .oracle =
         "(np.logaddexp.reduce(x, axis=-1), np.exp(x - np.logaddexp.reduce(x, axis=-1, keepdims=True)))",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, -2, 2)}},
               {.inputs = {uniform({2, 3, 5}, -2, 2)}},
               {.inputs = {uniform({0, 3}, -2, 2)}},
               {.inputs = {f64({{1, 2, 3}, {-1000, -1001, -1002}})},
                .expected = {f64({3.4076059644443806, -999.5923940355556}),
                             f64({{0.09003057317038046, 0.24472847105479767, 0.6652409557748219},
                                  {0.6652409557748219, 0.24472847105479767, 0.09003057317038046}})}}};
         }},
};

}   // namespace

std::span<const OpSamples> reduce_samples() { return reduce_table; }

}   // namespace tapedeck::test
