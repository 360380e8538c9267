// Reads and writes .npz files, zip archives of .npy files, by libzip. Sizes that an archive claims are
// checked against the archive's own size.
#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>

#include <zip.h>

#include "core/format.h"
#include "core/host_view.h"
#include "io/npy_format.h"
#include "tapedeck/npy.h"

namespace tapedeck {
namespace {

constexpr std::string_view kExtension = ".npy";

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct Close {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Archive = std::unique_ptr<zip_t, Discard>;

[[noreturn]] void fail_to_open(const FileName& name, zip_error_t& error) {
  const std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  name.fail(fmt::format("cannot be opened as a zip archive: {}", text));
}

// Checks that the names and sizes before the members agree with the directory at the end, and that no name
// occurs twice.
Archive open_for_reading(const FileName& name) {
  int code = 0;
  Archive archive(zip_open(name.path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  fail_to_open(name, error);
}

// The target to which libzip writes an archive: an OutputFile. libzip is C, so exceptions are rethrown after
// it returns.
class Sink {
 public:
  explicit Sink(OutputFile& file) : file_(file) { zip_error_init(&error_); }
  ~Sink() { zip_error_fini(&error_); }
  Sink(const Sink&) = delete;

  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }
  static zip_int64_t call(void* sink, void* data, zip_uint64_t bytes, zip_source_cmd_t command) noexcept {
    return static_cast<Sink*>(sink)->answer(data, bytes, command);
  }

 private:
  zip_int64_t answer(void* data, zip_uint64_t bytes, zip_source_cmd_t command) noexcept {
    switch (command) {
      case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_SUPPORTS, ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
            ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_BEGIN_WRITE,
            ZIP_SOURCE_COMMIT_WRITE, ZIP_SOURCE_ROLLBACK_WRITE, ZIP_SOURCE_WRITE, ZIP_SOURCE_SEEK_WRITE,
            ZIP_SOURCE_TELL_WRITE, ZIP_SOURCE_REMOVE, -1);
      case ZIP_SOURCE_STAT:   // there is no archive yet
        zip_error_set(&error_, ZIP_ER_READ, ENOENT);
        return -1;
      case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&error_, data, bytes);
      case ZIP_SOURCE_WRITE:
        return write(data, static_cast<std::int64_t>(bytes));
      case ZIP_SOURCE_SEEK_WRITE: {
        const zip_int64_t to = zip_source_seek_compute_offset(
            static_cast<zip_uint64_t>(at_), static_cast<zip_uint64_t>(file_.size()), data, bytes, &error_);
        if (to < 0) return -1;
        at_ = to;
        return 0;
      }
      case ZIP_SOURCE_TELL_WRITE:
        return at_;
      case ZIP_SOURCE_FREE:
      case ZIP_SOURCE_BEGIN_WRITE:
      case ZIP_SOURCE_COMMIT_WRITE:
      case ZIP_SOURCE_ROLLBACK_WRITE:
      case ZIP_SOURCE_REMOVE:
        return 0;
      default:
        zip_error_set(&error_, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
  }
  zip_int64_t write(const void* data, std::int64_t bytes) noexcept try {
    if (at_ == file_.size()) {
      file_.write(data, bytes);
    } else {
      const std::int64_t inside = std::min(bytes, file_.size() - at_);
      file_.overwrite(at_, data, inside);
      file_.write(static_cast<const char*>(data) + inside, bytes - inside);
    }
    at_ += bytes;
    return bytes;
  } catch (...) {
    thrown_ = std::current_exception();
    zip_error_set(&error_, ZIP_ER_WRITE, EIO);
    return -1;
  }

  OutputFile& file_;
  zip_error_t error_;
  std::exception_ptr thrown_;
  std::int64_t at_ = 0;
};

Archive open_for_writing(const FileName& name, Sink& sink) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_function_create(Sink::call, &sink, &error);
  if (!source) fail_to_open(name, error);
  Archive archive(zip_open_from_source(source, ZIP_CREATE, &error));
  if (archive) return archive;
  zip_source_free(source);
  fail_to_open(name, error);
}

class MemberSource final : public ByteSource {
 public:
  MemberSource(const FileName& archive_name, zip_t& archive, std::uint64_t index, const zip_stat_t& stat)
      : name_{archive_name.op, fmt::format("{}: {}", archive_name.path, stat.name)},
        left_(static_cast<std::int64_t>(stat.size)),
        member_(zip_fopen_index(&archive, index, 0)) {
    if (!member_) name_.fail(fmt::format("cannot be read: {}", zip_strerror(&archive)));
  }
  const FileName& name() const override { return name_; }
  std::int64_t left() const override { return left_; }
  void read(void* to, std::int64_t n) override {
    for (auto* at = static_cast<char*>(to); n > 0;) {
      const zip_int64_t count = zip_fread(member_.get(), at, static_cast<zip_uint64_t>(n));
      if (count < 0) name_.fail(fmt::format("cannot be read: {}", zip_file_strerror(member_.get())));
      if (count == 0) name_.fail(fmt::format("ends {} bytes too early", n));
      at += count, n -= count, left_ -= count;
    }
  }
  /// libzip verifies the checksum when a read reaches the end.
  void end() {
    char beyond;
    const zip_int64_t count = zip_fread(member_.get(), &beyond, 1);
    if (count < 0) name_.fail(fmt::format("is damaged: {}", zip_file_strerror(member_.get())));
    if (count > 0) name_.fail("continues after its end");
  }

 private:
  FileName name_;
  std::int64_t left_;
  std::unique_ptr<zip_file_t, Close> member_;
};

// The limits for the members of an archive: no more bytes of the file than it has, and no more memory than
// allowed. Deflate expands by a factor of at most 1032.
class Budget {
 public:
  Budget(const FileName& file, std::int64_t file_bytes, const NpzOptions& options)
      : file_(file), in_file_(static_cast<std::uint64_t>(file_bytes)) {
    constexpr std::int64_t kTimes = 64, kLeast = 256'000'000;
    std::int64_t most = 0;
    if (__builtin_mul_overflow(kTimes, file_bytes, &most)) most = INT64_MAX;
    most = options.max_bytes.value_or(std::max(kLeast, most));
    if (most < 0) throw_error<ArgumentError>("load_npz: max_bytes is {}; use 0 or more", most);
    most_ = left_ = static_cast<std::uint64_t>(most);
  }

  void take(const zip_stat_t& stat) {
    constexpr std::uint64_t kMostOfOne = 1032;
    if (stat.comp_size > in_file_ || stat.size / kMostOfOne > stat.comp_size)
      file_.fail(fmt::format("{} has {} bytes, decompressed from {}, but only {} are left in the file",
                             stat.name, stat.size, stat.comp_size, in_file_));
    in_file_ -= stat.comp_size;
    if (stat.encryption_method != ZIP_EM_NONE) file_.fail(fmt::format("{} is encrypted", stat.name));
    if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
      file_.fail(fmt::format("{} is compressed by method {}; methods 0 and 8 (deflate) are supported",
                             stat.name, stat.comp_method));
    if (stat.size > left_)
      file_.fail(
          fmt::format("{} has {} bytes, but only {} of the allowed {} are left; raise NpzOptions::max_bytes "
                      "if you trust the file",
                      stat.name, stat.size, left_, most_));
    left_ -= stat.size;
  }

 private:
  const FileName& file_;
  std::uint64_t in_file_, most_, left_;
};

void check_members(const FileName& name, const NamedTensors& tensors) {
  constexpr std::size_t kLongest = 65'535 - kExtension.size();   // libzip cuts longer names without an error
  const std::string path = printable(name.path);
  if (tensors.empty())
    throw_error<ArgumentError>("save_npz: {}: nothing to save; pass at least one tensor", path);
  for (const auto& [key, x] : tensors) {
    if (!x.defined())
      throw_error<ArgumentError>("save_npz: {}: tensor \"{}\" is undefined", path, printable(key));
    if (key.find('\0') != std::string::npos)
      throw_error<ArgumentError>("save_npz: {}: the name \"{}\" has a NUL byte", path, printable(key));
    if (key.size() > kLongest)
      throw_error<ArgumentError>("save_npz: {}: the name \"{}\" has {} bytes; use {} at most", path,
                                 printable(key), key.size(), kLongest);
  }
}

}   // namespace

void save_npz(const std::string& path, const NamedTensors& tensors) {
  const FileName name{"save_npz", path};
  check_members(name, tensors);
  std::vector<std::string> headers;   // libzip reads headers and tensors when the archive is closed
  headers.reserve(tensors.size());
  OutputFile file(name);
  Sink sink(file);
  Archive opened = open_for_writing(name, sink);
  zip_t* archive = opened.get();
  const auto fail = [&] { name.fail(fmt::format("cannot be written: {}", zip_strerror(archive))); };
  for (const auto& [key, x] : tensors) {
    const HostView<std::byte> bytes(x, "save_npz");   // x holds them until the archive is closed
    std::string& header = headers.emplace_back(npy_header("save_npz", x.spec()));
    zip_buffer_fragment_t parts[] = {{reinterpret_cast<zip_uint8_t*>(header.data()), header.size()},
                                     {reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(bytes.data())),
                                      static_cast<zip_uint64_t>(x.nbytes())}};
    zip_source_t* source = zip_source_buffer_fragment(archive, parts, x.nbytes() ? 2 : 1, 0);
    if (!source) fail();
    const zip_int64_t index =
        zip_file_add(archive, (key + std::string(kExtension)).c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      fail();
    }
    if (zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) != 0) fail();
  }
  if (zip_close(archive) != 0) {
    sink.rethrow();
    fail();
  }
  (void)opened.release();
  file.commit();
}

NamedTensors load_npz(const std::string& path, const NpzOptions& options) {
  const InputFile file({"load_npz", path});   // for its size, and for the reason if it cannot be opened
  const FileName& name = file.name();
  const Archive archive = open_for_reading(name);
  NamedTensors tensors;
  Budget budget(name, file.size(), options);
  const zip_int64_t members = zip_get_num_entries(archive.get(), 0);
  for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(std::max(members, zip_int64_t{0})); ++i) {
    zip_stat_t stat;
    constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                     ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if (zip_stat_index(archive.get(), i, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded)
      name.fail(fmt::format("member {} cannot be read: {}", i, zip_strerror(archive.get())));
    std::string key = stat.name;
    if (!key.ends_with(kExtension))
      name.fail(fmt::format("{} is not an array: its name does not end with {}", key, kExtension));
    key.resize(key.size() - kExtension.size());
    budget.take(stat);
    MemberSource source(name, *archive, i, stat);
    Tensor x = read_npy(source);
    source.end();
    tensors.emplace(std::move(key), std::move(x));
  }
  return tensors;
}

bool has_npz() { return true; }

}   // namespace tapedeck
