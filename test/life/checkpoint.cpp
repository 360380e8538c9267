// Processes that are killed while they save: after each of many kills at random moments the file, of any
// format, holds one complete state, the old one or the next, and a log whole lines. A full disk leaves the
// old file unchanged, too.
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
#include <fstream>
#include <random>
#include <span>
#include <thread>

#include "core/sanitizers.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/dataset.h"
#include "tapedeck/npy.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training_log.h"

namespace td = tapedeck;
using tapedeck::kAddressSanitizer;

namespace {

constexpr int kTensors = 4;
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
td::NamedTensors state(std::int64_t k) {
  td::NamedTensors tensors;
  for (int i = 0; i < kTensors; ++i)
    tensors.emplace(std::string("w").append(std::to_string(i)),
                    td::full({kElements}, static_cast<double>(k)));
  return tensors;
}
void save_state(std::int64_t k, const std::string& path) {
  std::vector<td::Variable> weights;
  td::Checkpoint checkpoint;
  for (const auto& [name, x] : state(k)) {
    weights.emplace_back(x);
    checkpoint.add(name, weights.back());
  }
  checkpoint.save(path);
}

constexpr int kLess = kAddressSanitizer ? 5 : 1;   // a sanitized process starts slowly

struct Format {
  const char* name;
  int kills;
  void (*save)(std::int64_t k, const std::string& path);
  td::NamedTensors (*load)(const std::string& path);
};
const Format kCheckpoint = {"checkpoint", 500 / kLess, save_state, td::load_safetensors};
const Format kFormats[] = {
    // the last needs libzip
    kCheckpoint,
    {"safetensors", 100 / kLess,
     [](std::int64_t k, const std::string& path) { td::save_safetensors(path, state(k)); }, kCheckpoint.load},
    {"npy", 100 / kLess,
     [](std::int64_t k, const std::string& path) {
       td::save_npy(path, td::full({kTensors * kElements}, static_cast<double>(k)));
     },
     [](const std::string& path) {
       td::NamedTensors tensors;
       const td::Dataset whole({td::load_npy(path)});
       for (int i = 0; i < kTensors; ++i)
         tensors.emplace(std::to_string(i), whole.range(i * kElements, (i + 1) * kElements).tensors()[0]);
       return tensors;
     }},
    {"npz", 100 / kLess, [](std::int64_t k, const std::string& path) { td::save_npz(path, state(k)); },
     [](const std::string& path) { return td::load_npz(path); }},
};

std::int64_t load_state(const Format& format, const std::string& path) {
  const td::NamedTensors tensors = format.load(path);
  require(tensors.size() == kTensors, "tensors are missing");
  const float k = tensors.begin()->second.data<float>()[0];
  for (const auto& [name, x] : tensors) {
    require(x.size() == kElements, "a tensor has lost elements");
    for (const float v : x.data<float>())
      require(v == k, "numbers of two states are in one file");
  }
  return static_cast<std::int64_t>(k);
}

Progress& shared_progress() {
  void* memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "mmap");
  return *new (memory) Progress{};
}

// Runs f in a child, which is killed at a random moment within that time.
template <class F> void kill_at_random(std::mt19937& random, std::chrono::microseconds within, const F& f) {
  const pid_t child = fork();
  require(child >= 0, "fork");
  if (child == 0) {
    alarm(60);
    f();
    std::_Exit(1);
  }
  std::this_thread::sleep_for(
      std::chrono::microseconds(std::uniform_int_distribution<std::int64_t>(0, within.count())(random)));
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  require(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a saving process ended by itself");
}

template <class F> std::chrono::microseconds duration_of(int times, const F& f) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i)
    f();
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start) /
         times;
}

void kill_while_saving(const Format& format, const std::string& path) {
  Progress& progress = shared_progress();
  const auto each = duration_of(5, [&] { format.save(0, path); });
  std::mt19937 random(1);
  int interrupted = 0;
  for (int i = 0; i < format.kills; ++i) {
    kill_at_random(random, 3 * each, [&] {
      for (std::int64_t k = progress.done + 1;; ++k) {
        progress.begun = k;
        format.save(k, path);
        progress.done = k;
      }
    });
    const std::int64_t k = load_state(format, path);
    require(k == progress.done || k == progress.begun,
            "the file holds another state than the last or the next");
    progress.done = k;
    interrupted += std::filesystem::exists(path + ".partial");
  }
  std::printf("%s: %d kills, %d of them while a file was written, %ld states saved\n", format.name,
              format.kills, interrupted, static_cast<long>(progress.done));
  require(interrupted > format.kills / 20, "too few kills came while a file was written");
}

// Line k is k and so many letters that a kill may come in the middle.
void kill_while_logging(const std::string& path) {
  constexpr int kKills = 100 / kLess, kMostLines = 50;
  const std::string letters(1 << 20, 'x');
  const auto write = [&](td::TrainingLog& log, std::int64_t k) {
    log.write({{"step", k}, {"text", letters}});
  };
  const auto line = [&](std::int64_t k) {
    return "{\"step\":" + std::to_string(k) + ",\"text\":\"" + letters + "\"}";
  };
  Progress& progress = shared_progress();
  const auto each = duration_of(5, [&] {
    td::TrainingLog log(path);
    write(log, 0);
  });
  std::mt19937 random(2);
  int interrupted = 0;
  for (int i = 0; i < kKills; ++i) {
    if (i % 10 == 0) std::filesystem::remove(path), progress.done = 0;
    kill_at_random(random, 3 * each, [&] {
      td::TrainingLog log(path);
      for (std::int64_t k = progress.done; k < kMostLines; progress.done = ++k)
        write(log, k);
      pause();
    });
    const auto bytes = std::filesystem::exists(path) ? std::filesystem::file_size(path) : 0;
    const td::TrainingLog reopened(path);
    interrupted += std::filesystem::file_size(path) < bytes;
    std::ifstream file(path);
    std::int64_t lines = 0;
    for (std::string text; std::getline(file, text); ++lines)
      require(text == line(lines), "a line of a log is not whole");
    require(lines == progress.done || lines == progress.done + 1, "a log has lost lines");
    progress.done = lines;
  }
  std::printf("log: %d kills, %d of them within a line\n", kKills, interrupted);
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
    require(load_state(kCheckpoint, path) == 1, "the old state is gone");
    require(!std::filesystem::exists(path + ".partial"), "a part of a file stays");
  }
}

}   // namespace

// The memory of a killed process is no leak.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "tapedeck-XXXXXX").string();
  require(mkdtemp(folder.data()) != nullptr, "mkdtemp");
  for (const Format& format : std::span(kFormats).first(std::size(kFormats) - !td::has_npz()))
    kill_while_saving(format, folder + "/" + format.name);
  kill_while_logging(folder + "/log");
  fill_the_disk(folder + "/state.safetensors");
  std::filesystem::remove_all(folder);
}
