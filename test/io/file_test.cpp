// Paths of files of any format: links are followed, other than regular files are kept, and no path is
// truncated.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <span>
#include <sstream>

#include "message_of.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/csv.h"
#include "tapedeck/debug.h"
#include "tapedeck/npy.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training_log.h"
#include "temporary_folder.h"

namespace file_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

namespace fs = std::filesystem;

struct Writer {
  const char* op;
  void (*save)(const std::string& path);
  Tensor (*load)(const std::string& path);
};
const Writer kWriters[] = {
    // the last needs libzip
    {"save_npy",
     [](const std::string& path) {
       save_npy(path, tensor({1.0, 2.0}));
     },
     load_npy},
    {"save_safetensors",
     [](const std::string& path) {
       save_safetensors(path, {{"x", tensor({1.0, 2.0})}});
     },
     [](const std::string& path) { return load_safetensors(path).at("x"); }},
    {"save",
     [](const std::string& path) {
       Tensor x = tensor({1.0, 2.0});
       Checkpoint checkpoint;
       checkpoint.add("x", x);
       checkpoint.save(path);
     },
     [](const std::string& path) { return load_safetensors(path).at("x"); }},
    {"write_html",
     [](const std::string& path) {
       GradientTape tape;
       write_html(tape, path);
     },
     [](const std::string& path) {
       return tensor({text_of(path).starts_with("<!") ? 1.0 : 0.0, 2.0});
     }},
    {"save_npz",
     [](const std::string& path) {
       save_npz(path, {{"x", tensor({1.0, 2.0})}});
     },
     [](const std::string& path) { return load_npz(path).at("x"); }},
};
std::span<const Writer> writers() { return std::span(kWriters).first(std::size(kWriters) - !has_npz()); }

}   // namespace

TEST_CASE("files are written through links, and only to regular files", "[files]") {
  for (const Writer& w : writers()) {
    INFO(w.op);
    const TemporaryFolder folder;
    const auto message = [&](const std::string& name) {
      return message_of<FileError>([&] { w.save(folder / name); });
    };
    const std::string begin = std::string(w.op) + ": " + folder.path() + "/";
    fs::create_directory(folder / "deep");
    fs::create_symlink("deep/real", folder / "link");   // to a file that is not there yet
    fs::create_symlink(folder / "link", folder / "outer");
    for (int i = 0; i < 2; ++i) {
      CHECK(message("outer") == "no error");
      CHECK(fs::read_symlink(folder / "link") == "deep/real");
      CHECK(fs::is_regular_file(fs::symlink_status(folder / "deep/real")));
      CHECK(w.load(folder / "outer").to_vector() == std::vector<double>{1, 2});
    }
    REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
    fs::create_symlink("pipe", folder / "to_pipe");
    CHECK(message("pipe") == begin + "pipe: is not a regular file");
    CHECK(message("to_pipe") == begin + "to_pipe: is not a regular file");
    CHECK(fs::is_fifo(folder / "pipe"));
    CHECK(message("deep") == begin + "deep: cannot be written: Is a directory");
    fs::create_symlink("b", folder / "a"), fs::create_symlink("a", folder / "b");
    CHECK(message("a") == begin + "a: cannot be written: Too many levels of symbolic links");
    CHECK(folder.files() == 7);
  }
}

