#include "messages.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "ba.h"
#include "det.h"
#include "gmm.h"
#include "hello.h"
#include "ht.h"
#include "kmeans.h"
#include "llsq.h"
#include "lse.h"
#include "lstm.h"
#include "ode.h"
#include "particle.h"
#include "saddle.h"

namespace gradbench {
namespace {

using nlohmann::json;
using Output = decltype(Question::output);

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("the sizes of the input do not fit together: ") + what);
}
int extent(const json& list) { return static_cast<int>(list.size()); }

/// All numbers of nested lists, in order.
template <class T = double> std::vector<T> flat(const json& nested) {
  if (!nested.is_array()) return {nested.get<T>()};
  std::vector<T> all;
  for (const json& part : nested) {
    const std::vector<T> numbers = flat<T>(part);
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  return all;
}
/// Rows of `columns` numbers, from `first` on.
json rows(const Values& v, std::size_t first, std::size_t count, std::size_t columns) {
  json list = json::array();
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = v.begin() + static_cast<std::ptrdiff_t>(first + i * columns);
    list.push_back(Values(from, from + static_cast<std::ptrdiff_t>(columns)));
  }
  return list;
}

json one_number(std::size_t, const Values& v) { return v.at(0); }
json list(std::size_t, const Values& v) { return v; }
/// A number for the first function, a list for the second.
json number_or_list(std::size_t function, const Values& v) { return function == 0 ? json(v.at(0)) : json(v); }

template <class Input> Question question(Input in, Output output) {
  return {forms(std::make_shared<const Input>(std::move(in))), std::move(output)};
}

Question read_hello(const json& in) { return question(hello::Input{in.get<double>()}, one_number); }
Question read_lse(const json& in) { return question(lse::Input{flat(in.at("x"))}, number_or_list); }
Question read_llsq(const json& in) {
  return question(llsq::Input{flat(in.at("x")), in.at("n").get<int>()}, number_or_list);
}
Question read_det(const json& in) {
  det::Input x{flat(in.at("A")), in.at("ell").get<int>()};
  require(x.a.size() == static_cast<std::size_t>(x.n) * static_cast<std::size_t>(x.n),
          "A has ell * ell numbers");
  return question(std::move(x), number_or_list);
}
Question read_ode(const json& in) {
  return question(ode::Input{flat(in.at("x")), in.at("s").get<int>()}, list);
}
Question read_particle(const json& in) {
  return question(particle::Input{in.at("w").get<double>()}, one_number);
}
Question read_saddle(const json& in) {
  const Values start = flat(in.at("start"));
  return question(saddle::Input{{start.at(0), start.at(1)}}, list);
}

Question read_kmeans(const json& in) {
  const json &points = in.at("points"), &centroids = in.at("centroids");
  kmeans::Input x{extent(centroids), extent(points), extent(points.at(0)), flat(points), flat(centroids)};
  const auto k = static_cast<std::size_t>(x.k), d = static_cast<std::size_t>(x.d);
  require(x.points.size() == static_cast<std::size_t>(x.n) * d && x.centroids.size() == k * d,
          "points and centroids");
  return question(std::move(x), [=](std::size_t function, const Values& v) {
    return function == 0 ? json(v.at(0)) : rows(v, 0, k, d);
  });
}

Question read_gmm(const json& in) {
  gmm::Input x{.d = in.at("d").get<int>(),
               .k = in.at("k").get<int>(),
               .n = in.at("n").get<int>(),
               .m = in.at("m").get<int>(),
               .gamma = in.at("gamma").get<double>(),
               .alpha = flat(in.at("alpha")),
               .mu = flat(in.at("mu")),
               .q = flat(in.at("q")),
               .l = flat(in.at("l")),
               .x = flat(in.at("x"))};
  const auto k = static_cast<std::size_t>(x.k), d = static_cast<std::size_t>(x.d),
             t = static_cast<std::size_t>(x.triangle());
  require(x.alpha.size() == k && x.mu.size() == k * d && x.q.size() == k * d && x.l.size() == k * t &&
              x.x.size() == static_cast<std::size_t>(x.n) * d,
          "alpha, mu, q, l and x");
  return question(std::move(x), [=](std::size_t function, const Values& v) {
    if (function == 0) return json(v.at(0));
    return json{{"alpha", Values(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(k))},
                {"mu", rows(v, k, k, d)},
                {"q", rows(v, k + k * d, k, d)},
                {"l", rows(v, k + 2 * k * d, k, t)}};
  });
}

