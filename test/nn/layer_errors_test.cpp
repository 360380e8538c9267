// A layer that is called with the wrong input throws an error that names the expected input and the layer's
// path in the network.
#include <catch2/catch.hpp>
#include <fstream>
#include <regex>
#include <set>

#include "data_folder.h"
#include "message_of.h"
#include "tapedeck/nn.h"
#include "tapedeck/tapedeck.h"

namespace layer_errors_test {

using namespace tapedeck;
using namespace tapedeck::test;
using Catch::Contains;
using Catch::StartsWith;

namespace {

constexpr random::Key key{.seed = 1};

struct Wrong {
  std::string name;
  nn::Layer layer;
  Tensor input;
  std::string message;   // up to that of the op
};

std::vector<Wrong> wrongs() {
  using namespace nn;
  return {
      {"Dense", Dense(4, 8, key), zeros({2, 5}), "Dense of f32[4,8] expects [...,4], got f32[2,5]: "},
      {"Dense", Dense(4, 8, key), Tensor(), "Dense of f32[4,8] expects [...,4], got an undefined tensor: "},
      {"Dense", Dense(4, 8, key), zeros({2, 4}, DType::i32),
       "Dense of f32[4,8] expects [...,4], got i32[2,4]: "},
      {"Embedding", Embedding(5, 3, key), zeros({2}),
       "Embedding of f32[5,3] expects integer ids, got f32[2]: "},
      {"Embedding", Embedding(5, 3, key), tensor({1, 7}), "Embedding of f32[5,3], called with i32[2]: "},
      {"Embedding", Embedding(5, 3, key), tensor({1, 7}, DType::u8),
       "Embedding of f32[5,3], called with u8[2]: "},
      {"Conv1d", Conv1d(3, 8, 2, key), zeros({1, 9, 4}),
       "Conv1d of f32[2,3,8] expects [...,width,3], got f32[1,9,4]: "},
      {"Conv1d", Conv1d(3, 8, 2, key, {.layout = Layout::nchw}), zeros({1, 4, 9}),
       "Conv1d of f32[2,3,8] expects [...,3,width], got f32[1,4,9]: "},
      {"Conv1dTranspose", Conv1dTranspose(3, 8, 2, key), zeros({1, 9, 4}),
       "Conv1dTranspose of f32[2,8,3] expects [...,width,3], got f32[1,9,4]: "},
      {"Conv2d", Conv2d(3, 8, 2, key), zeros({1, 9, 9, 4}),
       "Conv2d of f32[2,2,3,8] expects [...,height,width,3], got f32[1,9,9,4]: "},
      {"Conv2d", Conv2d(3, 8, 2, key, {.layout = Layout::nchw}), zeros({1, 4, 9, 9}),
       "Conv2d of f32[2,2,3,8] expects [...,3,height,width], got f32[1,4,9,9]: "},
      {"Conv2d", Conv2d(3, 8, 7, key), zeros({1, 5, 5, 3}),
       "Conv2d of f32[7,7,3,8], called with f32[1,5,5,3]: "},
      {"Conv2dTranspose", Conv2dTranspose(3, 8, 2, key), zeros({1, 9, 9, 4}),
       "Conv2dTranspose of f32[2,2,8,3] expects [...,height,width,3], got f32[1,9,9,4]: "},
      {"Conv3d", Conv3d(3, 8, 2, key), zeros({1, 4, 4, 4, 4}),
       "Conv3d of f32[2,2,2,3,8] expects [...,depth,height,width,3], got f32[1,4,4,4,4]: "},
      {"Conv3dTranspose", Conv3dTranspose(3, 8, 2, key), zeros({1, 4, 4, 4, 4}),
       "Conv3dTranspose of f32[2,2,2,8,3] expects [...,depth,height,width,3], got f32[1,4,4,4,4]: "},
      {"LayerNorm", LayerNorm(4), zeros({2, 5}), "LayerNorm of f32[4] expects [...,4], got f32[2,5]: "},
      {"RMSNorm", RMSNorm(4), zeros({2, 5}), "RMSNorm of f32[4] expects [...,4], got f32[2,5]: "},
      {"GroupNorm", GroupNorm(2, 4), zeros({2, 5}),
       "GroupNorm of f32[4] expects [batch,...,4], got f32[2,5]: "},
      {"BatchNorm", nn::BatchNorm(4), zeros({2, 5}), "BatchNorm of f32[4] expects [...,4], got f32[2,5]: "},
      {"Lstm", Lstm(4, 2, key), zeros({3, 5}), "Lstm of f32[6,8] expects [batch,time,4], got f32[3,5]: "},
      {"Gru", Gru(4, 2, key), zeros({3, 2, 5}), "Gru of f32[4,6] expects [batch,time,4], got f32[3,2,5]: "},
      {"MultiHeadAttention", MultiHeadAttention(4, 2, key), zeros({3, 4}),
       "MultiHeadAttention of f32[4,4] expects [batch,queries,4], got f32[3,4]: "},
      {"MultiHeadAttention", MultiHeadAttention(4, 2, key), zeros({3, 2, 5}),
       "key: Dense of f32[4,4] expects [...,4], got f32[3,2,5]: "},
  };
}

// The layers with variables; of a template, the names of its instances.
std::set<std::string> declared() {
  std::set<std::string> names;
  for (const char* header : {"attention", "conv", "dense", "normalization", "recurrent"}) {
    std::ifstream file(data_folder() / "../../include/tapedeck/nn" / (std::string(header) + ".h"));
    REQUIRE(file);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::regex layer(R"(\n(template <int N> )?struct TAPEDECK_EXPORT (\w+) \{)");
    for (std::sregex_iterator i(text.begin(), text.end(), layer), end; i != end; ++i) {
      if (!(*i)[1].matched) {
        names.insert((*i)[2]);
        continue;
      }
      const std::regex instance("\nusing (\\w+) = " + (*i)[2].str() + "<");
      for (std::sregex_iterator k(text.begin(), text.end(), instance); k != end; ++k)
        names.insert((*k)[1]);
    }
  }
  return names;
}

struct Block {
  nn::Dense first{3, 4, key}, second{4, 2, key};
  Tensor operator()(const Tensor& x) const { return second(relu(first(x))); }
};
struct Network {
  nn::Sequential body{nn::Dense(5, 2, key), relu};
  nn::Dense head{3, 1, key};   // the body gives 2
  Tensor operator()(const Tensor& x) const { return head(body(x)); }
};

}   // namespace

TEST_CASE("errors of layers name the expected input", "[layers]") {
  std::set<std::string> tried;
  for (const Wrong& of : wrongs()) {
    INFO(of.message);
    tried.insert(of.name);
    const std::string said = message_of([&] { of.layer(of.input); });
    CHECK_THAT(said, StartsWith(of.message));
    CHECK(said.size() > of.message.size() + 10);   // what the op has to say

    const nn::Sequential in_list = {[](const Tensor& x) { return x; }, of.layer};
    CHECK_THAT(message_of([&] { in_list(of.input); }), StartsWith("1") && Contains(of.message));
  }
  CHECK(tried == declared());
}

TEST_CASE("errors of layers keep their types", "[layers]") {
  const nn::Sequential layers = {nn::Dense(4, 8, key)};
  CHECK_THROWS_AS(layers(zeros({2, 5})), ShapeError);
  CHECK_THROWS_AS(layers(zeros({2, 4}, DType::i32)), DTypeError);
  CHECK_THROWS_AS(layers(Tensor()), ArgumentError);

  struct Own : ShapeError {
    using ShapeError::ShapeError;
  };
  const nn::Sequential own = {[](const Tensor&) -> Tensor { throw Own("as it was"); }};
  CHECK(message_of<Own>([&] { own(zeros({2})); }) == "as it was");
}

TEST_CASE("lists, summaries and training name the path of a layer", "[layers]") {
  const nn::Sequential nested = {relu, nn::Sequential{relu, Block{}, nn::Dense(3, 1, key)}};
  CHECK_THAT(message_of([&] {
               nested(zeros({7, 5}));
             }),
             StartsWith("1/1/first: Dense of f32[3,4] expects [...,3], got f32[7,5]: matmul: "));
  CHECK_THAT(message_of([&] {
               nested(zeros({7, 3}));
             }),
             StartsWith("1/2: Dense of f32[3,1] expects [...,3]"));
  const nn::Sequential of_functions = {relu,
                                       nn::Sequential{relu, [](const Tensor& x) { return x + ones({3}); }}};
  CHECK_THAT(message_of([&] { of_functions(zeros({2})); }), StartsWith("1/1: add: "));

  const Network network;
  const std::string wrong = "head: Dense of f32[3,1] expects [...,3], got f32[7,2]: matmul: ",
                    inside = "body/0: Dense of f32[5,2] expects [...,5], got f32[7,4]: matmul: ";
  CHECK_THAT(message_of([&] { nn::summary(network, zeros({7, 5})); }), StartsWith(wrong));
  CHECK_THAT(message_of([&] { nn::summary(network, zeros({7, 4})); }), StartsWith(inside));
  GradientDescent optimizer({.learning_rate = 0.1});
  const auto loss = [](const Tensor& z, const Tensor& x) { return mean_squared_error(z, x); };
  CHECK_THAT(message_of([&] {
               nn::fit(network, loss, optimizer, Dataset({zeros({7, 5}), zeros({7, 1})}), {.batch = 7});
             }),
             StartsWith(wrong));
  CHECK_THAT(message_of([&] {
               nn::fit(network,
                       [](const Network& n, const Batch& batch, const nn::Run&) { return mean(n(batch[0])); },
                       optimizer, Dataset({zeros({7, 4}), zeros({7, 1})}), {.batch = 7});
             }),
             StartsWith(inside));
}

}   // namespace layer_errors_test
