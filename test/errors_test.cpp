// Exact texts of errors: ops with a wrong rank, dtype, shape, axis or element count, then tapes and tensors.
#include <catch2/catch.hpp>

#include "tapedeck/forward_accumulator.h"
#include "tapedeck/tapedeck.h"

namespace errors_test {

using namespace tapedeck;

namespace {

/// The text of the E that f throws. For another error, its text with a note that it is no E.
template <class E = ShapeError, class F> std::string error(const F& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("of another kind: ") + e.what();
  }
  return "nothing was thrown";
}
template <class F> std::string dtype_error(const F& f) { return error<DTypeError>(f); }

constexpr std::int64_t kHuge = std::int64_t{1} << 40;
const Tensor f23 = ones({2, 3}), f4 = ones({4}), f45 = ones({4, 5}), scalar = tensor(1.0), i3 = arange(3),
             flags = tensor({1, 0}, DType::boolean);
/// Few elements in memory, but many when broadcast together.
const Tensor row = zeros({1, 1 << 20}), column = zeros({1 << 20, 1});

}   // namespace

TEST_CASE("texts: elementwise ops", "[errors]") {
  struct Binary {
    std::string name;
    Tensor (*op)(Operand, Operand);
  };
  for (const auto& [name, op] : {Binary{"add", add},
                                 {"sub", sub},
                                 {"mul", mul},
                                 {"maximum", maximum},
                                 {"minimum", minimum},
                                 {"div", div},
                                 {"pow", pow},
                                 {"equal", equal},
                                 {"not_equal", not_equal},
                                 {"less", less},
                                 {"less_equal", less_equal},
                                 {"greater", greater},
                                 {"greater_equal", greater_equal}}) {
    const auto call = op;
    CHECK(error([&] { call(f23, f4); }) == name + ": shapes do not broadcast: a is f32[2,3], b is f32[4]");
    CHECK(error<ArgumentError>([&] { call(f23, Tensor()); }) ==
          name + ": input 1 is undefined; it was default-constructed or moved from");
  }
  for (const auto& [name, op] :
       {Binary{"add", add}, {"sub", sub}, {"mul", mul}, {"maximum", maximum}, {"minimum", minimum}}) {
    const auto call = op;
    CHECK(dtype_error([&] { call(flags, flags); }) ==
          name + ": bool has no arithmetic, use astype: a is bool[2], b is bool[2]");
  }
  struct Unary {
    std::string name;
    Tensor (*op)(Operand);
  };
  for (const auto& [name, op] : {Unary{"sqrt", sqrt},
                                 {"exp", exp},
                                 {"log", log},
                                 {"tanh", tanh},
                                 {"sigmoid", sigmoid},
                                 {"relu", relu}}) {
    const auto call = op;
    const std::string taken = name == "relu" ? "f32, f64, f16 or bf16" : "f32, f64, f16, bf16, c64 or c128";
    CHECK(dtype_error([&] { call(i3); }) == name + ": takes " + taken + ", use astype: x is i64[3]");
    CHECK(dtype_error([&] { call(flags); }) == name + ": takes " + taken + ", use astype: x is bool[2]");
  }
  for (const auto& [name, op] : {Unary{"neg", neg}, {"abs", abs}, {"square", square}}) {
    const auto call = op;
    CHECK(dtype_error([&] { call(flags); }) == name + ": bool has no arithmetic, use astype: x is bool[2]");
  }
  CHECK(dtype_error([] { div(i3, i3); }) ==
        "div: takes f32, f64, f16, bf16, c64 or c128, use astype: a is i64[3], b is i64[3]");
  CHECK(dtype_error([] { pow(i3, 2); }) ==
        "pow: takes f32, f64, f16, bf16, c64 or c128, use astype: a is i64[3], b is i64[]");
}

TEST_CASE("texts: where, astype and add_n", "[errors]") {
  CHECK(dtype_error([] { where(f23, f23, f23); }) ==
        "where: the condition must be bool: condition is f32[2,3], a is f32[2,3], b is f32[2,3]");
  CHECK(error([] { where(flags, f23, f23); }) ==
        "where: shapes do not broadcast: condition is bool[2], a is f32[2,3], b is f32[2,3]");
  CHECK(error<ArgumentError>([] { add_n({}); }) == "add_n: no tensors given");
  CHECK(error([] {
          add_n({f23, f23, f4});
        }) == "add_n: shapes differ: x is f32[2,3], input 1 is f32[2,3], input 2 is f32[4]");
  CHECK(dtype_error([] {
          add_n({f23, ones({2, 3}, DType::f64)});
        }) == "add_n: dtypes differ: x is f32[2,3], input 1 is f64[2,3]");
}

