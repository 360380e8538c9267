// NumPy's files: written tensors are read back unchanged, and damaged or hostile files give an error that
// says what is wrong. numpy_files.py tests against NumPy itself.
#include <catch2/catch.hpp>

#include <complex>
#include <cstring>
#include <fstream>

#include "core/bytes.h"
#include "message_of.h"
#include "tapedeck/npy.h"
#include "tapedeck/tapedeck.h"
#include "temporary_folder.h"

namespace npy_test {

using namespace tapedeck;
using tapedeck::bfloat16;   // OpenBLAS declares one, too
using namespace tapedeck::test;

namespace {

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  const auto n = static_cast<std::uint32_t>(header.size());
  std::string length(version == 1 ? 2 : 4, '\0');
  std::memcpy(length.data(), &n, length.size());
  return std::string("\x93NUMPY") + version + '\0' + length + header + data;
}

struct Loaded {
  TemporaryFolder folder;
  std::string path = folder / "x.npy";

  std::string message(const std::string& text) {
    write_text(path, text);
    const std::string what = message_of<FileError>([&] { load_npy(path); }),
                      prefix = "load_npy: " + path + ": ";
    return what.starts_with(prefix) ? what.substr(prefix.size()) : what;
  }
  std::string described(const std::string& descr, const std::string& shape, const std::string& data = "",
                        const std::string& order = "False") {
    return message(
        npy("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + "}", data));
  }
};

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.spec() == b.spec() &&
         (a.nbytes() == 0 || std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.nbytes())) == 0);
}

/// An archive whose first member has these sizes, in its own header and in the directory: compressed, then
/// uncompressed, 18 and 20 bytes after the signatures.
std::string with_sizes_of_first(std::string archive, std::uint32_t compressed, std::uint32_t size) {
  for (const auto& [signature, offset] : {std::pair("PK\3\4", 18u), std::pair("PK\1\2", 20u)}) {
    char* at = archive.data() + archive.find(signature) + offset;
    std::memcpy(at, &compressed, 4), std::memcpy(at + 4, &size, 4);
  }
  return archive;
}
/// The same, with the method of compression: 8 is deflate, 2 bytes before the check sum and the time.
std::string with_method_of_first(std::string archive, char method) {
  archive[archive.find("PK\3\4") + 8] = method;
  archive[archive.find("PK\1\2") + 10] = method;
  return archive;
}

template <class T> void append(std::string& to, T number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}   // namespace

TEST_CASE("npy: the file is NumPy's", "[npy]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  save_npy(path, tensor({1.0, 2.0, 3.0}));
  const std::string text = text_of(path),
                    begin("\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
                          10 + 57);
  CHECK(text.substr(0, begin.size()) == begin);
  CHECK(text.size() == 128 + 12);
  CHECK(text[127] == '\n');
  CHECK(same_bytes(load_npy(path), tensor({1.0, 2.0, 3.0})));
  CHECK(message_of<ArgumentError>([&] { save_npy(path, Tensor()); }) ==
        "save_npy: " + path + ": the tensor is undefined");
  CHECK(text_of(path) == text);
}

TEST_CASE("npy: f16 and small integers are NumPy's, and there is no bf16", "[npy]") {
  Loaded loaded;
  CHECK(loaded.described("'<f2'", "(2,)", std::string("\0\x3c\xff\x7b", 4)) == "no error");
  CHECK(same_bytes(load_npy(loaded.path), tensor({1.0, 65504.0}, DType::f16)));
  CHECK(loaded.described("'>u2'", "(1,)", "\1\2") == "no error");
  CHECK(same_bytes(load_npy(loaded.path), tensor({258}, DType::u16)));
  CHECK(loaded.described("'|V2'", "(2,)", "abcd") ==
        "has elements of two bytes without a type, as NumPy writes bfloat16 of ml_dtypes; use "
        "astype(numpy.float32) before saving it, or safetensors");
  CHECK(message_of<DTypeError>([&] { save_npy(loaded.path, ones({2}, DType::bf16)); }) ==
        "save_npy: NumPy has no bf16; use astype with f32, or save_safetensors: the tensor is bf16[2]");
}

