// A JSON text of few levels, such as the header of a file, as values that refer to it.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file.h"

namespace tapedeck {

struct JsonValue {
  enum class Kind { object, array, string, number, other };
  Kind kind = Kind::other;
  std::string_view text = {};                                         // if it is not an object or array
  std::optional<std::uint64_t> number = {};                           // if it is a nonnegative integer
  std::vector<std::pair<std::string_view, JsonValue>> members = {};   // elements of arrays have no names

  const JsonValue* find(std::string_view name) const;
};

/// Parses a JSON text. Refuses duplicate keys, of which JSON parsers silently keep one; more than three
/// levels; and lists of more than 64 elements.
class JsonText {
 public:
  /// `text` must outlive this object. Throws FileError, also if it is not JSON.
  JsonText(const FileName& file, std::string_view text);
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  const JsonValue& root() const { return root_; }

 private:
  static constexpr int kDeepest = 3;
  static constexpr std::size_t kLongest = 64;   // list

  [[noreturn]] void fail() const;
  void skip_spaces();
  bool take(char c);
  std::string_view string();
  void read(JsonValue& value, int depth);
  void read_members(JsonValue& value, char end, int depth);
  void read_number(JsonValue& value);
  void check_names(const JsonValue& object) const;

  const FileName& file_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::deque<std::string> decoded_;   // strings that do not occur literally in the text
  JsonValue root_;
};

/// Whether the text needs no escapes in a JSON string.
bool is_plain_json(std::string_view text);

}   // namespace tapedeck