TEST_CASE("texts: reductions", "[errors]") {
  struct Reduction {
    std::string name;
    Tensor (*op)(const Tensor&, const Axes&, ReduceOptions);
  };
  for (const auto& [name, op] : {Reduction{"sum", sum}, {"mean", mean}, {"max", max}}) {
    const auto call = op;
    CHECK(error([&] { call(f23, 3, {}); }) == name + ": axis 3 is out of range for x of rank 2; use -2..1");
    CHECK(error([&] {
            call(f23, {0, -3}, {});
          }) == name + ": axis -3 is out of range for x of rank 2; use -2..1");
    CHECK(error([&] { call(f23, {1, -1}, {}); }) == name + ": axis -1 is named twice for x of rank 2");
    CHECK(error([&] { call(scalar, 1, {}); }) == name + ": axis 1 is out of range for x of rank 0");
  }
  CHECK(dtype_error([] { mean(i3); }) ==
        "mean: takes f32, f64, f16, bf16, c64 or c128, use astype: x is i64[3]");
  CHECK(dtype_error([] { sum(flags); }) == "sum: i8, u8 and bool cannot be summed, use astype: x is bool[2]");
  CHECK(error([] { max(zeros({0, 3})); }) == "max: no elements to choose from: x is f32[0,3]");
  CHECK(error([] { argmax(zeros({0})); }) == "argmax: no elements to choose from: x is f32[0]");
  CHECK(error([] { argmax(f23, 2); }) == "argmax: axis 2 is out of range for x of rank 2; use -2..1");
}

TEST_CASE("texts: arrays", "[errors]") {
  CHECK(error([] { reshape(f23, {4}); }) == "reshape: element counts differ: x is f32[2,3], shape is [4]");
  CHECK(error([] { reshape(f23, {-1, -1}); }) == "reshape: more than one extent is -1: shape is [-1,-1]");
  CHECK(error([] {
          reshape(f23, {4, -1});
        }) == "reshape: no extent fits in the place of -1: x is f32[2,3], shape is [4,-1]");
  CHECK(error([] { expand_dims(f23, 4); }) ==
        "expand_dims: axis 4 is out of range for x, f32[2,3]; use -3..2");
  CHECK(error([] { squeeze(f23, {0}); }) == "squeeze: the extent of axis 0 of x, f32[2,3], is not 1");
  CHECK(error([] { transpose(f23, {0}); }) ==
        "transpose: perm does not name every axis of x once: perm is [0], x is f32[2,3]");
  CHECK(error([] {
          transpose(f23, {0, 0});
        }) == "transpose: perm does not name every axis of x once: perm is [0,0], x is f32[2,3]");
  CHECK(error([] {
          transpose(f23, {0, 2});
        }) == "transpose: perm does not name every axis of x once: perm is [0,2], x is f32[2,3]");
  CHECK(error([] {
          broadcast_to(f23, {2, 4});
        }) == "broadcast_to: x does not broadcast to shape: x is f32[2,3], shape is [2,4]");
  CHECK(error<ArgumentError>([] { concat({}, 0); }) == "concat: no tensors");
  CHECK(error([] {
          concat({f23, f45}, 0);
        }) == "concat: shapes must match except along axis 0: a is f32[2,3], b is f32[4,5]");
  CHECK(error([] {
          concat({f23, f4}, 0);
        }) == "concat: shapes must match except along axis 0: a is f32[2,3], b is f32[4]");
  CHECK(error([] { concat({f23, f23}, 2); }) == "concat: axis 2 is out of range for a of rank 2; use -2..1");
  CHECK(error([] {
          slice(f23, {0, 1}, {2, 3});
        }) == "slice: the slice is out of range: begin is [0,1], size is [2,3], x is f32[2,3]");
  CHECK(error([] { slice(f23, {0}, {2}); }) ==
        "slice: [0] and [2] need one entry for each axis of x, f32[2,3]");
  CHECK(error([] {
          pad(f23, {-1, 0}, {0, 0});
        }) == "pad: a negative count: before is [-1,0], after is [0,0]");
  CHECK(dtype_error([] { one_hot(f23, 3); }) ==
        "one_hot: indices must be integers, use astype: indices is f32[2,3]");
  CHECK(error([] { one_hot(i3, -1); }) == "one_hot: a negative depth: -1");
}

