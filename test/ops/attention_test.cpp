// Attention with several heads, compared with its definition by other ops; attention in pieces; and errors.
// The op table test covers derivatives and small cases.
#include <catch2/catch.hpp>
#include <cmath>

#include "closeness.h"
#include "ops/sample_inputs.h"
#include "tapedeck/tapedeck.h"

namespace attention_test {

using namespace tapedeck;
using samples::uniform;

namespace {

Tensor heads_of(const Tensor& x, std::int64_t heads) {
  return transpose(reshape(x, {x.shape()[0], x.shape()[1], heads, -1}), {0, 2, 1, 3});
}
Tensor by_ops(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, std::int64_t heads,
              bool causal) {
  const double depth = static_cast<double>(q.shape()[2] / heads);
  Tensor scores = matmul(heads_of(q, heads), heads_of(k, heads), {.transpose_b = true}) / std::sqrt(depth);
  const std::int64_t ahead = k.shape()[1] - q.shape()[1];
  if (causal)
    scores = where(less_equal(arange(k.shape()[1]), reshape(arange(q.shape()[1]), {-1, 1}) + ahead), scores,
                   -1e300);
  if (mask.defined()) scores = where(mask, scores, -1e300);
  const Tensor y = transpose(matmul(softmax(scores), heads_of(v, heads)), {0, 2, 1, 3});
  return reshape(y, {q.shape()[0], q.shape()[1], v.shape()[2]});
}

}   // namespace

TEST_CASE("attention in pieces is attention by ops", "[attention]") {
  const Tensor mask = less(uniform({2, 1, 300, 310}, 0, 1, 9), 0.8);
  for (const bool causal : {false, true})
    for (const bool is_masked : {false, true})
      for (const auto& [queries, keys] : {std::pair(300, 310), {310, 300}, {1, 310}, {300, 1}, {128, 128}}) {
        if (is_masked && (queries != 300 || keys != 310)) continue;
        if (causal && queries > keys) continue;   // rows without keys: see below
        INFO(causal << is_masked << ' ' << queries << ' ' << keys);
        const Tensor q = uniform({2, queries, 12}, -1, 1, 1), k = uniform({2, keys, 12}, -1, 1, 2),
                     v = uniform({2, keys, 9}, -1, 1, 3), dy = uniform({2, queries, 9}, -1, 1, 4),
                     m = is_masked ? mask : Tensor();
        const auto both = [&](const auto& f) {
          GradientTape tape;
          for (const Tensor& x : {q, k, v})
            tape.watch(x);
          const Tensor y = f();
          std::vector<Tensor> all = {y};
          for (Gradient& g : tape.gradient({y}, {q, k, v}, {.output_gradients = {dy}}))
            all.push_back(std::move(g).dense());
          return all;
        };
        const auto ours =
            both([&] { return dot_product_attention(q, k, v, m, {.heads = 3, .causal = causal}); });
        const auto theirs = both([&] { return by_ops(q, k, v, m, 3, causal); });
        for (std::size_t i = 0; i < 4; ++i)
          CHECK(worst(ours[i], theirs[i]) < 1e-12);
      }
}

TEST_CASE("attention does not depend on the number of threads", "[attention][threads]") {
  const Tensor q = random::normal({2, 300, 64}, {.seed = 1}), k = random::normal({2, 300, 64}, {.seed = 2}),
               v = random::normal({2, 300, 64}, {.seed = 3});
  const auto gradients = [&] {
    GradientTape tape;
    for (const Tensor& x : {q, k, v})
      tape.watch(x);
    const Tensor y = dot_product_attention(q, k, v, {}, {.heads = 4, .causal = true});
    std::vector<Tensor> all = {y};
    for (Gradient& g : tape.gradient({sum(y * y)}, {q, k, v}))
      all.push_back(std::move(g).dense());
    return all;
  };
  const int before = num_threads();
  set_num_threads(1);
  const auto one = gradients();
  set_num_threads(3);
  const auto three = gradients();
  set_num_threads(before);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(same_bits(one[i], three[i]));
}

TEST_CASE("a query without keys gets the mean of all values", "[attention]") {
  const Tensor q = uniform({1, 5, 4}, -1, 1, 1), k = uniform({1, 2, 4}, -1, 1, 2),
               v = uniform({1, 2, 3}, -1, 1, 3);
  const Tensor y = dot_product_attention(q, k, v, {}, {.causal = true});
  for (const int row : {0, 1, 2})
    CHECK(worst(y[{0, row}], mean(v[0], {0})) < 1e-15);
  CHECK(worst(y[{0, 3}], v[{0, 0}]) < 1e-15);
}

TEST_CASE("attention rejects invalid arguments", "[attention][errors]") {
  const Tensor q = zeros({2, 3, 4}), k = zeros({2, 5, 4}), v = zeros({2, 5, 6});
  CHECK_THROWS_WITH(
      dot_product_attention(q, k, zeros({2, 4, 6})),
      "dot_product_attention: query, key and value are not [batch, queries, n], [batch, keys, n] and "
      "[batch, keys, m]: they are f32[2,3,4], f32[2,5,4] and f32[2,4,6]");
  CHECK_THROWS_WITH(dot_product_attention(q, k, v, {}, {.heads = 4}),
                    "dot_product_attention: heads is 4, which does not divide the depths 4 and 6");
  CHECK_THROWS_WITH(dot_product_attention(q, k, v, {}, {.heads = 0}),
                    "dot_product_attention: heads is 0, which does not divide the depths 4 and 6");
  CHECK_THROWS_WITH(dot_product_attention(q, k, v, zeros({3, 4}, DType::boolean)),
                    "dot_product_attention: mask is bool[3,4], which does not broadcast to [2,1,3,5]");
  CHECK_THROWS_WITH(dot_product_attention(q, k, v, zeros({3, 5})),
                    "dot_product_attention: mask is f32[3,5]; it must be bool");
  CHECK_THROWS_WITH(dot_product_attention(q, zeros({2, 0, 4}), zeros({2, 0, 6})),
                    "dot_product_attention: key is f32[2,0,4], which contains no key to attend to");
  CHECK_THROWS_WITH(
      dot_product_attention(q, astype(k, DType::f64), v),
      "dot_product_attention: query, key and value are f32[2,3,4], f64[2,5,4] and f32[2,5,6]; convert "
      "them to one dtype");
}

}   // namespace attention_test