Question read_lstm(const json& in) {
  const json &main = in.at("main_params"), &sequence = in.at("sequence");
  lstm::Input x{.layers = extent(main) / 2,
                .count = extent(sequence),
                .bits = extent(main.at(0)) / 4,
                .main = flat(main),
                .extra = flat(in.at("extra_params")),
                .state = flat(in.at("state")),
                .sequence = flat(sequence)};
  const auto layers = static_cast<std::size_t>(x.layers), bits = static_cast<std::size_t>(x.bits);
  require(x.main.size() == 8 * layers * bits && x.extra.size() == 3 * bits &&
              x.state.size() == 2 * layers * bits &&
              x.sequence.size() == static_cast<std::size_t>(x.count) * bits,
          "main_params, extra_params, state and sequence");
  return question(std::move(x), number_or_list);
}

/// The input is one camera, point, weight and feature, repeated. The output repeats, too: it has the entries
/// of the first observation and of the last weight.
Question read_ba(const json& in) {
  const int n = in.at("n").get<int>(), m = in.at("m").get<int>(), p = in.at("p").get<int>();
  const auto repeated = [](const Values& one, int times) {
    Values all;
    for (int i = 0; i < times; ++i)
      all.insert(all.end(), one.begin(), one.end());
    return all;
  };
  const Values camera = flat(in.at("cam")), point = flat(in.at("x")), feature = flat(in.at("feat"));
  require(camera.size() == ba::kCamera && point.size() == 3 && feature.size() == 2 && n > 0 && m > 0 && p > 0,
          "cam, x, feat, n, m and p");
  ba::Input x{n,
              m,
              p,
              repeated(camera, n),
              repeated(point, m),
              repeated({in.at("w").get<double>()}, p),
              repeated(feature, p)};
  return question(std::move(x), [=](std::size_t function, const Values& v) {
    constexpr int columns = ba::kColumns;
    if (function == 0)
      return json{{"reproj_error", {{"elements", {v[0], v[1]}}, {"repeated", p}}},
                  {"w_err", {{"element", v.back()}, {"repeated", p}}}};
    std::vector<int> row_ends, at;   // of the first observation, camera 0 and point 0
    for (int i = 0; i < 2 * columns; ++i) {
      const int c = i % columns;
      row_ends.push_back(i <= 2 * p ? i * columns : 2 * p * columns + i - 2 * p);
      at.push_back(c < 11 ? c : c < 14 ? 11 * n + c - 11 : 11 * n + 3 * m);
    }
    row_ends.push_back((2 * columns + 1) * p);
    at.push_back(11 * n + 3 * m + p - 1);
    Values entries(v.begin(), v.begin() + 2 * columns);
    entries.push_back(v.back());
    return json{{"rows", row_ends}, {"cols", at}, {"vals", entries}};
  });
}

Question read_ht(const json& in) {
  const json &data = in.at("data"), &model = data.at("model"), &vertices = model.at("base_positions");
  ht::Input x{.bones = extent(model.at("parents")),
              .parents = flat<int>(model.at("parents")),
              .relatives = flat(model.at("base_relatives")),
              .inverses = flat(model.at("inverse_base_absolutes")),
              .positions = flat(vertices),
              .weights = flat(model.at("weights")),
              .triangles = flat<int>(model.at("triangles")),
              .mirrored = model.at("is_mirrored").get<bool>(),
              .triangle_of = flat<int>(data.at("correspondences")),
              .points = flat(data.at("points")),
              .theta = flat(in.at("theta")),
              .places = flat(in.at("us"))};
  const auto bones = static_cast<std::size_t>(x.bones), points = x.triangle_of.size();
  require(x.places.size() == 2 * points, "us has a pair for each point; the simple hand is not supported");
  require(x.theta.size() == ht::kPose && x.points.size() == 3 * points && x.relatives.size() == 16 * bones &&
              x.inverses.size() == 16 * bones && x.weights.size() == vertices.size() * bones,
          "theta, points and bones");
  return question(std::move(x), [points](std::size_t function, const Values& v) {
    return function == 0 ? json(v) : rows(v, 0, 3 * points, ht::kColumns);
  });
}

}   // namespace

Question read(const std::string& eval, const json& input) {
  constexpr std::pair<const char*, Question (*)(const json&)> readers[] = {
      {"ba", read_ba},     {"det", read_det},       {"gmm", read_gmm},           {"hello", read_hello},
      {"ht", read_ht},     {"kmeans", read_kmeans}, {"llsq", read_llsq},         {"lse", read_lse},
      {"lstm", read_lstm}, {"ode", read_ode},       {"particle", read_particle}, {"saddle", read_saddle}};
  for (const auto& [name, reader] : readers)
    if (eval == name) return reader(input);
  throw std::invalid_argument("there is no module " + eval);
}

}   // namespace gradbench
