// The data of pages of tapes, and their errors. test/browser/pages.py tests the pages themselves.
#include <fstream>
#include <set>

#include <catch2/catch.hpp>

#include "page.h"
#include "tapedeck/debug.h"
#include "tapedeck/tapedeck.h"
#include "temporary_folder.h"

namespace tapedeck::test {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

template <class... T> Page page_of(const GradientTape& tape, const T&... more) {
  const TemporaryFolder folder;
  write_html(tape, folder / "tape.html", more...);
  CHECK(folder.files() == 1);
  return read_page(folder / "tape.html");
}

std::vector<std::string> names(const json& ops) {
  std::vector<std::string> names;
  for (const json& op : ops)
    names.push_back(op["name"]);
  return names;
}
std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++n;
  return n;
}

}   // namespace

TEST_CASE("a page shows the ops of a tape, and their summary", "[debug][tape_page]") {
  const Variable w(ones({4, 2}), {.name = "w"});
  const Tensor x = ones({3, 4}), constant = ones({2});
  GradientTape tape;
  tape.watch(x);
  const Tensor product = matmul(x, w), y = tanh(product + constant);
  const std::vector<Tensor> parts = split(y, 2, -1);
  const Tensor other = neg(parts[1]);
  const Page page = page_of(tape);
  CHECK(page.data["sources"] ==
        json::parse(R"([{"name":"w","spec":"f32[4,2]"},{"name":"watched","spec":"f32[3,4]"}])"));
  // Tensors are numbered: the sources 0 and 1, the results from 2 on. Bytes as in the test of summary().
  CHECK(page.data["ops"] == json::parse(R"([
    {"name":"matmul","scope":"","in":[1,0],"out":["f32[3,2]"],"keeps":80,"total":80,"forward":0,"backward":0,"calls":[]},
    {"name":"add","scope":"","in":[2,-1],"out":["f32[3,2]"],"keeps":0,"total":80,"forward":0,"backward":0,"calls":[]},
    {"name":"tanh","scope":"","in":[3],"out":["f32[3,2]"],"keeps":24,"total":104,"forward":0,"backward":0,"calls":[]},
    {"name":"split","scope":"","in":[4],"out":["f32[3,1]","f32[3,1]"],"keeps":0,"total":104,"forward":0,"backward":0,"calls":[]},
    {"name":"neg","scope":"","in":[6],"out":["f32[3,1]"],"keeps":0,"total":104,"forward":0,"backward":0,"calls":[]}])"));
  CHECK(page.data["functions"].empty());
  CHECK_THAT(summary(tape), Contains("5 ops keep 104 B"));
}

TEST_CASE("memory that several ops keep is added to a page's total once", "[debug][tape_page]") {
  const Tensor x = ones({1024});
  GradientTape tape;
  tape.watch(x);
  const Tensor a = x * x, b = x * x;
  const json ops = page_of(tape).data["ops"];
  CHECK(ops[0]["keeps"] == 4096);
  CHECK(ops[1]["keeps"] == 4096);
  CHECK(ops[0]["total"] == 4096);
  CHECK(ops[1]["total"] == 4096);
}

TEST_CASE("a page is one file that loads nothing", "[debug][tape_page]") {
  const std::string text = page_of(GradientTape()).text;
  for (const char* part : {"http:", "https:", "src=", "@import", "url(", "href="})
    CHECK_THAT(text, !Contains(part));
  CHECK_THAT(text, Contains("default-src data: 'unsafe-inline'"));
  CHECK(text.size() < 18500);
}

TEST_CASE("names in a page end neither its script nor its data", "[debug][tape_page]") {
  const std::string name = "</script><!--<script>\"'&amp;\\\n\t\x01\xff";
  const std::string known =
      "</script><!--<script>\"'&amp;\\\n\t\x01\xef\xbf\xbd";   // U+FFFD for what is no UTF-8
  const Variable w(tensor({1.0, 2.0}), {.name = name});
  const AnomalyMode stacks;
  GradientTape tape;
  const Scope outer(name), inner("inner");
  const Tensor y = exp(w);
  Tensor z;
  {
    const StopRecording pause;
    z = identity(y);
  }
  record_operation(name, {&z, 1}, {&y, 1},
                   [](std::span<const Tensor> dy) { return std::vector<Gradient>{dy[0]}; });
  const Page page = page_of(tape), empty = page_of(GradientTape());
  CHECK(page.data["sources"][0]["name"] == known);
  CHECK(page.data["ops"][0]["scope"] == known + "/inner");
  CHECK(page.data["ops"][1]["name"] == known);
  CHECK(count(page.text, "<") == count(empty.text, "<"));
}

TEST_CASE("a page shows call stacks of ops recorded under AnomalyMode", "[debug][tape_page]") {
  const Tensor x = ones({2});
  GradientTape tape;
  tape.watch(x);
  Tensor y = exp(x);
  {
    const AnomalyMode stacks;
    const Scope scope("loss");
    y = tanh(tanh(y));
  }
  const json data = page_of(tape).data;
  CHECK(data["ops"][0]["calls"].empty());
  CHECK(data["ops"][0]["scope"] == "");
  for (const std::size_t i : {1u, 2u}) {
    const json& op = data["ops"][i];
    CHECK(op["scope"] == "loss");
    REQUIRE_FALSE(op["calls"].empty());
    for (const json& call : op["calls"])
      CHECK(call < data["functions"].size());
  }
  // Each function is listed once.
  const std::vector<std::string> functions = data["functions"];
  CHECK(std::set<std::string>(functions.begin(), functions.end()).size() == functions.size());
}

