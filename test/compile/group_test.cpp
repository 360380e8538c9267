// Groups of nodes in one pass, compared bit for bit with their kernels, run one after the other.
#include <numeric>
#include <random>
#include <thread>

#include "random_programs.h"
#include "tapedeck/threads.h"

namespace group_test {

using namespace tapedeck;
using namespace tapedeck::compiled;

namespace {

/// Adds so many random nodes, of which some are results, and checks the program: how many groups it has.
template <class Random> auto groups_of(Random program, int nodes) {
  for (int k = 0; k < nodes; ++k)
    program.add_node();
  program.choose_outputs();
  return program.b.check();
}

}   // namespace

TEST_CASE("groups compute the bits of their kernels", "[program]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const std::int64_t n = GENERATE(1, 2, 7, 16, 17, 63, 64, 65, 127, 128, 129, 1000, 4095, 4097, 40000);
  for (unsigned seed = 0; seed < 8; ++seed) {
    CAPTURE(name_of(dtype), n, seed);
    CHECK(groups_of(RandomProgram(dtype, n, seed, seed % 2), 40) > 0);
  }
}

TEST_CASE("groups over matrices compute the bits of their kernels", "[program]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const std::int64_t rows = GENERATE(1, 2, 7, 100, 3000), columns = GENERATE(1, 2, 3, 16, 33, 130);
  for (unsigned seed = 0; seed < 4; ++seed) {
    CAPTURE(name_of(dtype), rows, columns, seed);
    CHECK(groups_of(RandomMatrixProgram(dtype, rows, columns, seed), 30) > 0);
  }
}

TEST_CASE("a node that nothing is fused with is no group", "[program]") {
  std::mt19937 random(7);
  ProgramBuilder b;
  const Access x = b.argument(numbers(DType::f32, {100}, random, false)), y = b.map(tanh_map, {x});
  b.outputs[y.of] = true;
  CHECK(b.check() == 0);
  b.outputs[b.map(neg_map, {y}, "neg").of] = true;
  CHECK(b.check() == 1);
}

TEST_CASE("rows that are summed in one band form one piece", "[program]") {
  std::mt19937 random(7);
  ProgramBuilder b;
  const Access x = b.argument(numbers(DType::f32, {5, 30000}, random, false)),
               row = b.argument(numbers(DType::f32, {30000}, random, false));
  b.outputs[b.vjp(mul_vjp, {x, row}, x, x, 2)[1].of] = true;
  b.outputs[b.map(neg_map, {x}, "neg").of] = true;
  CHECK(b.check() == 1);
  const Steps steps = b.steps();
  const Group group(b.program, *b.passes, steps[StepId(0)], IdVector<ValueId, bool>(b.values.size(), true));
  CHECK(group.scratch_bytes() < 30000 * 4 + 4096);   // the sums, and what one piece needs
}

TEST_CASE("groups on several threads compute the bits of their kernels", "[program]") {
  const int before = num_threads();
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    for (const std::int64_t columns : {1, 3, 64, 1000, 30000, 50000}) {
      CAPTURE(threads, columns);
      const std::int64_t rows = std::max<std::int64_t>(150000 / columns, 5);   // of 30000: one band
      groups_of(RandomMatrixProgram(DType::f32, rows, columns, static_cast<unsigned>(columns)), 40);
    }
    for (const std::int64_t n : {131072, 200001, 32768 * 9 + 1}) {
      CAPTURE(threads, n);
      RandomProgram program(DType::f32, n, static_cast<unsigned>(n), false);
      for (int k = 0; k < 20; ++k)
        program.add_node();
      program.choose_outputs();
      program.b.check();
    }
  }
  set_num_threads(before);
}