TEST_CASE("npy: byte orders, memory orders and ways to write the header", "[npy]") {
  Loaded loaded;
  CHECK(loaded.described("'>i4'", "(2,)", std::string("\0\0\0\1\0\0\1\0", 8)) == "no error");
  CHECK(same_bytes(load_npy(loaded.path), tensor({1, 256})));
  CHECK(loaded.described("'>c8'", "()", std::string("\x3f\x80\0\0\x40\0\0\0", 8)) == "no error");
  CHECK(load_npy(loaded.path).item<std::complex<float>>() == std::complex<float>(1, 2));
  CHECK(loaded.described("'|u1'", "(2, 3)", "\1\2\3\4\5\6", "True") == "no error");
  CHECK(same_bytes(load_npy(loaded.path), tensor({{1, 3, 5}, {2, 4, 6}}, DType::u8)));
  CHECK(loaded.message(npy("  {\"shape\":(2 , ),\n'fortran_order':False , 'descr':'=i1',}  \n", "\1\2", 2)) ==
        "no error");
  CHECK(same_bytes(load_npy(loaded.path), tensor({1, 2}, DType::i8)));
  CHECK(loaded.message(npy("{'descr': '?', 'fortran_order': False, 'shape': ()}", "\1")) ==
        "is of NumPy's dtype '?', which tensors here do not support; use astype before saving it");

  CHECK(loaded.described("'<f4'", "( 0 ,\n3 )") == "no error");
  CHECK(load_npy(loaded.path).shape() == Shape{0, 3});

  // Swapping axes while reading records nothing.
  GradientTape tape({.persistent = true});
  CHECK(loaded.described("'<f4'", "(1, 2)", std::string(8, '\0'), "True") == "no error");
  Recording recording;
  const Tensor x = load_npy(loaded.path);
  CHECK(x.shape() == Shape{1, 2});
}

TEST_CASE("npy: hostile files are errors that say what is wrong", "[npy][errors]") {
  Loaded loaded;
  CHECK(loaded.message("") == "is not a .npy file: it has 0 bytes");
  CHECK(loaded.message("\x93NUMPX\1\1") == "is not a .npy file: it does not begin with \\x93NUMPY");
  CHECK(loaded.message(npy("{}", "", 4)) == "is of version 4.0 of the .npy format; 1.0 to 3.0 are supported");
  CHECK(loaded.message(std::string("\x93NUMPY\1\0\1", 9)) == "ends inside the header");
  CHECK(loaded.message(std::string("\x93NUMPY\1\0\xff\xff{}", 12)) ==
        "ends inside the header: it has 65535 bytes, but only 2 are left");
  CHECK(loaded.message(std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14)) ==
        "has a header of 4294967295 bytes; at most 65536 are allowed");
  CHECK(loaded.message(npy("", "")) == "the header has no { where one is expected");
  CHECK(loaded.message(npy("{", "")) == "the header has no quoted text where one is expected");
  CHECK(loaded.message(npy("{'descr", "")) == "the header has no quoted text where one is expected");
  CHECK(loaded.message(npy("{}", "")) == "the header lacks one of descr, fortran_order and shape");
  CHECK(loaded.message(npy("{} x", "")) == "the header continues after its end");
  CHECK(loaded.message(npy("{'shape': (), 'shape': ()}", "")) == "the header has 'shape' twice");
  CHECK(loaded.message(npy("{'colour': 3}", "")) == "the header has an unknown key 'colour'");
  CHECK(loaded.message(npy("{'fortran_order': 1}", "")) ==
        "the header has neither True nor False for fortran_order");
  CHECK(loaded.described("'<f16'", "(2,)", "abcd") ==
        "is of NumPy's dtype '<f16', which tensors here do not support; use astype before saving it");
  CHECK(loaded.described("'|O'", "(2,)", "abcd") ==
        "is of NumPy's dtype '|O', which tensors here do not support; use astype before saving it");
  CHECK(loaded.described("''", "(2,)") ==
        "is of NumPy's dtype '', which tensors here do not support; use astype before saving it");
  CHECK(loaded.described("[('a', '<f4')]", "(2,)") == "is an array of records; save each field by itself");
  CHECK(loaded.described("'<f4'", "(-1,)") ==
        "the header has a shape that is not a list of nonnegative integers");
  CHECK(loaded.described("'<f4'", "(99999999999999999999,)") ==
        "the header has a shape that is not a list of nonnegative integers");
  CHECK(loaded.described("'<f4'", "(3 4)") == "the header has no ) where one is expected");
  CHECK(loaded.described("'<f4'", "(1,1,1,1,1,1,1,1,1)") == "has more than 8 dimensions");
  CHECK(loaded.described("'<f4'", "(4294967296, 4294967296)") ==
        "has too many elements: f32[4294967296,4294967296]");
  CHECK(loaded.described("'<f8'", "(1000000000000,)", "12345678") ==
        "is f64[1000000000000] of 8000000000000 bytes, but has 8");
  CHECK(loaded.described("'<f4'", "(1,)", "12345") == "is f32[1] of 4 bytes, but has 5");
  CHECK(loaded.described("'|b1'", "(3,)", "\1\1\3") == "is bool, and element 2 is 3");
}