TEST_CASE("texts: gather and scatter", "[errors]") {
  CHECK(error([] {
          gather(f23, tensor({0, 2}));
        }) == "gather: index 2 at position 1 is out of range for axis 0 of x, f32[2,3]");
  CHECK(error([] { gather(f23, i3, 5); }) == "gather: axis 5 is out of range for x of rank 2; use -2..1");
  CHECK(error([] { gather(scalar, i3); }) == "gather: axis 0 is out of range for x of rank 0");
  CHECK(dtype_error([] { gather(f23, f4); }) ==
        "gather: indices must be integers, use astype: x is f32[2,3], indices is f32[4]");
  CHECK(error([] {
          scatter_add(f23, tensor({0, 9}), {4, 3});
        }) == "scatter_add: index 9 at position 1 is out of range for axis 0 of the result, f32[4,3]");
}

TEST_CASE("texts: slices", "[errors]") {
  const Tensor rows = ones({2, 3}), at = tensor<std::int64_t>({0, 1});
  const auto dense = [](const Tensor& values, const Tensor& indices, std::optional<Shape> dense_shape) {
    return [=] { to_dense({values, indices, dense_shape}); };
  };
  CHECK(error<ArgumentError>(dense({}, at, Shape{4, 3})) == "to_dense: the slices have undefined values");
  CHECK(error<ArgumentError>(dense(rows, {}, Shape{4, 3})) == "to_dense: the slices have undefined indices");
  CHECK(error<ArgumentError>(dense(rows, at, {})) ==
        "to_dense: the slices do not say how many rows the tensor has: values is f32[2,3], indices is "
        "i64[2], dense_shape is not given");
  CHECK(dtype_error(dense(rows, ones({2}), Shape{4, 3})) ==
        "to_dense: the indices of slices must be integers: values is f32[2,3], indices is f32[2], "
        "dense_shape is [4,3]");
  CHECK(error(dense(rows, tensor({0, 1, 2}), Shape{4, 3})) ==
        "to_dense: the parts of the slices do not fit together: values is f32[2,3], indices is i32[3], "
        "dense_shape is [4,3]");
  CHECK(error(dense(rows, tensor({{0, 1}}), Shape{4, 3})) ==
        "to_dense: the parts of the slices do not fit together: values is f32[2,3], indices is i32[1,2], "
        "dense_shape is [4,3]");
  CHECK(error(dense(rows, at, Shape{4, 2})) ==
        "to_dense: the parts of the slices do not fit together: values is f32[2,3], indices is i64[2], "
        "dense_shape is [4,2]");
  CHECK(error(dense(rows, at, Shape{4})) ==
        "to_dense: the parts of the slices do not fit together: values is f32[2,3], indices is i64[2], "
        "dense_shape is [4]");
  CHECK(error(dense(rows, at, Shape{})) ==
        "to_dense: the parts of the slices do not fit together: values is f32[2,3], indices is i64[2], "
        "dense_shape is []");
  CHECK(error(dense(scalar, tensor({0}), Shape{1})) ==
        "to_dense: the parts of the slices do not fit together: values is f32[], indices is i32[1], "
        "dense_shape is [1]");
  CHECK(error(dense(rows, tensor({0, 4}), Shape{4, 3})) ==
        "to_dense: index 4 at position 1 of the slices is out of range: values is f32[2,3], indices is "
        "i32[2], dense_shape is [4,3]");
  CHECK(error(dense(rows, tensor<std::int64_t>({-1, 0}), Shape{4, 3})) ==
        "to_dense: index -1 at position 0 of the slices is out of range: values is f32[2,3], indices is "
        "i64[2], dense_shape is [4,3]");
  CHECK(error([&] {
          sum_duplicates({rows, tensor({0, -2}), {}});
        }) ==
        "sum_duplicates: index -2 at position 1 of the slices is out of range: values is f32[2,3], indices "
        "is i32[2], dense_shape is not given");
  CHECK(error(dense(ones({2, 1}), at, Shape{kHuge, kHuge})) ==
        "to_dense: the parts of the slices do not fit together: values is f32[2,1], indices is i64[2], "
        "dense_shape is [1099511627776,1099511627776]");
  const IndexedSlices some{rows, at, Shape{4, 3}};
  CHECK(error([&] {
          aggregate({some, IndexedSlices{rows, at, Shape{5, 3}}});
        }) == "aggregate: shapes differ: dense_shape is [4,3] and [5,3]");
  CHECK(dtype_error([&] {
          aggregate({some, IndexedSlices{astype(rows, DType::f64), at, Shape{4, 3}}});
        }) == "aggregate: dtypes differ: values is f32[2,3] and f64[2,3]");
}

