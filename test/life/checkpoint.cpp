// Processes that are killed while they save: after each of 500 kills at random moments the file holds one
// complete state, the old one or the next. A full disk leaves the old file unchanged, too.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "tapedeck/checkpoint.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;

namespace {

constexpr int kKills = 500, kTensors = 4;
constexpr std::int64_t kElements = 50'000;

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "checkpoint: %s\n", what);
  std::_Exit(1);
}

// The saves that the saving process has begun and finished, for the process that kills it.
struct Progress {
  std::atomic<std::int64_t> begun, done;
};

// In state k every element of every tensor is k.
void save_state(std::int64_t k, const std::string& path) {
  std::vector<td::Variable> weights;
  td::Checkpoint checkpoint;
  for (int i = 0; i < kTensors; ++i) {
    weights.emplace_back(td::full({kElements}, static_cast<double>(k)));
    checkpoint.add(std::string("w").append(std::to_string(i)), weights.back());
  }
  checkpoint.save(path);
}

std::int64_t load_state(const std::string& path) {
  const td::NamedTensors tensors = td::load_safetensors(path).tensors;
  require(tensors.size() == kTensors, "tensors are missing");
  const float k = tensors.begin()->second.data<float>()[0];
  for (const auto& [name, x] : tensors) {
    require(x.size() == kElements, "a tensor has lost elements");
    for (const float v : x.data<float>())
      require(v == k, "numbers of two states are in one file");
  }
  return static_cast<std::int64_t>(k);
}

void kill_while_saving(const std::string& path) {
  auto* progress = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  require(progress != MAP_FAILED, "mmap");
  new (progress) Progress{};
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i)
    save_state(0, path);
  const auto each =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start) / 5;

  std::mt19937 random(1);
  std::uniform_int_distribution<std::int64_t> moment(0, 3 * each.count());
  int interrupted = 0;
  for (int i = 0; i < kKills; ++i) {
    const pid_t child = fork();
    require(child >= 0, "fork");
    if (child == 0) {
      alarm(60);
      for (std::int64_t k = progress->done + 1;; ++k) {
        progress->begun = k;
        save_state(k, path);
        progress->done = k;
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(moment(random)));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    require(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a saving process ended by itself");
    const std::int64_t k = load_state(path);
    require(k == progress->done || k == progress->begun,
            "the file holds another state than the last or the next");
    progress->done = k;
    interrupted += std::filesystem::exists(path + ".partial");
  }
  std::printf("checkpoint: %d kills, %d of them while a file was written, %ld states saved\n", kKills,
              interrupted, static_cast<long>(progress->done));
  require(interrupted > kKills / 20, "too few kills came while a file was written");
}

// Limits the length of files, so that writing fails in the middle.
void fill_the_disk(const std::string& path) {
  save_state(1, path);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const unsigned most : {0u, 1u, 100u, 4096u, 300'000u, 799'999u}) {
    const rlimit limit{most, RLIM_INFINITY};
    require(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    bool failed = false;
    try {
      save_state(2, path);
    } catch (const td::FileError& e) {
      failed = std::string(e.what()) == "save: " + path + ": cannot be written: File too large";
    }
    require(failed, "a file without room was written, or the error is another one");
    require(load_state(path) == 1, "the old state is gone");
    require(!std::filesystem::exists(path + ".partial"), "a part of a file stays");
  }
}

}   // namespace

// The memory of a killed process is no leak.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "tapedeck-XXXXXX").string();
  require(mkdtemp(folder.data()) != nullptr, "mkdtemp");
  kill_while_saving(folder + "/state.safetensors");
  fill_the_disk(folder + "/state.safetensors");
  std::filesystem::remove_all(folder);
}
