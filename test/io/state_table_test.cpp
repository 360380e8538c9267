// Everything that keeps a state between steps, in every dtype that it can hold: saved, and restored in each
// way into a fresh object and into a used one, the next steps have the same bits. A damaged file, or the file
// of another kind of object, changes nothing and leads to an error that states the reason.
#include <catch2/catch.hpp>

#include <cmath>
#include <set>

#include "message_of.h"
#include "nn/every_layer.h"
#include "optim/any_rule.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/moving_average.h"
#include "tapedeck/nn.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training.h"
#include "tapedeck/training_log.h"
#include "temporary_folder.h"

namespace state_table_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr std::int64_t kStops[] = {0, 1, 3}, kMore = 5;

/// Everything of a small training, by the same names for all of a kind. Step i is the same whenever it is
/// made.
struct Subject {
  std::function<void(Checkpoint&)> add;
  std::function<void(std::int64_t i)> step;
};
struct Row {
  std::string name;
  std::vector<DType> dtypes;
  std::function<Subject(DType)> make;
  bool has_kind = true;   // its file says whose it is
};

/// A subject in its checkpoint.
class Run {
 public:
  explicit Run(const Row& row, DType t, bool is_added = true) : subject_(row.make(t)) {
    if (is_added) add();
  }
  void add() { subject_.add(checkpoint); }
  void steps(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = begin; i < end; ++i)
      subject_.step(i);
  }
  std::string bits(const TemporaryFolder& folder) const {
    checkpoint.save(folder / "bits");
    return text_of(folder / "bits");
  }

  Checkpoint checkpoint;

 private:
  Subject subject_;
};

Tensor noise(Shape shape, std::int64_t i, DType t, std::uint64_t stream = 0) {
  const random::Key key{.seed = 11, .stream = stream};
  return astype(random::normal(shape, key.split(static_cast<std::uint64_t>(i)), DType::f64), t);
}

const std::vector<DType> kFloats = {DType::f32, DType::f64, DType::f16, DType::bf16};

/// Two variables, and the gradients of step i, a sparse one and, now and then, none.
struct Weights {
  Variable w, table;

  explicit Weights(DType t)
      : w(noise({5}, 100, t), {.name = "w"}), table(noise({4, 3}, 101, t), {.name = "table"}) {}
  void add_to(Checkpoint& c) const { c.add("w", w), c.add("table", table); }
  std::vector<GradientAndVariable> gradients(std::int64_t i) const {
    const IndexedSlices rows = {noise({2, 3}, i, w.dtype(), 1), tensor({i % 4, std::int64_t{1}}),
                                Shape{4, 3}};
    return {{noise({5}, i, w.dtype()), w}, {i % 3 == 2 ? Gradient() : Gradient(rows), table}};
  }
};

/// An object made by `make` beside weights; step(object, weights, i).
template <class Make, class Step>
std::function<Subject(DType)> beside_weights(const Make& make, const Step& step) {
  return [=](DType t) {
    using Object = decltype(make(std::declval<const Weights&>()));
    struct Parts {
      Weights weights;
      Object object;
    };
    const Weights weights(t);
    const auto parts = std::make_shared<Parts>(Parts{weights, make(weights)});
    return Subject{[=](Checkpoint& c) { parts->weights.add_to(c), c.add("object", parts->object); },
                   [=](std::int64_t i) { step(parts->object, parts->weights, i); }};
  };
}

std::vector<Row> optimizers() {
  std::vector<Row> rows;
  for (const std::string_view rule : Optimizer::rules()) {
    const auto make = [rule](const Weights&) { return optimizer_of(rule); };
    rows.push_back(
        {std::string(rule), kFloats, beside_weights(make, [](Optimizer& o, const Weights& w, std::int64_t i) {
           o.apply_gradients(w.gradients(i));
         })});
  }
  return rows;
}

/// What a tensor has to be of that is averaged under a name.
DType wide(DType t) { return t == DType::f64 ? t : DType::f32; }