TEST_CASE("texts: matmul", "[errors]") {
  CHECK(error([] { matmul(f23, f45); }) == "matmul: inner dimensions differ: a is f32[2,3], b is f32[4,5]");
  CHECK(error([] { matmul(f23, f4); }) ==
        "matmul: takes tensors of rank 2 or more; tensordot(a, b, 1) takes vectors, too: a is f32[2,3], b is "
        "f32[4]");
  CHECK(dtype_error([] { matmul(i3, i3); }) ==
        "matmul: takes f32, f64, f16, bf16, c64 or c128, use astype: a is i64[3], b is i64[3]");
  CHECK(error([] {
          matmul(ones({2, 4, 3}), ones({5, 3, 4}));
        }) == "matmul: batch axes do not broadcast: a is f32[2,4,3], b is f32[5,3,4]");
}

TEST_CASE("texts: networks", "[errors]") {
  CHECK(error([] { softmax(f23, 2); }) == "softmax: axis 2 is out of range for x of rank 2; use -2..1");
  CHECK(error([] { log_softmax(f23, -3); }) ==
        "log_softmax: axis -3 is out of range for x of rank 2; use -2..1");
  CHECK(dtype_error([] { softmax(i3); }) == "softmax: takes f32, f64, f16 or bf16, use astype: x is i64[3]");
  const auto loss = sparse_softmax_cross_entropy;
  CHECK(error([&] { loss(i3, f23); }) ==
        "sparse_softmax_cross_entropy: labels do not have the shape of logits without its last axis: labels "
        "is i64[3], logits is f32[2,3]; reshape one of them");
  CHECK(error([&] {
          loss(tensor({0, 3}), f23);
        }) ==
        "sparse_softmax_cross_entropy: label 3 at [1] is out of range for 3 classes: labels is i32[2], "
        "logits is f32[2,3]");
  CHECK(dtype_error([&] { loss(flags, f23); }) ==
        "sparse_softmax_cross_entropy: labels must be integers, use astype: labels is bool[2], logits is "
        "f32[2,3]");
  CHECK(dtype_error([&] { loss(f23, i3); }) ==
        "sparse_softmax_cross_entropy: labels, which are integers, come before logits: labels is f32[2,3], "
        "logits is i64[3]");
}

TEST_CASE("texts: element counts that overflow", "[errors]") {
  CHECK(error([] { zeros({kHuge, kHuge}); }) == "shape: too many elements: [1099511627776,1099511627776]");
  CHECK(error([] { zeros({-1, 2}); }) == "shape: a negative extent: [-1,2]");
  CHECK(error([] { zeros({std::int64_t{1} << 61}); }) == "shape: too many bytes: f32[2305843009213693952]");
  const Tensor empty = zeros({0, 1});
  CHECK(error([&] {
          broadcast_to(scalar, {kHuge, kHuge});
        }) == "shape: too many elements: [1099511627776,1099511627776]");
  CHECK(error([&] { one_hot(arange(4), std::int64_t{1} << 62); }) ==
        "shape: too many elements: [4,4611686018427387904]");
  CHECK(error([&] { pad(scalar, {1}, {1}); }) == "pad: [1] and [1] need one entry for each axis of x, f32[]");
  CHECK(error([&] { pad(f4, {kHuge}, {std::numeric_limits<std::int64_t>::max()}); }) ==
        "pad: too many elements: before is [1099511627776], after is [9223372036854775807], x is f32[4]");
  CHECK(error([] { arange(0, 1e18); }) == "arange: too many elements: 0 to 1e+18 by 1");
  CHECK(error([] {
          reshape(zeros({0}), {kHuge, kHuge});
        }) == "shape: too many elements: [1099511627776,1099511627776]");
}

TEST_CASE("texts: tensors", "[errors]") {
  CHECK(error([] { f23.item(); }) == "item: the tensor has 6 elements: f32[2,3]; use at or to_vector");
  CHECK(error([] { f23.at({0, 3}); }) == "at: index 3 is out of range for axis 1 of f32[2,3]");
  CHECK(error([] { f23.at({0}); }) == "at: 1 indices for f32[2,3]");
  CHECK(dtype_error([] { (void)f23.data<double>(); }) == "data: the tensor is f32[2,3], not f64; use astype");
  CHECK(error<ArgumentError>([] { Tensor().shape(); }) ==
        "tensor: undefined; it was default-constructed or moved from");
  CHECK(error([] { tensor(std::vector<float>{1, 2}, {3}); }) == "tensor: 2 values for shape [3]");
  CHECK(error([] { tensor({{1.0, 2.0}, {3.0}}); }) == "tensor: the rows of the list differ in length");
  CHECK(error<ArgumentError>([] { arange(0, 1, 0); }) == "arange: no steps of 0 lead from 0 to 1");
  CHECK(error<ArgumentError>([] { linspace(0, 1, -1); }) == "linspace: -1 elements; use 0 or more");
  CHECK(error<ArgumentError>([] { set_num_threads(0); }) == "set_num_threads: 0 threads; use 1 or more");
}

