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
  std::string_view text = {};                                         // of what is no object or array
  std::optional<std::uint64_t> number = {};                           // if it is whole and not negative
  std::vector<std::pair<std::string_view, JsonValue>> members = {};   // those of arrays have no names

  const JsonValue* find(std::string_view name) const;
};

/// Refuses duplicate keys, of which JSON parsers silently take one, more than three levels, and lists of more
/// than 64 elements.
class JsonText {
 public:
  /// `text` must stay. Throws FileError, also where it is no JSON.
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
  std::deque<std::string> decoded_;   // strings that are no part of the text as it stands
  JsonValue root_;
};

/// Text that is in quotes in JSON just as it is.
bool is_plain_json(std::string_view text);

}   // namespace tapedeck