std::vector<Row> averages() {
  const auto update = [](MovingAverage& a, const Weights& w, std::int64_t i) {
    a.update(noise({5}, i, w.w.dtype()), 0.75);
  };
  const auto apply = [](ExponentialMovingAverage& a, const Weights& w, std::int64_t i) {
    w.w.assign(noise({5}, i, w.w.dtype()));
    a.apply(i == 0 ? std::vector{w.w} : std::vector{w.w, w.table}, i);
    if (i > 1) a.apply("deep/x", noise({2}, i, wide(w.w.dtype())), i);
  };
  return {
      {"moving average", kFloats,
       beside_weights([](const Weights& w) { return MovingAverage(w.w); }, update)},
      {"biased moving average", kFloats,
       beside_weights([](const Weights& w) { return MovingAverage(w.w, {.zero_debias = false}); }, update)},
      {"weighted moving average", kFloats,
       beside_weights([](const Weights&) { return WeightedMovingAverage(0.75); },
                      [](WeightedMovingAverage& a, const Weights& w, std::int64_t i) {
                        w.w.assign(
                            a.update(noise({5}, i, w.w.dtype()), square(noise({5}, -i, w.w.dtype())) + 1));
                      })},
      {"averages", kFloats,
       beside_weights([](const Weights&) { return ExponentialMovingAverage(0.75); }, apply)},
      {"debiased averages", kFloats,
       beside_weights([](const Weights&) { return ExponentialMovingAverage(0.75, {.zero_debias = true}); },
                      apply)},
  };
}

std::vector<Row> between_loss_and_step() {
  return {
      {"gradient accumulator", kFloats,
       beside_weights([](const Weights&) { return GradientAccumulator(); },
                      [](GradientAccumulator& a, const Weights& w, std::int64_t i) {
                        a.add(w.gradients(i));
                        if (a.count() < 5) return;
                        for (const auto& [gradient, v] : a.take_mean())
                          v.assign_sub(astype(gradient.dense(), v.dtype()));
                      })},
      {"loss scale", kFloats,
       beside_weights([](const Weights&) { return LossScale({.initial = 64, .growth_interval = 2}); },
                      [](LossScale& scale, const Weights& w, std::int64_t i) {
                        auto pairs = w.gradients(i);
                        if (i % 4 == 3) pairs[0].gradient = full({5}, INFINITY, w.w.dtype());
                        if (!scale.unscale(pairs)) return;
                        w.w.assign(astype(pairs[0].gradient.dense(), w.w.dtype()));
                      })},
  };
}

/// Batches of labels and predictions that all metrics of a kind take.
using Example = std::pair<Tensor, Tensor> (*)(std::int64_t i, DType t);

std::pair<Tensor, Tensor> classes(std::int64_t i, DType t) {
  return {astype(minimum(floor(abs(noise({6}, i, DType::f64)) * 3), 2), DType::i32), noise({6, 3}, i, t, 1)};
}
std::pair<Tensor, Tensor> binary(std::int64_t i, DType t) {
  return {astype(noise({6}, i, DType::f64) > 0, DType::i32), sigmoid(noise({6}, i, t, 1))};
}
std::pair<Tensor, Tensor> numbers(std::int64_t i, DType t) { return {noise({6}, i, t), noise({6}, i, t, 1)}; }

std::vector<Row> metrics() {
  const auto absolute = [](const Tensor& a, const Tensor& b) { return abs(a - b); };
  const std::vector<std::pair<nn::Metric, Example>> all = {{nn::MeanOf("distance", absolute), numbers},
                                                           {nn::MeanSquaredError(), numbers},
                                                           {nn::RootMeanSquaredError(), numbers},
                                                           {nn::MeanAbsoluteError(), numbers},
                                                           {nn::RSquared(), numbers},
                                                           {nn::Accuracy(), classes},
                                                           {nn::TopKAccuracy(2), classes},
                                                           {nn::Perplexity(), classes},
                                                           {nn::ConfusionMatrix({.classes = 3}), classes},
                                                           {nn::BinaryAccuracy(), binary},
                                                           {nn::Precision(), binary},
                                                           {nn::Recall(), binary},
                                                           {nn::F1(), binary},
                                                           {nn::FScore(2), binary},
                                                           {nn::AUC(), binary},
                                                           {nn::AUC(nn::Curve::precision_recall), binary}};
  std::vector<Row> rows;
  for (const auto& [metric, example] : all)
    rows.push_back({metric.name(), kFloats,
                    beside_weights([metric = metric](const Weights&) { return metric; },
                                   [example = example](nn::Metric& m, const Weights& w, std::int64_t i) {
                                     const auto [labels, predictions] = example(i, w.w.dtype());
                                     m.add(labels, predictions);
                                   })});
  rows.push_back({"mean", kFloats,
                  beside_weights([](const Weights&) { return nn::Mean(); },
                                 [](nn::Mean& m, const Weights& w, std::int64_t i) {
                                   m.add(noise({6}, i, w.w.dtype()));
                                 })});
  return rows;
}

