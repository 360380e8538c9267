// Files in the safetensors format: written tensors are read back unchanged, and damaged or hostile files give
// an error that says what is wrong.
#include <catch2/catch.hpp>

#include <unistd.h>
#include <complex>
#include <cstdio>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "core/bytes.h"
#include "message_of.h"
#include "tapedeck/safetensors.h"
#include "tapedeck/tapedeck.h"
#include "temporary_folder.h"

namespace safetensors_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.spec() == b.spec() &&
         (a.nbytes() == 0 || std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.nbytes())) == 0);
}

/// A file with these parts, valid or not.
std::string file_of(const std::string& header, const std::string& data) {
  std::string text(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(text.data(), &length, 8);
  return text + header + data;
}

std::string digits_of(const std::string& text) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return digits;
}
/// A file as of this library, with the checksum of its header, whatever that says.
std::string own_file(const std::string& notes, const std::string& tensors, const std::string& data) {
  const std::string begin = R"({"__metadata__":{"tapedeck.version":"1","tapedeck.checksum":")",
                    end = "\"" + notes + "}" + tensors + "}";
  return file_of(begin + digits_of(begin + std::string(16, '0') + end) + end, data);
}

struct Loaded {
  TemporaryFolder folder;
  std::string path = folder / "x.safetensors";

  std::string message(const std::string& text) {
    write_text(path, text);
    std::string what = message_of<FileError>([&] { load_safetensors(path); });
    const std::string prefix = "load_safetensors: " + path + ": ";
    return what.starts_with(prefix) ? what.substr(prefix.size()) : what;
  }
  std::string message(const std::string& header, const std::string& data) {
    return message(file_of(header, data));
  }
};

NamedTensors one_of_each() {
  NamedTensors all;
  const Tensor x = random::normal({3, 5}, {.seed = 3}, DType::f64) * 50;
  for (int i = 0; i < kDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    all.emplace(name_of(t), is_complex(t) ? complex(astype(x, real_of(t)), astype(x + 1, real_of(t)))
                                          : astype(abs(x), t));
  }
  all["a scalar"] = tensor(3.5);
  all["complex scalar"] = tensor(std::complex<double>(1, 2));
  all["empty"] = zeros({0, 4});
  all["large and empty"] = zeros({1 << 30, 1 << 30, 1 << 30, 0}, DType::i64);
  all["rank 8"] = ones({1, 2, 1, 2, 1, 2, 1, 2}, DType::c128);
  all["\"quoted\" \\ \n ünïcode/with/slashes"] = ones({100'000});   // written in several parts
  all[""] = arange(3);
  return all;
}

}   // namespace

TEST_CASE("safetensors: every dtype survives a round trip", "[safetensors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "all.safetensors";
  const NamedTensors all = one_of_each();
  const Metadata texts = {{"format", "pt"}, {"note", "two\nlines"}};
  save_safetensors(path, all, texts);
  const NamedTensors back = load_safetensors(path);
  CHECK(load_safetensors_metadata(path) == texts);
  REQUIRE(back.size() == all.size());
  for (const auto& [name, tensor] : all) {
    INFO(name);
    REQUIRE(back.contains(name));
    CHECK(same_bytes(tensor, back.at(name)));
  }
  CHECK(folder.files() == 1);

  save_safetensors(path, {});
  CHECK(load_safetensors(path).empty());
}

// nlohmann's parser says what is JSON, but for a NUL, which ends a text there.
TEST_CASE("a header is JSON, or an error", "[safetensors]") {
  Loaded loaded;
  const std::string part = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  const std::string header = " \t\r\n{ \"a\\\"\\u00e9\\n\" :" + part + ",\"\xc3\xa9\":" + part +
                             R"(,"__metadata__":{"a":"-0.5e+3 true \\ \/ \ud83d\ude00","b":"null"} ,"c":)" +
                             part + "} \n ";
  const auto message = [&](const std::string& text) {
    return loaded.message("{\"x\":" + part + "," + text.substr(text.find('{') + 1), "");
  };
  CHECK(message(header) == "no error");
  const NamedTensors tensors = load_safetensors(loaded.path);
  CHECK((tensors.size() == 4 && tensors.contains("a\"\u00e9\n") && tensors.contains("\u00e9")));
  const random::Key key{.seed = 1};
  const std::string_view alphabet("{}[]\",:\\u0123+-.eEtrfalsn \n\x1f\x7f\x80\xc3\xff");
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const auto drawn = random::uniform({2}, key.split(i), 0, 1, DType::f64).to_vector();
    std::string text = header;
    const auto at = 5 + static_cast<std::size_t>(drawn[0] * static_cast<double>(text.size() - 5));
    const char c = alphabet[static_cast<std::size_t>(drawn[1] * static_cast<double>(alphabet.size()))];
    if (i % 3 == 0) text[at] = c;
    if (i % 3 == 1) text.insert(at, 1, c);
    if (i % 3 == 2) text.erase(at, 1);
    CAPTURE(text);
    const std::string what = message(text);
    if (what.ends_with("twice") || what.ends_with("nested too deep")) continue;   // before what follows
    const bool is_json = nlohmann::json::accept("{\"x\":" + part + "," + text.substr(text.find('{') + 1));
    REQUIRE(what.starts_with("the header is not JSON: ") == !is_json);
  }
}

