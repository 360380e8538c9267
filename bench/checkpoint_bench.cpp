// Compares a checkpoint of 1 GB with the bare system calls: writing the same bytes with write(2) and fsync,
// and reading them with read(2) into fresh memory. Both run alternately, because the speed of a disk varies
// with time; medians are reported. checkpoint_bench [FOLDER [ROUNDS]]: by default the system's folder for
// temporary files, and 7 rounds.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "median.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;

namespace {

constexpr std::int64_t kTensors = 16, kElements = 1 << 24, kBytes = kElements * 4;   // of each tensor

void require(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::exit(1);
}

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class F> void whole(std::int64_t bytes, const F& f) {
  for (std::int64_t done = 0; done < bytes;) {
    const ssize_t n = f(done, static_cast<std::size_t>(bytes - done));
    require(n > 0, "checkpoint_bench");
    done += n;
  }
}

void write_plain(const std::string& path, const std::vector<td::Variable>& weights) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  require(fd >= 0, "open");
  for (const td::Variable& w : weights)
    whole(kBytes, [fd, x = w.value()](std::int64_t at, std::size_t n) {
      return write(fd, std::as_bytes(x.data<float>()).data() + at, n);
    });
  require(fsync(fd) == 0, "fsync");
  close(fd);
}

void read_plain(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY);
  require(fd >= 0, "open");
  std::vector<std::unique_ptr<char, decltype(&std::free)>> memory;
  for (std::int64_t i = 0; i < kTensors; ++i) {
    memory.emplace_back(static_cast<char*>(std::aligned_alloc(64, kBytes)), std::free);
    whole(kBytes,
          [fd, p = memory.back().get()](std::int64_t at, std::size_t n) { return read(fd, p + at, n); });
  }
  close(fd);
}

void report(const char* what, const std::vector<double>& ours, const std::vector<double>& plain) {
  const double gigabytes = static_cast<double>(kTensors * kBytes) * 1e-9;
  std::printf("%s: %.2f GB/s, the system calls alone %.2f GB/s: %.2f of them\n", what,
              gigabytes / bench::median(ours), gigabytes / bench::median(plain),
              bench::median(plain) / bench::median(ours));
}

}   // namespace

int main(int argc, char** argv) {
  const std::filesystem::path folder =
      argc > 1 ? std::filesystem::path(argv[1]) : std::filesystem::temp_directory_path();
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  const std::string checkpoint_path = folder / "checkpoint_bench.safetensors",
                    plain_path = folder / "checkpoint_bench.plain";
  std::vector<td::Variable> weights;
  td::Checkpoint checkpoint;
  for (std::uint64_t i = 0; i < kTensors; ++i) {
    weights.emplace_back(td::random::uniform({kElements}, {.seed = i}));
    checkpoint.add(std::string("w").append(std::to_string(i)), weights.back());
  }

  std::vector<double> saves, writes, loads, reads;
  for (int i = 0; i < rounds; ++i) {
    std::filesystem::remove(plain_path), std::filesystem::remove(checkpoint_path);
    writes.push_back(seconds_of([&] { write_plain(plain_path, weights); }));
    saves.push_back(seconds_of([&] { checkpoint.save(checkpoint_path); }));
    td::release_buffers();
    reads.push_back(seconds_of([&] { read_plain(plain_path); }));
    loads.push_back(seconds_of([&] { td::load_safetensors(checkpoint_path); }));
  }
  report("save", saves, writes);
  report("load", loads, reads);
  std::filesystem::remove(plain_path), std::filesystem::remove(checkpoint_path);
}