/// A layer that is trained on a batch of this shape.
template <class Make> Row layer(std::string name, Shape batch, const Make& make) {
  return {std::move(name), kFloats,
          [=](DType t) {
            struct Parts {
              decltype(make(t)) layer;
              Momentum optimizer{{.learning_rate = 0.01, .momentum = 0.9}};
            };
            const auto parts = std::make_shared<Parts>(Parts{make(t)});
            return Subject{[=](Checkpoint& c) {
                             c.add("layer", nn::variables(parts->layer));
                             c.add("object", parts->optimizer);
                           },
                           [=](std::int64_t i) {
                             const bool takes_ids = std::is_same_v<decltype(make(t)), nn::Embedding>;
                             const Tensor x = takes_ids ? arange(batch.size()) + i : noise(batch, i, t);
                             const nn::Run run = {.training = true};
                             parts->optimizer.minimize([&] {
                               if constexpr (requires { parts->layer(x, run); })
                                 return mean(square(Tensor(parts->layer(x, run))));
                               else
                                 return mean(square(Tensor(parts->layer(x))));
                             });
                           }};
          },
          false};
}

std::vector<Row> layers() {
  const random::Key key = {.seed = 3};
  return {
      layer("Dense", {4, 3}, [=](DType t) { return nn::Dense(3, 2, key, {.dtype = t}); }),
      layer("Embedding", {4}, [=](DType t) { return nn::Embedding(20, 2, key, {.dtype = t}); }),
      layer("Conv1d", {2, 5, 3}, [=](DType t) { return nn::Conv1d(3, 2, 3, key, {.dtype = t}); }),
      layer("Conv1dTranspose", {2, 5, 3},
            [=](DType t) { return nn::Conv1dTranspose(3, 2, 3, key, {.dtype = t}); }),
      layer("Conv2d", {2, 5, 5, 3}, [=](DType t) { return nn::Conv2d(3, 2, 3, key, {.dtype = t}); }),
      layer("Conv2dTranspose", {2, 3, 3, 3},
            [=](DType t) { return nn::Conv2dTranspose(3, 2, 3, key, {.dtype = t}); }),
      layer("Conv3d", {1, 4, 4, 4, 3}, [=](DType t) { return nn::Conv3d(3, 2, 3, key, {.dtype = t}); }),
      layer("Conv3dTranspose", {1, 2, 2, 2, 3},
            [=](DType t) { return nn::Conv3dTranspose(3, 2, 3, key, {.dtype = t}); }),
      layer("LayerNorm", {4, 6}, [](DType t) { return nn::LayerNorm(6, {.dtype = t}); }),
      layer("RMSNorm", {4, 6}, [](DType t) { return nn::RMSNorm(6, {.dtype = t}); }),
      layer("GroupNorm", {2, 3, 6}, [](DType t) { return nn::GroupNorm(2, 6, {.dtype = t}); }),
      layer("BatchNorm", {8, 6}, [](DType t) { return nn::BatchNorm(6, {.dtype = t}); }),
      layer("Lstm", {2, 4, 3}, [=](DType t) { return nn::Lstm(3, 2, key, {.dtype = t}); }),
      layer("Gru", {2, 4, 3}, [=](DType t) { return nn::Gru(3, 2, key, {.dtype = t}); }),
      layer("MultiHeadAttention", {2, 4, 4},
            [=](DType t) { return nn::MultiHeadAttention(4, 2, key, {.dtype = t}); }),
      layer("Residual", {4, 3}, [=](DType t) { return nn::Residual{nn::Dense(3, 3, key, {.dtype = t})}; }),
      layer("Sequential", {4, 3},
            [=](DType t) {
              return nn::Sequential{nn::Dense(3, 4, key, {.dtype = t}), nn::BatchNorm(4, {.dtype = t}), tanh,
                                    nn::Dense(4, 2, key.split(1), {.dtype = t})};
            }),
  };
}