// The published format: length, JSON, bytes; each tensor at a multiple of its element's size, no
// gaps.
TEST_CASE("safetensors: files are as other libraries expect", "[safetensors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  save_safetensors(path, {{"b", tensor({1, 2}, DType::i8)},
                          {"a", tensor({{1.0, 2.0, 3.0}}, DType::f32)},
                          {"z", tensor(std::complex<double>(5, 6))},
                          {"none", zeros({0}, DType::u8)}});
  const std::string text = text_of(path);
  std::uint64_t length;
  std::memcpy(&length, text.data(), 8);
  CHECK((8 + length) % 64 == 0);
  const auto header = nlohmann::json::parse(text.substr(8, length));
  CHECK(header["z"] == nlohmann::json::parse(R"({"dtype": "F64", "shape": [2], "data_offsets": [0, 16]})"));
  CHECK(header["a"] ==
        nlohmann::json::parse(R"({"dtype": "F32", "shape": [1, 3], "data_offsets": [16, 28]})"));
  CHECK(header["b"] == nlohmann::json::parse(R"({"dtype": "I8", "shape": [2], "data_offsets": [28, 30]})"));
  REQUIRE(text.size() == 8 + length + 30);
  float a[3];
  std::memcpy(a, text.data() + 8 + length + 16, sizeof a);
  CHECK((a[0] == 1 && a[1] == 2 && a[2] == 3));
  // XXH3's published value for no bytes.
  CHECK(header["__metadata__"]["tapedeck.xxh3:none"] == "2d06800538d394c2");

  save_safetensors(path, {{"y", ones({2})}, {"x", ones({3})}});   // of one element size: by name
  const std::string by_name = text_of(path);
  std::memcpy(&length, by_name.data(), 8);
  const auto places = nlohmann::json::parse(by_name.substr(8, length));
  CHECK(places["x"]["data_offsets"] == std::vector<int>{0, 12});
  CHECK(places["y"]["data_offsets"] == std::vector<int>{12, 20});

  // Files of other libraries have no checksums.
  write_text(path, file_of(R"( {"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                           std::string("\0\0\x80?\0\0\0@", 8))
                       .replace(8, 1, "{")
                       .replace(9, 1, " "));
  CHECK(load_safetensors(path).at("w").to_vector() == std::vector<double>{1, 2});
}

