// Walks of networks: names, sharing, copies, and the table of layers.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <variant>

#include "closeness.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/gradient_transform.h"
#include "tapedeck/nn.h"
#include "tapedeck/tapedeck.h"
#include "temporary_folder.h"

namespace variables_test {

using namespace tapedeck;

namespace {

constexpr random::Key kKey{.seed = 1};

struct Block {
  random::Key key;
  std::int64_t width;
  nn::Dense up{width, 2 * width, key.split(0)}, down{2 * width, width, key.split(1)};
  nn::LayerNorm norm{width};

  Tensor operator()(const Tensor& x) const { return x + down(relu(up(norm(x)))); }
};

Block block(random::Key key, std::int64_t width) { return {key, width}; }

class Closed {
 public:
  explicit Closed(random::Key key) : inner_(2, 2, key) {}
  Tensor operator()(const Tensor& x) const { return inner_(x); }
  template <class Visit> void for_each_member(const Visit& visit) { visit("inner", inner_); }

 private:
  nn::Dense inner_;
};

struct Everything {
  random::Key key;
  std::string title = "everything";
  Variable single{zeros({2}), {.name = "its own"}};
  std::array<Block, 2> pair = {block(key, 2), block(key, 2)};
  std::vector<nn::Dense> list = {nn::Dense(1, 1, key), nn::Dense(1, 2, key)};
  std::map<std::string, Variable> named = {{"b", Variable(zeros({1}))}, {"a", Variable(zeros({1}))}};
  std::optional<nn::LayerNorm> some{nn::LayerNorm(2)}, none = {};
  std::shared_ptr<Block> shared = std::make_shared<Block>(block(key, 1));
  std::tuple<int, nn::LayerNorm> mixed{3, 4};
  std::variant<Variable, nn::LayerNorm> either = nn::LayerNorm(5);
  nn::Layer activation = relu;
  Closed closed{key};
  std::vector<double> numbers = {1, 2};
  Tensor constant = ones({3});
};

struct Empty {
  double rate = 0;
};

std::vector<std::string> names_of(const std::vector<NamedVariable>& all) {
  std::vector<std::string> names;
  for (const NamedVariable& v : all)
    names.push_back(v.name);
  return names;
}

struct Network {
  random::Key key;
  nn::Embedding tokens{7, 4, key.split(0)};
  nn::Sequential blocks = nn::repeat(2, [this](std::uint64_t i) { return Block{key.split(i + 1), 4}; });
  nn::BatchNorm norm{4};
  nn::Dense head{4, 3, key.split(9)};

  Tensor operator()(const Tensor& x, nn::Run run = {}) const {
    return head(norm(blocks(tokens(x), run), run));
  }
};

}   // namespace

TEST_CASE("variables are named by the members that lead to them") {
  const Everything all{{.seed = 3}};
  CHECK(names_of(nn::variables(all)) == std::vector<std::string>{"single",
                                                                 "pair/0/up/kernel",
                                                                 "pair/0/up/bias",
                                                                 "pair/0/down/kernel",
                                                                 "pair/0/down/bias",
                                                                 "pair/0/norm/scale",
                                                                 "pair/0/norm/offset",
                                                                 "pair/1/up/kernel",
                                                                 "pair/1/up/bias",
                                                                 "pair/1/down/kernel",
                                                                 "pair/1/down/bias",
                                                                 "pair/1/norm/scale",
                                                                 "pair/1/norm/offset",
                                                                 "list/0/kernel",
                                                                 "list/0/bias",
                                                                 "list/1/kernel",
                                                                 "list/1/bias",
                                                                 "named/a",
                                                                 "named/b",
                                                                 "some/scale",
                                                                 "some/offset",
                                                                 "shared/up/kernel",
                                                                 "shared/up/bias",
                                                                 "shared/down/kernel",
                                                                 "shared/down/bias",
                                                                 "shared/norm/scale",
                                                                 "shared/norm/offset",
                                                                 "mixed/1/scale",
                                                                 "mixed/1/offset",
                                                                 "either/scale",
                                                                 "either/offset",
                                                                 "closed/inner/kernel",
                                                                 "closed/inner/bias"});
  CHECK(nn::variables(all)[0].variable == all.single);
  CHECK(nn::variables(Empty{}).empty());
  CHECK(names_of(nn::variables(nn::Dense(1, 1, kKey))) == std::vector<std::string>{"kernel", "bias"});
}

namespace {
class Scaled {   // a wrapper of one's own
 public:
  explicit Scaled(nn::Layer layer) : layer_(std::move(layer)) {}
  Tensor operator()(const Tensor& x) const { return layer_(x) * 0.5; }
  template <class Visit> void for_each_member(const Visit& visit) { visit("", layer_); }