/// Values that are no objects: of every dtype, or of one.
std::vector<Row> values() {
  std::vector<DType> all;
  for (std::size_t t = 0; t < kDTypes; ++t)
    all.push_back(static_cast<DType>(t));
  const auto value = [](std::int64_t i, DType t) { return astype(noise({3}, i, DType::f64) * 50, t); };
  const auto next = [=](const Tensor& x, std::int64_t i, DType t) {
    return concat({slice(x, {1}, {2}), slice(value(i, t), {0}, {1})}, 0);
  };
  const auto of = [](auto initial, auto add, auto step) {
    return [=](DType) {
      const auto x = std::make_shared<decltype(initial)>(initial);
      return Subject{[=](Checkpoint& c) { add(c, *x); }, [=](std::int64_t i) { step(*x, i); }};
    };
  };
  const auto add = [](Checkpoint& c, auto& x) { c.add("object", x); };
  return {
      {"variable", all,
       [=](DType t) {
         const Variable v(value(100, t));
         return Subject{[=](Checkpoint& c) { c.add("object", v); },
                        [=](std::int64_t i) { v.assign(next(v, i, t)); }};
       },
       false},
      {"tensor", all,
       [=](DType t) {
         const auto x = std::make_shared<Tensor>(value(100, t));
         return Subject{[=](Checkpoint& c) { c.add("object", *x); },
                        [=](std::int64_t i) { *x = next(*x, i, t); }};
       },
       false},
      {"functions", all,
       [=](DType t) {
         const auto x = std::make_shared<Tensor>(value(100, t));
         return Subject{[=](Checkpoint& c) {
                          c.add(
                              "object", [x] { return *x; }, [x](const Tensor& next) { *x = next; });
                        },
                        [=](std::int64_t i) { *x = next(*x, i, t); }};
       },
       false},
      {"key",
       {DType::u64},
       of(random::Key{.seed = 5}, add, [](random::Key& k, std::int64_t) { k = k.split(1); }),
       false},
      {"double", {DType::f64}, of(0.1, add, [](double& x, std::int64_t) { x = 3.7 * x * (1 - x); }), false},
      {"integer",
       {DType::i64},
       of(std::int64_t{1}, add, [](std::int64_t& x, std::int64_t i) { x = 3 * x + i; }),
       false},
  };
}

/// A loader, whose state is the number of its next batch, and a log, whose state is its size.
std::vector<Row> files_and_data() {
  struct Loaded {
    DataLoader loader;
    std::int64_t epoch = 0, batch = 0;
    Tensor seen = zeros({2});
  };
  struct Logged {
    TemporaryFolder folder;
    TrainingLog log{folder / "log"};
  };
  return {
      {"data loader", kFloats,
       [](DType t) {
         const Dataset data({noise({7}, 0, t)});
         const auto all = std::make_shared<Loaded>(Loaded{
             DataLoader(data, {.batch = 2, .shuffle = true, .key = {.seed = 2}, .drop_remainder = true})});
         return Subject{[=](Checkpoint& c) {
                          c.add("epoch", all->epoch), c.add("batch", all->batch), c.add("seen", all->seen);
                        },
                        [=](std::int64_t) {
                          Epoch epoch = all->loader.epoch(all->epoch, all->batch);
                          all->seen = all->seen * 0.5 + astype((*epoch.begin())[0], DType::f32);
                          if (++all->batch == all->loader.size()) ++all->epoch, all->batch = 0;
                        }};
       },
       false},
      {"training log",
       {DType::i64},
       [](DType) {
         const auto all = std::make_shared<Logged>();
         const auto size = [all] { return tensor(all->log.size()); };
         return Subject{[=](Checkpoint& c) {
                          c.add("size", size, [all](const Tensor& n) {
                            for (std::int64_t i = 0; all->log.size() < n.item<std::int64_t>(); ++i)
                              all->log.write({{"step", i}});   // as the process that was killed had it
                            all->log.truncate(n.item<std::int64_t>());
                          });
                        },
                        [=](std::int64_t i) {
                          all->log.write({{"step", i}});
                        }};
       },
       false},
  };
}

