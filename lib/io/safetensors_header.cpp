// Parses and writes headers of safetensors files. Input is untrusted: names, specs and byte ranges are
// checked against the file.
#include "io/safetensors_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "core/format.h"
#include "io/checksum.h"
#include "io/json_text.h"

namespace tapedeck {
namespace {

using Json = nlohmann::json;

// The text begins with this, followed by the header's checksum, which is computed with zeros in its place.
constexpr std::string_view kOpening = R"({"__metadata__":{"tapedeck.version":"1","tapedeck.checksum":")";
constexpr std::string_view kOwn = "tapedeck.", kVersion = "tapedeck.version",
                           kHeaderChecksum = "tapedeck.checksum", kChecksumOf = "tapedeck.xxh3:",
                           kDtypeOf = "tapedeck.dtype:", kKindOf = "tapedeck.kind:";
constexpr std::size_t kDigits = 16;

// In the order of DType. The format has no c128, which is stored as F64 with a last axis of 2 and a note in
// the metadata.
constexpr std::array<std::string_view, kDTypes> kDtypeNames = {
    "F32", "F64", "I8", "I32", "I64", "U8", "BOOL", "C64", "F64", "F16", "BF16", "I16", "U16", "U32", "U64"};

std::string digits(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

std::uint64_t header_checksum(std::string_view text) {
  constexpr std::string_view kZeros = "0000000000000000";
  static_assert(kZeros.size() == kDigits);
  Checksum sum;
  for (const std::string_view part :
       {text.substr(0, kOpening.size()), kZeros, text.substr(kOpening.size() + kDigits)})
    sum.add(part.data(), static_cast<std::int64_t>(part.size()));
  return sum.value();
}

std::string json_string(std::string_view op, std::string_view what, std::string_view text) {
  if (is_plain_json(text)) return std::string(1, '"').append(text).append(1, '"');
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    throw_error<ArgumentError>("{}: {} is not UTF-8: {}", op, what,
                               Json(text).dump(-1, ' ', true, Json::error_handler_t::replace));
  }
}

class HeaderReader {
 public:
  HeaderReader(const FileName& file, const std::string& text) : file_(file), text_(text) {}

  SafetensorsHeader read(std::int64_t data_bytes) {
    const JsonText json(file_, text_);
    const JsonValue& all = json.root();
    if (all.kind != JsonValue::Kind::object) file_.fail("the header is not a JSON object");
    header_.tensors.reserve(all.members.size());
    if (const JsonValue* metadata = all.find("__metadata__")) read_metadata(*metadata);
    for (const auto& [name, description] : all.members)
      if (name != "__metadata__") header_.tensors.push_back(tensor(name, description));
    check_notes();
    check_places(data_bytes);
    return std::move(header_);
  }

 private:
  void read_metadata(const JsonValue& metadata) {
    if (metadata.kind != JsonValue::Kind::object)
      file_.fail("the header's __metadata__ is not a JSON object");
    for (const auto& [key, value] : metadata.members) {
      if (value.kind != JsonValue::Kind::string)
        file_.fail(fmt::format("the header's __metadata__ \"{}\" is not text", key));
      if (key.starts_with(kOwn))
        read_own(key, value.text);
      else
        header_.metadata.emplace(key, value.text);
    }
    if (!has_own_) return;
    if (!version_.empty() && version_ != "1")
      file_.fail(fmt::format("is of version {}; this library supports version 1", version_));
    if (!text_.starts_with(kOpening) || text_.size() < kOpening.size() + kDigits ||
        header_checksum_ != digits(header_checksum(text_)))
      file_.fail("the header is damaged: its checksum differs");
  }
  void read_own(std::string_view key, std::string_view text) {
    has_own_ = true;
    if (key.starts_with(kChecksumOf)) checksums_.emplace(key.substr(kChecksumOf.size()), text);
    if (key.starts_with(kDtypeOf)) dtypes_.emplace(key.substr(kDtypeOf.size()), text);
    if (key.starts_with(kKindOf)) header_.kinds.emplace(key.substr(kKindOf.size()), text);
    if (key == kVersion) version_ = text;
    if (key == kHeaderChecksum) header_checksum_ = text;
  }