TEST_CASE("safetensors: every damaged bit is detected", "[safetensors]") {
  Loaded loaded;
  NamedTensors tensors = {{"w", tensor({1.0, 2.0})},
                          {"n", tensor({7, 8}, DType::i64)},
                          {"mask", tensor({1, 0, 1}, DType::boolean)},
                          {"z", tensor(std::complex<double>(1, 2))}};
  SECTION("several tensors") {}
  SECTION("no tensor, one text") { tensors.clear(); }
  save_safetensors(loaded.path, tensors, {{"epoch", "3"}});
  const std::string whole = text_of(loaded.path);
  CHECK(loaded.message(whole) == "no error");
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    INFO("bit " << bit);
    REQUIRE(loaded.message(flipped) != "no error");
  }
  for (std::size_t n = 0; n < whole.size(); ++n) {
    INFO("the first " << n << " bytes");
    REQUIRE(loaded.message(whole.substr(0, n)) != "no error");
  }
  CHECK(loaded.message(whole + " ") != "no error");
}

TEST_CASE("safetensors: hostile files are errors that say what is wrong", "[safetensors][errors]") {
  Loaded loaded;
  const std::string four(4, '\0'), eight(8, '\0');
  const auto described = [](const std::string& description) { return R"({"w":)" + description + "}"; };
  CHECK(loaded.message("") == "is not a safetensors file: it has 0 bytes");
  CHECK(
      loaded.message("\xff\xff\xff\xff\xff\xff\xff\xff{}") ==
      "is not a safetensors file: its header has 18446744073709551615 bytes; at most 100000000 are allowed");
  CHECK(loaded.message(std::string("\x10\0\0\0\0\0\0\0{}", 10)) ==
        "is not a safetensors file, or is truncated: a header of 16 bytes in a file of 10");
  CHECK(loaded.message("[1]", "") == "is not a safetensors file: the header is not a JSON object");
  CHECK_THAT(loaded.message("{,}", ""), Catch::Matchers::StartsWith("the header is not JSON: "));
  // The reason and its place, behind a list, too.
  CHECK_THAT(loaded.message(R"({"a":[1,true,null,"b",2.5],"c":{}})"
                            "]",
                            ""),
             Catch::Matchers::Contains("column 35"));
  CHECK_THAT(loaded.message("{\"\xff\":1}", ""), Catch::Matchers::StartsWith("the header is not JSON: "));
  CHECK(loaded.message(described(R"({"dtype":"F32","shape":[[1]],"data_offsets":[0,4]})"), four) ==
        "the header is nested too deep");
  CHECK(loaded.message("{" + std::string(100'000, '[') + "}", "") != "no error");
  std::string list = "[0]";   // of lists, each of which takes a hundred times its text
  for (int i = 0; i < 100; ++i)
    list += ",[0]";
  CHECK(loaded.message(described("[" + list + "]"), "") == "the header has a list of more than 64 elements");
  CHECK(loaded.message(R"({"w":)" + std::string(100'000, '[') + "}", "") == "the header is nested too deep");
  CHECK(loaded.message(R"({"__metadata__":{"tapedeck.version":"1","tapedeck.checksum":""}})", "") ==
        "the header is damaged: its checksum differs");
  CHECK(loaded.message(described("3"), "") == "tensor \"w\" is not a JSON object in the header");
  CHECK(loaded.message(R"({"__metadata__":3})", "") == "the header's __metadata__ is not a JSON object");
  CHECK(loaded.message(R"({"__metadata__":{"a":3}})", "") == "the header's __metadata__ \"a\" is not text");
  CHECK(loaded.message(R"({"__metadata__":{"tapedeck.version":"2"}})", "") ==
        "is of version 2; this library supports version 1");
  CHECK(loaded.message(R"({"__metadata__":{"tapedeck.xxh3:w":"1"}})", "") ==
        "the header is damaged: its checksum differs");
  CHECK(loaded.message(described(R"({"shape":[1],"data_offsets":[0,4]})"), four) ==
        "tensor \"w\": no dtype in the header");
  CHECK(loaded.message(described(R"({"dtype":3,"shape":[1],"data_offsets":[0,4]})"), four) ==
        "tensor \"w\": its dtype is not text");
  CHECK(loaded.message(described(R"({"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,4]})"), four) ==
        "tensor \"w\" is F8_E4M3, which tensors here do not support; convert it where it was written, such "
        "as to "
        "F32");
  CHECK(loaded.message(described(R"({"dtype":"F8_E5M2","shape":[2],"data_offsets":[0,4]})"), four) ==
        "tensor \"w\" is F8_E5M2, which tensors here do not support; convert it where it was written, such "
        "as to "
        "F32");
  CHECK(loaded.message(described(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})"), four) ==
        "tensor \"w\": its shape is not a list");
  CHECK(loaded.message(described(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), four) ==
        "tensor \"w\": its shape has -1");
  CHECK(loaded.message(described(R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})"), four) ==
        "tensor \"w\": its shape has 1.0");
  CHECK(loaded.message(described(R"({"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]})"),
                       four) == "tensor \"w\": its shape has 9223372036854775808");
  CHECK(loaded.message(described(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]})"),
                       four) == "tensor \"w\" has too many elements: f32[4294967296,4294967296]");
  CHECK(loaded.message(described(R"({"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]})"),
                       "") == "tensor \"w\" has too many elements: f32[4611686018427387904]");
  CHECK(loaded.message(described(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]})"),
                       four) == "tensor \"w\" has 9 dimensions; tensors have at most 8");
  CHECK(loaded.message(described(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})"), four) ==
        "tensor \"w\": its data_offsets are not two ascending numbers");
  CHECK(loaded.message(described(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), four) ==
        "tensor \"w\": its data_offsets are not two ascending numbers");
  CHECK(loaded.message(described(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), four) ==
        "tensor \"w\" is f32[2], but has 4 bytes");
  CHECK(loaded.message(described(R"({"dtype":"F32","shape":[268435456],"data_offsets":[0,1073741824]})"),
                       four) == "has 4 bytes of data, but its tensors take 1073741824");
  CHECK(loaded.message(described(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), eight) ==
        "tensor \"w\" begins at byte 4 of the data, after a gap");
  CHECK(loaded.message(described(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), eight) ==
        "has 8 bytes of data, but its tensors take 4");
  CHECK(
      loaded.message(
          R"({"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
          four) == "tensor \"w\" begins at byte 0 of the data, inside another");
  CHECK(
      loaded.message(
          R"({"v":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"v":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          "ab") == "the header has \"v\" twice");
  CHECK(loaded.message(described(R"({"dtype":"F32","dtype":"F64","shape":[1],"data_offsets":[0,8]})"),
                       eight) == "the header has \"dtype\" twice");
  CHECK(loaded.message(described(R"({"dtype":"BOOL","shape":[2],"data_offsets":[0,2]})"), "\1\2") ==
        "tensor \"w\" is bool, and element 1 is 2");
  // A length beyond 2^63, and a path that is not a file.
  CHECK_THAT(message_of<FileError>([&] { load_safetensors(loaded.folder.path()); }),
             Catch::Matchers::EndsWith("is not a regular file"));
  CHECK_THAT(message_of<FileError>([&] { load_safetensors(loaded.folder / "none"); }),
             Catch::Matchers::EndsWith("none: cannot be opened: No such file or directory"));
  CHECK_THAT(message_of<FileError>([&] { load_safetensors("/dev/zero"); }),
             Catch::Matchers::EndsWith("is not a regular file"));
}

