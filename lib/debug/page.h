// An HTML page with a list of ops and a chart, for a tape or a compiled function: the template page.html with
// JSON data, which its script displays.
#pragma once
#include <string>
#include <string_view>

namespace tapedeck {

/// A JSON string for a script element: valid UTF-8, in which no tag begins.
std::string json_string(std::string_view text);

/// A JSON array, built item by item.
class JsonList {
 public:
  void add(std::string_view item) {
    text_ += text_.empty() ? '[' : ',';
    text_ += item;
  }
  std::string text() const { return text_.empty() ? "[]" : text_ + "]"; }

 private:
  std::string text_;
};

/// Writes the page with this data for write_html; replaces an existing file.
void write_page(const std::string& path, std::string_view data);

}   // namespace tapedeck