 private:
  nn::Layer layer_;
};
}   // namespace
TEST_CASE("a member without a name is named by its class") {
  const nn::Dense dense(2, 2, kKey);
  const nn::Sequential net{Scaled(dense), nn::Residual{Scaled(dense)}, Scaled(nn::Sequential{dense})};
  const std::vector<NamedVariable> all = nn::variables(net);
  REQUIRE(all.size() == 2);   // shared
  CHECK(all[0].name == "0/kernel");
  CHECK(nn::variables(nn::Residual{Scaled(dense)})[1].name == "bias");
  CHECK(nn::variables(nn::Sequential{Scaled(nn::Sequential{dense})})[0].name == "0/0/kernel");
  const std::string table = nn::summary(net, zeros({3, 2}));
  CHECK(table.find("Dense") != table.npos);
  CHECK(table.find("Scaled") == table.npos);
  CHECK(table.find("Residual") == table.npos);
}

namespace {
struct Gated {
  nn::Dense inner{2, 2, kKey};
  Variable gate{ones({2})};
  bool gate_first = false;
  Tensor operator()(const Tensor& x) const { return inner(x) * gate; }
  template <class Visit> void for_each_member(const Visit& visit) {
    if (gate_first) visit("gate", gate);
    visit("", inner);
    if (!gate_first) visit("gate", gate);
  }
};
}   // namespace
TEST_CASE("a member without a name does not hide a class with others in a summary") {
  for (const bool gate_first : {false, true}) {
    const nn::Sequential net{Gated{.gate_first = gate_first}, nn::Dense(2, 1, kKey)};
    CHECK(nn::summary(net, zeros({3, 2})) == R"(Sequential: f32[3,2] -> f32[3,1]
layer  type   result    numbers
-------------------------------
0      Gated  f32[3,2]        8
1      Dense  f32[3,1]        3
-------------------------------
11 numbers in 44 bytes: 11 trainable, 0 not
)");
    CHECK(nn::variables(net)[gate_first].name == "0/kernel");
  }
}

namespace {
struct Stacked {
  nn::Dense first{2, 4, kKey}, second{4, 2, kKey};
  Tensor operator()(const Tensor& x) const { return second(first(x)); }
  template <class Visit> void for_each_member(const Visit& visit) { visit("", first), visit("", second); }
};
}   // namespace
TEST_CASE("members without names do not hide their class in a summary") {
  CHECK(nn::summary(nn::Sequential{Stacked{}}, zeros({3, 2})) == R"(Sequential: f32[3,2] -> f32[3,2]
layer  type     result    numbers
---------------------------------
0      Stacked  f32[3,2]       22
---------------------------------
22 numbers in 88 bytes: 22 trainable, 0 not
)");
}

TEST_CASE("layers that share a name across ranks have distinct names") {
  const nn::Sequential net{nn::Conv1d(2, 3, 2, kKey), nn::Conv1dTranspose(3, 2, 2, kKey)};
  const std::string table = nn::summary(net, zeros({4, 5, 2}));
  CHECK_THAT(table, Catch::Contains("Conv1d   ") && Catch::Contains("Conv1dTranspose"));
  CHECK(table.find("f32[4,4,3]") != table.npos);   // a layer that is found by its name
}

TEST_CASE("members without variables are skipped") {
  struct Network {
    nn::Dense only{2, 1, {.seed = 1}};
    std::filesystem::path folder = "a/b";   // which is a list of paths
    std::string name = "n";
    std::vector<double> numbers = {1, 2};
  };
  CHECK(nn::variables(Network{}).size() == 2);
}

TEST_CASE("patterns choose variables") {
  const Network net{{.seed = 3}};
  CHECK(names_of(nn::variables(net, "blocks/1/*/kernel")) ==
        std::vector<std::string>{"blocks/1/up/kernel", "blocks/1/down/kernel"});
  CHECK(nn::variables(net, "*").size() == nn::variables(net).size());
  CHECK(nn::variables(net, "head/bias").size() == 1);
  CHECK(nn::variables(net, "**bias*").size() == 5);
  CHECK(nn::variables(net, "head").empty());
  CHECK(nn::variables(net, "").empty());
  CHECK(nn::variables(net).size() == nn::trainable_variables(net).size() + 2);
  CHECK(nn::element_count(nn::variables(net, "norm/*")) == 16);
}

TEST_CASE("shared members are listed once, and shared in a copy") {
  struct Tied {
    nn::Dense a{2, 2, kKey}, b = a;
    nn::Sequential more{a, nn::Dense(2, 2, kKey)};
  };
  const Tied tied;
  CHECK(names_of(nn::variables(tied)) ==
        std::vector<std::string>{"a/kernel", "a/bias", "more/1/kernel", "more/1/bias"});
  const Tied other = nn::copy(tied);
  CHECK(other.a.kernel == other.b.kernel);
  CHECK_FALSE(other.a.kernel == tied.a.kernel);
  CHECK(same_bits(other.a.kernel, tied.a.kernel));
  const Tensor x = ones({1, 2}), before = tied.more(x);
  for (const NamedVariable& v : nn::variables(other))
    v.variable.assign(zeros(v.variable.shape()));
  CHECK(same_bits(tied.more(x), before));
  CHECK(worst(other.more(x), zeros({1, 2})) == 0);

  const nn::BatchNorm norm(2);
  CHECK_FALSE(nn::copy(norm).mean.trainable());
}

TEST_CASE("pointees that are shared are copied once, and the original is unchanged") {
  struct Encoder {
    nn::Dense dense{2, 2, kKey};
  };
  struct Shared {
    std::shared_ptr<Encoder> a = std::make_shared<Encoder>(), b = a;
    std::vector<std::shared_ptr<nn::Dense>> list = {std::make_shared<nn::Dense>(2, 2, kKey), nullptr};
    nn::Dense tied = a->dense;
    std::shared_ptr<const Encoder> sizes = a;   // passed over
  };
  const Shared original;
  CHECK(names_of(nn::variables(original)) ==
        std::vector<std::string>{"a/dense/kernel", "a/dense/bias", "list/0/kernel", "list/0/bias"});
  const std::vector<NamedVariable> before = nn::variables(original);
  const Shared copy = nn::copy(original);
  const std::vector<NamedVariable> own = nn::variables(copy);
  CHECK(names_of(own) == names_of(before));
  CHECK(copy.a == copy.b);
  CHECK(copy.tied.kernel == copy.a->dense.kernel);
  CHECK(copy.a != original.a);
  const std::vector<NamedVariable> after = nn::variables(original);
  REQUIRE(after.size() == before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(after[i].variable == before[i].variable);
    CHECK_FALSE(own[i].variable == before[i].variable);
    CHECK(same_bits(own[i].variable, before[i].variable));
    own[i].variable.assign(zeros(own[i].variable.shape()));
  }
  CHECK(original.a->dense.kernel == original.tied.kernel);
  CHECK(worst(original.a->dense.kernel, zeros({2, 2})) > 0);
}

namespace {
struct Base {
  nn::Dense dense{2, 2, kKey};
  virtual ~Base() = default;
  template <class Visit> void for_each_member(const Visit& visit) { visit("dense", dense); }
};
}   // namespace
TEST_CASE("a network whose members cannot all be copied is rejected") {
  struct Network {
    nn::Dense first{2, 2, kKey};
    std::shared_ptr<Base> second = std::make_shared<Base>();
  };
  const Network network;
  const std::vector<NamedVariable> before = nn::variables(network);
  CHECK_THROWS_WITH(nn::copy(network),
                    "copy: member \"second/dense/kernel\" of the copy is a pointer into the original; hold "
                    "the member by value or by a std::shared_ptr to its own type");
  const std::vector<NamedVariable> after = nn::variables(network);
  for (std::size_t i = 0; i < before.size(); ++i)
    CHECK(after[i].variable == before[i].variable);
}

TEST_CASE("a network that points back to itself is rejected, unless by a std::weak_ptr") {
  struct Child;
  struct Parent {
    nn::Dense dense{2, 2, kKey};
    std::shared_ptr<Child> child = {};
  };
  struct Child {
    std::shared_ptr<Parent> strong = {};
    std::weak_ptr<Parent> weak = {};
  };
  const auto parent = std::make_shared<Parent>();
  parent->child = std::make_shared<Child>();
  parent->child->weak = parent;
  CHECK(nn::variables(*parent).size() == 2);
  parent->child->strong = parent;
  CHECK_THROWS_WITH(nn::variables(*parent),
                    "network: member \"child/strong/child\" points back to a layer that holds it; make it a "
                    "std::weak_ptr, which is skipped");
  parent->child->strong = nullptr;
  CHECK(nn::variables(*parent).size() == 2);
}

TEST_CASE("checkpoints and optimizers take the variables of a network") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "net.safetensors";
  const Network net{{.seed = 3}}, other{{.seed = 4}};
  Checkpoint checkpoint;
  checkpoint.add("net", nn::variables(net));
  CHECK_THROWS_WITH(checkpoint.add("again", nn::variables(net)),
                    "checkpoint: variable \"again/tokens/table\" was added before, as \"net/tokens/table\"");
  checkpoint.save(path);
  Checkpoint second;
  second.add("net", nn::variables(other));
  second.restore(path);
  const Tensor ids = tensor({{1, 2}}, DType::i64);
  CHECK(same_bits(net(ids), other(ids)));