// A header whose own checksum is right can be hostile as well.
TEST_CASE("safetensors: notes of this library are checked", "[safetensors][errors]") {
  Loaded loaded;
  const std::string bytes = std::string(14, '\0') + "\xf0\x3f" + std::string(16, '\0');   // 0 and 1
  struct File {
    std::string note = "c128", dtype = "F64", shape = "2";
    std::size_t n = 16;
    std::string checksum = {};   // of the bytes, if empty
  };
  const auto message = [&](const File& f) {
    const std::string data = bytes.substr(0, f.n), sum = f.checksum.empty() ? digits_of(data) : f.checksum;
    return loaded.message(own_file((f.note.empty() ? "" : ",\"tapedeck.dtype:w\":\"" + f.note + "\"") +
                                       ",\"tapedeck.xxh3:w\":\"" + sum + "\"",
                                   ",\"w\":{\"dtype\":\"" + f.dtype + "\",\"shape\":[" + f.shape +
                                       "],\"data_offsets\":[0," + std::to_string(f.n) + "]}",
                                   data));
  };
  CHECK(message({}) == "no error");
  CHECK(load_safetensors(loaded.path).at("w").item<std::complex<double>>() == std::complex<double>(0, 1));
  CHECK(message({.note = ""}) == "no error");
  CHECK(load_safetensors(loaded.path).at("w").spec() == Spec{DType::f64, {2}});
  CHECK(message({.shape = "2,1,2", .n = 32}) == "no error");
  CHECK(load_safetensors(loaded.path).at("w").spec() == Spec{DType::c128, {2, 1}});
  const std::string none = "tensor \"w\": is declared as c128 in the header, but is not one";
  CHECK(message({.dtype = "F32", .n = 8}) == none);
  CHECK(message({.shape = "", .n = 8}) == none);
  CHECK(message({.shape = "1", .n = 8}) == none);
  CHECK(message({.shape = "3", .n = 24}) == none);
  CHECK(message({.shape = "2,1"}) == none);
  CHECK(message({.note = "c64"}) == "tensor \"w\": is declared as c64 in the header, but is not one");
  for (const char* checksum : {"1", "000000000000000g", "00000000000000000", "0x00000000000000"})
    CHECK(message({.checksum = checksum}) == "tensor \"w\": its checksum is not 16 hexadecimal digits");
  CHECK(message({.checksum = digits_of("")}) == "tensor \"w\" is damaged: its checksum differs");
  CHECK(loaded.message(own_file("", R"(,"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})", "")) ==
        "tensor \"w\" has no checksum");
}

