// All public functions of tapedeck/ops/, with rules that make the arguments of a call compatible.
// test/fuzz/calls.sh compares the names with the headers.
#include <iostream>

#include "calls.h"

namespace tapedeck::fuzz {
namespace {

constexpr Kind floating = Kind::floating, trainable = Kind::trainable, real = Kind::real,
               numeric = Kind::numeric, any = Kind::any, logical = Kind::logical;
using Functions = std::vector<std::unique_ptr<Function>>;
using random::Key;

// The type of one of several functions of a name.
template <class R, class... A> using Form = R (*)(A...);

/// Adds functions to a list: add(name, the dtypes it takes, the function, what shapes its arguments).
struct Adder {
  Functions& list;
  template <class R, class... A>
  void operator()(std::string_view name, Kind kind, R (*f)(A...),
                  std::type_identity_t<typename FunctionOf<R, A...>::Shaped> shaped = {}) const {
    list.push_back(std::make_unique<FunctionOf<R, A...>>(name, kind, f, std::move(shaped)));
  }
};

using Unary = Form<Tensor, Operand>;
using Binary = Form<Tensor, Operand, Operand>;

void add_elementwise(const Adder& add) {
  add("relu", floating, relu);
  add("leaky_relu", floating, leaky_relu);
  add("relu6", floating, relu6);
  add("elu", floating, elu);
  add("selu", floating, selu);
  add("gelu", floating, gelu);
  add("silu", floating, silu);
  add("softsign", floating, softsign);
  add("softplus", floating, softplus);

  add("bessel_i0", floating, bessel_i0);
  add("bessel_i0e", floating, bessel_i0e);
  add("bessel_i1", floating, bessel_i1);
  add("bessel_i1e", floating, bessel_i1e);
  add("bessel_j0", floating, bessel_j0);
  add("bessel_j1", floating, bessel_j1);
  add("bessel_k0", floating, bessel_k0);
  add("bessel_k0e", floating, bessel_k0e);
  add("bessel_k1", floating, bessel_k1);
  add("bessel_k1e", floating, bessel_k1e);
  add("bessel_y0", floating, bessel_y0);
  add("bessel_y1", floating, bessel_y1);

  add("equal", any, equal);
  add("not_equal", any, not_equal);
  add("less", real, less);
  add("less_equal", real, less_equal);
  add("greater", real, greater);
  add("greater_equal", real, greater_equal);
  add("logical_and", logical, logical_and);
  add("logical_or", logical, logical_or);
  add("logical_not", logical, logical_not);

  add("complex", floating, complex, [](Draw& d, Tensor& re, Tensor& im) {
    re = d.tensor(d.narrower());
    im = d.tensor(d.narrower());
  });
  add("real", trainable, tapedeck::real);
  add("imag", trainable, imag);
  add("conj", any, conj);
  add("angle", trainable, angle);

  add("sqrt", trainable, Unary(sqrt));
  add("rsqrt", trainable, Unary(rsqrt));
  add("cbrt", floating, Unary(cbrt));
  add("exp", trainable, Unary(exp));
  add("exp2", floating, Unary(exp2));
  add("expm1", floating, Unary(expm1));
  add("log", trainable, Unary(log));
  add("log1p", floating, Unary(log1p));
  add("log2", floating, Unary(log2));
  add("log10", floating, Unary(log10));
  add("logaddexp", floating, Binary(logaddexp));
  add("sin", trainable, Unary(sin));
  add("cos", trainable, Unary(cos));
  add("tan", floating, Unary(tan));
  add("asin", floating, Unary(asin));
  add("acos", floating, Unary(acos));
  add("atan", floating, Unary(atan));
  add("atan2", floating, Binary(atan2));
  add("hypot", floating, Binary(hypot));
  add("sinh", floating, Unary(sinh));
  add("cosh", floating, Unary(cosh));
  add("tanh", trainable, Unary(tanh));
  add("asinh", floating, Unary(asinh));
  add("acosh", floating, Unary(acosh));
  add("atanh", floating, Unary(atanh));
  add("sigmoid", trainable, Unary(sigmoid));
  add("log_sigmoid", floating, Unary(log_sigmoid));
  add("pow", trainable, Binary(pow));
  add("xlogy", floating, Binary(xlogy));
  add("xlog1py", floating, Binary(xlog1py));
  add("xdivy", floating, Binary(xdivy));

  add("dawsn", floating, dawsn);
  add("expint", floating, expint);
  add("fresnel_sin", floating, fresnel_sin);
  add("fresnel_cos", floating, fresnel_cos);
  add("spence", floating, spence);

  add("add", numeric, Binary(tapedeck::add));
  add("sub", numeric, Binary(sub));
  add("mul", numeric, Binary(mul));
  add("neg", numeric, Unary(neg));
  add("abs", numeric, Unary(abs));
  add("sign", real, Unary(sign));
  add("square", numeric, Unary(square));
  add("squared_difference", real, Binary(squared_difference));
  add("maximum", real, Binary(maximum));
  add("minimum", real, Binary(minimum));
  add("clip", real, clip);
  add("div", trainable, Binary(div));
  add("reciprocal", trainable, Unary(reciprocal));
  add("where", any, where, [](Draw& d, Operator& condition, Operator&, Operator&) {
    condition.use = Operator::tensor;
    condition.x = d.truths(d.narrower());
  });
  add("astype", any, astype);
  add("add_n", numeric, Form<Tensor, std::span<const Tensor>>(add_n));
  add("add_n", numeric, Form<Tensor, std::vector<Tensor>&&>(add_n));

  add("floor_div", real, Binary(floor_div));
  add("truncate_div", real, Binary(truncate_div));
  add("floor_mod", real, Binary(floor_mod));
  add("floor", floating, Unary(floor));
  add("ceil", floating, Unary(ceil));
  add("trunc", floating, Unary(trunc));
  add("round", floating, Unary(round));
  add("rint", floating, Unary(rint));
  add("mul_no_nan", floating, Binary(mul_no_nan));
  add("div_no_nan", floating, Binary(div_no_nan));
  add("nextafter", floating, Binary(nextafter));

  add("erf", floating, Unary(erf));
  add("erfc", floating, Unary(erfc));
  add("erfinv", floating, Unary(erfinv));
  add("erfcinv", floating, Unary(erfcinv));
  add("ndtri", floating, Unary(ndtri));
  add("lgamma", floating, Unary(lgamma));
  add("digamma", floating, Unary(digamma));
  add("polygamma", floating, Binary(polygamma));
  add("zeta", floating, Binary(zeta));
  add("igamma", floating, Binary(igamma));
  add("igammac", floating, Binary(igammac));
  add("igamma_grad_a", floating, igamma_grad_a, [](Draw& d, Tensor& a, Tensor& x, int& order) {
    a = abs(d.tensor(d.narrower()));
    x = abs(d.tensor(d.narrower()));
    order = d.in(1, 8);
  });
  add("betainc", floating, betainc);
}

Tensor printed(const Tensor& x, std::string_view text) {
  std::ostringstream out;
  return print(x, text, out);
}
Tensor printed_to_standard_error(const Tensor& x, std::string_view text) {
  std::ostringstream out;
  std::streambuf* const before = std::cerr.rdbuf(out.rdbuf());
  try {
    const Tensor y = print(x, text);
    std::cerr.rdbuf(before);
    return y;
  } catch (...) {
    std::cerr.rdbuf(before);
    throw;
  }
}
Tensor asserted(const Tensor& x, std::string_view text) {
  assert_that(x, text);
  return x;
}

void add_layout(const Adder& add) {
  add("reshape", any, reshape, [](Draw& d, Tensor&, Shape& shape) {
    shape = d.shape;
    if (shape.ndim() && d.chance(30)) shape.set(d.in(0, shape.ndim() - 1), -1);
    if (d.chance(20)) shape = {-1};
  });
  add("expand_dims", any, expand_dims);
  add("squeeze", any, squeeze, [](Draw& d, Tensor& x, Axes& axes) {
    if (axes.all) return;
    for (const int axis : axes.list)
      d.shape.set(axis < 0 ? axis + d.shape.ndim() : axis, 1);
    x = d.tensor(d.shape);
  });
  add("transpose", any, transpose, [](Draw& d, Tensor& x, Axes& perm) {
    std::vector<int> order;
    for (int i = 0; i < x.ndim(); ++i)
      order.insert(order.begin() + d.in(0, i), i);
    perm = d.chance(20) ? Axes() : Axes(order);
  });
  add("reverse", any, reverse);
  add("broadcast_to", any, broadcast_to, [](Draw& d, Tensor& x, Shape& shape) {
    shape = d.shape;
    x = d.tensor(d.narrower());
  });
  add("tile", any, tile);
  add("one_hot", any, one_hot, [](Draw& d, Tensor& x, std::int64_t&, DType&) { x = d.indices(d.shape, 4); });
  add("identity", any, identity);
  add("stop_gradient", any, stop_gradient);
  add("zeros_like", any, zeros_like);
  add("ones_like", any, ones_like);
  add("identity_n", any, identity_n);
  add("fill", any, fill, [](Draw& d, Shape& shape, Tensor& value) {
    shape = d.shape;
    value = d.tensor({});
  });
  add("meshgrid", any, Form<std::vector<Tensor>, std::span<const Tensor>, Indexing>(meshgrid),
      [](Draw& d, std::vector<Tensor>& x, Indexing&) {
        for (Tensor& v : x)
          v = d.tensor({d.extent()});
      });
  add("prevent_gradient", any, Form<Tensor, const Tensor&>(prevent_gradient));
  add("ensure_shape", any, ensure_shape, [](Draw& d, Tensor&, Shape& shape) {
    shape = d.shape;
    if (shape.ndim() && d.chance(30)) shape.set(d.in(0, shape.ndim() - 1), -1);
  });
  add("check_numerics", floating, check_numerics);
  add("print", any, printed);
  add("print", any, printed_to_standard_error);
  add("assert_that", logical, asserted, [](Draw& d, Tensor& x, std::string&) {
    if (d.chance(70)) x = ones(d.shape, d.dtype);
  });
  add("conjugate_transpose", any, conjugate_transpose, [](Draw& d, Tensor& x) {
    x = d.tensor(Draw::behind(d.extents(0, 2), {d.extent(), d.extent()}));
  });

  add("gather", any, Form<Tensor, const Tensor&, const Tensor&, int>(gather),
      [](Draw& d, Tensor& x, Tensor& indices, int& axis) {
        x = d.tensor(Draw::behind(d.extents(0, 2), {1 + d.extent()}));
        axis = d.in(-x.ndim(), x.ndim() - 1);
        indices = d.indices(d.extents(0, 2), x.shape()[axis < 0 ? axis + x.ndim() : axis]);
      });
  add("gather", any, Form<Tensor, const Tensor&, const Tensor&, int, int>(gather),
      [](Draw& d, Tensor& x, Tensor& indices, int& axis, int& batch) {
        const Shape front = d.extents(0, 2);
        const std::int64_t n = 1 + d.extent();
        x = d.tensor(Draw::behind(front, {n, d.extent()}));
        indices = d.indices(Draw::behind(front, {d.extent()}), n);
        axis = batch = front.ndim();
      });
  add("scatter_add", numeric, scatter_add, [](Draw& d, Tensor& x, Tensor& indices, Shape& shape, int& axis) {
    const std::int64_t n = 1 + d.extent(), rows = d.extent(), columns = d.extent();
    x = d.tensor({rows, columns});
    axis = d.in(0, 1);
    shape = axis ? Shape{rows, n} : Shape{n, columns};
    indices = d.indices({axis ? columns : rows}, n);
  });
  add("gather_nd", any, gather_nd, [](Draw& d, Tensor& x, Tensor& indices) {
    const std::int64_t n = 1 + d.extent();
    x = d.tensor({n, n, d.extent()});
    indices = d.indices(Draw::behind(d.extents(0, 2), {d.in(0, 2)}), n);
  });
  add("scatter_nd", numeric, scatter_nd, [](Draw& d, Tensor& indices, Tensor& updates, Shape& shape) {
    const std::int64_t n = 1 + d.extent(), m = d.extent();
    const Shape entries = d.extents(0, 2);
    indices = d.indices(Draw::behind(entries, {1}), n);
    updates = d.tensor(Draw::behind(entries, {m}));
    shape = {n, m};
  });
  add("concat", any, Form<Tensor, std::span<const Tensor>, int>(concat),
      [](Draw& d, std::vector<Tensor>& x, int& axis) {
        if (d.shape.ndim() == 0) d.shape = {d.extent()};
        axis = d.in(-d.shape.ndim(), d.shape.ndim() - 1);
        for (Tensor& v : x) {
          Shape s = d.shape;
          s.set(axis < 0 ? axis + s.ndim() : axis, d.extent());
          v = d.tensor(s);
        }
      });
  add("stack", any, Form<Tensor, std::span<const Tensor>, int>(stack));
  add("split", any, Form<std::vector<Tensor>, const Tensor&, int, int>(split),
      [](Draw& d, Tensor& x, int& parts, int& axis) {
        parts = d.in(1, 3);
        axis = 0;
        x = d.tensor({parts * d.extent(), d.extent()});
      });
  add("split", any, Form<std::vector<Tensor>, const Tensor&, std::span<const std::int64_t>, int>(split),
      [](Draw& d, Tensor& x, std::vector<std::int64_t>& sizes, int& axis) {
        std::int64_t n = 0;
        for (const std::int64_t s : sizes)
          n += s;
        axis = d.in(0, 1);
        x = d.tensor(axis ? Shape{d.extent(), n} : Shape{n, d.extent()});
      });
  add("unstack", any, unstack);
  add("pad", any, pad, [](Draw& d, Tensor& x, Shape& before, Shape& after, double&) {
    before = after = {};
    for (int i = 0; i < x.ndim(); ++i)
      before.push_back(d.in(0, 2)), after.push_back(d.in(0, 2));
  });
  add("mirror_pad", any, mirror_pad, [](Draw& d, Tensor& x, Shape& before, Shape& after, Mirror& mirror) {
    before = after = {};
    for (int i = 0; i < x.ndim(); ++i) {
      const std::int64_t most = std::min<std::int64_t>(x.shape()[i] - (mirror == Mirror::reflect), 4);
      before.push_back(d.in(0, std::max(0, static_cast<int>(most))));
      after.push_back(d.in(0, std::max(0, static_cast<int>(most))));
    }
  });
  add("boolean_mask", any, boolean_mask, [](Draw& d, Tensor& x, Tensor& mask) {
    mask = d.truths(Draw::front(x.shape(), d.in(0, std::max(0, x.ndim() - 1))));
  });
  add("dynamic_partition", any, dynamic_partition, [](Draw& d, Tensor& x, Tensor& partitions, int& count) {
    count = d.in(1, 4);
    partitions = d.indices(Draw::front(x.shape(), d.in(0, x.ndim())), count);
  });
  add("dynamic_stitch", any, dynamic_stitch,
      [](Draw& d, std::vector<Tensor>& indices, std::vector<Tensor>& x) {
        const Shape rest = d.extents(0, 2);
        const std::int64_t n = d.in(1, 4);
        indices = {arange(n), d.indices(d.extents(0, 2), n)};
        x.clear();
        for (const Tensor& i : indices) {
          Shape s = i.shape();
          for (const std::int64_t e : rest)
            s.push_back(e);
          x.push_back(d.tensor(s));
        }
      });
  add("roll", any, Form<Tensor, const Tensor&, std::int64_t, const Axes&>(roll));
  add("roll", any, Form<Tensor, const Tensor&, Ints, const Axes&>(roll),
      [](Draw& d, Tensor&, Shape& shifts, Axes&) {
        for (int i = 0; i < shifts.ndim(); ++i)
          shifts.set(i, d.in(-7, 7));
      });
  add("repeat", any, Form<Tensor, const Tensor&, std::int64_t, int>(repeat));
  add("repeat", any, Form<Tensor, const Tensor&, Ints, int>(repeat),
      [](Draw& d, Tensor& x, Shape& counts, int& axis) {
        axis = 0;
        x = d.tensor({counts.ndim(), d.extent()});
      });
  add("reverse_sequence", any, reverse_sequence,
      [](Draw& d, Tensor& x, Tensor& lengths, int& sequence, int& batch) {
        const std::int64_t rows = d.extent(), columns = d.extent();
        x = d.tensor({rows, columns, d.extent()});
        sequence = d.in(0, 1);
        batch = 1 - sequence;
        lengths = d.indices({sequence ? rows : columns}, (sequence ? columns : rows) + 1);
      });
  add("slice", any, tapedeck::slice, [](Draw& d, Tensor& x, Shape& begin, Shape& size) {
    begin = size = {};
    for (const std::int64_t n : x.shape()) {
      const int first = d.in(0, static_cast<int>(std::min<std::int64_t>(n, 5)));
      begin.push_back(first);
      size.push_back(d.chance(30) ? -1 : d.in(0, static_cast<int>(std::min<std::int64_t>(n - first, 5))));
    }
  });
  add("strided_slice", any, Form<Tensor, const Tensor&, std::span<const Slice>>(strided_slice));
  add("strided_slice_update", any,
      Form<Tensor, const Tensor&, std::span<const Slice>, const Tensor&>(strided_slice_update),
      [](Draw& d, Tensor& x, std::vector<Slice>& slices, Tensor& updates) {
        updates = d.tensor(strided_slice(x, slices).shape());
      });

  const auto blocks = [](Draw& d, Tensor& x, Shape& block, Shape& before, Shape& after, bool to_batch) {
    block = before = after = {};
    Shape s{d.extent()};
    std::int64_t size = 1;
    for (int i = d.in(1, 2); i-- > 0;) {
      const int b = d.in(1, 3), n = d.in(1, 2), first = d.in(0, 1),
                last = to_batch ? (b * n + 5 * b - first - 1) % b : d.in(0, 1);
      block.push_back(b), before.push_back(first), after.push_back(last);
      s.push_back(to_batch ? n * b + b - (first + last) % b : n + 1);
      size *= b;
    }
    if (!to_batch) s.set(0, s[0] * size);
    x = d.tensor(Draw::behind(s, {d.extent()}));
  };
  add("space_to_batch_nd", any, space_to_batch_nd,
      [blocks](Draw& d, Tensor& x, Shape& b, Shape& p, Shape& q) { blocks(d, x, b, p, q, true); });
  add("batch_to_space_nd", any, batch_to_space_nd,
      [blocks](Draw& d, Tensor& x, Shape& b, Shape& p, Shape& q) { blocks(d, x, b, p, q, false); });
  add("space_to_depth", any, space_to_depth, [](Draw& d, Tensor& x, std::int64_t& block) {
    block = d.in(1, 3);
    x = d.tensor(Draw::behind(d.extents(0, 2), {block * d.extent(), block * d.extent(), d.extent()}));
  });
  add("depth_to_space", any, depth_to_space, [](Draw& d, Tensor& x, std::int64_t& block) {
    block = d.in(1, 3);
    x = d.tensor(Draw::behind(d.extents(0, 2), {d.extent(), d.extent(), block * block * d.extent()}));
  });
  add("take_along_axis", any, take_along_axis, [](Draw& d, Tensor& x, Tensor& indices, int& axis) {
    x = d.tensor(Draw::behind(d.extents(0, 2), {1 + d.extent()}));
    axis = d.in(-x.ndim(), x.ndim() - 1);
    const int at = axis < 0 ? axis + x.ndim() : axis;
    Shape s = x.shape();
    s.set(at, d.extent());
    indices = d.indices(s, x.shape()[at]);
  });
  const auto scattered = [](Draw& d, Tensor& x, Tensor& indices, Tensor& updates) {
    const std::int64_t n = 1 + d.extent(), m = d.extent();
    const Shape entries = d.extents(0, 2);
    const int depth = d.in(1, 2);
    x = d.tensor(depth == 1 ? Shape{n, m} : Shape{n, n, m});
    indices = d.indices(Draw::behind(entries, {depth}), n);
    updates = d.tensor(Draw::behind(entries, {m}));
  };
  add("tensor_scatter_update", any, tensor_scatter_update, scattered);
  add("tensor_scatter_add", numeric, tensor_scatter_add, scattered);
  add("tensor_scatter_sub", numeric, tensor_scatter_sub, scattered);
  add("tensor_scatter_max", real, tensor_scatter_max, scattered);
  add("tensor_scatter_min", real, tensor_scatter_min, scattered);

  add("diag", any, diag, [](Draw& d, Tensor& x) { x = d.tensor(d.extents(1, 3)); });
  add("diag_part", any, diag_part, [](Draw& d, Tensor& x) {
    Shape s = d.extents(1, 2);
    for (int i = 0, n = s.ndim(); i < n; ++i)
      s.push_back(s[i]);
    x = d.tensor(s);
  });
  add("matrix_diag", any, matrix_diag, [](Draw& d, Tensor& x, Diagonals& k, MatrixDiagOptions& o) {
    k.low = d.in(-2, 2);
    k.high = d.chance(50) ? k.low : d.in(k.low, 2);
    const std::int64_t n = d.in(1, 4);
    x = d.tensor(k.low == k.high ? Draw::behind(d.extents(0, 2), {n})
                                 : Draw::behind(d.extents(0, 2), {k.high - k.low + 1, n}));
    if (d.chance(80)) o.rows = o.columns = -1;
  });
  const auto banded = [](Draw& d, Diagonals& k, std::int64_t& rows, std::int64_t& columns) {
    k.low = d.in(-2, 2);
    k.high = d.chance(50) ? k.low : d.in(k.low, 2);
    rows = d.in(3, 5), columns = d.in(3, 5);
  };
  add("matrix_diag_part", any, matrix_diag_part,
      [banded](Draw& d, Tensor& x, Diagonals& k, double&, DiagonalAlign&) {
        std::int64_t rows, columns;
        banded(d, k, rows, columns);
        x = d.tensor(Draw::behind(d.extents(0, 2), {rows, columns}));
      });
  add("matrix_set_diag", any, matrix_set_diag,
      [banded](Draw& d, Tensor& x, Tensor& diagonal, Diagonals& k, DiagonalAlign& align) {
        std::int64_t rows, columns;
        banded(d, k, rows, columns);
        x = d.tensor(Draw::behind(d.extents(0, 2), {rows, columns}));
        diagonal = d.tensor(matrix_diag_part(x, k, 0, align).shape());
      });
  const auto matrix = [](Draw& d, Tensor& x, auto&...) {
    x = d.tensor(Draw::behind(d.extents(0, 2), {d.extent(), d.extent()}));
  };
  add("band_part", any, band_part, matrix);
  add("tril", any, tril, matrix);
  add("triu", any, triu, matrix);
  add("diagonal", any, diagonal, matrix);
  add("trace", numeric, trace, matrix);
}

void add_linalg(const Adder& add) {
  const auto square = [](Draw& d, Tensor& x, auto&...) {
    const std::int64_t n = d.extent();
    x = d.tensor(Draw::behind(d.extents(0, 2), {n, n}));
  };
  const auto rectangle = [](Draw& d, Tensor& x, auto&...) {
    x = d.tensor(Draw::behind(d.extents(0, 2), {d.extent(), d.extent()}));
  };
  // a [n, n] with b [n, m] behind the same axes
  const auto system = [](Draw& d, Tensor& a, Tensor& b, auto&...) {
    const Shape front = d.extents(0, 2);
    const std::int64_t n = d.extent();
    a = d.tensor(Draw::behind(front, {n, n}));
    b = d.tensor(Draw::behind(d.chance(70) ? front : Shape{}, {n, d.extent()}));
  };
  const auto definite = [](Draw& d, Tensor& x) {
    const std::int64_t n = d.extent();
    x = d.tensor(Draw::behind(d.extents(0, 2), {n, n}));
    if (is_trainable(x.dtype()))
      x = matmul(x, conjugate_transpose(x)) + astype(eye(n, DType::f64), x.dtype());
  };
  add("banded_triangular_solve", floating, banded_triangular_solve,
      [](Draw& d, Tensor& bands, Tensor& b, TriangularSolveOptions&) {
        const std::int64_t n = d.in(1, 5);
        bands = d.tensor(Draw::behind(d.extents(0, 1), {d.in(1, static_cast<int>(n)), n}));
        b = d.tensor(Draw::behind(Draw::front(bands.shape(), 2), {n, d.extent()}));
      });
  const auto tridiagonal = [](Draw& d, Tensor& diagonals, Tensor& x) {
    const std::int64_t n = d.extent();
    const Shape front = d.extents(0, 2);
    diagonals = d.tensor(Draw::behind(front, {3, n}));
    x = d.tensor(Draw::behind(front, {n, d.extent()}));
  };
  add("tridiagonal_matmul", floating, tridiagonal_matmul, tridiagonal);
  add("tridiagonal_solve", floating, tridiagonal_solve, tridiagonal);
  add("cross", floating, cross, [](Draw& d, Operator& a, Operator& b) {
    const Shape front = d.extents(0, 3);
    a.use = b.use = Operator::tensor;
    a.x = d.tensor(Draw::behind(front, {3}));
    b.x = d.tensor(d.chance(70) ? a.x.shape() : Shape{3});
  });
  add("qr", trainable, qr, rectangle);
  add("lstsq", trainable, lstsq, [](Draw& d, Tensor& a, Tensor& b, LstsqOptions& o) {
    const Shape front = d.extents(0, 2);
    const std::int64_t rows = d.in(2, 4);
    a = d.tensor(Draw::behind(front, {rows, d.in(1, 3)}));
    b = d.tensor(Draw::behind(front, {rows, d.extent()}));
    o.l2 = d.chance(50) ? 0 : 0.5;
  });
  add("eigh", trainable, eigh, square);
  add("eigvalsh", trainable, eigvalsh, square);
  add("svd", trainable, svd, rectangle);
  add("svdvals", trainable, svdvals, rectangle);
  add("pinv", trainable, pinv, [rectangle](Draw& d, Tensor& x, std::optional<double>& rcond) {
    rectangle(d, x);
    if (rcond) *rcond = 0.1;
  });
  add("eig", trainable, eig, square);
  add("eigvals", trainable, eigvals, square);
  add("einsum", floating, Form<Tensor, std::string_view, std::span<const Tensor>>(einsum),
      [](Draw& d, std::string& equation, std::vector<Tensor>& x) {
        const std::int64_t i = d.extent(), j = d.extent(), k = d.extent(), b = d.extent();
        switch (d.in(0, 5)) {
          case 0:
            equation = "ij,jk->ik", x = {d.tensor({i, j}), d.tensor({j, k})};
            break;
          case 1:
            equation = "...ij,...jk->...ik", x = {d.tensor({b, i, j}), d.tensor({j, k})};
            break;
          case 2:
            equation = "ii->i", x = {d.tensor({i, i})};
            break;
          case 3:
            equation = "i,j,k->kij", x = {d.tensor({i}), d.tensor({j}), d.tensor({k})};
            break;
          case 4:
            equation = "bij, bkj", x = {d.tensor({b, i, j}), d.tensor({b, k, j})};
            break;
          default:
            equation = "ij->", x = {d.tensor({i, j})};
        }
      });
  add("tensordot", floating, Form<Tensor, const Tensor&, const Tensor&, const Axes&, const Axes&>(tensordot),
      [](Draw& d, Tensor& a, Tensor& b, Axes& of_a, Axes& of_b) {
        const std::int64_t i = d.extent(), j = d.extent();
        a = d.tensor({i, d.extent(), j});
        b = d.tensor({j, i, d.extent()});
        of_a = {0, -1}, of_b = {1, 0};
      });
  add("tensordot", floating, Form<Tensor, const Tensor&, const Tensor&, int>(tensordot),
      [](Draw& d, Tensor& a, Tensor& b, int& axes) {
        const std::int64_t i = d.extent(), j = d.extent();
        axes = d.in(0, 2);
        a = d.tensor({d.extent(), i, j});
        b = d.tensor(axes == 2 ? Shape{i, j, d.extent()} : Shape{j, d.extent()});
      });
  add("outer", numeric, outer);
  const auto at_least = [](Draw& d, Tensor& x, int axes) {
    Shape s = d.extents(0, 2);
    for (int i = 0; i < axes; ++i)
      s.push_back(d.in(1, 5));
    x = d.tensor(s);
  };
  const auto lengths = [](Draw& d, Shape& length, int axes) {
    length = {};
    for (int i = 0; i < axes && (i || d.chance(50)); ++i)
      length.push_back(d.in(1, 6));
  };
  // Complex tensors of any dtype drawn: a real one becomes complex.
  const auto complex_one = [](Tensor& x) {
    if (is_floating(x.dtype())) x = tapedeck::complex(x, x);
  };
  const auto transformed = [=](int axes) {
    return [=](Draw& d, Tensor& x) { at_least(d, x, axes), complex_one(x); };
  };
  add("fft", floating, fft, transformed(1));
  add("ifft", floating, ifft, transformed(1));
  add("fft2d", floating, fft2d, transformed(2));
  add("ifft2d", floating, ifft2d, transformed(2));
  add("fft3d", floating, fft3d, transformed(3));
  add("ifft3d", floating, ifft3d, transformed(3));
  const auto of_real = [=](int axes) {
    return [=](Draw& d, Tensor& x, Shape& length) { at_least(d, x, axes), lengths(d, length, axes); };
  };
  const auto of_half = [=](int axes) {
    return [=](Draw& d, Tensor& x, Shape& length) {
      at_least(d, x, axes), complex_one(x), lengths(d, length, axes);
    };
  };
  add("rfft", floating, rfft, of_real(1));
  add("rfft2d", floating, rfft2d, of_real(2));
  add("rfft3d", floating, rfft3d, of_real(3));
  add("irfft", floating, irfft, of_half(1));
  add("irfft2d", floating, irfft2d, of_half(2));
  add("irfft3d", floating, irfft3d, of_half(3));
  add("matmul", trainable, matmul, [](Draw& d, Tensor& a, Tensor& b, MatmulOptions& t) {
    const Shape front = d.extents(0, 2);
    const std::int64_t n = d.extent(), m = d.extent(), k = d.extent();
    a = d.tensor(Draw::behind(front, {t.transpose_a ? k : n, t.transpose_a ? n : k}));
    b = d.tensor(
        Draw::behind(d.chance(60) ? front : Shape{}, {t.transpose_b ? m : k, t.transpose_b ? k : m}));
  });
  add("matrix_exponential", floating, matrix_exponential, square);
  add("matrix_square_root", floating, matrix_square_root, definite);
  add("cholesky", trainable, cholesky, definite);
  add("cholesky_solve", trainable, cholesky_solve,
      [system](Draw& d, Tensor& a, Tensor& b) { system(d, a, b); });
  add("triangular_solve", trainable, triangular_solve, system);
  add("solve", trainable, solve, system);
  add("inv", trainable, inv, square);
  add("det", trainable, det, square);
  add("slogdet", trainable, slogdet, square);
  add("lu", trainable, lu, [](Draw& d, Tensor& x) {
    const std::int64_t n = d.extent();
    x = d.tensor({n, n});
  });
}

void add_reductions(const Adder& add) {
  // No axis is empty, as a maximum needs elements.
  const auto filled = [](Draw& d, Tensor& x, auto&...) {
    for (int i = 0; i < d.shape.ndim(); ++i)
      d.shape.set(i, std::clamp<std::int64_t>(d.shape[i], 1, 5));
    x = d.tensor(d.shape);
  };
  // Along an axis, of which there is one.
  const auto along = [](Draw& d, Tensor& x, int& axis, auto&...) {
    if (d.shape.ndim() == 0) d.shape = {d.extent()};
    for (int i = 0; i < d.shape.ndim(); ++i)
      d.shape.set(i, std::max<std::int64_t>(d.shape[i], 1));
    if (d.shape.ndim() > 0 && d.shape[0] > 5) d.shape = {3, 2};
    x = d.tensor(d.shape);
    axis = d.in(-x.ndim(), x.ndim() - 1);
  };
  add("sum", floating, sum);
  add("prod", floating, prod);
  add("mean", trainable, mean);
  add("logsumexp", floating, logsumexp);
  add("max", real, max, filled);
  add("min", real, min, filled);
  add("argmax", real, argmax, along);
  add("argmin", real, argmin, along);
  add("any", logical, tapedeck::any);
  add("all", logical, all);
  add("euclidean_norm", floating, euclidean_norm);
  add("count_nonzero", Kind::any, count_nonzero);
  add("variance", floating, variance);
  add("stddev", floating, stddev);
  add("norm", floating, norm, [filled](Draw& d, Tensor& x, double& order, Axes&, ReduceOptions&) {
    filled(d, x);
    if (d.chance(30)) order = d.in(0, 3);
  });
  add("median", floating, median, filled);
  add("cumsum", numeric, cumsum, along);
  add("cumprod", numeric, cumprod, along);
  add("cumulative_logsumexp", floating, cumulative_logsumexp, along);
  add("softmax", floating, softmax, along);
  add("log_softmax", floating, log_softmax, along);
  add("sort", real, sort, along);
  add("argsort", real, argsort, along);
  add("top_k", real, top_k, [along](Draw& d, Tensor& x, std::int64_t& k, int& axis) {
    along(d, x, axis);
    k = d.in(0, static_cast<int>(x.shape()[axis < 0 ? axis + x.ndim() : axis]));
  });
  add("nth_element", real, nth_element,
      [along](Draw& d, Tensor& x, std::int64_t& n, int& axis, NthElementOptions&) {
        along(d, x, axis);
        n = d.in(0, static_cast<int>(x.shape()[axis < 0 ? axis + x.ndim() : axis]) - 1);
      });
  add("unique", real, unique);
  add("searchsorted", real, searchsorted, [](Draw& d, Tensor& sorted, Tensor& values, Side&) {
    const Shape front = d.extents(0, 2);
    sorted = sort(d.tensor(Draw::behind(front, {d.extent()})));
    values = d.tensor(Draw::behind(front, {d.extent()}));
  });
  add("nonzero", Kind::any, nonzero);
  add("invert_permutation", Kind::any, invert_permutation, [](Draw& d, Tensor& perm) {
    perm = random::permutation(d.in(0, 6), {.seed = d.bits()});
    if (d.chance(50)) perm = astype(perm, DType::i32);
  });

  const auto ordered = [](Draw& d, Tensor& x, Tensor& ids) {
    const std::int64_t n = d.extent();
    x = d.tensor({n, d.extent()});
    ids = d.sorted_indices(n, 4);
  };
  add("segment_sum", numeric, segment_sum, ordered);
  add("segment_mean", floating, segment_mean, ordered);
  add("segment_prod", real, segment_prod, ordered);
  add("segment_min", real, segment_min, ordered);
  add("segment_max", real, segment_max, ordered);
  const auto sparse = [](Draw& d, Tensor& x, Tensor& indices, Tensor& ids,
                         std::optional<std::int64_t>& count) {
    const std::int64_t n = 1 + d.extent(), m = d.extent();
    x = d.tensor({n, d.extent()});
    indices = d.indices({m}, n);
    ids = d.sorted_indices(m, 4);
    if (count) *count = 4;
  };
  add("sparse_segment_sum", floating, sparse_segment_sum, sparse);
  add("sparse_segment_mean", floating, sparse_segment_mean, sparse);
  add("sparse_segment_sqrt_n", floating, sparse_segment_sqrt_n, sparse);
  const auto unsorted = [](Draw& d, Tensor& x, Tensor& ids, std::int64_t& count) {
    x = d.tensor(d.extents(1, 3));
    count = d.in(1, 4);
    ids = d.indices(Draw::front(x.shape(), d.in(0, x.ndim())), count);
    if (d.chance(20)) ids = ids - astype(ones({}), ids.dtype());
  };
  add("unsorted_segment_sum", numeric, unsorted_segment_sum, unsorted);
  add("unsorted_segment_mean", floating, unsorted_segment_mean, unsorted);
  add("unsorted_segment_sqrt_n", floating, unsorted_segment_sqrt_n, unsorted);
  add("unsorted_segment_prod", real, unsorted_segment_prod, unsorted);
  add("unsorted_segment_min", real, unsorted_segment_min, unsorted);
  add("unsorted_segment_max", real, unsorted_segment_max, unsorted);
}

// An image with extents that hold windows, and a window, stride and dilation that fit it.
std::int64_t wide(Draw& d) { return d.in(4, 8); }
HeightWidth two(Draw& d, int most) { return {d.in(1, most), d.in(1, most)}; }
DepthHeightWidth three(Draw& d, int most) { return {d.in(1, most), d.in(1, most), d.in(1, most)}; }
Padding around(Draw& d, int most) {
  if (d.chance(60)) return d.chance(50) ? Padding::same : Padding::valid;
  return {d.in(0, most), d.in(0, most), d.in(0, most), d.in(0, most)};
}
Padding3d around_volume(Draw& d, int most) {
  if (d.chance(60)) return d.chance(50) ? Padding::same : Padding::valid;
  return {d.in(0, most), d.in(0, most), around(d, most)};
}
Tensor image(Draw& d, std::int64_t channels, Layout layout = Layout::nhwc, int axes = 2) {
  Shape s = d.extents(0, 2);
  if (layout == Layout::nchw) s.push_back(channels);
  for (int i = 0; i < axes; ++i)
    s.push_back(wide(d));
  if (layout != Layout::nchw) s.push_back(channels);
  return d.tensor(s);
}

void add_images(const Adder& add) {
  // Filters of extents [1, most] with channels in / groups and out.
  const auto filters = [](Draw& d, int axes, std::int64_t in, std::int64_t out) {
    Shape s;
    for (int i = 0; i < axes; ++i)
      s.push_back(d.in(1, 2));
    return d.tensor(Draw::behind(s, {in, out}));
  };
  add("conv2d", floating, conv2d, [filters](Draw& d, Tensor& x, Tensor& f, Conv2dOptions& o) {
    o = {.strides = two(d, 3),
         .dilation = two(d, 2),
         .padding = around(d, 1),
         .groups = d.in(1, 2),
         .layout = o.layout};
    const std::int64_t in = d.in(1, 2), out = d.in(1, 2) * o.groups;
    x = image(d, in * o.groups, o.layout);
    f = filters(d, 2, in, out);
    if (o.padding.mode == Padding::given) f = d.tensor({2, 2, in, out});
  });
  add("conv2d_transpose", floating, conv2d_transpose,
      [filters](Draw& d, Tensor& x, Tensor& f, Conv2dTransposeOptions& o) {
        o = {.strides = two(d, 3),
             .dilation = two(d, 2),
             .padding = d.chance(50) ? Padding::same : Padding::valid,
             .size = 0,
             .groups = d.in(1, 2),
             .layout = o.layout};
        const std::int64_t in = d.in(1, 2) * o.groups, out = d.in(1, 2);
        x = image(d, in, o.layout);
        f = filters(d, 2, out, in);
      });
  add("conv1d", floating, conv1d, [](Draw& d, Tensor& x, Tensor& f, Conv1dOptions& o) {
    o = {.strides = d.in(1, 3),
         .dilation = d.in(1, 2),
         .padding = around(d, 1),
         .groups = d.in(1, 2),
         .layout = o.layout};
    const std::int64_t in = d.in(1, 2), out = d.in(1, 2) * o.groups;
    x = image(d, in * o.groups, o.layout, 1);
    f = d.tensor({2, in, out});
  });
  add("conv3d", floating, conv3d, [](Draw& d, Tensor& x, Tensor& f, Conv3dOptions& o) {
    o = {.strides = three(d, 3),
         .dilation = three(d, 2),
         .padding = around_volume(d, 1),
         .groups = d.in(1, 2),
         .layout = o.layout};
    const std::int64_t in = d.in(1, 2), out = d.in(1, 2) * o.groups;
    x = image(d, in * o.groups, o.layout, 3);
    f = d.tensor({2, 2, 2, in, out});
  });
  add("conv3d_transpose", floating, conv3d_transpose,
      [filters](Draw& d, Tensor& x, Tensor& f, Conv3dTransposeOptions& o) {
        o = {.strides = three(d, 3),
             .dilation = three(d, 2),
             .padding = d.chance(50) ? Padding::same : Padding::valid,
             .size = 0,
             .groups = d.in(1, 2),
             .layout = o.layout};
        const std::int64_t in = d.in(1, 2) * o.groups, out = d.in(1, 2);
        Shape s = d.extents(0, 1);
        if (o.layout == Layout::ncdhw) s.push_back(in);
        for (int i = 0; i < 3; ++i)
          s.push_back(d.in(1, 3));
        if (o.layout != Layout::ncdhw) s.push_back(in);
        x = d.tensor(s);
        f = filters(d, 3, out, in);
      });
  add("depthwise_conv2d", floating, depthwise_conv2d, [](Draw& d, Tensor& x, Tensor& f, Conv2dOptions& o) {
    o = {.strides = two(d, 3),
         .dilation = two(d, 2),
         .padding = around(d, 1),
         .groups = 1,
         .layout = o.layout};
    const std::int64_t in = d.in(1, 3);
    x = image(d, in, o.layout);
    f = d.tensor({2, 2, in, d.in(1, 2)});
  });
  add("dilation2d", floating, dilation2d, [](Draw& d, Tensor& x, Tensor& f, Conv2dOptions& o) {
    o = {.strides = two(d, 3), .dilation = two(d, 2), .padding = around(d, 1)};
    const std::int64_t in = d.in(1, 3);
    x = image(d, in);
    f = d.tensor({2, 2, in});
  });
  add("crop_and_resize", floating, crop_and_resize,
      [](Draw& d, Tensor& x, Tensor& boxes, Tensor& indices, HeightWidth& size, CropOptions&) {
        const std::int64_t n = d.extent(), images = d.in(1, 3);
        x = d.tensor({images, d.in(1, 5), d.in(1, 5), d.extent()});
        boxes = d.tensor({n, 4});
        indices = d.indices({n}, images);
        size = two(d, 4);
      });
  add("projective_transform", floating, projective_transform,
      [](Draw& d, Tensor& x, Tensor& transforms, HeightWidth& size, ProjectiveOptions&) {
        const std::int64_t images = d.in(1, 3);
        x = d.tensor({images, d.in(1, 5), d.in(1, 5), d.extent()});
        transforms = d.tensor(d.chance(50) ? Shape{8} : Shape{images, 8});
        size = two(d, 4);
      });
  const auto pictures = [](Draw& d, Tensor& x, HeightWidth& size, auto&...) {
    x = d.tensor(Draw::behind(d.extents(0, 2), {d.in(1, 5), d.in(1, 5), d.extent()}));
    size = two(d, 6);
  };
  add("resize_nearest", floating, resize_nearest, pictures);
  add("resize_bilinear", floating, resize_bilinear, pictures);
  add("resize_bicubic", floating, resize_bicubic, pictures);
  add("scale_and_translate", floating, scale_and_translate,
      [pictures](Draw& d, Tensor& x, HeightWidth& size, ScaleAndTranslateOptions& o) {
        pictures(d, x, size);
        o.scale_y = d.in(1, 30) / 10.0;
        o.scale_x = d.in(1, 30) / 10.0;
      });
  const auto colours = [](Draw& d, Tensor& x) { x = d.tensor(Draw::behind(d.extents(0, 3), {3})); };
  add("rgb_to_hsv", floating, rgb_to_hsv, colours);
  add("hsv_to_rgb", floating, hsv_to_rgb, colours);

  add("extract_image_patches", floating, extract_image_patches, [](Draw& d, Tensor& x, PatchOptions& o) {
    o = {.window = 2, .strides = two(d, 3), .dilation = two(d, 2), .padding = around(d, 1)};
    x = image(d, d.extent());
  });
  add("extract_volume_patches", floating, extract_volume_patches,
      [](Draw& d, Tensor& x, VolumePatchOptions& o) {
        o = {.window = 2, .strides = three(d, 3), .dilation = three(d, 2), .padding = around_volume(d, 1)};
        x = image(d, d.extent(), Layout::nhwc, 3);
      });
  const auto rows = [](Draw& d, Tensor& x, Pool1dOptions& o) {
    o = {.window = d.in(2, 3),
         .strides = d.chance(30) ? Pool2dOptions::kAsWindow : d.in(1, 3),
         .padding = around(d, 1)};
    x = image(d, d.extent(), Layout::nhwc, 1);
  };
  const auto planes = [](Draw& d, Tensor& x, Pool2dOptions& o, auto&...) {
    o = {.window = {d.in(2, 3), d.in(2, 3)},
         .strides = d.chance(30) ? HeightWidth(Pool2dOptions::kAsWindow) : two(d, 3),
         .padding = around(d, 1)};
    x = image(d, d.extent());
  };
  const auto volumes = [](Draw& d, Tensor& x, Pool3dOptions& o) {
    o = {.window = {2, d.in(2, 3), 2},
         .strides = d.chance(30) ? DepthHeightWidth(Pool2dOptions::kAsWindow) : three(d, 3),
         .padding = around_volume(d, 1)};
    x = image(d, d.extent(), Layout::nhwc, 3);
  };
  add("max_pool1d", floating, max_pool1d, rows);
  add("avg_pool1d", floating, avg_pool1d, rows);
  add("max_pool2d", floating, max_pool2d, planes);
  add("avg_pool2d", floating, avg_pool2d, planes);
  add("max_pool_with_argmax", floating, max_pool_with_argmax, planes);
  add("max_pool3d", floating, max_pool3d, volumes);
  add("avg_pool3d", floating, avg_pool3d, volumes);
  const auto fractions = [](Draw& d, Tensor& x, FractionalPoolOptions& o, Key&) {
    x = image(d, d.extent());
    o.height_ratio = d.in(10, 30) / 10.0;
    o.width_ratio = d.in(10, 30) / 10.0;
  };
  add("fractional_max_pool", floating, fractional_max_pool, fractions);
  add("fractional_avg_pool", floating, fractional_avg_pool, fractions);
}

void add_networks(const Adder& add) {
  // x [..., n] and vectors [n].
  const auto channels = [](Draw& d, Tensor& x, auto&... vectors) {
    const std::int64_t n = d.in(1, 4);
    x = d.tensor(Draw::behind(d.extents(1, 2), {n}));
    ((vectors = d.tensor({n})), ...);
  };
  add("bias_add", numeric, bias_add, channels);
  add("dropout", floating, dropout, [](Draw& d, Tensor&, double& rate, Key&) { rate = d.in(0, 99) / 100.0; });
  add("layer_norm", floating, layer_norm,
      [channels](Draw& d, Tensor& x, Tensor& s, Tensor& o, double& e) { channels(d, x, s, o), e = 0.1; });
  add("batch_norm", floating, batch_norm,
      [channels](Draw& d, Tensor& x, Tensor& s, Tensor& o, double& e) { channels(d, x, s, o), e = 0.1; });
  add("batch_norm_inference", floating, batch_norm_inference,
      [channels](Draw& d, Tensor& x, Tensor& s, Tensor& o, Tensor& m, Tensor& v, double& e) {
        channels(d, x, s, o, m, v), e = 0.1;
      });
  add("local_response_normalization", floating, local_response_normalization,
      [](Draw& d, Tensor& x, LocalResponseNormalizationOptions&) { x = d.tensor(d.extents(1, 4)); });

  add("sparse_softmax_cross_entropy", floating, sparse_softmax_cross_entropy,
      [](Draw& d, Tensor& labels, Tensor& logits) {
        const Shape front = d.extents(0, 2);
        const std::int64_t n = d.in(1, 4);
        logits = d.tensor(Draw::behind(front, {n}));
        labels = d.indices(front, n);
      });
  add("softmax_cross_entropy", floating, softmax_cross_entropy, [](Draw& d, Tensor& labels, Tensor& logits) {
    logits = d.tensor(d.extents(1, 3));
    labels = d.tensor(logits.shape());
  });
  add("l2_loss", floating, l2_loss);
  const auto ranked = [](Draw& d, Operator& a, Operator& b, auto&...) {
    a.use = Operator::tensor;
    a.x = d.tensor(d.extents(1, 3));
    b.x = d.tensor(a.x.shape());
  };
  add("sigmoid_cross_entropy", floating, sigmoid_cross_entropy, ranked);
  add("mean_squared_error", floating, mean_squared_error, ranked);
  add("huber_loss", floating, huber_loss, [ranked](Draw& d, Operator& a, Operator& b, double& delta) {
    ranked(d, a, b);
    delta = d.in(1, 3);
  });
  const auto cell = [](Draw& d, Tensor& x, LstmState& s, Tensor& w, Tensor& b, bool steps) {
    const std::int64_t batch = d.extent(), in = d.in(1, 3), units = d.in(1, 3);
    x = d.tensor(steps ? Shape{d.extent(), batch, in} : Shape{batch, in});
    s.h = d.tensor({batch, units});
    s.c = d.tensor({batch, units});
    w = d.tensor({in + units, 4 * units});
    b = d.tensor({4 * units});
  };
  add("lstm_cell", floating, lstm_cell,
      [cell](Draw& d, Tensor& x, LstmState& s, Tensor& w, Tensor& b, double&) {
        cell(d, x, s, w, b, false);
      });
  add("block_lstm", floating, block_lstm,
      [cell](Draw& d, Tensor& x, LstmState& s, Tensor& w, Tensor& b, double&) { cell(d, x, s, w, b, true); });
  add("dot_product_attention", floating, dot_product_attention,
      [](Draw& d, Tensor& q, Tensor& k, Tensor& v, Tensor& mask, DotProductOptions& o) {
        const std::int64_t batch = d.extent(), queries = d.extent(), keys = d.in(1, 5);
        o.heads = d.in(1, 3);
        o.scale.reset();
        q = d.tensor({batch, queries, o.heads * d.in(1, 3)});
        k = d.tensor({batch, keys, q.shape()[2]});
        v = d.tensor({batch, keys, o.heads * d.in(1, 3)});
        mask = d.in(0, 1) ? Tensor() : less(random::uniform({queries, keys}, {.seed = 5}), 0.7);
      });
  add("gru_cell", floating, gru_cell, [](Draw& d, Tensor& x, Tensor& h, GruWeights& w) {
    const std::int64_t batch = d.extent(), in = d.in(1, 3), units = d.in(1, 3);
    x = d.tensor({batch, in});
    h = d.tensor({batch, units});
    w = {d.tensor({in + units, 2 * units}), d.tensor({2 * units}), d.tensor({in + units, units}),
         d.tensor({units})};
  });
  add("ctc_loss", floating, ctc_loss,
      [](Draw& d, Tensor& labels, Tensor& logits, Tensor& label_lengths, Tensor& logit_lengths,
         std::int64_t& blank) {
        const std::int64_t time = d.in(1, 5), batch = d.extent(), classes = d.in(2, 4), most = d.in(1, 4);
        blank = d.in(0, static_cast<int>(classes) - 1);
        logits = d.tensor({time, batch, classes});
        labels = d.indices({batch, most}, classes);
        labels = where(equal(labels, blank),
                       astype(full({}, static_cast<double>(blank ? 0 : 1)), labels.dtype()), labels);
        label_lengths = d.indices({batch}, most + 1);
        logit_lengths = d.indices({batch}, time + 1);
      });

  const auto bits = [](Draw& d, int& n) { n = d.in(2, 16); };
  add("fake_quant_with_min_max_args", floating, fake_quant_with_min_max_args,
      [bits](Draw& d, Tensor&, double& low, double& high, FakeQuantOptions& o) {
        low = -d.in(0, 3), high = d.in(1, 3);
        bits(d, o.bits);
      });
  add("fake_quant_with_min_max_vars", floating, fake_quant_with_min_max_vars,
      [bits](Draw& d, Tensor&, Tensor& low, Tensor& high, FakeQuantOptions& o) {
        low = -abs(d.tensor({})), high = abs(d.tensor({})) + 1;
        bits(d, o.bits);
      });
  add("fake_quant_with_min_max_vars_per_channel", floating, fake_quant_with_min_max_vars_per_channel,
      [bits](Draw& d, Tensor& x, Tensor& low, Tensor& high, FakeQuantOptions& o) {
        const std::int64_t n = d.extent();
        x = d.tensor(Draw::behind(d.extents(0, 2), {n}));
        low = -abs(d.tensor({n})), high = abs(d.tensor({n})) + 1;
        bits(d, o.bits);
      });
  add("quantize_and_dequantize", floating,
      Form<Tensor, const Tensor&, const Tensor&, const Tensor&, const QuantizeAndDequantizeOptions&>(
          quantize_and_dequantize),
      [bits](Draw& d, Tensor&, Tensor& low, Tensor& high, QuantizeAndDequantizeOptions& o) {
        low = -abs(d.tensor({})), high = abs(d.tensor({})) + 1;
        bits(d, o.bits);
      });
  add("quantize_and_dequantize", floating,
      Form<Tensor, const Tensor&, const QuantizeAndDequantizeOptions&>(quantize_and_dequantize),
      [bits](Draw& d, Tensor&, QuantizeAndDequantizeOptions& o) { bits(d, o.bits); });
}

void add_random(const Adder& add) {
  add("normal", floating, random::normal, [](Draw& d, Shape&, Key&, DType& type) { type = d.dtype; });
  add("truncated_normal", floating, random::truncated_normal,
      [](Draw& d, Shape&, Key&, DType& type) { type = d.dtype; });
  add("uniform", floating, random::uniform,
      [](Draw& d, Shape&, Key&, double& low, double& high, DType& type) {
        type = d.dtype;
        low = -d.in(0, 3), high = d.in(1, 3);
      });
  add("permutation", floating, random::permutation);
  const auto drawn = [](Draw& d, Shape& shape, auto&... parameters) {
    shape = d.shape;
    ((parameters.value = d.in(1, 4) / 2.0, parameters.x = d.tensor(d.narrower())), ...);
  };
  add("gamma", floating, random::gamma, [drawn](Draw& d, Shape& shape, Operator& alpha, Key&) {
    drawn(d, shape, alpha);
    if (d.chance(80)) alpha.x = abs(alpha.x) + 0.5;
  });
  add("gamma_grad", floating, random::gamma_grad);
  add("poisson", floating, random::poisson, [drawn](Draw& d, Shape& shape, Operator& rate, Key&) {
    drawn(d, shape, rate);
    rate.x = abs(rate.x);
  });
  add("binomial", floating, random::binomial, [drawn](Draw& d, Shape& shape, Operator& n, Operator& p, Key&) {
    drawn(d, shape, n, p);
    n.x = floor(abs(n.x) * 20.0);
    n.value = d.in(0, 100);
    p.x = sigmoid(p.x);
    p.value = 0.25;
  });
  add("parameterized_truncated_normal", floating, random::parameterized_truncated_normal,
      [drawn](Draw& d, Shape& shape, Operator& mean, Operator& deviation, Operator& low, Operator& high,
              Key&) {
        drawn(d, shape, mean, deviation, low, high);
        deviation.x = abs(deviation.x) + 0.5;
        low.x = -abs(low.x) - 0.5, low.value = -1;
        high.x = abs(high.x) + 0.5;
      });
  add("categorical", floating, random::categorical, [](Draw& d, Tensor& logits, std::int64_t&, Key&) {
    logits = d.tensor(Draw::behind(d.extents(0, 2), {d.in(1, 4)}));
  });
}

}   // namespace

std::vector<std::unique_ptr<Function>> all_functions() {
  Functions list;
  const Adder add{list};
  add_elementwise(add);
  add_layout(add);
  add_linalg(add);
  add_reductions(add);
  add_images(add);
  add_networks(add);
  add_random(add);
  return list;
}

}   // namespace tapedeck::fuzz
