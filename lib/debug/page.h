// A page of HTML with a list of ops and a chart, of a tape or of a compiled function: the template page.html
// and the data that its script shows, as JSON.
#pragma once
#include <string>
#include <string_view>

namespace tapedeck {

/// A string of JSON for a script element: no tag begins in it, and it is UTF-8.
std::string json_string(std::string_view text);

/// A list of JSON.
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

/// Writes the page with this data for write_html; replaces an earlier file.
void write_page(const std::string& path, std::string_view data);

}   // namespace tapedeck
