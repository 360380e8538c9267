#include "ops/public_header.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace tapedeck::test {
namespace {

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path), in_(path) {
    while (next() && line_.starts_with("// "))
      add_words(header_.remark, line_.substr(3));
    do
      read();
    while (next());
  }

  PublicHeader header() && { return std::move(header_); }

 private:
  bool next() { return static_cast<bool>(std::getline(in_, line_)); }

  void read() {
    if (line_.starts_with("/// ")) {
      if (!in_doc_) doc_.clear();
      raw_doc_ = (in_doc_ ? raw_doc_ : "") + line_ + "\n";
      in_doc_ = true;
      add_words(doc_, line_.substr(4));
      return;
    }
    const bool had_doc = std::exchange(in_doc_, false);
    if (line_.empty() || line_.starts_with("// "))
      doc_.clear(), raw_doc_.clear();
    else if (line_.starts_with("namespace "))
      scope_ =
          line_.starts_with("namespace tapedeck::") ? line_.substr(20, line_.find(" {") - 20) + "::" : "";
    else if (line_ == "class Tensor;")
      return;
    else if (line_.starts_with("struct ") || line_.starts_with("enum ") ||
             line_.starts_with("template <int N>"))
      read_type();
    else if (line_.starts_with("using ") && !had_doc)
      header_.types.back() += "\n" + line_;   // stands below another type
    else if (line_.starts_with("using "))
      read_type();
    else if (line_.starts_with("TAPEDECK_EXPORT ") || line_.starts_with("inline "))
      read_function();
    else if (line_[0] != '#' && line_[0] != '}')
      throw std::runtime_error(path_.string() + ": no known declaration: " + line_);
  }

  void read_type() {
    std::string text = std::exchange(raw_doc_, "") + line_;
    const std::string_view end = line_.find("using ") == line_.npos ? "};" : ";";
    for (bool whole = line_.ends_with(end); !whole && next();
         whole = end == ";" ? line_.ends_with(end) : line_ == end)
      text += "\n" + line_;
    header_.types.push_back(text);
  }

  void read_function() {
    std::string text = line_;
    while (!line_.ends_with(";") && !line_.ends_with("{") && next())
      add_words(text, line_);
    const bool has_body = line_.ends_with("{");
    while (has_body && line_ != "}" && next()) {}
    if (text.starts_with("inline constexpr ")) return;   // no function
    text.resize(text.find_last_not_of(" ;{") + 1);
    text.erase(0, text.find(' ') + 1);
    add(text);
  }

  void add(const std::string& signature) {
    const std::size_t end = signature.find('('), begin = signature.find_last_of(" &*", end) + 1;
    const std::string name = scope_ + signature.substr(begin, end - begin);
    std::vector<PublicFunction>& all = header_.functions;
    auto f = std::find_if(all.begin(), all.end(), [&](const auto& other) { return other.name == name; });
    if (f == all.end()) f = all.insert(f, {name, {}, doc_});
    f->signatures.push_back(signature.substr(0, begin) + scope_ + signature.substr(begin));
  }

  // Appends a line of a text.
  static void add_words(std::string& text, const std::string& words) {
    text += (text.empty() ? "" : " ") + words.substr(words.find_first_not_of(' '));
  }

  std::filesystem::path path_;
  std::ifstream in_;
  std::string line_, doc_, raw_doc_, scope_;
  bool in_doc_ = false;
  PublicHeader header_;
};

}   // namespace

PublicHeader read_public_header(const std::filesystem::path& path) { return Reader(path).header(); }

}   // namespace tapedeck::test
