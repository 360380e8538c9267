// Reads a JSON text in one pass. Strings with escapes or non-ASCII characters are left to nlohmann, as is the
// error message for invalid JSON.
#include "io/json_text.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include <nlohmann/json.hpp>

#include "core/format.h"

namespace tapedeck {
namespace {

using Json = nlohmann::json;

// Does not keep values, which could need more memory than the text.
class FirstError final : public nlohmann::json_sax<Json> {
 public:
  explicit FirstError(std::string_view text) { Json::sax_parse(text, this); }
  const std::string& message() const { return message_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(std::string&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const Json::exception& e) override {
    message_ = e.what();
    return false;
  }

 private:
  std::string message_ = "a character is out of place";
};

bool is_plain(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_part_of_number(char c) {
  return is_digit(c) || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
}

}   // namespace

bool is_plain_json(std::string_view text) { return std::all_of(text.begin(), text.end(), is_plain); }

const JsonValue* JsonValue::find(std::string_view name) const {
  const auto at =
      std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.first == name; });
  return at == members.end() ? nullptr : &at->second;
}

JsonText::JsonText(const FileName& file, std::string_view text) : file_(file), text_(text) {
  read(root_, 0);
  skip_spaces();
  if (at_ < text_.size()) fail();
}

void JsonText::fail() const {
  file_.fail(fmt::format("the header is not JSON: {}", FirstError(text_).message()));
}

void JsonText::skip_spaces() {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (at_ < text_.size() && is_space(text_[at_]))
    ++at_;
}

bool JsonText::take(char c) {
  skip_spaces();
  const bool is_there = at_ < text_.size() && text_[at_] == c;
  at_ += is_there;
  return is_there;
}

std::string_view JsonText::string() {
  if (!take('"')) fail();
  const std::size_t begin = at_;
  while (at_ < text_.size() && is_plain(text_[at_]))
    ++at_;
  if (at_ < text_.size() && text_[at_] == '"') return text_.substr(begin, at_++ - begin);
  while (at_ < text_.size() && text_[at_] != '"')
    at_ += text_[at_] == '\\' ? 2 : 1;
  if (at_ >= text_.size()) fail();
  const Json decoded = Json::parse(text_.substr(begin - 1, ++at_ - begin + 1), nullptr, false);
  if (!decoded.is_string()) fail();
  return decoded_.emplace_back(decoded.get<std::string>());
}

void JsonText::read(JsonValue& value, int depth) {
  skip_spaces();
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  if (c == '{' || c == '[') {
    if (depth == kDeepest) file_.fail("the header is nested too deep");
    value.kind = c == '{' ? JsonValue::Kind::object : JsonValue::Kind::array;
    ++at_;
    return read_members(value, c == '{' ? '}' : ']', depth + 1);
  }
  if (c == '"') {
    value.kind = JsonValue::Kind::string;
    value.text = string();
    return;
  }
  if (c == '-' || is_digit(c)) return read_number(value);
  for (const std::string_view word : {"true", "false", "null"})
    if (text_.substr(at_).starts_with(word)) {
      at_ += word.size();
      value.text = word;
      return;
    }
  fail();
}

void JsonText::read_members(JsonValue& value, char end, int depth) {
  const bool has_names = value.kind == JsonValue::Kind::object;
  if (!take(end)) {
    if (depth > 1 && has_names) value.members.reserve(4);   // the size of most objects
    do {
      // An element needs twenty times the memory of its text.
      if (!has_names && value.members.size() == kLongest)
        file_.fail(fmt::format("the header has a list of more than {} elements", kLongest));
      const std::string_view name = has_names ? string() : std::string_view();
      if (has_names && !take(':')) fail();
      read(value.members.emplace_back(name, JsonValue()).second, depth);
    } while (take(','));
    if (!take(end)) fail();
  }
  if (has_names) check_names(value);
}

void JsonText::read_number(JsonValue& value) {
  std::size_t n = 1;
  while (at_ + n < text_.size() && is_part_of_number(text_[at_ + n]))
    ++n;
  value.kind = JsonValue::Kind::number;
  value.text = text_.substr(at_, n);
  at_ += n;
  const bool is_whole = std::all_of(value.text.begin(), value.text.end(), is_digit);
  if (is_whole ? n > 1 && value.text[0] == '0' : !Json::accept(value.text)) fail();
  std::uint64_t number = 0;
  if (is_whole && std::from_chars(value.text.data(), value.text.data() + n, number).ec == std::errc())
    value.number = number;
}

void JsonText::check_names(const JsonValue& object) const {
  std::vector<std::pair<std::size_t, std::string_view>> names;
  names.reserve(object.members.size());
  for (const auto& [name, value] : object.members)
    names.emplace_back(std::hash<std::string_view>()(name), name);
  std::sort(names.begin(), names.end());   // numbers are compared faster than names
  if (const auto at = std::adjacent_find(names.begin(), names.end()); at != names.end())
    file_.fail(fmt::format("the header has \"{}\" twice", at->second));
}

}   // namespace tapedeck
