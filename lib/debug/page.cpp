// In: data as JSON. Out: a file with the template and the data.
#include "debug/page.h"

#include <nlohmann/json.hpp>

#include "core/file.h"

namespace tapedeck {
namespace {

constexpr std::string_view kTemplate =
#include "debug/page.html.h"
    ;

}   // namespace

std::string json_string(std::string_view text) {
  using Json = nlohmann::ordered_json;   // as in profile.cpp, which saves an instantiation
  std::string out;
  for (const char c : Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

void write_page(const std::string& path, std::string_view data) {
  std::string page(kTemplate);
  constexpr std::string_view kData = "PAGE_DATA";
  page.replace(page.find(kData), kData.size(), data);
  OutputFile file({"write_html", path});
  file.write(page.data(), static_cast<std::int64_t>(page.size()));
  file.commit();
}

}   // namespace tapedeck