std::vector<Row> rows() {
  std::vector<Row> all;
  for (const auto& some :
       {optimizers(), averages(), between_loss_and_step(), metrics(), layers(), values(), files_and_data()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}   // namespace

TEST_CASE("the table of states has every layer that keeps one", "[state]") {
  std::set<std::string> names = {"Dropout", "Layer"}, all;   // without a state; of any other
  for (const Row& row : layers())
    names.insert(row.name);
  for (const LayerSample& s : every_layer())
    all.insert(s.name);
  CHECK(names == all);
}

TEST_CASE("every state, of every dtype, continues from a file with the same bits", "[checkpoint][state]") {
  const TemporaryFolder folder(memory_or_temporary());
  for (const Row& row : rows())
    for (const DType t : row.dtypes)
      for (const std::int64_t stop : kStops) {
        CAPTURE(row.name, t, stop);
        const Run whole(row, t), first(row, t);
        whole.steps(0, stop + kMore);
        const std::string end = whole.bits(folder);
        first.steps(0, stop);
        first.checkpoint.save(folder / "middle");

        const auto goes_on = [&](Run& run, const char* how) {
          INFO(how);
          run.steps(stop, stop + kMore);
          CHECK(run.bits(folder) == end);
        };
        Run fresh(row, t), used(row, t), partial(row, t), later(row, t, false);
        fresh.checkpoint.restore(folder / "middle");
        goes_on(fresh, "strict, into a fresh one");
        used.steps(0, 4);   // has slots that the file may lack
        used.checkpoint.restore(folder / "middle");
        goes_on(used, "strict, into a used one");
        const RestoreReport report = partial.checkpoint.restore(folder / "middle", RestoreMode::partial);
        CHECK((report.missing.empty() && report.extra.empty() && report.different.empty()));
        goes_on(partial, "partial");
        later.checkpoint.restore(folder / "middle", RestoreMode::deferred);
        later.add();
        CHECK(later.checkpoint.waiting().empty());
        goes_on(later, "deferred");
      }
}

TEST_CASE("a damaged file of any state is an error and changes nothing", "[checkpoint][state]") {
  const TemporaryFolder folder(memory_or_temporary());
  const std::string path = folder / "damaged";
  for (const Row& row : rows()) {
    CAPTURE(row.name);
    const DType t = row.dtypes[0];
    Run run(row, t);
    run.steps(0, 3);
    const std::string whole = run.bits(folder);
    run.steps(3, 5);
    const std::string before = run.bits(folder);
    for (std::size_t part = 0; part < 8; ++part) {
      std::string flipped = whole;
      const std::size_t at = (whole.size() - 1) * part / 7;
      flipped[at] = static_cast<char>(flipped[at] ^ 4);
      for (const std::string& text : {flipped, whole.substr(0, at)})
        for (const RestoreMode mode : {RestoreMode::strict, RestoreMode::partial, RestoreMode::deferred}) {
          write_text(path, text);
          CHECK_THAT(message_of<FileError>([&] { run.checkpoint.restore(path, mode); }),
                     Catch::Matchers::StartsWith("restore: " + path + ": "));
        }
    }
    CHECK(run.bits(folder) == before);
    CHECK(run.checkpoint.waiting().empty());
  }
}

TEST_CASE("an object rejects the state of another kind of object", "[checkpoint][state]") {
  const TemporaryFolder folder(memory_or_temporary());
  std::vector<Row> objects = rows();
  std::erase_if(objects, [](const Row& row) { return !row.has_kind; });
  for (const Row& row : objects) {
    const Run run(row, DType::f32);
    run.steps(0, 3);
    run.checkpoint.save(folder / row.name);
  }
  for (const Row& row : objects) {
    Run run(row, DType::f32);
    run.steps(0, 2);
    const std::string before = run.bits(folder);
    for (const Row& other : objects) {
      if (other.name == row.name) continue;
      CAPTURE(row.name, other.name);
      CHECK_THAT(message_of<Error>([&] { run.checkpoint.restore(folder / other.name); }),
                 Catch::Matchers::StartsWith("restore: "));
    }
    CHECK(run.bits(folder) == before);
  }
}

TEST_CASE("a state that an object rejects is an error of the file", "[checkpoint][state]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  ExponentialMovingAverage plain(0.9), debiased(0.9, {.zero_debias = true});
  plain.apply("loss", tensor(1.0));
  Checkpoint saved;
  saved.add("average", plain);
  saved.save(path);
  const auto begins = Catch::Matchers::StartsWith("restore: " + path + ": \"average\": ");
  for (const RestoreMode mode : {RestoreMode::strict, RestoreMode::partial, RestoreMode::deferred}) {
    Checkpoint c;
    c.add("average", debiased);
    CHECK_THAT(message_of<FileError>([&] { c.restore(path, mode); }), begins);
  }
  CHECK_FALSE(debiased.has_average("loss"));

  Checkpoint later;   // to which the object is added when the file has been read
  later.restore(path, RestoreMode::deferred);
  CHECK_THAT(message_of<FileError>([&] { later.add("average", debiased); }), begins);
}

TEST_CASE("an object nested in one of another kind is restored", "[checkpoint][state]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  LossScale saved({.initial = 8}), other({.initial = 8}), scale;
  Checkpoint c;
  c.add("opt", saved), c.add("opt/scale", other);
  c.save(path);
  Adam adam;
  Checkpoint below;
  below.add("opt", adam), below.add("opt/scale", scale);
  const RestoreReport report = below.restore(path, RestoreMode::partial);
  CHECK(report.restored ==
        std::vector<std::string>{"opt/scale/good", "opt/scale/skipped", "opt/scale/value"});
  CHECK(report.different.size() == 1);
  CHECK((report.missing.empty() && report.extra.empty()));
  CHECK(scale.value() == 8);
}

TEST_CASE("the kind of an object is saved, and may be missing from a file", "[checkpoint][state][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  const auto make = [](auto optimizer) {
    struct Parts {
      Variable w{ones({2}), {.name = "w"}};
      decltype(optimizer) rule;
    };
    return std::make_unique<Parts>(Parts{.rule = std::move(optimizer)});
  };
  const auto add = [](Checkpoint& c, auto& parts, bool has_rule = true) {
    c.add("w", parts.w);
    if (has_rule) c.add("rule", parts.rule);
  };
  const auto adam = make(Adam({.learning_rate = 0.1}));
  Checkpoint saved;
  add(saved, *adam);
  adam->rule.apply_gradients({{tensor({1.0, 2.0}), adam->w}});
  saved.save(path);
  const std::string difference = "\"rule\" is the state of adam in x, of adamw here";

  const auto adamw = make(AdamW());
  Checkpoint c;
  add(c, *adamw);
  CHECK(message_of<FileError>([&] { c.restore(path); }) ==
        "restore: " + path + ": does not match; different: " + difference);
  CHECK(adamw->w.value().to_vector() == std::vector<double>{1, 1});
  const RestoreReport report = c.restore(path, RestoreMode::partial);
  CHECK(report.restored == std::vector<std::string>{"w"});
  CHECK(report.different == std::vector<std::string>{difference});
  CHECK((report.missing.empty() && report.extra.empty()));
  CHECK(adamw->w.value().to_vector() == adam->w.value().to_vector());
  CHECK(adamw->rule.iterations() == 0);
  c.restore(path, RestoreMode::deferred);
  CHECK(c.waiting().empty());

  Checkpoint later;
  add(later, *adamw, false);
  later.restore(path, RestoreMode::deferred);
  CHECK(message_of<FileError>([&] { later.add("rule", adamw->rule); }) ==
        "restore: " + path + ": " + difference);
  CHECK(adamw->rule.iterations() == 0);
  const auto other = make(Adam());
  later.add("rule", other->rule);
  CHECK(other->rule.iterations() == 1);

  SavedState state = adam->rule.state();
  CHECK(message_of<ArgumentError>([&] { adamw->rule.restore(state); }) ==
        "restore: this is the state of adam, not of adamw");
  state.kind = {};   // on purpose
  adamw->rule.restore(state);
  CHECK(adamw->rule.iterations() == 1);
  // As versions before this one, and other libraries, write files.
  save_safetensors(path, load_safetensors(path));
  adamw->rule.restore(AdamW().state());
  c.restore(path);
  CHECK(adamw->rule.iterations() == 1);
}

}   // namespace state_table_test
