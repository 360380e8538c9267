// portable_files write|read FOLDER: writes files of every format, or reads them back and compares. On
// machines of different kinds the files have the same bytes, and each machine reads the files of the other.
#include <complex>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "tapedeck/checkpoint.h"
#include "tapedeck/npy.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;

namespace {

// Whole numbers and halves, which are the same everywhere.
td::NamedTensors tensors() {
  td::NamedTensors all;
  for (int t = 0; t < td::kDTypes; ++t) {
    const auto dtype = static_cast<td::DType>(t);
    td::Tensor x =
        td::astype(td::reshape(td::arange(-30, 30, 1, td::DType::i64), {3, 20}), td::real_of(dtype));
    if (td::is_trainable(dtype)) x = x * 0.5;
    if (td::size_of(x.dtype()) == 8 && dtype != td::DType::u64) x = x * 4194305;
    if (td::is_complex(dtype)) x = td::complex(x, -2 * x);
    all.emplace(td::name_of(dtype), x);
  }
  all.emplace("empty", td::zeros({2, 0, 3}));
  all.emplace("scalar", td::full({}, -7));
  return all;
}

// Those that NumPy's files hold.
td::NamedTensors arrays() {
  td::NamedTensors all = tensors();
  all.erase("bf16");
  return all;
}

struct Run {
  td::Variable w{td::reshape(td::arange(0, 1000, 1, td::DType::f32), {10, 100})};
  td::Momentum momentum{{.learning_rate = 0.5, .momentum = 0.5}};
  td::random::Key key{5};
  double number = 0.1;
  td::Checkpoint checkpoint;

  Run() {
    checkpoint.add("w", w);
    checkpoint.add("momentum", momentum);
    checkpoint.add("key", key);
    checkpoint.add("number", number);
  }
  void step() {
    td::GradientTape tape;
    const td::Tensor loss = td::sum(w * td::reshape(td::arange(0, 1000, 1, td::DType::f32), {10, 100}));
    momentum.apply_gradients({{tape.gradient(loss, w), w}});
    key = key.split(1);
    number /= 3;
  }
};

int write(const std::string& folder) {
  std::filesystem::create_directories(folder);
  td::save_safetensors(folder + "/all.safetensors", tensors(), {{"text", "é"}});
  td::save_npz(folder + "/all.npz", arrays());
  for (const auto& [name, x] : arrays())
    td::save_npy(folder + "/" + name + ".npy", x);
  Run run;
  run.step();
  run.step();
  run.checkpoint.save(folder + "/run.safetensors");
  return 0;
}

int wrong = 0;
void require(bool ok, std::string_view what) {
  if (ok) return;
  std::fprintf(stderr, "portable_files: %.*s\n", static_cast<int>(what.size()), what.data());
  ++wrong;
}
bool same_bits(const td::Tensor& a, const td::Tensor& b) {
  if (a.spec() != b.spec()) return false;
  const auto u = a.to_vector<std::complex<double>>(), v = b.to_vector<std::complex<double>>();
  return std::memcmp(u.data(), v.data(), u.size() * sizeof u[0]) == 0;
}
void compare(const td::NamedTensors& read, const td::NamedTensors& expected, const char* what) {
  require(read.size() == expected.size(), what);
  for (const auto& [name, x] : expected)
    require(read.contains(name) && same_bits(read.at(name), x), what + (": " + name));
}

int read(const std::string& folder) {
  const std::string all = folder + "/all.safetensors";
  compare(td::load_safetensors(all), tensors(), "safetensors");
  require(td::load_safetensors_metadata(all).at("text") == "é", "metadata");
  compare(td::load_npz(folder + "/all.npz"), arrays(), "npz");
  td::NamedTensors single;
  for (const auto& [name, x] : arrays())
    single.emplace(name, td::load_npy(folder + "/" + name + ".npy"));
  compare(single, arrays(), "npy");

  // A run that is continued here is where one is that has not moved.
  Run moved, stayed;
  moved.checkpoint.restore(folder + "/run.safetensors");
  moved.step();
  for (int i = 0; i < 3; ++i)
    stayed.step();
  require(same_bits(moved.w.value(), stayed.w.value()), "the variable of a run");
  require(moved.number == stayed.number, "the number of a run");
  require(same_bits(td::random::permutation(100, moved.key), td::random::permutation(100, stayed.key)),
          "the key of a run");
  return wrong;
}

}   // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[1] : "";
  if (what == "write") return write(argv[2]);
  if (what == "read") return read(argv[2]);
  return std::fprintf(stderr, "usage: portable_files write|read FOLDER\n"), 2;
}
