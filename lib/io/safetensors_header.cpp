// Parses and writes headers of safetensors files. Input is untrusted: names, specs and byte ranges are
// checked against the file.
#include "io/safetensors_header.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <nlohmann/json.hpp>

#include "core/format.h"
#include "io/checksum.h"

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

std::uint64_t header_checksum(std::string text) {
  text.replace(kOpening.size(), kDigits, kDigits, '0');
  Checksum sum;
  sum.add(text.data(), static_cast<std::int64_t>(text.size()));
  return sum.value();
}

std::string quoted(std::string_view op, std::string_view what, std::string_view text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    throw_error<ArgumentError>("{}: {} is not UTF-8: {}", op, what,
                               Json(text).dump(-1, ' ', true, Json::error_handler_t::replace));
  }
}

// A JSON value of a header. nlohmann's own values allocate memory where they end, which must not fail there.
struct Value {
  enum class Kind { object, array, string, number, other };
  Kind kind = Kind::other;
  std::string text = {};                                     // of a string; for messages, of a number
  std::optional<std::uint64_t> number = {};                  // if it is whole and not negative
  std::vector<std::pair<std::string, Value>> members = {};   // those of arrays have no names

  const Value* find(std::string_view name) const {
    const auto at =
        std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.first == name; });
    return at == members.end() ? nullptr : &at->second;
  }
};

// Rejects duplicate keys, of which JSON parsers silently take one, and nesting deeper than any header's.
class Parser final : public nlohmann::json_sax<Json> {
 public:
  Parser(const FileName& file, const std::string& text) : file_(file) { Json::sax_parse(text, this); }
  const Value& root() const { return root_; }

  bool null() override { return add({Value::Kind::other, "null"}); }
  bool boolean(bool x) override { return add({Value::Kind::other, x ? "true" : "false"}); }
  bool number_integer(std::int64_t x) override { return add({Value::Kind::number, std::to_string(x)}); }
  bool number_unsigned(std::uint64_t x) override { return add({Value::Kind::number, std::to_string(x), x}); }
  bool number_float(double, const std::string& text) override { return add({Value::Kind::number, text}); }
  bool string(std::string& text) override { return add({Value::Kind::string, std::move(text)}); }
  bool binary(Json::binary_t&) override { return add({Value::Kind::other, "bytes"}); }
  bool start_object(std::size_t) override { return begin(Value::Kind::object); }
  bool start_array(std::size_t) override { return begin(Value::Kind::array); }
  bool key(std::string& key) override { return key_ = std::move(key), true; }
  bool end_array() override { return --depth_, true; }
  bool end_object() override {
    std::vector<std::string_view> names;
    for (const auto& [name, value] : open_[--depth_]->members)
      names.push_back(name);
    std::sort(names.begin(), names.end());
    if (const auto at = std::adjacent_find(names.begin(), names.end()); at != names.end())
      file_.fail(fmt::format("the header has \"{}\" twice", *at));
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& e) override {
    file_.fail(fmt::format("the header is no JSON: {}", e.what()));
  }

 private:
  static constexpr std::size_t kDeepest = 3;

  bool add(Value value) { return place(std::move(value)), true; }
  Value& place(Value value) {
    if (depth_ == 0) return root_ = std::move(value);
    return open_[depth_ - 1]->members.emplace_back(std::exchange(key_, {}), std::move(value)).second;
  }
  bool begin(Value::Kind kind) {
    if (depth_ == kDeepest) file_.fail("the header is nested too deep");
    Value& value = place({kind});
    open_[depth_++] = &value;
    return true;
  }

  const FileName& file_;
  Value root_;
  std::array<Value*, kDeepest> open_ = {};   // values within one another, each the last of the one before
  std::size_t depth_ = 0;
  std::string key_;
};

class HeaderReader {
 public:
  HeaderReader(const FileName& file, const std::string& text) : file_(file), text_(text) {}

  SafetensorsHeader read(std::int64_t data_bytes) {
    const Parser parser(file_, text_);
    const Value& all = parser.root();
    if (all.kind != Value::Kind::object) file_.fail("the header is no JSON object");
    if (const Value* metadata = all.find("__metadata__")) read_metadata(*metadata);
    for (const auto& [name, description] : all.members)
      if (name != "__metadata__") header_.tensors.push_back(tensor(name, description));
    check_notes();
    check_places(data_bytes);
    return std::move(header_);
  }

 private:
  void read_metadata(const Value& metadata) {
    if (metadata.kind != Value::Kind::object) file_.fail("the header's __metadata__ is no JSON object");
    for (const auto& [key, value] : metadata.members) {
      if (value.kind != Value::Kind::string)
        file_.fail(fmt::format("the header's __metadata__ \"{}\" is no text", key));
      (key.starts_with(kOwn) ? own_ : header_.metadata)[key] = value.text;
    }
    if (own_.empty()) return;
    const auto version = own_.find(kVersion);
    if (version != own_.end() && version->second != "1")
      file_.fail(fmt::format("is of version {}; this library knows version 1", version->second));
    if (!text_.starts_with(kOpening) || own_[std::string(kHeaderChecksum)] != digits(header_checksum(text_)))
      file_.fail("the header is damaged: its checksum differs");
    for (const auto& [key, value] : own_)
      if (key.starts_with(kKindOf)) header_.kinds.emplace(key.substr(kKindOf.size()), value);
  }

