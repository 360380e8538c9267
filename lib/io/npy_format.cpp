// The .npy format, as NumPy documents it under numpy.lib.format. Input is untrusted: every field is checked.
// Elements are converted to native byte order and row-major layout.
#include "io/npy_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "core/format.h"
#include "core/storage.h"
#include "io/tensor_file.h"
#include "op/recorder.h"
#include "tapedeck/ops/array.h"

namespace tapedeck {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// In the order of DType. NumPy has no bf16.
constexpr std::array<std::string_view, kDTypes> kTypes = {"f4",  "f8", "i1", "i4", "i8", "u1", "b1", "c8",
                                                          "c16", "f2", "",   "i2", "u2", "u4", "u8"};

struct Description {
  Spec spec;   // axes reversed if is_fortran
  bool is_swapped = false, is_fortran = false;
};

// Parses the header, a Python literal such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class DescriptionReader {
 public:
  DescriptionReader(const FileName& file, std::string_view text) : file_(file), rest_(text) {}

  Description read() {
    bool has_descr = false, has_order = false, has_shape = false;
    const auto once = [&](bool& seen, std::string_view key) {
      std::exchange(seen, true) ? fail(fmt::format("has '{}' twice", key)) : void();
    };
    need('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      need(':');
      if (key == "descr")
        once(has_descr, key), read_dtype();
      else if (key == "fortran_order")
        once(has_order, key), d_.is_fortran = boolean();
      else if (key == "shape")
        once(has_shape, key), read_shape();
      else
        fail(fmt::format("has an unknown key '{}'", key));
      if (take(',')) continue;
      need('}');
      break;
    }
    skip_space();
    if (!rest_.empty()) fail("continues after its end");
    if (!has_descr || !has_order || !has_shape) fail("lacks one of descr, fortran_order and shape");
    return d_;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const { file_.fail(fmt::format("the header {}", what)); }

  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size())); }
  bool take(char c) {
    skip_space();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void need(char c) {
    if (!take(c)) fail(fmt::format("has no {} where one is expected", c));
  }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::string_view quoted() {
    const char quote = take('\'') ? '\'' : take('"') ? '"' : '\0';
    const std::size_t end = quote ? rest_.find(quote) : std::string_view::npos;
    if (end == std::string_view::npos) fail("has no quoted text where one is expected");
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    skip_space();
    if (take("True")) return true;
    if (!take("False")) fail("has neither True nor False for fortran_order");
    return false;
  }

  void read_dtype() {
    skip_space();
    if (rest_.starts_with('[')) file_.fail("is an array of records; save each field by itself");
    const std::string_view text = quoted();
    constexpr std::string_view kOrders = "<|=>";
    const std::size_t order = text.empty() ? std::string_view::npos : kOrders.find(text[0]);
    const std::string_view name = text.substr(order != std::string_view::npos);
    const auto type = std::find(kTypes.begin(), kTypes.end(), name);
    if (name == "V2")
      file_.fail(
          "has elements of two bytes without a type, as NumPy writes bfloat16 of ml_dtypes; use "
          "astype(numpy.float32) before saving it, or safetensors");
    if (type == kTypes.end() || name.empty())
      file_.fail(fmt::format(
          "is of NumPy's dtype '{}', which tensors here do not support; use astype before saving it", text));
    d_.spec.dtype = static_cast<DType>(type - kTypes.begin());
    d_.is_swapped = order == 3;
  }
  void read_shape() {
    need('(');
    while (!take(')')) {   // which skips space
      std::int64_t d = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), d);
      if (error != std::errc() || d < 0) fail("has a shape that is not a list of nonnegative integers");
      if (d_.spec.shape.ndim() == Shape::kMaxRank)
        file_.fail(fmt::format("has more than {} dimensions", Shape::kMaxRank));
      d_.spec.shape.push_back(d);
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      if (take(',')) continue;
      need(')');
      break;
    }
  }

  const FileName& file_;
  std::string_view rest_;
  Description d_;
};