TEST_CASE("long chains run on several threads from few elements on, with the bits of the kernels",
          "[program]") {
  const int before = num_threads();
  set_num_threads(3);
  const auto [maps, least] = GENERATE(std::pair(1000, 2114), std::pair(3000, 700));   // 2^17 / (maps / 16)
  for (const std::int64_t n : {1, 70, 699, 700, 2113, 2114, 4099, 40001}) {
    CAPTURE(maps, n);
    std::mt19937 random(1);
    ProgramBuilder b;
    const Access x = b.argument(numbers(DType::f32, {n}, random, false));
    Access y = x, middle;
    for (int k = 0; k < maps; ++k) {
      y = b.map(k % 2 ? add_map : mul_map, {y, x});
      if (k == 500) middle = y;
    }
    const Access both = b.map(mul_map, {y, middle});
    b.outputs[both.of] = b.outputs[y.of] = true;
    CHECK(b.check() == 1);
    const Steps steps = b.steps();
    const Group group(b.program, *b.passes, steps[StepId(0)], b.outputs);
    CHECK((group.layout().areas > 1) == (n >= least));
    b.outputs[b.full_sum(both, false).of] = true;   // computed in parts of 32,768 elements
    CHECK(b.check() == 1);
  }
  set_num_threads(before);
}

TEST_CASE("sums of n elements have the bits of the kernels for every n", "[program]") {
  for (const std::int64_t n :
       {1, 3, 15, 16, 31, 64, 65, 1023, 1024, 4096, 4100, 32767, 32768, 32769, 32784, 98305}) {
    CAPTURE(n);
    std::mt19937 random(1);
    for (const DType dtype : {DType::f32, DType::f64}) {
      ProgramBuilder b;
      const Access x = b.argument(numbers(dtype, {n}, random, false)),
                   c = b.argument(numbers(dtype, {}, random, false)), y = b.map(mul_map, {x, c});
      const auto dx = b.vjp(mul_vjp, {y, c}, y, x, 3);
      for (const Access& v : {b.full_sum(x, false), b.full_sum(y, true), dx[1]})
        b.outputs[v.of] = true;
      CHECK(b.check() == 1);
    }
  }
}

TEST_CASE("the sum of one element is the element", "[program]") {
  ProgramBuilder b;
  const Access x = b.map(mul_map, {b.argument(tensor(-0.0)), b.argument(tensor(1.0))}, "mul");
  b.outputs[b.full_sum(x, false).of] = true;
  CHECK(b.check() == 1);
}

TEST_CASE("a group reads and writes values that only other steps read", "[program]") {
  std::mt19937 random(1);
  ProgramBuilder b;
  const Access x = b.argument(numbers(DType::f32, {100}, random, false)), y = b.map(tanh_map, {x}),
               z = b.map(mul_map, {y, x});
  IdVector<ValueId, bool> kept(b.values.size(), false);
  kept[z.of] = true;
  const Steps steps = b.steps();
  const Group group(b.program, *b.passes, steps[StepId(0)], kept);
  CHECK(std::vector(group.reads().begin(), group.reads().end()) == std::vector{x.of});
  CHECK(std::vector(group.writes().begin(), group.writes().end()) == std::vector{z.of});
}

TEST_CASE("a long chain takes few registers", "[program]") {
  std::mt19937 random(1);
  ProgramBuilder b;
  const Access x = b.argument(numbers(DType::f32, {1 << 16}, random, false));
  Access y = x;
  for (int k = 0; k < 1000; ++k)
    y = b.map(k % 2 ? add_map : mul_map, {y, x});
  IdVector<ValueId, bool> kept(b.values.size(), false);
  kept[y.of] = true;
  const Steps steps = b.steps();
  CHECK(steps.size() == 1);
  CHECK(Group(b.program, *b.passes, steps[StepId(0)], kept).layout().area < 8192);   // one for each thread
}

TEST_CASE("elements that are selected several times are fetched once", "[program]") {
  std::mt19937 random(1);
  ProgramBuilder b;
  const Access x = b.argument(numbers(DType::f32, {20, 10}, random, false));
  const auto part = [&](std::int64_t first) {
    return b.select(x, kernels::sliced({20, 10}, {first, 1}, {18, 8}), {18, 8});
  };
  const Access once = part(1), other = part(2), again = part(1);
  for (const Access& y : {other, again})
    b.outputs[b.map(mul_map, {once, y}, "mul").of] = true;
  b.outputs[again.of] = true;
  const Steps steps = b.steps();
  const GroupCode code = make_group_code(b.program, *b.passes, steps[StepId(0)],
                                         IdVector<ValueId, bool>(b.values.size(), false));
  CHECK(code.views.size() == 2);
  CHECK(b.check() == 1);
}