  StoredTensor tensor(const std::string& name, const Value& description) {
    if (description.kind != Value::Kind::object)
      file_.fail(fmt::format("tensor \"{}\" is no JSON object in the header", name));
    const auto part = [&](const char* key) -> const Value& {
      if (const Value* value = description.find(key)) return *value;
      file_.fail(fmt::format("tensor \"{}\": no {} in the header", name, key));
    };
    StoredTensor t{name, {dtype(name, part("dtype")), {}}};
    std::vector<std::int64_t> shape = numbers(name, "shape", part("shape")),
                              offsets = numbers(name, "data_offsets", part("data_offsets"));
    if (const auto note = own_.find(std::string(kDtypeOf) + name); note != own_.end()) {
      if (note->second != "c128" || t.spec.dtype != DType::f64 || shape.empty() || shape.back() != 2)
        file_.fail(
            fmt::format("tensor \"{}\": is noted as {} in the header and is none", name, note->second));
      shape.pop_back();
      t.spec.dtype = DType::c128;
    }
    if (shape.size() > Shape::kMaxRank)
      file_.fail(fmt::format("tensor \"{}\" has {} dimensions; tensors have up to {}", name, shape.size(),
                             Shape::kMaxRank));
    t.spec.shape = Shape(shape);
    if (offsets.size() != 2 || offsets[1] < offsets[0])
      file_.fail(fmt::format("tensor \"{}\": its data_offsets are not two ascending numbers", name));
    t.begin = offsets[0], t.end = offsets[1];
    if (t.end - t.begin != nbytes(t))
      file_.fail(fmt::format("tensor \"{}\" is {} and has {} bytes", name, t.spec, t.end - t.begin));
    if (const auto note = own_.find(std::string(kChecksumOf) + name); note != own_.end())
      t.checksum = checksum(name, note->second);
    return t;
  }

  DType dtype(const std::string& name, const Value& value) const {
    if (value.kind != Value::Kind::string)
      file_.fail(fmt::format("tensor \"{}\": its dtype is no text", name));
    const auto at = std::find(kDtypeNames.begin(), kDtypeNames.end(), value.text);
    if (at == kDtypeNames.end())
      file_.fail(
          fmt::format("tensor \"{}\" is {}, which tensors here cannot be; convert it where it was written, "
                      "such as to F32",
                      name, value.text));
    return static_cast<DType>(at - kDtypeNames.begin());
  }

  std::vector<std::int64_t> numbers(const std::string& name, const char* what, const Value& value) const {
    if (value.kind != Value::Kind::array)
      file_.fail(fmt::format("tensor \"{}\": its {} is no list", name, what));
    std::vector<std::int64_t> list;
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
      file_.fail(fmt::format("tensor \"{}\" has more elements than there can be: {}", t.name, t.spec));
    }
  }

  std::uint64_t checksum(const std::string& name, const std::string& text) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc() || end != text.data() + kDigits || text.size() != kDigits)
      file_.fail(fmt::format("tensor \"{}\": its checksum is not {} hexadecimal digits", name, kDigits));
    return value;
  }

  // If a file has checksums, every tensor must have one.
  void check_notes() const {
    if (own_.empty()) return;
    for (const StoredTensor& t : header_.tensors)
      if (!t.checksum) file_.fail(fmt::format("tensor \"{}\" has no checksum", t.name));
  }

  void check_places(std::int64_t data_bytes) {
    std::vector<StoredTensor>& all = header_.tensors;
    std::stable_sort(all.begin(), all.end(), [](const StoredTensor& a, const StoredTensor& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::int64_t at = 0;
    for (const StoredTensor& t : all) {
      if (t.begin != at)
        file_.fail(fmt::format("tensor \"{}\" begins at byte {} of the data, {}", t.name, t.begin,
                               t.begin < at ? "inside of another" : "behind a gap"));
      at = t.end;
    }
    if (at != data_bytes)
      file_.fail(fmt::format("has {} bytes of data; its tensors take {}", data_bytes, at));
  }

  const FileName& file_;
  const std::string& text_;
  SafetensorsHeader header_;
  Metadata own_;
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
    text_.append(1, ',').append(quoted(op, what, key)).append(1, ':');
  };
  add_placeholder();
  for (const auto& [key, value] : header.metadata) {
    if (key.starts_with(kOwn))
      throw_error<ArgumentError>(
          "{}: the key \"{}\" is the library's own; use one that does not begin with {}", op, key, kOwn);
    entry("a key of the metadata", key);
    text_ += quoted(op, "a text of the metadata", value);
  }
  for (const auto& [object, kind] : header.kinds) {
    entry("a name", std::string(kKindOf) + object);
    text_ += quoted(op, "the kind of an object", kind);
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