TEST_CASE("safetensors: tensors and names that a file cannot have are rejected", "[safetensors][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  save_safetensors(path, {{"w", ones({2})}});
  const std::string before = text_of(path);
  CHECK(message_of<ArgumentError>([&] {
          save_safetensors(path, {{"w", Tensor()}});
        }) == "save_safetensors: tensor \"w\" is undefined");
  CHECK(message_of<ArgumentError>([&] {
          save_safetensors(path, {{"__metadata__", ones({2})}});
        }) == "save_safetensors: the file format does not allow the name \"__metadata__\"");
  CHECK(message_of<ArgumentError>([&] {
          save_safetensors(path, {{"\xff", ones({2})}});
        }) == "save_safetensors: a name is not UTF-8: \"tapedeck.xxh3:\\ufffd\"");
  CHECK(message_of<ArgumentError>([&] {
          save_safetensors(path, {}, {{"tapedeck.x", "1"}});
        }) ==
        "save_safetensors: the key \"tapedeck.x\" is the library's own; use one that does not begin with "
        "tapedeck.");
  CHECK(message_of<ArgumentError>([&] {
          save_safetensors(path, {}, {{"x", "\xff"}});
        }) == "save_safetensors: a text of the metadata is not UTF-8: \"\\ufffd\"");
  CHECK(message_of<FileError>([&] { save_safetensors(folder / "none/x", {}); }) ==
        "save_safetensors: " + folder.path() + "/none/x: cannot be written: No such file or directory");
  CHECK(message_of<FileError>([&] { save_safetensors(folder.path(), {}); }) ==
        "save_safetensors: " + folder.path() + ": cannot be written: Is a directory");
  CHECK(text_of(path) == before);
  CHECK(folder.files() == 1);
}

// Where each of so many steps goes over all others the test takes minutes.
TEST_CASE("safetensors: a file of very many tensors", "[safetensors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  NamedTensors tensors;
  for (int i = 0; i < 60'000; ++i)
    tensors.emplace("layer/" + std::to_string(i), Tensor());
  for (auto& [name, x] : tensors)
    x = tensor(1.0);
  alarm(60);
  save_safetensors(path, tensors);
  CHECK(load_safetensors(path).size() == tensors.size());
  alarm(0);
}

}   // namespace safetensors_test
