// Reads and writes .npz files, zip archives of .npy files, by libzip. Sizes that an archive claims are
// checked against the archive's own size.
#include <algorithm>
#include <cstring>
#include <memory>

#include <zip.h>

#include "core/format.h"
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

Archive open(const FileName& name, int flags) {
  int code = 0;
  Archive archive(zip_open(name.path.c_str(), flags, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  name.fail(fmt::format("cannot be opened as a zip archive: {}", text));
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
    if (count > 0) name_.fail("goes on behind its end");
  }

 private:
  FileName name_;
  std::int64_t left_;
  std::unique_ptr<zip_file_t, Close> member_;
};

// Deflate expands by a factor of at most 1032, which limits what an archive can hold. `left` is the number of
// the archive's bytes not yet attributed to a member.
void check_size(const FileName& file, const zip_stat_t& stat, std::uint64_t& left) {
  constexpr std::uint64_t kMostOfOne = 1032;
  if (stat.comp_size > left || stat.size / kMostOfOne > stat.comp_size)
    file.fail(fmt::format("{} has {} bytes, made of {}, of which {} can be there", stat.name, stat.size,
                          stat.comp_size, left));
  left -= stat.comp_size;
  if (stat.encryption_method != ZIP_EM_NONE) file.fail(fmt::format("{} is encrypted", stat.name));
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
    file.fail(fmt::format("{} is compressed by method {}; 0 and 8, deflate, are known", stat.name,
                          stat.comp_method));
}

}   // namespace

void save_npz(const std::string& path, const NamedTensors& tensors) {
  const FileName name{"save_npz", path};
  if (tensors.empty()) throw_error<ArgumentError>("save_npz: {}: an archive of no tensors is no file", path);
  std::vector<std::string> headers;   // libzip reads headers and tensors when the archive is closed
  headers.reserve(tensors.size());
  Archive opened = open(name, ZIP_CREATE | ZIP_TRUNCATE);
  zip_t* archive = opened.get();
  const auto fail = [&] { name.fail(fmt::format("cannot be written: {}", zip_strerror(archive))); };
  for (const auto& [key, x] : tensors) {
    if (!x.defined()) throw_error<ArgumentError>("save_npz: {}: tensor \"{}\" is undefined", path, key);
    std::string& header = headers.emplace_back(npy_header(x.spec()));
    zip_buffer_fragment_t parts[] = {
        {reinterpret_cast<zip_uint8_t*>(header.data()), header.size()},
        {reinterpret_cast<zip_uint8_t*>(x.raw()), static_cast<zip_uint64_t>(x.nbytes())}};
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
  if (zip_close(archive) != 0) fail();
  (void)opened.release();
}

NamedTensors load_npz(const std::string& path) {
  const InputFile file({"load_npz", path});   // for its size, and for the reason if it cannot be opened
  const FileName& name = file.name();
  const Archive archive = open(name, ZIP_RDONLY);
  NamedTensors tensors;
  auto left = static_cast<std::uint64_t>(file.size());
  const zip_int64_t members = zip_get_num_entries(archive.get(), 0);
  for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(std::max(members, zip_int64_t{0})); ++i) {
    zip_stat_t stat;
    constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                     ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if (zip_stat_index(archive.get(), i, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded)
      name.fail(fmt::format("member {} cannot be read: {}", i, zip_strerror(archive.get())));
    std::string key = stat.name;
    if (!key.ends_with(kExtension))
      name.fail(fmt::format("{} is no array: its name does not end with {}", key, kExtension));
    key.resize(key.size() - kExtension.size());
    check_size(name, stat, left);
    MemberSource source(name, *archive, i, stat);
    Tensor x = read_npy(source);
    source.end();
    if (!tensors.emplace(std::move(key), std::move(x)).second)
      name.fail(fmt::format("has {} twice", stat.name));
  }
  return tensors;
}

}   // namespace tapedeck
