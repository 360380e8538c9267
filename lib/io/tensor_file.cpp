// Reads and writes safetensors files. Checksums are computed piece by piece, while a piece is in the cache.
#include "io/tensor_file.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/format.h"
#include "core/host_view.h"
#include "core/storage.h"
#include "io/checksum.h"

namespace tapedeck {
namespace {

static_assert(std::endian::native == std::endian::little, "the bytes of tensors go to files as they are");

constexpr std::int64_t kPiece = 1 << 18, kLengthBytes = 8;

template <class F> void each_piece(std::int64_t n, const F& f) {
  for (std::int64_t at = 0; at < n; at += kPiece)
    f(at, std::min(kPiece, n - at));
}

// Orders tensors by element size, largest first, so that each one is aligned; then by name.
SafetensorsHeader place(const FileName& file, const NamedTensors& tensors, const Metadata& metadata,
                        const Metadata& kinds) {
  SafetensorsHeader header{{}, metadata, kinds};
  for (const auto& [name, x] : tensors) {
    if (!x.defined()) throw_error<ArgumentError>("{}: tensor \"{}\" is undefined", file.op, name);
    header.tensors.push_back({name, x.spec()});
  }
  const auto is_larger = [](const StoredTensor& a, const StoredTensor& b) {
    return size_of(a.spec.dtype) > size_of(b.spec.dtype);
  };
  if (!std::is_sorted(header.tensors.begin(), header.tensors.end(), is_larger))
    std::stable_sort(header.tensors.begin(), header.tensors.end(), is_larger);
  std::int64_t at = 0;
  for (StoredTensor& t : header.tensors) {
    t.begin = at;
    if (__builtin_add_overflow(at, t.spec.nbytes(), &at))
      throw_error<ArgumentError>("{}: more bytes than a file can have", file.op);
    t.end = at;
  }
  return header;
}

}   // namespace

TensorReader::TensorReader(FileName name) : file_(std::move(name)) {
  std::uint64_t length = 0;
  if (file_.size() < kLengthBytes)
    this->name().fail(fmt::format("is not a safetensors file: it has {} bytes", file_.size()));
  file_.read(0, &length, kLengthBytes);
  if (length > kMaxHeaderBytes)
    this->name().fail(
        fmt::format("is not a safetensors file: its header has {} bytes; at most {} are allowed", length,
                    kMaxHeaderBytes));
  data_ = kLengthBytes + static_cast<std::int64_t>(length);
  if (data_ > file_.size())
    this->name().fail(
        fmt::format("is not a safetensors file, or is truncated: a header of {} bytes in a file of {}",
                    length, file_.size()));
  std::string text(length, ' ');
  file_.read(kLengthBytes, text.data(), static_cast<std::int64_t>(length));
  if (!text.starts_with('{')) this->name().fail("is not a safetensors file: the header is not a JSON object");
  header_ = read_header(this->name(), text, file_.size() - data_);
}

Tensor TensorReader::read(const StoredTensor& stored) const {
  Tensor x = allocate(stored.spec);
  std::byte* const bytes = writable_bytes(x).data();
  Checksum sum;
  each_piece(stored.end - stored.begin, [&](std::int64_t at, std::int64_t n) {
    file_.read(data_ + stored.begin + at, bytes + at, n);
    if (stored.checksum) sum.add(bytes + at, n);
  });
  if (stored.checksum && sum.value() != *stored.checksum)
    name().fail(fmt::format("tensor \"{}\" is damaged: its checksum differs", stored.name));
  check_booleans(name(), fmt::format("tensor \"{}\" ", stored.name), x);
  return x;
}

void write_tensors(const FileName& name, const NamedTensors& tensors, const Metadata& metadata,
                   const Metadata& kinds) {
  const SafetensorsHeader header = place(name, tensors, metadata, kinds);
  HeaderText text(name.op, header);
  const auto length = static_cast<std::int64_t>(text.text().size());
  OutputFile file(name);
  file.write(&length, kLengthBytes);
  file.write(text.text().data(), length);
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    const Tensor& x = tensors.find(header.tensors[i].name)->second;
    const HostView<std::byte> bytes(x, name.op);
    Checksum sum;
    each_piece(x.nbytes(), [&](std::int64_t at, std::int64_t n) {
      sum.add(bytes.data() + at, n);
      file.write(bytes.data() + at, n);
    });
    text.enter(i, sum.value());
  }
  text.seal();
  file.overwrite(kLengthBytes, text.text().data(), length);
  file.commit();
}

void check_booleans(const FileName& file, std::string_view what, const Tensor& x) {
  if (x.dtype() != DType::boolean) return;
  const HostView<std::byte> bytes(x, file.op);
  if (const auto* at = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
      at != bytes.end())
    file.fail(
        fmt::format("{}is bool, and element {} is {}", what, at - bytes.begin(), static_cast<int>(*at)));
}

void save_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata) {
  write_tensors({"save_safetensors", path}, tensors, metadata);
}

NamedTensors load_safetensors(const std::string& path) {
  const TensorReader reader({"load_safetensors", path});
  NamedTensors tensors;
  for (const StoredTensor& stored : reader.tensors())
    tensors.emplace_hint(tensors.end(), stored.name, reader.read(stored));
  return tensors;
}

Metadata load_safetensors_metadata(const std::string& path) {
  return TensorReader({"load_safetensors_metadata", path}).metadata();
}

}   // namespace tapedeck