std::int64_t header_bytes(ByteSource& source) {
  const auto number = [&](std::int64_t bytes) {
    std::uint32_t value = 0;   // little-endian, like this machine
    if (source.left() < bytes) source.name().fail("ends inside the header");
    source.read(&value, bytes);
    return std::int64_t{value};
  };
  std::array<char, 8> start;
  if (source.left() < std::ssize(start))
    source.name().fail(fmt::format("is not a .npy file: it has {} bytes", source.left()));
  source.read(start.data(), std::ssize(start));
  if (!std::string_view(start.data(), start.size()).starts_with(kMagic))
    source.name().fail("is not a .npy file: it does not begin with \\x93NUMPY");
  const int major = static_cast<unsigned char>(start[6]);
  if (major < 1 || major > 3)
    source.name().fail(fmt::format("is of version {}.{} of the .npy format; 1.0 to 3.0 are supported", major,
                                   static_cast<unsigned char>(start[7])));
  const std::int64_t n = number(major == 1 ? 2 : 4);
  constexpr std::int64_t kMost = 1 << 16;   // the limit of version 1; real headers have some hundred bytes
  if (n > kMost)
    source.name().fail(fmt::format("has a header of {} bytes; at most {} are allowed", n, kMost));
  if (n > source.left())
    source.name().fail(
        fmt::format("ends inside the header: it has {} bytes, but only {} are left", n, source.left()));
  return n;
}

void swap_bytes(Tensor& x) {
  const std::int64_t size = size_of(real_of(x.dtype()));
  const auto swap = [&](auto word) {
    using T = decltype(word);
    T* at = reinterpret_cast<T*>(writable_bytes(x).data());
    for (std::int64_t i = 0; i < x.nbytes() / size; ++i)
      at[i] = sizeof(T) == 2   ? static_cast<T>(__builtin_bswap16(static_cast<std::uint16_t>(at[i])))
              : sizeof(T) == 4 ? static_cast<T>(__builtin_bswap32(static_cast<std::uint32_t>(at[i])))
                               : static_cast<T>(__builtin_bswap64(at[i]));
  };
  if (size == 2)
    swap(std::uint16_t{});
  else if (size == 4)
    swap(std::uint32_t{});
  else if (size == 8)
    swap(std::uint64_t{});
}

}   // namespace

Tensor read_npy(ByteSource& source) {
  std::string text(static_cast<std::size_t>(header_bytes(source)), ' ');
  source.read(text.data(), std::ssize(text));
  Description d = DescriptionReader(source.name(), text).read();
  if (d.is_fortran) {
    std::vector<std::int64_t> dims(d.spec.shape.begin(), d.spec.shape.end());
    std::reverse(dims.begin(), dims.end());
    d.spec.shape = Shape(dims);
  }
  std::int64_t bytes = 0;
  try {
    bytes = d.spec.nbytes();
  } catch (const ShapeError&) {
    source.name().fail(fmt::format("has too many elements: {}", d.spec));
  }
  if (bytes != source.left())
    source.name().fail(fmt::format("is {} of {} bytes, but has {}", d.spec, bytes, source.left()));
  Tensor x = allocate(d.spec);
  source.read(writable_bytes(x).data(), bytes);
  if (d.is_swapped) swap_bytes(x);
  check_booleans(source.name(), "", x);
  const RecordingScope unrecorded(nullptr);
  return d.is_fortran && x.ndim() > 1 ? transpose(x) : x;
}

std::string npy_header(std::string_view op, const Spec& spec) {
  if (spec.dtype == DType::bf16)
    throw_error<DTypeError>(
        "{}: NumPy has no bf16; use astype with f32, or save_safetensors: the tensor is {}", op, spec);
  std::string dims;
  for (const std::int64_t d : spec.shape)
    dims += fmt::format("{}, ", d);
  if (spec.shape.ndim() > 1)
    dims.resize(dims.size() - 2);
  else if (spec.shape.ndim() == 1)
    dims.pop_back();   // Python writes a tuple of one as (3,)
  const std::string_view type = kTypes[static_cast<std::size_t>(spec.dtype)];
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 size_of(spec.dtype) == 1 ? '|' : '<', type, dims);
  // The alignment of the elements, and the bytes of magic, version and length.
  constexpr std::size_t kAligned = 64, kBefore = 10;
  text.append((2 * kAligned - kBefore - 1 - text.size() % kAligned) % kAligned, ' ').append(1, '\n');
  const char length[] = {static_cast<char>(text.size() % 256), static_cast<char>(text.size() / 256)};
  return std::string(kMagic) + std::string("\1\0", 2) + std::string(length, 2) + text;
}

}   // namespace tapedeck
