// The data of pages of compiled functions, and their errors. test/browser/pages.py tests what the pages do
// with it.
#include <catch2/catch.hpp>

#include "page.h"
#include "tapedeck/compile.h"
#include "tapedeck/debug.h"
#include "tapedeck/tapedeck.h"

namespace page_test {

using namespace tapedeck;
using nlohmann::json;
using test::read_page;

TEST_CASE("a page has the nodes of a program, by groups, and where their results are", "[recorded]") {
  const Variable w(ones({64}), {.name = "w"});
  const auto f = compile(
      [&](const Tensor& x, const Tensor& y) {
        const Tensor h = cumsum(exp(x) * w);
        return cumsum(tanh(h + y));
      },
      {.name = "<f>"});
  const test::TemporaryFolder folder;
  const std::string path = folder / "page.html";
  CHECK_THROWS_WITH(f.write_html(path), "write_html: program 0 of <f>, which has 0; the first one is 0");
  CHECK(folder.files() == 0);
  f(ones({2, 64}), ones({64}));
  f.write_html(path);
  const json data = read_page(path).data;
  CHECK(data["title"] == "<f>(f32[2,64], f32[64])");
  CHECK(data["sources"] ==
        json::parse(R"([{"name":"argument 0","spec":"f32[2,64]"},{"name":"argument 1","spec":"f32[64]"}])"));
  std::vector<std::string> names;
  std::map<std::string, json> ops;
  for (const json& op : data["ops"]) {
    names.push_back(op["name"]);
    if (!ops.contains(names.back())) ops[names.back()] = op;
    CHECK(op["forward"] == 0);
  }
  // exp and mul are one pass, add and tanh the other; between them, and for the sums, is memory.
  CHECK(names == std::vector<std::string>{"read w", "exp", "mul", "cumsum", "add", "tanh", "cumsum"});
  CHECK(ops["exp"]["scope"] == "group 1");
  CHECK(ops["exp"]["in"] == json::parse("[0]"));
  CHECK(ops["exp"]["memory"] == "registers");
  CHECK(ops["exp"]["keeps"] == 0);
  CHECK(ops["mul"]["scope"] == "group 1");
  CHECK(ops["mul"]["in"] == json::parse("[3,2]"));
  CHECK(ops["mul"]["memory"] == "arena");
  CHECK(ops["mul"]["keeps"] == 2 * 64 * 4);
  CHECK(ops["tanh"]["scope"] == "group 2");
  CHECK(ops["cumsum"]["scope"] == "");
  CHECK(data["ops"][6]["memory"] == "result");
  for (const json& op : data["ops"])
    CHECK(op["total"].get<std::int64_t>() <= data["arena"].get<std::int64_t>());
  // The product and its sum are there together.
  CHECK(ops["cumsum"]["total"].get<std::int64_t>() >= 2 * 2 * 64 * 4);
}

TEST_CASE("a page has the times of a profile's replays", "[recorded]") {
  const auto f = compile([](const Tensor& x) { return cumsum(exp(x)); }, {.name = "f"});
  const test::TemporaryFolder folder;
  const std::string path = folder / "page.html";
  f(ones({1000}));
  f(ones({2000}));
  Profile profile;
  for (int i = 0; i < 3; ++i)
    f(ones({2000}));
  profile.stop();
  const auto seconds = [&](std::size_t program) {
    f.write_html(path, profile, program);
    std::vector<double> all;
    const json data = read_page(path).data;
    for (const json& op : data["ops"])
      all.push_back(op["forward"]);
    return all;
  };
  CHECK(seconds(0) == std::vector<double>{0, 0});   // was not replayed
  const std::vector<double> times = seconds(1);
  REQUIRE(times.size() == 2);
  for (const OpCost& c : profile.costs()) {
    INFO(c.name);
    if (c.name.ends_with("exp")) CHECK(times[0] == Approx(c.seconds / 3));
    if (c.name.ends_with("cumsum")) CHECK(times[1] == Approx(c.seconds / 3));
    CHECK(c.calls == 3);
  }
  CHECK_THROWS_AS(f.write_html(path, profile, 2), ArgumentError);
  CHECK_THROWS_AS(f.write_html(folder / "none/page.html"), FileError);
}

}   // namespace page_test