  StoredTensor tensor(std::string_view name, const JsonValue& description) {
    if (description.kind != JsonValue::Kind::object)
      file_.fail(fmt::format("tensor \"{}\" is not a JSON object in the header", name));
    const auto part = [&](const char* key) -> const JsonValue& {
      if (const JsonValue* value = description.find(key)) return *value;
      file_.fail(fmt::format("tensor \"{}\": no {} in the header", name, key));
    };
    StoredTensor t{std::string(name), {dtype(name, part("dtype")), {}}};
    std::vector<std::int64_t> shape = numbers(name, "shape", part("shape")),
                              offsets = numbers(name, "data_offsets", part("data_offsets"));
    if (const auto note = dtypes_.find(name); note != dtypes_.end()) {
      if (note->second != "c128" || t.spec.dtype != DType::f64 || shape.empty() || shape.back() != 2)
        file_.fail(fmt::format("tensor \"{}\": is declared as {} in the header, but is not one", name,
                               note->second));
      shape.pop_back();
      t.spec.dtype = DType::c128;
    }
    if (shape.size() > Shape::kMaxRank)
      file_.fail(fmt::format("tensor \"{}\" has {} dimensions; tensors have at most {}", name, shape.size(),
                             Shape::kMaxRank));
    t.spec.shape = Shape(shape);
    if (offsets.size() != 2 || offsets[1] < offsets[0])
      file_.fail(fmt::format("tensor \"{}\": its data_offsets are not two ascending numbers", name));
    t.begin = offsets[0], t.end = offsets[1];
    if (t.end - t.begin != nbytes(t))
      file_.fail(fmt::format("tensor \"{}\" is {}, but has {} bytes", name, t.spec, t.end - t.begin));
    if (const auto note = checksums_.find(name); note != checksums_.end())
      t.checksum = checksum(name, note->second);
    return t;
  }

  DType dtype(std::string_view name, const JsonValue& value) const {
    if (value.kind != JsonValue::Kind::string)
      file_.fail(fmt::format("tensor \"{}\": its dtype is not text", name));
    const auto at = std::find(kDtypeNames.begin(), kDtypeNames.end(), value.text);
    if (at == kDtypeNames.end())
      file_.fail(fmt::format(
          "tensor \"{}\" is {}, which tensors here do not support; convert it where it was written, "
          "such as to F32",
          name, value.text));
    return static_cast<DType>(at - kDtypeNames.begin());
  }

  std::vector<std::int64_t> numbers(std::string_view name, const char* what, const JsonValue& value) const {
    if (value.kind != JsonValue::Kind::array)
      file_.fail(fmt::format("tensor \"{}\": its {} is not a list", name, what));
    std::vector<std::int64_t> list;
    list.reserve(value.members.size());
    for (const auto& [none, member] : value.members) {
      if (!member.number || *member.number > INT64_MAX)
        file_.fail(fmt::format("tensor \"{}\": its {} has {}", name, what, member.text));
      list.push_back(static_cast<std::int64_t>(*member.number));
    }
    return list;
  }

  std::int64_t nbytes(const StoredTensor& t) const {
    try {
      return t.spec.nbytes();
    } catch (const ShapeError&) {
      file_.fail(fmt::format("tensor \"{}\" has too many elements: {}", t.name, t.spec));
    }
  }