  // All or none: the first name is free, the second is not.
  Checkpoint half;
  const Variable bias = net.head.bias.value();
  half.add("x/head/bias", bias);
  CHECK_THROWS_AS(half.add("x", nn::variables(net, "head/*")), ArgumentError);
  CHECK_NOTHROW(half.add("x/head/kernel", net.head.kernel));

  GradientDescent sgd({.learning_rate = 1.0});
  sgd.add_transform(transforms::weight_decay(0.5, nn::among(nn::variables(net, "*/kernel"))));
  const Tensor kernel = net.head.kernel, offset = bias;
  sgd.apply_gradients({{zeros({4, 3}), net.head.kernel}, {zeros({3}), bias}});
  CHECK(worst(net.head.kernel, 0.5 * kernel) < 1e-7);
  CHECK(same_bits(bias, offset));
}

TEST_CASE("summary is a table of layers") {
  const Network net{{.seed = 3}};
  const Tensor mean = net.norm.mean;
  CHECK(nn::summary(net, tensor({{1, 2}}, DType::i64)) ==
        R"(Network: i64[1,2] -> f32[1,2,3]
layer     type        result      numbers
-----------------------------------------
tokens    Embedding   f32[1,2,4]       28
blocks    Sequential  f32[1,2,4]      168
  0       Block       f32[1,2,4]       84
    up    Dense       f32[1,2,8]       40
    down  Dense       f32[1,2,4]       36
    norm  LayerNorm   f32[1,2,4]        8
  1       Block       f32[1,2,4]       84
    up    Dense       f32[1,2,8]       40
    down  Dense       f32[1,2,4]       36
    norm  LayerNorm   f32[1,2,4]        8
norm      BatchNorm   f32[1,2,4]       16
head      Dense       f32[1,2,3]       15
-----------------------------------------
227 numbers in 908 bytes: 219 trainable, 8 not
)");
  CHECK(same_bits(net.norm.mean, mean));
}

namespace {

struct Größen {
  Variable α{ones({1})}, β{ones({2})};
  nn::Dense größe{1, 1, {.seed = 1}};
};
struct WithConstants {
  const std::int64_t width = 3;
  const std::string name = "w";
  const std::vector<double> rates = {0.5};
  const std::shared_ptr<nn::Dense> shared = std::make_shared<nn::Dense>(1, 1, random::Key{.seed = 1});
  nn::Dense head{1, 1, {.seed = 2}};
};

}   // namespace

TEST_CASE("member names may have letters of any language", "[layers]") {
  std::vector<std::string> names;
  for (const auto& [name, v] : nn::variables(Größen()))
    names.push_back(name);
  CHECK(names == std::vector<std::string>{"α", "β", "größe/kernel", "größe/bias"});
}

TEST_CASE("a network may have constants and constant pointers", "[layers]") {
  std::vector<std::string> names;
  for (const auto& [name, v] : nn::variables(WithConstants()))
    names.push_back(name);
  CHECK(names == std::vector<std::string>{"shared/kernel", "shared/bias", "head/kernel", "head/bias"});
}

}   // namespace variables_test