TEST_CASE("texts: tapes", "[errors]") {
  const Tensor x = tensor({1.0, 2.0});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  const auto with = [&](OutputGradients dy) {
    return [&, dy] { tape.gradient(y, x, {.output_gradients = dy}); };
  };
  const auto rows = [](const Tensor& values, const Tensor& indices, std::optional<Shape> dense_shape) {
    return Gradient(IndexedSlices{values, indices, dense_shape});
  };
  CHECK(error<ArgumentError>(with({y, y})) == "gradient: 2 output gradients for 1 targets");
  CHECK(error(with({scalar})) == "gradient: output gradient 0 is f32[], its target f32[2]");
  CHECK(dtype_error(with({ones({2}, DType::f64)})) ==
        "gradient: output gradient 0 is f64[2], its target f32[2]; use astype");
  CHECK(error(with({rows(ones({1}), tensor({0}), Shape{3})})) ==
        "gradient: output gradient 0 is f32[3], its target f32[2]");
  CHECK(dtype_error(with({rows(ones({1}, DType::f64), tensor({0}), {})})) ==
        "gradient: output gradient 0 is f64[2], its target f32[2]; use astype");
  CHECK(error(with({rows(ones({1}), tensor({2}), {})})) ==
        "gradient: index 2 at position 0 of the slices is out of range: values is f32[1], indices is i32[1], "
        "dense_shape is [2]");
  CHECK(error<ArgumentError>([&] {
          tape.gradient(y, x, {.unconnected = static_cast<UnconnectedGradients>(7)});
        }) == "gradient: unknown value for unconnected: 7; use UnconnectedGradients::none or zero");
  CHECK(error<ArgumentError>([&] { tape.gradient(Tensor(), x); }) == "gradient: target 0 is undefined");
  CHECK(error<ArgumentError>([&] { prevent_gradient(Tensor(), "none"); }) ==
        "prevent_gradient: the tensor is undefined");
  CHECK(error<GradientError>([&] { tape.start(); }) == "start: this tape is recording already");
  tape.gradient(y, x);
  CHECK(error<GradientError>([&] { tape.gradient(y, x); }) ==
        "gradient: this tape was already used; make it persistent to call gradient twice");
  CHECK(error<GradientError>([&] { tape.stop(); }) == "stop: this tape is not recording");
  CHECK(error<GradientError>([&] { tape.reset(); }) == "reset: this tape is not recording");
  CHECK(error<GradientError>([&] { tape.start(); }) ==
        "start: this tape was already used; make it persistent to record after calling gradient");
  CHECK(error<GradientError>([&] { const StopRecording pause(tape); }) ==
        "stop recording: this tape is not recording");
  CHECK(error<GradientError>([] { Gradient().dense(); }) ==
        "this gradient is none: no path leads from the target to the source; ask defined() first, or pass "
        ".unconnected = UnconnectedGradients::zero for zeros; explain() tells where the path ends");
}

TEST_CASE("texts: variables and accumulators", "[errors]") {
  const Variable v(f23, {.name = "dense/kernel"});
  CHECK(error([&] { v.assign(f4); }) == "assign: variable \"dense/kernel\" is f32[2,3], the value is f32[4]");
  CHECK(dtype_error([&] {
          v.assign_add(ones({2, 3}, DType::f64));
        }) == "assign_add: variable \"dense/kernel\" is f32[2,3], the value is f64[2,3]; use astype");
  CHECK(error<ArgumentError>([&] { v.assign_sub(Tensor()); }) ==
        "assign_sub: the value for variable \"dense/kernel\" is undefined");
  CHECK(error([] { const ForwardAccumulator forward(f23, f4); }) ==
        "forward accumulator: the primal is f32[2,3], its tangent f32[4]");
  CHECK(error<ArgumentError>([] {
          const ForwardAccumulator forward({f4, f23, f4}, {f4, f23, f4});
        }) == "forward accumulator: primal 2, f32[4], is given several times; add its tangents up");
  CHECK(error<ArgumentError>([] {
          const ForwardAccumulator forward({f4, f23}, {f4});
        }) == "forward accumulator: 1 tangents for 2 primals");
  CHECK(dtype_error([] { const ForwardAccumulator forward(f4, ones({4}, DType::f64)); }) ==
        "forward accumulator: the primal is f32[4], its tangent f64[4]; use astype");
}

}   // namespace errors_test
