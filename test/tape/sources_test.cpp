// The forms of targets and sources, and derivatives without a path. Expected values are closed forms.
#include <catch2/catch.hpp>

#include "message_of.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/gradients.h"
#include "tapedeck/ops.h"

namespace sources_test {

using namespace tapedeck;
using namespace tapedeck::test;

TEST_CASE("derivatives come in the form of their sources", "[tape][gradient]") {
  const Variable w(tensor(2.0)), b(tensor(3.0));
  const Tensor x = tensor(5.0);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = w * w * b + x, z = 10 * w;
  tape.stop();
  const Gradient one = tape.gradient(y, w), with_options = tape.gradient(y, w, {.stop_gradients = b.value()});
  CHECK(one.item() == 12);
  CHECK(with_options.item() == 12);
  const std::vector<Gradient> list = tape.gradient(y, {w, b}), same = tape.gradient(y, std::vector{w, b});
  CHECK(list[1].item() == 4);
  CHECK(same[1].item() == 4);
  const std::array<Gradient, 3> several = tape.gradient(y, w, b, x),
                                array = tape.gradient(y, std::array<Source, 3>{w, b, x});
  CHECK(several[2].item() == 1);
  CHECK(array[1].item() == 4);
  const std::tuple<Gradient, Gradient, Gradient> tuple = tape.gradient(y, std::tie(w, b, x), {});
  CHECK(std::get<1>(tuple).item() == 4);
  const std::pair<Gradient, Gradient> pair = tape.gradient(y, std::pair(w, x));
  CHECK(pair.second.item() == 1);
  const auto [dw, db] = tape.gradient({y, z}, w, b);
  CHECK(dw.item() == 22);
  CHECK(db.item() == 4);
  CHECK(tape.gradient(std::tie(y, z), w).item() == 22);
  CHECK(tape.gradient({y, z}, w).item() == 22);
  CHECK(tape.gradient({y}, {w})[0].item() == 12);
  const auto [jw, jx] = tape.jacobian(y, std::tie(w, x));
  CHECK(jw.item() == 12);
  CHECK(jx.item() == 1);
  CHECK(tape.jacobian(y, {w, b})[1].item() == 4);
  CHECK(tape.gradient(list, w).defined() == false);   // the tape was stopped
  const ForwardAccumulator forward(x, tensor(7.0));
  const auto [t, u] = forward.jvp(std::tuple(x, x));
  CHECK(t.item() == 7);
  CHECK(forward.jvp({x, x})[1].item() == 7);
}

TEST_CASE("gradients in any list are targets", "[tape][gradient]") {
  const Variable w(tensor(2.0)), b(tensor(3.0));
  GradientTape outer({.persistent = true});
  std::vector<Gradient> list;
  std::array<Gradient, 2> array;
  {
    GradientTape inner({.persistent = true});
    const Tensor y = w * w * w * b;
    inner.stop();
    list = inner.gradient(y, {w, b});
    array = inner.gradient(y, w, b);
  }
  outer.stop();
  CHECK(outer.gradient(list, w).item() == 6 * 2 * 3 + 3 * 4);
  CHECK(outer.gradient(array, w).item() == 6 * 2 * 3 + 3 * 4);
}

TEST_CASE("a tape says whether a target depends on a source", "[tape]") {
  const Variable w(tensor({1.0, 2.0})), unused(tensor(1.0));
  const Tensor x = tensor({3.0, 4.0}), constant = tensor({5.0, 6.0});
  GradientTape tape;
  tape.watch(x);
  const Tensor a = x * constant, b = sum(a) + w, c = floor(x), d = stop_gradient(a) * w;
  CHECK(tape.depends(b, x));
  CHECK(tape.depends(b, a));
  CHECK(tape.depends(b, w));
  CHECK(tape.depends(x, x));
  CHECK_FALSE(tape.depends(a, b));
  CHECK_FALSE(tape.depends(a, w));
  CHECK_FALSE(tape.depends(b, constant));
  CHECK_FALSE(tape.depends(b, unused));
  CHECK_FALSE(tape.depends(c, x));
  CHECK_FALSE(tape.depends(d, x));
  CHECK(tape.depends(d, w));
  // It agrees with the gradients, and leaves the tape as it was.
  const std::vector<Gradient> g = tape.gradient({b, d}, {x, w, unused}, {});
  CHECK(g[0].defined());
  CHECK(g[1].to_vector() == std::vector<double>{1 + 15, 1 + 24});
  CHECK_FALSE(g[2].defined());
  CHECK(message_of<GradientError>([&] { (void)tape.depends(b, x); }).find("already used") !=
        std::string::npos);
  CHECK(message_of<ArgumentError>([&] { (void)GradientTape().depends(Tensor(), x); }) ==
        "depends: the target is undefined");
  CHECK(message_of<ArgumentError>([&] { (void)GradientTape().depends(x, Tensor()); }) ==
        "depends: the source is undefined");
}

TEST_CASE("a gradient without a path is none and gives the reason, in each mode",
          "[tape][gradient][errors]") {
  const Variable w(tensor(2.0), {.name = "w"});
  const Tensor x = tensor({1.0, 2.0});
  const Recording tape;
  const Tensor y = x * x;
  const std::string options =
      "; ask defined() first, or pass .unconnected = UnconnectedGradients::zero for zeros; "
      "explain() tells where the path ends";
  const Gradient of_w = gradients(y, w)[0];
  CHECK_FALSE(of_w.defined());
  CHECK(message_of<GradientError>([&] {
          (void)of_w.dense();
        }).starts_with("the gradient of variable \"w\" f32[] is none: "));
  CHECK(message_of<GradientError>([&] { (void)of_w.shape(); }).ends_with(options));
  const Gradient rows = const_cast<Recording&>(tape).jacobian(y, w);
  CHECK(message_of<GradientError>([&] {
          (void)rows.item();
        }).starts_with("the Jacobian of variable \"w\" f32[] is none: "));
  CHECK_FALSE(hessians(y, w)[0].defined());
  const ForwardAccumulator forward(w, tensor(1.0));
  const Gradient tangent = forward.jvp(y);
  CHECK_FALSE(tangent.defined());
  CHECK(message_of<GradientError>([&] { (void)tangent.to_vector(); }) ==
        "the tangent of the f32[2] is none: it does not depend on a primal of this accumulator, or was "
        "computed while the accumulator did not record, or by an op without a derivative; ask defined() "
        "first, or pass UnconnectedGradients::zero for zeros");
  CHECK(forward.jvp(y, UnconnectedGradients::zero).to_vector() == std::vector<double>{0, 0});
}

TEST_CASE("a gradient has the numbers of its dense tensor", "[gradient]") {
  const Gradient dense = tensor({{1.0, 2.0}, {3.0, 4.0}}, DType::f64);
  CHECK(dense.spec() == Spec{DType::f64, {2, 2}});
  CHECK(dense.dtype() == DType::f64);
  CHECK(dense.shape() == Shape{2, 2});
  CHECK(dense.size() == 4);
  CHECK(dense.at({1, 0}) == 3);
  CHECK(dense.to_vector<float>() == std::vector<float>{1, 2, 3, 4});
  const Gradient sparse = IndexedSlices{tensor({{5.0}, {6.0}}), tensor({2, 2}), Shape{3, 1}};
  CHECK(sparse.shape() == Shape{3, 1});
  CHECK(sparse.to_vector() == std::vector<double>{0, 0, 11});
  CHECK(sparse.ndim() == 2);
  const Gradient huge = IndexedSlices{ones({1, 1}), tensor({0}), Shape{std::int64_t{1} << 50, 1}};
  CHECK(huge.shape() == Shape{std::int64_t{1} << 50, 1});   // without the dense tensor
  CHECK_THROWS_AS(Gradient().spec(), GradientError);
}

}   // namespace sources_test
