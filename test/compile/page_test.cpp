// The data of pages of compiled functions, and their errors. test/browser/pages.py tests the pages
// themselves.
#include <catch2/catch.hpp>

#include "page.h"
#include "tapedeck/compile.h"
#include "tapedeck/debug.h"
#include "tapedeck/tapedeck.h"

namespace page_test {

using namespace tapedeck;
using nlohmann::json;
using test::read_page;

TEST_CASE("a page shows the nodes of a program by group, and where their results are stored", "[recorded]") {
  const Variable w(ones({64}), {.name = "w"});
  const auto f = compile(
      [&](const Tensor& x, const Tensor& y) {
        const Tensor h = cumsum(exp(x) * w);
        return cumsum(tanh(h + y));
      },
      {.name = "<f>"});
  const test::TemporaryFolder folder;
  const std::string path = folder / "page.html";
  CHECK_THROWS_WITH(f.write_html(path),
                    "write_html: there is no program 0 of <f>, which has 0; the first one is 0");
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

TEST_CASE("a page shows the times of profiled replays", "[recorded]") {
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
  int compared = 0;
  for (const OpCost& c : profile.costs()) {
    INFO(c.name);
    CHECK(c.calls == 3);
    for (const auto& [name, time] : {std::pair("exp", times[0]), std::pair("cumsum", times[1])})
      if (c.name.ends_with(name)) {
        CHECK(time == Approx(c.seconds / 3));
        ++compared;
      }
  }
  CHECK(compared == 2);
  CHECK_THROWS_AS(f.write_html(path, profile, 2), ArgumentError);
  CHECK_THROWS_AS(f.write_html(folder / "none/page.html"), FileError);
}

TEST_CASE("pages of programs with small results, of one step and of more", "[recorded]") {
  // A result lies in the arena, and is needed after the last step.
  const test::TemporaryFolder folder;
  const std::string path = folder / "page.html";
  const auto check = [&](const auto& f, std::size_t nodes) {
    f(ones({3}));
    f.write_html(path);
    const json data = read_page(path).data;
    CHECK(data["ops"].size() == nodes);
    for (const json& op : data["ops"]) {
      CHECK(op["total"] > 0);
      CHECK(op["total"] <= data["arena"]);
    }
  };
  check(compile([](const Tensor& x) { return cumsum(x); }), 1);
  check(compile([](const Tensor& x) { return cumsum(cumsum(x)); }), 2);
  check(compile([](const Tensor& x) { return cumsum(cumsum(cumsum(x))); }), 3);
}

TEST_CASE("memory that a sum takes over counts once in the arena in use", "[recorded]") {
  const auto f = compile([](const Tensor& a, const Tensor& b) { return tanh(matmul(a, b) + matmul(b, a)); });
  const Tensor a = ones({64, 64});
  f(a, a + 1.0);
  const test::TemporaryFolder folder;
  f.write_html(folder / "page.html");
  const json data = read_page(folder / "page.html").data;
  std::int64_t most = 0;
  for (const json& op : data["ops"])
    most = std::max(most, op["total"].get<std::int64_t>());
  CHECK(most > 0);
  CHECK(most <= data["arena"]);
}

TEST_CASE("functions with the same name have separate times, and stores count as writes", "[recorded]") {
  const Variable w(ones({1000}), {.name = "w"});
  const auto f = compile([&](const Tensor& x) { w.assign(cumsum(x)); });
  const auto g = compile([](const Tensor& x) { return cumsum(x); });
  f(ones({1000})), g(ones({1000}));
  Profile profile;
  g(ones({1000}));
  profile.stop();
  const test::TemporaryFolder folder;
  const std::string path = folder / "page.html";
  f.write_html(path, profile);
  const json data = read_page(path).data;
  REQUIRE(data["ops"].size() == 2);
  CHECK(data["ops"][0]["forward"] == 0);
  CHECK(data["ops"][1]["name"] == "assign w");
  CHECK(data["ops"][1]["keeps"] == 4000);
  g.write_html(path, profile);
  CHECK(read_page(path).data["ops"][0]["forward"] > 0);
}

}   // namespace page_test
