// Reports how fast a model's replays are compared with a loop by hand, after a comparison of their values.
#include "ocean.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "tapedeck/npy.h"

namespace bench {

td::Shape Box::input(std::initializer_list<Axis> axes) const {
  td::Shape s = {1, 1, 1};
  for (const Axis a : axes)
    s.set(a, cells[a] + 2 * margin);
  return s;
}

Box box_of(std::int64_t cells, std::int64_t margin) {
  const double side = std::cbrt(static_cast<double>(cells));
  const std::int64_t high = std::lround(side / 4), wide = std::lround(2 * side);
  return {{high, wide, wide}, margin};
}

td::Tensor TensorCells::operator()(std::size_t input, const At& at) const {
  const td::Tensor& t = inputs_[input];
  td::Shape begin = {0, 0, 0}, size = {1, 1, 1};
  for (const Axis a : {z, x, y})
    if (t.shape()[a] > 1) begin.set(a, box_.margin + at[a]), size.set(a, box_.cells[a]);
  return td::slice(t, begin, size);
}

VectorCells::VectorCells(const Box& box, const Tensors& inputs) {
  for (const td::Tensor& t : inputs) {
    const td::Shape& s = t.shape();
    Input i = {t.data<double>().data(), nullptr, {}};
    std::int64_t stride = 1;
    for (const Axis a : {y, x, z}) {
      if (s[a] > 1) i.stride[a] = stride, i.data += box.margin * stride;
      stride *= s[a];
    }
    inputs_.push_back(i);
  }
}
void VectorCells::go(const At& first) {
  for (Input& i : inputs_)
    i.at = i.data + first[z] * i.stride[z] + first[x] * i.stride[x] + first[y] * i.stride[y];
}

namespace {

std::string folder;   // for the models' values; empty: models are timed

void write(char letter, const Tensors& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "/%c%02zu.npy", letter, i);
    td::save_npy(folder + name, list[i]);
  }
}

void compare(const Model& m, const Tensors& mine, std::span<double* const> theirs) {
  for (std::size_t k = 0; k < mine.size(); ++k) {
    const auto values = mine[k].data<double>();
    double largest = 0, apart = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(values[i]));
      const double difference = std::abs(values[i] - theirs[k][i]);
      if (!(difference <= apart)) apart = difference;   // also if it is NaN
    }
    if (!(apart <= 1e-9 * largest))
      throw std::runtime_error(m.name + ": result " + std::to_string(k) + " differs from that by hand by " +
                               std::to_string(apart) + " of " + std::to_string(largest));
  }
}

}   // namespace

void write_models_to(std::string where) { folder = std::move(where); }

void race(const Model& m) {
  const auto recorded = td::compile(m.eager);
  Tensors mine = m.eager(m.x);
  std::vector<std::vector<double>> results;
  for (const td::Tensor& t : mine)
    results.emplace_back(static_cast<std::size_t>(t.size()));
  std::vector<double*> theirs;
  for (std::vector<double>& r : results)
    theirs.push_back(r.data());
  m.by_hand(theirs);
  compare(m, mine, theirs);
  if (!folder.empty()) return write('x', m.x), write('y', mine);
  const Run runs[] = {[&] { (void)m.eager(m.x); }, [&] { recorded.into(mine, m.x); },
                      [&] { m.by_hand(theirs); }};
  const Race race(runs);
  report(m.name, race.ratio(2, 1), "of a fused loop", {.at_least = m.at_least}, beside_eager(race, 1, 0));
}

void at_all_sizes(const std::string& model, void (*run)(const std::string& name, std::int64_t cells)) {
  for (const std::int64_t cells : {4096, 65'536, 1'048'576, 4'194'304})
    if (const std::string name = model + ", n=" + std::to_string(cells); is_chosen(name)) run(name, cells);
}

}   // namespace bench
