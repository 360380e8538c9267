// A training run that is repeatedly killed and restarted: its final state is bitwise equal to the state of an
// uninterrupted run. A checkpoint holds all that it needs: weights, the optimizer's slots, a random key and
// counters.
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <sys/wait.h>
#include <tapedeck/checkpoint.h>
#include <tapedeck/csv.h>
#include <tapedeck/dataset.h>
#include <tapedeck/tapedeck.h>
#include <unistd.h>

#include "../common/example.h"

namespace td = tapedeck;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kEvery = 20, kHidden = 32;   // steps between checkpoints; hidden units

td::Dataset patients() {
  const td::Tensor all = td::load_csv(example_data("breast_cancer.csv"), {.has_header = true}).values;
  const td::Tensor x = td::slice(all, {0, 0}, {-1, 30}), benign = td::slice(all, {0, 30}, {-1, 1});
  return td::Dataset({(x - td::mean(x, {0})) / td::sqrt(td::variance(x, {0})), benign});
}

/// A network trained on shuffled batches with dropout, so that much of it is random.
class Training {
 public:
  explicit Training(const std::string& folder) : files_(folder) {
    checkpoint_.add("w1", w1_), checkpoint_.add("b1", b1_), checkpoint_.add("w2", w2_),
        checkpoint_.add("b2", b2_);
    checkpoint_.add("adam", adam_), checkpoint_.add("key", key_), checkpoint_.add("step", step_),
        checkpoint_.add("losses", losses_);
    if (const auto latest = files_.latest()) checkpoint_.restore(*latest);
  }

  /// Runs up to `steps` steps in total, from the last checkpoint on; the process is killed after step
  /// `dies_at`.
  void run(std::int64_t steps, std::int64_t dies_at) {
    while (step_ < steps) {
      for (const td::Batch& batch : loader_.epoch(step_ / loader_.size(), step_ % loader_.size())) {
        if (step_ == steps) break;
        if (step_ == dies_at) std::raise(SIGKILL);   // no destructor runs, no buffer is flushed
        train(batch);
        ++step_;
        if (step_ % kEvery == 0 || step_ == steps) files_.save(checkpoint_, step_);
      }
    }
  }

 private:
  void train(const td::Batch& batch) {
    key_ = key_.split(0);
    const td::Tensor loss = adam_.minimize([&] {
      const td::Tensor hidden = td::tanh(td::matmul(batch[0], w1_) + b1_);
      const td::Tensor kept =
          td::astype(td::less(td::random::uniform(hidden.shape(), key_.split(1)), 0.8), td::DType::f32) / 0.8;
      const td::Tensor score = td::matmul(hidden * kept, w2_) + b2_;
      return td::mean(td::softplus(score) - batch[1] * score);
    });
    losses_ = losses_.defined() ? td::concat({losses_, td::reshape(loss, {1})}, 0) : td::reshape(loss, {1});
  }

  td::Variable w1_{0.2 * td::random::normal({30, kHidden}, {.seed = 1})}, b1_{td::zeros({kHidden})};
  td::Variable w2_{0.2 * td::random::normal({kHidden, 1}, {.seed = 2})}, b2_{td::zeros({1})};
  td::Adam adam_{{.learning_rate = 3e-3}};
  td::random::Key key_{.seed = 3};
  std::int64_t step_ = 0;
  td::Tensor
      losses_;   // by step, for the picture; initially undefined, so that a restore may assign any shape
  td::Checkpoint checkpoint_;
  td::CheckpointFolder files_;
  td::DataLoader loader_{patients(), {.batch = 32, .shuffle = true, .key = {.seed = 4}}};
};

/// Trains in a child process. Returns the signal that killed it, 0 if none; throws if training failed.
int train_in_process(const std::string& folder, std::int64_t steps, std::int64_t dies_at) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      Training(folder).run(steps, dies_at);
      _exit(0);
    } catch (const std::exception& e) {
      fmt::print(stderr, "resume: {}\n", e.what());
      _exit(1);
    }
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || (WIFEXITED(status) && WEXITSTATUS(status) != 0))
    throw td::Error("the training failed");
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

td::NamedTensors tensors_of(const std::string& folder, std::int64_t step) {
  return td::load_safetensors(td::CheckpointFolder(folder).path_of(step));
}

bool same_bits(const td::NamedTensors& a, const td::NamedTensors& b) {
  bool same = a.size() == b.size();
  for (const auto& [name, x] : a) {
    const auto y = b.find(name);
    same = same && y != b.end() && x.spec() == y->second.spec() && x.to_vector() == y->second.to_vector();
  }
  return same;
}

/// A temporary folder for the checkpoints, removed on every exit path.
struct WorkFolder {
  std::string path = (fs::temp_directory_path() / "tapedeck-resume-XXXXXX").string();
  WorkFolder() {
    if (!mkdtemp(path.data())) throw td::FileError("cannot make a folder like " + path);
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

void example(Run& run) {
  const std::int64_t steps = run.quick ? 100 : 400;
  const WorkFolder folder;
  const std::string whole = folder.path + "/whole", broken = folder.path + "/broken";
  run.claim(train_in_process(whole, steps, -1) == 0,
            fmt::format("a run of {} steps that nobody disturbs ends", steps));

  Curve deaths{.colour = kOrange, .name = "killed here", .width = 5, .dots = true};
  for (const std::int64_t dies_at :
       {steps * 13 / 100, steps * 37 / 100, steps * 59 / 100, steps * 93 / 100}) {
    const bool killed = train_in_process(broken, steps, dies_at) == SIGKILL;
    const auto left = td::CheckpointFolder(broken).steps();
    fmt::print("killed after step {}; the last checkpoint is that of step {}\n", dies_at,
               left.empty() ? 0 : left.back());
    run.claim(killed && (left.empty() ? 0 : left.back()) == dies_at / kEvery * kEvery,
              "the process is gone, and the checkpoint before it is there");
    deaths.x.push_back(static_cast<double>(dies_at));
  }
  run.claim(train_in_process(broken, steps, -1) == 0, "the last start ends");

  const td::NamedTensors a = tensors_of(whole, steps), b = tensors_of(broken, steps);
  run.claim(same_bits(a, b), fmt::format("all {} tensors of both runs have the same bits", a.size()));
  run.claim(!same_bits(a, tensors_of(whole, steps - kEvery)),
            "the comparison can tell one step from another");

  Curve losses{.y = b.at("losses").to_vector(), .colour = kPaleBlue, .name = "loss of each step", .width = 1};
  losses.x = counted(losses.y.size(), 0);
  for (const double x : deaths.x)
    deaths.y.push_back(losses.y.at(static_cast<std::size_t>(x)));
  run.picture.chart({}, "A run in five pieces:", {.label = "step", .whole = true},
                    {.label = "cross entropy", .logarithmic = true}, std::vector{losses, deaths});
}

}   // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, "a training run that is killed and goes on to the same bits", example);
}