TEST_CASE("npz: archives of tensors", "[npy]") {
  if (!has_npz()) return;
  const TemporaryFolder folder;
  const std::string path = folder / "x.npz";
  const NamedTensors all = {{"a", tensor({1.0, 2.0})},
                            {"with/slash and ü", zeros({0, 3})},
                            {"", tensor(3)},
                            {"large", random::normal({300, 1000}, {.seed = 1})}};
  save_npz(path, all);
  const NamedTensors back = load_npz(path);
  REQUIRE(back.size() == all.size());
  for (const auto& [name, x] : all)
    CHECK(same_bytes(back.at(name), x));
  CHECK(folder.files() == 1);

  const std::string before = text_of(path);
  CHECK(message_of<ArgumentError>([&] {
          save_npz(path, {{"a", tensor(1.0)}, {"b", Tensor()}});
        }) == "save_npz: " + path + ": tensor \"b\" is undefined");
  CHECK(message_of<ArgumentError>([&] { save_npz(path, {}); }) ==
        "save_npz: " + path + ": nothing to save; pass at least one tensor");
  CHECK(text_of(path) == before);
  const std::string longest(65'531, 'a');   // APPNOTE.TXT 4.4.10: 16 bits for the length, with .npy
  CHECK_THAT(message_of<ArgumentError>([&] {
               save_npz(path, {{longest + 'a', tensor(1.0)}});
             }),
             Catch::Matchers::EndsWith("has 65532 bytes; use 65531 at most"));
  CHECK(text_of(path) == before);
  CHECK_THAT(message_of<FileError>([&] { save_npz(folder / "none/x.npz", all); }),
             Catch::Matchers::StartsWith("save_npz: " + (folder / "none/x.npz") + ": cannot be "));
  CHECK(folder.files() == 1);
  save_npz(path, {{longest, tensor(1.0)}});
  CHECK(load_npz(path).contains(longest));
}

TEST_CASE("npz: damaged and hostile archives", "[npy][errors]") {
  if (!has_npz()) return;
  const TemporaryFolder folder;
  const std::string path = folder / "x.npz";
  const NamedTensors all = {{"a", tensor({1.0, 2.0})}, {"b", tensor({1, 0}, DType::boolean)}};
  save_npz(path, all);
  const std::string whole = text_of(path);
  const auto message = [&](const std::string& text) {
    write_text(path, text);
    const std::string what = message_of<FileError>([&] { load_npz(path); }),
                      prefix = "load_npz: " + path + ": ";
    return what.starts_with(prefix) ? what.substr(prefix.size()) : what;
  };
  CHECK_THAT(message(""), Catch::Matchers::StartsWith("cannot be opened as a zip archive: "));
  CHECK_THAT(message("PK\5\6"), Catch::Matchers::StartsWith("cannot be opened as a zip archive: "));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    INFO("the first " << n << " bytes");
    REQUIRE(message(whole.substr(0, n)) != "no error");
  }
  // Some bits are unused, such as those of the time. No other flipped bit may change a name or a value.
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    write_text(path, flipped);
    INFO("bit " << bit);
    try {
      const NamedTensors back = load_npz(path);
      REQUIRE(back.size() == all.size());
      for (const auto& [name, x] : back)
        REQUIRE((all.contains(name) && same_bytes(all.at(name), x)));
    } catch (const FileError&) {}
  }
  const auto with_sizes = [&](std::uint32_t compressed, std::uint32_t size) {
    return with_sizes_of_first(whole, compressed, size);
  };
  CHECK(message(with_sizes(136, 2'000'000'000)) ==
        "a.npy has 2000000000 bytes, decompressed from 136, but only " + std::to_string(whole.size()) +
            " are left in the file");
  CHECK_THAT(message(with_sizes(2'000'000'000, 2'000'000'000)),
             Catch::Matchers::StartsWith("cannot be opened as a zip archive: "));
  CHECK(message(with_sizes(136, 137)) != "no error");
  CHECK(message(with_sizes(136, 135)) != "no error");
  std::string renamed = whole;
  for (std::size_t at; (at = renamed.find("a.npy")) != std::string::npos;)
    renamed.replace(at, 5, "a.txt");
  CHECK(message(renamed) == "a.txt is not an array: its name does not end with .npy");
  std::string twice = whole;
  for (std::size_t at; (at = twice.find("b.npy")) != std::string::npos;)
    twice.replace(at, 5, "a.npy");
  CHECK_THAT(message(twice), Catch::Matchers::StartsWith("cannot be opened as a zip archive: "));
  CHECK_THAT(message_of<FileError>([&] { load_npz(folder / "none"); }),
             Catch::Matchers::EndsWith("none: cannot be opened: No such file or directory"));
}

TEST_CASE("npz: an archive needs no more memory than allowed", "[npy][errors]") {
  if (!has_npz()) return;
  const TemporaryFolder folder;
  const std::string path = folder / "x.npz", prefix = "load_npz: " + path + ": ";
  save_npz(path, {{"a", zeros({100'000})}, {"b", ones({4})}});
  const std::string whole = text_of(path);
  const auto claiming = [&](std::uint32_t size) {
    write_text(path, with_method_of_first(with_sizes_of_first(whole, 400'128, size), 8));
    return message_of<FileError>([&] { load_npz(path); });
  };
  CHECK(claiming(256'000'001) == prefix +
                                     "a.npy has 256000001 bytes, but only 256000000 of the allowed 256000000 "
                                     "are left; raise NpzOptions::max_bytes if you trust the file");
  CHECK_THAT(claiming(255'999'999), !Catch::Matchers::Contains("max_bytes"));
  write_text(path, whole);
  CHECK(load_npz(path).size() == 2);
  CHECK(load_npz(path, {.max_bytes = 400'128 + 144}).size() == 2);
  CHECK(message_of<FileError>([&] { load_npz(path, {.max_bytes = 400'128 + 143}); }) ==
        prefix +
            "b.npy has 144 bytes, but only 143 of the allowed 400271 are left; raise NpzOptions::max_bytes "
            "if you trust the file");
  CHECK(message_of<ArgumentError>([&] { load_npz(path, {.max_bytes = -1}); }) ==
        "load_npz: max_bytes is -1; use 0 or more");
}

// Numbers beyond the fields of the old format: of members, and of bytes in front of one. The hole between the
// members takes no room on the disk.
TEST_CASE("npz: ZIP64", "[npy]") {
  if (!has_npz()) return;
  const TemporaryFolder folder;
  const std::string path = folder / "x.npz";
  SECTION("70,000 members") {
    NamedTensors many;
    for (int i = 0; i < 70'000; ++i)
      many.emplace(std::to_string(i), Tensor());
    const Tensor x = tensor({1, 2}, DType::u8);
    for (auto& [name, value] : many)
      value = x;
    save_npz(path, many);
    const NamedTensors back = load_npz(path);
    CHECK(back.size() == many.size());
    CHECK(same_bytes(back.at("69999"), x));
  }
  SECTION("a member beyond 4 GB") {
    constexpr std::uint64_t kHole = 5'000'000'000;
    save_npz(path, {{"a", tensor({1.0, 2.0})}, {"b", tensor({3, 4})}});
    const std::string whole = text_of(path);
    const std::size_t second = whole.find("PK\3\4", 4), directory = whole.find("PK\1\2"),
                      second_entry = whole.find("PK\1\2", directory + 4), end = whole.find("PK\5\6");
    std::string entries = whole.substr(directory, end - directory);
    const std::size_t at = second_entry - directory;
    const std::uint16_t name_bytes = 5, extra_bytes = 12;
    std::memcpy(entries.data() + at + 30, &extra_bytes, 2);   // ZIP64: tag 1, the offset alone
    std::memset(entries.data() + at + 42, 0xff, 4);
    REQUIRE(entries.size() == at + 46 + name_bytes);
    append(entries, std::uint16_t{1}), append(entries, std::uint16_t{8});
    append<std::uint64_t>(entries, second + kHole);
    std::string tail = entries;
    const std::uint64_t begin = directory + kHole, end64 = begin + entries.size();
    tail += "PK\6\6";   // the record of the end, its locator, and the old end
    append<std::uint64_t>(tail, 44), append<std::uint32_t>(tail, 45 << 16 | 45),
        append<std::uint64_t>(tail, 0);
    append<std::uint64_t>(tail, 2), append<std::uint64_t>(tail, 2),
        append<std::uint64_t>(tail, entries.size());
    append<std::uint64_t>(tail, begin);
    tail += "PK\6\7";
    append<std::uint32_t>(tail, 0), append<std::uint64_t>(tail, end64), append<std::uint32_t>(tail, 1);
    tail += "PK\5\6";
    append<std::uint32_t>(tail, 0), append<std::uint16_t>(tail, 2), append<std::uint16_t>(tail, 2);
    append(tail, static_cast<std::uint32_t>(entries.size())), append<std::uint32_t>(tail, 0xffff'ffff);
    append<std::uint16_t>(tail, 0);
    std::ofstream file(path, std::ios::binary);
    file << whole.substr(0, second);
    file.seekp(static_cast<std::streamoff>(second + kHole));
    file << whole.substr(second, directory - second) << tail;
    file.close();
    CHECK(std::filesystem::file_size(path) > (std::uint64_t{1} << 32));
    const NamedTensors back = load_npz(path);
    REQUIRE(back.size() == 2);
    CHECK(same_bytes(back.at("a"), tensor({1.0, 2.0})));
    CHECK(same_bytes(back.at("b"), tensor({3, 4})));
  }
}

TEST_CASE("npz: a library without libzip says how to build it", "[npy][errors]") {
  if (has_npz()) return;
  const TemporaryFolder folder;
  const std::string rest =
      ": the library was built without libzip; install libzip-dev and build with -Dzip=enabled, or use .npy "
      "or "
      "safetensors files";
  CHECK(message_of<ArgumentError>([&] {
          save_npz(folder / "x.npz", {{"x", tensor(1.0)}});
        }) == "save_npz" + rest);
  CHECK(message_of<ArgumentError>([&] { load_npz(folder / "x.npz"); }) == "load_npz" + rest);
  CHECK(folder.files() == 0);
}

TEST_CASE("messages about files are printable", "[npy][errors]") {
  Loaded loaded;
  CHECK(loaded.described("'\x1b[31m\xff\n'", "(2,)") ==
        "is of NumPy's dtype '\\x1b[31m\\xff\\x0a', which tensors here do not support; use astype before "
        "saving it");
  CHECK(loaded.message(npy("{'\xc3\xbc\x7f\xc2\x80\xed\xa0\x80': 3}", "")) ==
        "the header has an unknown key 'ü\\x7f\\xc2\\x80\\xed\\xa0\\x80'");
  CHECK(loaded.message(npy("{'" + std::string(60'000, 'k') + "': 3}", "")).size() < 5000);
}

}   // namespace npy_test