// As a file's owner and others had it. Under the usual mask, by which new files are readable by all.
TEST_CASE("a file that replaces another one has its mode and owner", "[files]") {
  const mode_t mask = ::umask(022);
  for (const Writer& w : writers()) {
    INFO(w.op);
    const TemporaryFolder folder;
    const auto status = [&](const std::string& name) {
      struct stat s = {};
      CHECK(::stat((folder / name).c_str(), &s) == 0);
      return s;
    };
    w.save(folder / "new");
    CHECK((status("new").st_mode & 07777) == 0644);
    fs::create_symlink("old", folder / "link");
    for (const mode_t mode : {0600u, 0640u, 0666u, 0644u, 0400u}) {
      CAPTURE(mode);
      write_text(folder / "old", "of another kind");
      REQUIRE(::chmod((folder / "old").c_str(), mode) == 0);
      if (::geteuid() == 0) REQUIRE(::chown((folder / "old").c_str(), 12345, 54321) == 0);
      const struct stat before = status("old");
      for (const char* name : {"old", "link"}) {
        w.save(folder / name);
        const struct stat after = status("old");
        CHECK(after.st_mode == before.st_mode);
        CHECK((after.st_uid == before.st_uid && after.st_gid == before.st_gid));
        CHECK(w.load(folder / "old").to_vector() == std::vector<double>{1, 2});
      }
      fs::remove(folder / "old");
    }
  }
  ::umask(mask);
}

// What a killed process has left is read-only where the file is. Root may write everywhere, so that the
// second time another user does it.
TEST_CASE("a stale temporary file is removed, whatever its mode", "[files]") {
  const mode_t mask = ::umask(022);
  for (const bool is_other_user : {false, true})
    for (const Writer& w : writers()) {
      CAPTURE(w.op, is_other_user);
      const TemporaryFolder folder;
      const std::string path = folder / "x", partial = path + ".partial";
      const bool changes_user = is_other_user && ::geteuid() == 0;
      if (changes_user) {
        fs::permissions(folder.path(), fs::perms::all);
        REQUIRE(::seteuid(12345) == 0);
      }
      write_text(partial, "what a killed process has left");
      const bool is_read_only = ::chmod(partial.c_str(), 0400) == 0;
      const int held = ::open(partial.c_str(), O_RDONLY | O_CLOEXEC);
      const bool is_locked = ::flock(held, LOCK_EX | LOCK_NB) == 0;
      const std::string refused = message_of<FileError>([&] { w.save(path); });
      const std::string kept = text_of(partial);
      ::close(held);
      const std::string saved = message_of<FileError>([&] { w.save(path); });
      if (changes_user) REQUIRE(::seteuid(0) == 0);
      CHECK((is_read_only && is_locked));
      CHECK(refused == w.op + (": " + path) + ": is being written by another process or thread");
      CHECK(kept == "what a killed process has left");
      CHECK(saved == "no error");
      CHECK((fs::status(path).permissions() & fs::perms::mask) == fs::perms{0644});
      CHECK(w.load(path).to_vector() == std::vector<double>{1, 2});
      CHECK(folder.files() == 1);
    }
  ::umask(mask);
}