TEST_CASE("a page with a profile has times and scopes", "[debug][tape_page]") {
  const Variable w(ones({2, 2}), {.name = "w"});
  GradientTape tape({.persistent = true});
  const Tensor early = exp(w);   // before the profile
  Profile profile;
  Tensor y;
  {
    const Scope scope("net"), layer("layer1");
    y = sum(tanh(early));
  }
  tape.stop();
  const json before = page_of(tape, profile).data["ops"];
  CHECK(names(before) == std::vector<std::string>{"exp", "tanh", "sum"});
  CHECK(before[0]["forward"] == 0);
  CHECK(before[0]["scope"] == "");
  for (const std::size_t i : {1u, 2u}) {
    CHECK(before[i]["forward"] > 0);
    CHECK(before[i]["backward"] == 0);
    CHECK(before[i]["scope"] == "net/layer1");
  }

  (void)tape.gradient(y, w);
  profile.stop();
  const json after = page_of(tape, profile).data["ops"];
  double forward = 0, backward = 0, measured = 0, measured_rules = 0;
  for (const json& op : after) {
    CHECK(op["backward"] > 0);
    forward += op["forward"].get<double>(), backward += op["backward"].get<double>();
  }
  for (const OpCost& cost : profile.costs())
    if (cost.name != "read_variable") measured += cost.seconds, measured_rules += cost.rule_seconds;
  CHECK(forward == Approx(measured).epsilon(1e-9));
  CHECK(backward == Approx(measured_rules).epsilon(1e-9));
  const json untimed = page_of(tape).data["ops"];
  for (const json& op : untimed)
    CHECK(op["forward"] == 0);
}

TEST_CASE("pages of nested tapes have the rules of their own passes", "[debug][tape_page]") {
  const Tensor x = ones({2});
  const Profile profile;
  GradientTape outer({.persistent = true});
  outer.watch(x);
  GradientTape inner({.persistent = true});
  inner.watch(x);
  const Tensor y = exp(x);
  inner.stop();
  const Tensor dy = inner.gradient(y, x).dense();   // outer records it
  outer.stop();
  CHECK(page_of(inner, profile).data["ops"].size() == 1);
  CHECK(page_of(inner, profile).data["ops"][0]["backward"] > 0);
  const json ops = page_of(outer, profile).data["ops"];
  REQUIRE(names(ops) == std::vector<std::string>{"exp", "mul"});
  CHECK(ops[1]["in"] == json::parse("[-1,1]"));
  for (const json& op : ops) {
    CHECK(op["forward"] > 0);
    CHECK(op["backward"] == 0);
  }
  (void)outer.gradient(dy, x);
  const json passed = page_of(outer, profile).data["ops"];
  for (const json& op : passed)
    CHECK(op["backward"] > 0);
}

TEST_CASE("a page shows the time of a user-defined operation", "[debug][tape_page]") {
  const Tensor x = ones({1 << 16});
  const Profile profile;
  GradientTape tape;
  tape.watch(x);
  Tensor y;
  {
    const StopRecording pause;
    y = exp(x);   // has the same result, but is another op
  }
  record_operation("mine", {&y, 1}, {&x, 1},
                   [](std::span<const Tensor> dy) { return std::vector<Gradient>{dy[0]}; });
  const json ops = page_of(tape, profile).data["ops"];
  REQUIRE(names(ops) == std::vector<std::string>{"mine"});
  double seconds = 0;
  for (const OpCost& cost : profile.costs())
    if (cost.name == "mine") seconds = cost.seconds;
  CHECK(ops[0]["forward"].get<double>() == Approx(seconds).margin(1e-12));
}

TEST_CASE("a consumed tape has no page, and the file is unchanged", "[debug][tape_page]") {
  const TemporaryFolder folder;
  const std::string path = folder / "tape.html";
  const Tensor x = ones({2});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  write_text(path, "before");
  (void)tape.gradient(y, x);
  CHECK_THROWS_WITH(
      write_html(tape, path),
      "write_html: this tape was already used; make it persistent, or ask before gradient is called");
  CHECK(text_of(path) == "before");
  write_html(GradientTape(), path);
  CHECK(read_page(path).data["ops"].empty());
}

TEST_CASE("write_html reports paths that it cannot write", "[debug][tape_page]") {
  const TemporaryFolder folder;
  const GradientTape tape;
  const std::string missing = folder / "no/tape.html";
  CHECK_THROWS_WITH(write_html(tape, missing),
                    "write_html: " + missing + ": cannot be written: No such file or directory");
  CHECK_THROWS_AS(write_html(tape, folder.path()), FileError);
  CHECK_THROWS_AS(write_html(tape, ""), FileError);
  CHECK_THROWS_AS(write_html(tape, folder / std::string("a\0b", 3)), FileError);
  CHECK(folder.files() == 0);
}

}   // namespace tapedeck::test