TEST_CASE("groups that repeat rows have the bits of their kernels", "[program]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  for (const std::int64_t columns : {2, 5, 9, 24, 63, 65, 200, 511, 512, 513})
    for (unsigned seed = 0; seed < 3; ++seed) {
      CAPTURE(name_of(dtype), columns, seed);
      CHECK(groups_of(RandomMatrixProgram(dtype, 14000 / columns + seed, columns, seed), 20) > 0);
    }
}

TEST_CASE("64 laid-out rows need little memory", "[program]") {
  std::mt19937 random(5);
  ProgramBuilder b;
  Access y = b.argument(numbers(DType::f32, {30000, 9}, random, false));
  for (int k = 0; k < 64; ++k)
    y = b.map(mul_map, {y, b.argument(numbers(DType::f32, {9}, random, false))}, "mul");
  b.outputs[y.of] = true;
  CHECK(b.check() == 1);
  const Steps steps = b.steps();
  const Group group(b.program, *b.passes, steps[StepId(0)], IdVector<ValueId, bool>(b.values.size(), false));
  const auto areas = std::max<std::int64_t>(std::thread::hardware_concurrency(), num_threads());
  CHECK(group.scratch_bytes() < areas * (1 << 17));
}

TEST_CASE("more threads than a group has areas wait for them", "[program]") {
  const int before = num_threads();
  set_num_threads(1);
  std::mt19937 random(5);
  ProgramBuilder b;
  const Access x = b.argument(numbers(DType::f32, {1 << 20}, random, false)), y = b.map(tanh_map, {x});
  b.outputs[b.map(mul_map, {y, x}, "mul").of] = true;
  b.threads = static_cast<int>(std::thread::hardware_concurrency()) + 5;
  CHECK(b.check() == 1);
  set_num_threads(before);
}

TEST_CASE("a cursor returns the elements of its view for any block size", "[program]") {
  std::mt19937 random(3);
  const auto number = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int rows = 0;
  for (int round = 0; round < 2000; ++round) {
    constexpr std::int64_t block = 64;
    const bool is_row = round % 2;
    kernels::StridedView view(5000);
    std::int64_t n = 1;
    for (std::int64_t axes = is_row ? 2 : number(0, 4), d = 0; d < axes; ++d) {
      const std::int64_t extent = is_row && d == 0 ? number(20, 600) : number(1, is_row ? 80 : 12);
      view.append(extent, is_row && d == 0 ? 0 : number(-3, 3));
      n *= extent;
    }
    std::vector<double> x(10000), all;
    std::iota(x.begin(), x.end(), 0);
    const auto add = [&](const auto& self, std::size_t d, std::int64_t at) -> void {
      if (d == view.ndim()) return all.push_back(x[static_cast<std::size_t>(at)]);
      for (std::int64_t i = 0; i < view[d].extent; ++i)
        self(self, d + 1, at + i * view[d].stride);
    };
    add(add, 0, view.offset());
    const std::int64_t begin = number(0, n / 2);
    const RepeatedRow row = RepeatedRow::of(view, n, block);
    rows += row.span > 0;
    std::vector<double> room(static_cast<std::size_t>(row.elements) + 1), got;
    Cursor cursor(view, begin, row, reinterpret_cast<std::byte*>(room.data()));
    while (static_cast<std::int64_t>(got.size()) < n - begin) {
      const std::int64_t left = n - begin - static_cast<std::int64_t>(got.size()),
                         count = std::min(number(0, 3) ? block : number(1, block), left);
      const double* const from = cursor.source(x.data());
      if (cursor.step() == 1 && cursor.left() >= count) {
        const double* const at = cursor.take(from, count);
        got.insert(got.end(), at, at + count);
      } else {
        double y[block];
        cursor.fetch(from, y, count);
        got.insert(got.end(), y, y + count);
      }
    }
    CAPTURE(round, begin, n);
    REQUIRE(std::equal(got.begin(), got.end(), all.begin() + begin));
  }
  CHECK(rows > 500);
}

}   // namespace group_test