  std::uint64_t checksum(std::string_view name, std::string_view text) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc() || end != text.data() + kDigits || text.size() != kDigits)
      file_.fail(fmt::format("tensor \"{}\": its checksum is not {} hexadecimal digits", name, kDigits));
    return value;
  }

  // If a file has checksums, every tensor must have one.
  void check_notes() const {
    if (!has_own_) return;
    for (const StoredTensor& t : header_.tensors)
      if (!t.checksum) file_.fail(fmt::format("tensor \"{}\" has no checksum", t.name));
  }

  void check_places(std::int64_t data_bytes) {
    std::vector<StoredTensor>& all = header_.tensors;
    const auto is_before = [](const StoredTensor& a, const StoredTensor& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    };
    if (!std::is_sorted(all.begin(), all.end(), is_before))
      std::stable_sort(all.begin(), all.end(), is_before);
    std::int64_t at = 0;
    for (const StoredTensor& t : all) {
      if (t.begin != at)
        file_.fail(fmt::format("tensor \"{}\" begins at byte {} of the data, {}", t.name, t.begin,
                               t.begin < at ? "inside another" : "after a gap"));
      at = t.end;
    }
    if (at != data_bytes)
      file_.fail(fmt::format("has {} bytes of data, but its tensors take {}", data_bytes, at));
  }

  const FileName& file_;
  const std::string& text_;
  SafetensorsHeader header_;
  bool has_own_ = false;   // the library's own keys, so that it has written the file
  std::string_view version_, header_checksum_;
  std::unordered_map<std::string_view, std::string_view> checksums_, dtypes_;
};

std::string description_of(const StoredTensor& t) {
  std::string dims;
  for (const std::int64_t d : t.spec.shape)
    dims += fmt::format("{}{}", dims.empty() ? "" : ",", d);
  if (t.spec.dtype == DType::c128) dims += dims.empty() ? "2" : ",2";
  return fmt::format(R"({{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                     kDtypeNames[static_cast<std::size_t>(t.spec.dtype)], dims, t.begin, t.end);
}

}   // namespace

HeaderText::HeaderText(std::string_view op, const SafetensorsHeader& header) : text_(kOpening) {
  const auto add_placeholder = [this] {
    places_.push_back(text_.size());
    text_.append(kDigits, '0').append(1, '"');
  };
  const auto entry = [&](std::string_view what, const std::string& key) {
    text_.append(1, ',').append(json_string(op, what, key)).append(1, ':');
  };
  add_placeholder();
  for (const auto& [key, value] : header.metadata) {
    if (key.starts_with(kOwn))
      throw_error<ArgumentError>(
          "{}: the key \"{}\" is the library's own; use one that does not begin with {}", op, key, kOwn);
    entry("a key of the metadata", key);
    text_ += json_string(op, "a text of the metadata", value);
  }
  for (const auto& [object, kind] : header.kinds) {
    entry("a name", std::string(kKindOf) + object);
    text_ += json_string(op, "the kind of an object", kind);
  }
  for (const StoredTensor& t : header.tensors) {
    if (t.name == "__metadata__")
      throw_error<ArgumentError>("{}: the file format does not allow the name \"{}\"", op, t.name);
    if (t.spec.dtype == DType::c128) {
      entry("a name", std::string(kDtypeOf) + t.name);
      text_ += "\"c128\"";
    }
    entry("a name", std::string(kChecksumOf) + t.name);
    text_ += '"';
    add_placeholder();
  }
  text_ += '}';
  for (const StoredTensor& t : header.tensors) {
    entry("a name", t.name);
    text_ += description_of(t);
  }
  text_ += '}';
  constexpr std::size_t kAligned = 64;   // alignment of the data, counted with the 8 bytes of the length
  text_.append((2 * kAligned - 8 - text_.size() % kAligned) % kAligned, ' ');
  if (text_.size() > kMaxHeaderBytes)
    throw_error<ArgumentError>("{}: the names and texts take {} bytes; the file format allows {}", op,
                               text_.size(), kMaxHeaderBytes);
}

void HeaderText::enter(std::size_t i, std::uint64_t checksum) {
  text_.replace(places_[i + 1], kDigits, digits(checksum));
}
void HeaderText::seal() { text_.replace(places_[0], kDigits, digits(header_checksum(text_))); }

SafetensorsHeader read_header(const FileName& file, const std::string& text, std::int64_t data_bytes) {
  return HeaderReader(file, text).read(data_bytes);
}

}   // namespace tapedeck