TEST_CASE("anything but a file in place of the temporary file is left alone", "[files][errors]") {
  for (const Writer& w : writers()) {
    INFO(w.op);
    const TemporaryFolder folder;
    const std::string path = folder / "x", partial = path + ".partial";
    const std::string begin =
        w.op + (": " + path) + ": cannot be written, since " + partial + " cannot be removed: ";
    fs::create_directory(partial);
    CHECK(message_of<FileError>([&] { w.save(path); }) == begin + "Is a directory");
    fs::remove(partial);
    write_text(folder / "other", "x");
    fs::create_symlink("other", partial);
    CHECK(message_of<FileError>([&] { w.save(path); }) == begin + "Too many levels of symbolic links");
    fs::remove(partial);
    REQUIRE(mkfifo(partial.c_str(), 0600) == 0);
    const int reader = ::open(partial.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    CHECK(message_of<FileError>([&] { w.save(path); }) == begin + "File exists");
    ::close(reader);
    CHECK(fs::is_fifo(partial));
    CHECK(text_of(folder / "other") == "x");
    CHECK(folder.files() == 2);
  }
}

TEST_CASE("writers reject devices, pipes and folders, and leave them unchanged", "[files][errors]") {
  std::vector<std::pair<std::string, std::function<void(const std::string&)>>> all;
  for (const Writer& w : writers())
    all.emplace_back(w.op, w.save);
  all.emplace_back("training_log", [](const std::string& path) { TrainingLog(path).write({{"step", 1}}); });
  for (const auto& [op, write] : all) {
    INFO(op);
    const TemporaryFolder folder;
    fs::create_directory(folder / "deep");
    write_text(folder / "deep/x", "x");
    write_text(folder / "file", "x");
    REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
    fs::create_symlink("/dev/full", folder / "link");
    std::vector<std::string> paths = {
        "/dev/null", "/dev/full", folder / "pipe", folder / "link", folder / "deep", folder / "file/x", ""};
    if (::geteuid() != 0) {   // who may write everywhere
      fs::create_directory(folder / "closed");
      fs::permissions(folder / "closed", fs::perms::owner_read | fs::perms::owner_exec);
      paths.push_back(folder / "closed/x");
    }
    if (op != "training_log") paths.push_back(folder / "missing/x");   // a log makes its folder
    for (const std::string& path : paths)
      CHECK_THAT(message_of<FileError>([&path, &save = write] { save(path); }),
                 Catch::Matchers::StartsWith(op + ": " + path + ": "));
    CHECK(fs::is_character_file("/dev/null"));
    CHECK(fs::is_character_file("/dev/full"));
    CHECK(fs::is_fifo(folder / "pipe"));
    CHECK(text_of(folder / "deep/x") == "x");
    CHECK(text_of(folder / "file") == "x");
    CHECK(folder.files() == 4 + (::geteuid() != 0));
  }
}

TEST_CASE("a failed write leaves the existing file unchanged", "[files][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  write_text(path, "of another kind");
  const NamedTensors bad = {{"x", Tensor()}};
  CHECK_THROWS_AS(save_npy(path, Tensor()), ArgumentError);
  CHECK_THROWS_AS(save_safetensors(path, bad), ArgumentError);
  CHECK_THROWS_AS(save_safetensors(path, {{"\xff", tensor(1.0)}}), ArgumentError);
  if (has_npz()) CHECK_THROWS_AS(save_npz(path, bad), ArgumentError);
  Tensor undefined;
  Checkpoint checkpoint;
  checkpoint.add("x", undefined);
  CHECK_THROWS_AS(checkpoint.save(path), ArgumentError);
  CHECK_THROWS_AS(CheckpointFolder(path).save(checkpoint, 1), FileError);
  CHECK(text_of(path) == "of another kind");
  CHECK(folder.files() == 1);
}

TEST_CASE("only a regular file can be a checkpoint", "[files][checkpoint]") {
  const TemporaryFolder folder;
  const CheckpointFolder checkpoints(folder.path(), {.keep_last = 2});
  fs::create_directory(folder / "step-50.safetensors");
  fs::create_symlink("nowhere", folder / "step-60.safetensors");
  REQUIRE(mkfifo((folder / "step-70.safetensors").c_str(), 0600) == 0);
  CHECK_FALSE(checkpoints.latest());
  double x = 1;
  Checkpoint checkpoint;
  checkpoint.add("x", x);
  for (std::int64_t step = 1; step < 4; ++step)
    checkpoints.save(checkpoint, step);
  CHECK(checkpoints.steps() == std::vector<std::int64_t>{2, 3});
  CHECK(checkpoints.latest() == folder / "step-3.safetensors");
  CHECK(fs::is_directory(folder / "step-50.safetensors"));
  CHECK(folder.files() == 5);
  CHECK(message_of<FileError>([&] { checkpoints.save(checkpoint, 50); }) ==
        "save: " + (folder / "step-50.safetensors") + ": cannot be written: Is a directory");
}

TEST_CASE("a path with a NUL byte is refused", "[files][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / std::string("x\0y", 3),
                    what = ": " + folder.path() + "/x\\x00y: the path has a NUL byte";
  write_text(folder / "x", "1,2\n");
  for (const Writer& w : writers())
    CHECK(message_of<FileError>([&] { w.save(path); }) == w.op + what);
  CHECK(message_of<FileError>([&] { load_npy(path); }) == "load_npy" + what);
  if (has_npz()) CHECK(message_of<FileError>([&] { load_npz(path); }) == "load_npz" + what);
  CHECK(message_of<FileError>([&] { load_safetensors(path); }) == "load_safetensors" + what);
  CHECK(message_of<FileError>([&] { load_csv(path); }) == "load_csv" + what);
  CHECK(message_of<FileError>([&] { TrainingLog log(path); }) == "training_log" + what);
  CHECK(message_of<ArgumentError>([&] { CheckpointFolder checkpoints(path); }) ==
        "checkpoint_folder: the folder or the prefix has a NUL byte");
  CHECK(folder.files() == 1);
}

TEST_CASE("names with a NUL byte are rejected or kept whole", "[files][errors]") {
  const TemporaryFolder folder;
  const NamedTensors tensors = {{std::string("a\0b", 3), tensor(1.0)}};
  if (has_npz())
    CHECK(message_of<ArgumentError>([&] { save_npz(folder / "x.npz", tensors); }) ==
          "save_npz: " + (folder / "x.npz") + ": the name \"a\\x00b\" has a NUL byte");
  CHECK(folder.files() == 0);
  save_safetensors(folder / "x", tensors);
  CHECK(load_safetensors(folder / "x").begin()->first == tensors.begin()->first);
}

TEST_CASE("output with stderr closed does not end up in a log", "[files]") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  const int kept = ::dup(STDERR_FILENO);
  ::close(STDERR_FILENO);
  TrainingLog log(path);
  const bool is_closed = ::fcntl(STDERR_FILENO, F_GETFD) < 0;
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, "progress\n", 9);
  log.write({{"step", 1}});
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  CHECK(is_closed);
  std::ifstream file(path, std::ios::binary);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == "{\"step\":1}\n");
}

