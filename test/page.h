// Reads the pages of write_html.
#pragma once
#include <nlohmann/json.hpp>

#include "temporary_folder.h"

namespace tapedeck::test {

/// A page, and the data in it.
struct Page {
  std::string text;
  nlohmann::json data;
};

inline Page read_page(const std::string& path) {
  Page page{text_of(path), {}};
  const std::string before = "<script id=\"data\" type=\"application/json\">", after = "</script>";
  const std::size_t begin = page.text.find(before) + before.size();
  page.data = nlohmann::json::parse(page.text.substr(begin, page.text.find(after, begin) - begin));
  return page;
}

}   // namespace tapedeck::test