TEST_CASE("a log continues after its last line, and leaves other files unchanged", "[files]") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  const auto write = [&](const std::string& text) { std::ofstream(path, std::ios::binary) << text; };
  const auto read = [&] {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string line = "{\"step\":1}\n", next = "{\"step\":2}\n";
  for (const auto& [text, kept] : std::vector<std::pair<std::string, std::string>>{
           {"", ""},
           {line, line},
           {line + "{\"step\":", line},   // killed while it was written
           {line + "{", line},
           {"{\"st", ""},
           {line + "{\"step\":3}", line + "{\"step\":3}\n"},   // whole but for its end
           {"{}", "{}\n"}}) {
    write(text);
    TrainingLog(path).write({{"step", 2}});
    CHECK(read() == kept + next);
  }
  save_safetensors(path, {{"w", ones({1000})}});
  const std::string weights = read();
  for (const std::string& other :
       {weights, weights + "\n", weights + "\n{", std::string("a,b\n1,2\n"), std::string("a,b\n1,2"),
        std::string("{\n  \"a\": 1\n}"), std::string("{\n  \"a\": 1\n}\n"), line + "x", std::string("\n"),
        std::string("{a"), std::string(5000, '\0')}) {
    write(other);
    CHECK(message_of<FileError>([&] { TrainingLog log(path); }) ==
          "training_log: " + path +
              ": is not a training log, and was left unchanged; give the log a different path");
    CHECK(read() == other);
  }
}

TEST_CASE("a long line without an end is not mistaken for a broken one", "[files]") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.json", text = "{\"w\":\"" + std::string(2 << 20, 'x') + "\"}";
  std::ofstream(path) << text;
  CHECK_THAT(message_of<FileError>([&] { TrainingLog log(path); }),
             Catch::Matchers::Contains("ends with 2097160 bytes without a newline"));
  std::stringstream left;
  left << std::ifstream(path).rdbuf();
  CHECK(left.str() == text);
}

}   // namespace file_test
