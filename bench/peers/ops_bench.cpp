// Compares ops with libtorch's in one process, alternately, on the same numbers: forward, and forward with
// the gradient. Prints a line for each case, and the slowest ten. Times are CPU times of the thread, the
// minimum over several rounds; a ratio above 1 means that tapedeck takes longer. Both must return dense
// tensors: a gradient of libtorch's that is only a view of dy is made contiguous. Arguments: words; only
// cases whose names contain one of them run (all by default).
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "pair.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
namespace tf = torch::nn::functional;
using Ours = std::vector<td::Tensor>;
using Theirs = std::vector<torch::Tensor>;

namespace {

// How an input is generated.
struct Input {
  enum Kind { normal, uniform, numbers, ordered, definite, truths } kind;
  td::Shape shape;
  double low = 0, high = 1;

  td::Tensor make(std::uint64_t seed) const {
    const td::random::Key key{.seed = seed};
    switch (kind) {
      case normal:
        return td::random::normal(shape, key);
      case uniform:
        return td::random::uniform(shape, key, low, high);
      case numbers:
        return td::astype(td::random::uniform(shape, key, low, high), td::DType::i64);
      case ordered:
        return td::sort(td::astype(td::random::uniform(shape, key, low, high), td::DType::i64));
      case truths:
        return td::random::uniform(shape, key) < 0.5;
      case definite:
        break;
    }
    const td::Tensor x = td::random::normal(shape, key);
    const double n = static_cast<double>(shape[shape.ndim() - 1]);
    return td::matmul(x, x, {.transpose_b = true}) / n + td::band_part(td::ones(shape), 0, 0);
  }
};
Input normal(td::Shape s) { return {Input::normal, s}; }
Input uniform(td::Shape s, double low, double high) { return {Input::uniform, s, low, high}; }
Input numbers(td::Shape s, double high) { return {Input::numbers, s, 0, high}; }
Input ordered(td::Shape s, double high) { return {Input::ordered, s, 0, high}; }
Input truths(td::Shape s) { return {Input::truths, s}; }
Input definite(td::Shape s) { return {Input::definite, s}; }

torch::Tensor copied(const td::Tensor& x) {
  const auto options = torch::dtype(x.dtype() == td::DType::f32   ? torch::kFloat
                                    : x.dtype() == td::DType::f64 ? torch::kDouble
                                    : x.dtype() == td::DType::i64 ? torch::kLong
                                    : x.dtype() == td::DType::i32 ? torch::kInt
                                                                  : torch::kBool);
  const std::vector<std::int64_t> shape(x.shape().begin(), x.shape().end());
  const void* data = nullptr;
  if (x.dtype() == td::DType::f32)
    data = x.data<float>().data();
  else if (x.dtype() == td::DType::i64)
    data = x.data<std::int64_t>().data();
  else
    data = x.data<bool>().data();
  return torch::from_blob(const_cast<void*>(data), shape, options).clone();
}

struct Case {
  std::string name;
  std::vector<Input> inputs;
  std::function<td::Tensor(const Ours&)> ours;
  std::function<torch::Tensor(const Theirs&)> theirs;
  bool differentiable = true;
  bool images = false;   // torch expects channels first
  // How results and gradients compare. same_values: gradients differ in ties, or in the half of a symmetric
  // matrix that receives them. other: results are random numbers, or positions in ties.
  enum Results { same, same_values, same_in_another_order, other } results = same;

  std::string size() const {
    std::string text;
    for (const Input& i : inputs)
      text += (text.empty() ? "" : " ") + td::to_string(i.shape);
    return text;
  }
  Case forward_only() && {
    differentiable = false;
    return std::move(*this);
  }
  Case on_images() && {
    images = true;
    return std::move(*this);
  }
  Case with(Results r) && {
    results = r;
    return std::move(*this);
  }
};

// The permutation from channels last to channels first, of images or filters.
std::vector<std::int64_t> channels_first(std::int64_t n, bool filters) {
  std::vector<std::int64_t> order = filters ? std::vector{n - 1, n - 2} : std::vector{std::int64_t{0}, n - 1};
  for (std::int64_t d = filters ? 0 : 1; static_cast<std::int64_t>(order.size()) < n; ++d)
    order.push_back(d);
  return order;
}
std::vector<std::int64_t> inverse(const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> back(order.size());
  for (std::size_t d = 0; d < order.size(); ++d)
    back[static_cast<std::size_t>(order[d])] = static_cast<std::int64_t>(d);
  return back;
}

// The largest difference, relative to the largest element; infinite if the shapes differ.
double difference(const td::Tensor& a, const torch::Tensor& b, bool in_any_order = false) {
  std::vector<double> x = a.to_vector();
  const torch::Tensor flat = b.detach().to(torch::kDouble).contiguous();
  if (flat.numel() != a.size()) return INFINITY;
  std::vector<double> y(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
  if (in_any_order) std::sort(x.begin(), x.end()), std::sort(y.begin(), y.end());
  double most = 0, scale = 1e-30;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) != std::isnan(y[i])) return INFINITY;
    most = std::max(most, std::abs(x[i] - y[i]));
    scale = std::max(scale, std::abs(y[i]));
  }
  return most / scale;
}
void require_same(const char* what, const td::Tensor& a, const torch::Tensor& b, bool in_any_order = false) {
  const double d = difference(a, b, in_any_order);
  if (!(d < 1e-3))
    throw std::runtime_error(std::string(what) + " differ by " + std::to_string(d) + " of the largest");
}

struct Line {
  std::string name, size;
  bench::Pair forward, gradient;
  double worst() const { return std::max(forward.ratio(), gradient.theirs > 0 ? gradient.ratio() : 0); }
};

Line run(const Case& c) {
  Ours x;
  for (std::size_t i = 0; i < c.inputs.size(); ++i)
    x.push_back(c.inputs[i].make(i + 1));
  Theirs t;
  std::vector<std::vector<std::int64_t>> orders(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    t.push_back(copied(x[i]));
    if (!c.images || x[i].ndim() < 3) continue;
    orders[i] = channels_first(x[i].ndim(), i > 0);
    t.back() = t.back().permute(orders[i]).contiguous();
  }
  Line line{c.name, c.size(), {}, {}};
  const td::Tensor our_y = c.ours(x);
  torch::Tensor y;
  // Converts a result of libtorch from channels first to channels last.
  const auto as_ours = [&](const torch::Tensor& v, const std::vector<std::int64_t>& order) {
    return order.empty() ? v : v.permute(inverse(order));
  };
  const bool are_images = c.images && our_y.ndim() >= 3;
  const auto order = are_images ? channels_first(our_y.ndim(), false) : std::vector<std::int64_t>();
  {
    const torch::NoGradGuard guard;
    y = c.theirs(t);
    const bool in_any_order = c.results == Case::same_in_another_order;
    if (c.results != Case::other)
      require_same("results", our_y, in_any_order ? y : as_ours(y, order), in_any_order);
    line.forward = bench::measured([&] { return c.ours(x); }, [&] { return c.theirs(t); });
  }
  if (!c.differentiable) return line;
  const td::Tensor dy = td::random::normal(our_y.shape(), {.seed = 9});
  const torch::Tensor dt = are_images && c.results == Case::same ? copied(dy).permute(order).contiguous()
                                                                 : copied(dy).reshape(y.sizes());
  std::vector<td::Tensor> sources;
  for (const td::Tensor& v : x)
    if (td::is_trainable(v.dtype())) sources.push_back(v);
  Theirs wanted;
  for (torch::Tensor& v : t)
    if (v.is_floating_point()) wanted.push_back(v.set_requires_grad(true));
  const auto ours = [&] {
    td::GradientTape tape;
    for (const td::Tensor& v : sources)
      tape.watch(v);
    const td::Tensor result = c.ours(x);
    return tape.gradient(td::Targets(result), td::Sources(sources), {.output_gradients = {dy}});
  };
  const auto theirs = [&] {
    Theirs gradients = torch::autograd::grad({c.theirs(t)}, wanted, {dt});
    for (torch::Tensor& g : gradients)
      g = g.contiguous();
    return gradients;
  };
  if (c.results == Case::same) {
    const auto our_gradients = ours();
    const Theirs their_gradients = theirs();
    for (std::size_t i = 0, k = 0; i < x.size(); ++i)
      if (td::is_trainable(x[i].dtype())) {
        require_same("gradients", our_gradients[k].dense(), as_ours(their_gradients[k], orders[i]));
        ++k;
      }
  }
  line.gradient = bench::measured(ours, theirs);
  return line;
}

template <class F, class G> void elementwise(std::vector<Case>& cases, const char* name, const F& ours,
                                             const G& theirs, double low = -2, double high = 2,
                                             bool differentiable = true) {
  for (const std::int64_t n : {10'000, 1'000'000})
    cases.push_back({name,
                     {uniform({n}, low, high)},
                     [=](const Ours& x) { return ours(x[0]); },
                     [=](const Theirs& x) { return theirs(x[0]); },
                     differentiable});
}
template <class F, class G> void pairwise(std::vector<Case>& cases, const char* name, const F& ours,
                                          const G& theirs, double low = -2, double high = 2,
                                          bool differentiable = true) {
  for (const std::int64_t n : {10'000, 1'000'000})
    cases.push_back({name,
                     {uniform({n}, low, high), uniform({n}, low, high)},
                     [=](const Ours& x) { return ours(x[0], x[1]); },
                     [=](const Theirs& x) { return theirs(x[0], x[1]); },
                     differentiable});
}

std::vector<Case> all_cases();

}   // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  const std::vector<std::string> words(argv + 1, argv + argc);
  const char* row = "%-30s %-38s %11s %11s %7s %11s %11s %7s\n";
  std::printf(row, "op, us", "inputs", "tapedeck", "libtorch", "ratio", "with grad.", "libtorch", "ratio");
  const auto figure = [](double v) {
    char text[32] = "-";
    if (v > 0) std::snprintf(text, sizeof text, v < 100 ? "%.3g" : "%.0f", v);
    return std::string(text);
  };
  const auto print = [&](const Line& l) {
    const bool g = l.gradient.theirs > 0;
    std::printf(row, l.name.c_str(), l.size.c_str(), figure(l.forward.ours).c_str(),
                figure(l.forward.theirs).c_str(), figure(l.forward.ratio()).c_str(),
                figure(l.gradient.ours).c_str(), figure(l.gradient.theirs).c_str(),
                figure(g ? l.gradient.ratio() : 0).c_str());
    std::fflush(stdout);
  };
  std::vector<Line> lines;
  int failed = 0;
  for (const Case& c : all_cases()) {
    if (!words.empty() && std::none_of(words.begin(), words.end(), [&](const std::string& w) {
          return c.name.find(w) != std::string::npos;
        }))
      continue;
    try {
      lines.push_back(run(c));
      print(lines.back());
    } catch (const std::exception& e) {
      std::printf("%s %s: failed: %s\n", c.name.c_str(), c.size().c_str(), e.what());
      ++failed;
    }
  }
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.worst() > b.worst(); });
  std::printf("\nthe slowest of %zu, by the worse of both ratios:\n", lines.size());
  for (std::size_t i = 0; i < std::min<std::size_t>(10, lines.size()); ++i)
    print(lines[i]);
  if (failed) std::printf("%d failed\n", failed);
  return failed ? 1 : 0;
}

namespace {

std::vector<Case> all_cases() {
  std::vector<Case> c;
  const auto add = [&](Case one) { c.push_back(std::move(one)); };
  const auto image = [](std::int64_t channels) { return normal({16, 56, 56, channels}); };

  elementwise(
      c, "neg", [](auto& x) { return td::neg(x); }, [](auto& x) { return -x; });
  elementwise(
      c, "abs", [](auto& x) { return td::abs(x); }, [](auto& x) { return torch::abs(x); });
  elementwise(
      c, "sign", [](auto& x) { return td::sign(x); }, [](auto& x) { return torch::sign(x); });
  elementwise(
      c, "square", [](auto& x) { return td::square(x); }, [](auto& x) { return torch::square(x); });
  elementwise(
      c, "reciprocal", [](auto& x) { return td::reciprocal(x); },
      [](auto& x) { return torch::reciprocal(x); }, 0.5, 2);
  elementwise(
      c, "clip", [](auto& x) { return td::clip(x, -1, 1); }, [](auto& x) { return torch::clamp(x, -1, 1); });
  elementwise(
      c, "floor", [](auto& x) { return td::floor(x); }, [](auto& x) { return torch::floor(x); }, -2, 2,
      false);
  elementwise(
      c, "ceil", [](auto& x) { return td::ceil(x); }, [](auto& x) { return torch::ceil(x); }, -2, 2, false);
  elementwise(
      c, "trunc", [](auto& x) { return td::trunc(x); }, [](auto& x) { return torch::trunc(x); }, -2, 2,
      false);
  elementwise(
      c, "round", [](auto& x) { return td::round(x); }, [](auto& x) { return torch::round(x); }, -2, 2,
      false);
  elementwise(
      c, "sqrt", [](auto& x) { return td::sqrt(x); }, [](auto& x) { return torch::sqrt(x); }, 0.1, 2);
  elementwise(
      c, "rsqrt", [](auto& x) { return td::rsqrt(x); }, [](auto& x) { return torch::rsqrt(x); }, 0.1, 2);
  elementwise(
      c, "exp", [](auto& x) { return td::exp(x); }, [](auto& x) { return torch::exp(x); });
  elementwise(
      c, "exp2", [](auto& x) { return td::exp2(x); }, [](auto& x) { return torch::exp2(x); });
  elementwise(
      c, "expm1", [](auto& x) { return td::expm1(x); }, [](auto& x) { return torch::expm1(x); });
  elementwise(
      c, "log", [](auto& x) { return td::log(x); }, [](auto& x) { return torch::log(x); }, 0.1, 2);
  elementwise(
      c, "log1p", [](auto& x) { return td::log1p(x); }, [](auto& x) { return torch::log1p(x); }, -0.5, 2);
  elementwise(
      c, "log2", [](auto& x) { return td::log2(x); }, [](auto& x) { return torch::log2(x); }, 0.1, 2);
  elementwise(
      c, "log10", [](auto& x) { return td::log10(x); }, [](auto& x) { return torch::log10(x); }, 0.1, 2);
  elementwise(
      c, "sin", [](auto& x) { return td::sin(x); }, [](auto& x) { return torch::sin(x); });
  elementwise(
      c, "cos", [](auto& x) { return td::cos(x); }, [](auto& x) { return torch::cos(x); });
  elementwise(
      c, "tan", [](auto& x) { return td::tan(x); }, [](auto& x) { return torch::tan(x); }, -1, 1);
  elementwise(
      c, "asin", [](auto& x) { return td::asin(x); }, [](auto& x) { return torch::asin(x); }, -0.9, 0.9);
  elementwise(
      c, "acos", [](auto& x) { return td::acos(x); }, [](auto& x) { return torch::acos(x); }, -0.9, 0.9);
  elementwise(
      c, "atan", [](auto& x) { return td::atan(x); }, [](auto& x) { return torch::atan(x); });
  elementwise(
      c, "sinh", [](auto& x) { return td::sinh(x); }, [](auto& x) { return torch::sinh(x); });
  elementwise(
      c, "cosh", [](auto& x) { return td::cosh(x); }, [](auto& x) { return torch::cosh(x); });
  elementwise(
      c, "tanh", [](auto& x) { return td::tanh(x); }, [](auto& x) { return torch::tanh(x); });
  elementwise(
      c, "asinh", [](auto& x) { return td::asinh(x); }, [](auto& x) { return torch::asinh(x); });
  elementwise(
      c, "acosh", [](auto& x) { return td::acosh(x); }, [](auto& x) { return torch::acosh(x); }, 1.1, 3);
  elementwise(
      c, "atanh", [](auto& x) { return td::atanh(x); }, [](auto& x) { return torch::atanh(x); }, -0.9, 0.9);
  elementwise(
      c, "sigmoid", [](auto& x) { return td::sigmoid(x); }, [](auto& x) { return torch::sigmoid(x); });
  elementwise(
      c, "log_sigmoid", [](auto& x) { return td::log_sigmoid(x); },
      [](auto& x) { return torch::log_sigmoid(x); });
  elementwise(
      c, "relu", [](auto& x) { return td::relu(x); }, [](auto& x) { return torch::relu(x); });
  elementwise(
      c, "leaky_relu", [](auto& x) { return td::leaky_relu(x, 0.2); },
      [](auto& x) { return torch::leaky_relu(x, 0.2); });
  elementwise(
      c, "relu6", [](auto& x) { return td::relu6(x); }, [](auto& x) { return torch::hardtanh(x, 0, 6); });
  elementwise(
      c, "elu", [](auto& x) { return td::elu(x); }, [](auto& x) { return torch::elu(x); });
  elementwise(
      c, "selu", [](auto& x) { return td::selu(x); }, [](auto& x) { return torch::selu(x); });
  elementwise(
      c, "gelu", [](auto& x) { return td::gelu(x); }, [](auto& x) { return torch::gelu(x); });
  elementwise(
      c, "silu", [](auto& x) { return td::silu(x); }, [](auto& x) { return torch::silu(x); });
  elementwise(
      c, "softplus", [](auto& x) { return td::softplus(x); }, [](auto& x) { return torch::softplus(x); });
  elementwise(
      c, "softsign", [](auto& x) { return td::softsign(x); }, [](auto& x) { return tf::softsign(x); });
  elementwise(
      c, "erf", [](auto& x) { return td::erf(x); }, [](auto& x) { return torch::erf(x); });
  elementwise(
      c, "erfc", [](auto& x) { return td::erfc(x); }, [](auto& x) { return torch::erfc(x); });
  elementwise(
      c, "erfinv", [](auto& x) { return td::erfinv(x); }, [](auto& x) { return torch::erfinv(x); }, -0.9,
      0.9);
  elementwise(
      c, "ndtri", [](auto& x) { return td::ndtri(x); }, [](auto& x) { return torch::special_ndtri(x); }, 0.1,
      0.9);
  elementwise(
      c, "lgamma", [](auto& x) { return td::lgamma(x); }, [](auto& x) { return torch::lgamma(x); }, 0.5, 5);
  elementwise(
      c, "digamma", [](auto& x) { return td::digamma(x); }, [](auto& x) { return torch::digamma(x); }, 0.5,
      5);
  elementwise(
      c, "bessel_i0", [](auto& x) { return td::bessel_i0(x); }, [](auto& x) { return torch::special_i0(x); });
  elementwise(
      c, "bessel_i0e", [](auto& x) { return td::bessel_i0e(x); },
      [](auto& x) { return torch::special_i0e(x); });
  elementwise(
      c, "bessel_i1", [](auto& x) { return td::bessel_i1(x); }, [](auto& x) { return torch::special_i1(x); });
  elementwise(
      c, "bessel_i1e", [](auto& x) { return td::bessel_i1e(x); },
      [](auto& x) { return torch::special_i1e(x); });
  elementwise(
      c, "bessel_j0", [](auto& x) { return td::bessel_j0(x); },
      [](auto& x) { return torch::special_bessel_j0(x); }, 0.5, 8, false);
  elementwise(
      c, "bessel_j1", [](auto& x) { return td::bessel_j1(x); },
      [](auto& x) { return torch::special_bessel_j1(x); }, 0.5, 8, false);
  elementwise(
      c, "bessel_y0", [](auto& x) { return td::bessel_y0(x); },
      [](auto& x) { return torch::special_bessel_y0(x); }, 0.5, 8, false);
  elementwise(
      c, "bessel_k0", [](auto& x) { return td::bessel_k0(x); },
      [](auto& x) { return torch::special_modified_bessel_k0(x); }, 0.5, 8, false);
  elementwise(
      c, "astype", [](auto& x) { return td::astype(x, td::DType::f64); },
      [](auto& x) { return x.to(torch::kDouble); }, -2, 2, false);

  pairwise(
      c, "add", [](auto& a, auto& b) { return td::add(a, b); }, [](auto& a, auto& b) { return a + b; });
  pairwise(
      c, "sub", [](auto& a, auto& b) { return td::sub(a, b); }, [](auto& a, auto& b) { return a - b; });
  pairwise(
      c, "mul", [](auto& a, auto& b) { return td::mul(a, b); }, [](auto& a, auto& b) { return a * b; });
  pairwise(
      c, "div", [](auto& a, auto& b) { return td::div(a, b); }, [](auto& a, auto& b) { return a / b; }, 0.5,
      2);
  pairwise(
      c, "maximum", [](auto& a, auto& b) { return td::maximum(a, b); },
      [](auto& a, auto& b) { return torch::maximum(a, b); });
  pairwise(
      c, "minimum", [](auto& a, auto& b) { return td::minimum(a, b); },
      [](auto& a, auto& b) { return torch::minimum(a, b); });
  pairwise(
      c, "pow", [](auto& a, auto& b) { return td::pow(a, b); },
      [](auto& a, auto& b) { return torch::pow(a, b); }, 0.5, 2);
  pairwise(
      c, "atan2", [](auto& a, auto& b) { return td::atan2(a, b); },
      [](auto& a, auto& b) { return torch::atan2(a, b); });
  pairwise(
      c, "hypot", [](auto& a, auto& b) { return td::hypot(a, b); },
      [](auto& a, auto& b) { return torch::hypot(a, b); });
  pairwise(
      c, "logaddexp", [](auto& a, auto& b) { return td::logaddexp(a, b); },
      [](auto& a, auto& b) { return torch::logaddexp(a, b); });
  pairwise(
      c, "xlogy", [](auto& a, auto& b) { return td::xlogy(a, b); },
      [](auto& a, auto& b) { return torch::xlogy(a, b); }, 0.5, 2);
  pairwise(
      c, "xlog1py", [](auto& a, auto& b) { return td::xlog1py(a, b); },
      [](auto& a, auto& b) { return torch::special_xlog1py(a, b); }, 0.5, 2);
  pairwise(
      c, "floor_div", [](auto& a, auto& b) { return td::floor_div(a, b); },
      [](auto& a, auto& b) { return torch::floor_divide(a, b); }, 0.5, 5, false);
  pairwise(
      c, "floor_mod", [](auto& a, auto& b) { return td::floor_mod(a, b); },
      [](auto& a, auto& b) { return torch::remainder(a, b); }, 0.5, 5);
  pairwise(
      c, "nextafter", [](auto& a, auto& b) { return td::nextafter(a, b); },
      [](auto& a, auto& b) { return torch::nextafter(a, b); }, -2, 2, false);
  pairwise(
      c, "less", [](auto& a, auto& b) { return td::less(a, b); },
      [](auto& a, auto& b) { return torch::lt(a, b); }, -2, 2, false);
  pairwise(
      c, "equal", [](auto& a, auto& b) { return td::equal(a, b); },
      [](auto& a, auto& b) { return torch::eq(a, b); }, -2, 2, false);
  pairwise(
      c, "igamma", [](auto& a, auto& b) { return td::igamma(a, b); },
      [](auto& a, auto& b) { return torch::special_gammainc(a, b); }, 0.5, 3, false);
  pairwise(
      c, "igammac", [](auto& a, auto& b) { return td::igammac(a, b); },
      [](auto& a, auto& b) { return torch::special_gammaincc(a, b); }, 0.5, 3, false);
  pairwise(
      c, "zeta", [](auto& a, auto& b) { return td::zeta(a, b); },
      [](auto& a, auto& b) { return torch::special_zeta(a, b); }, 1.5, 3, false);
  pairwise(
      c, "mean_squared_error", [](auto& a, auto& b) { return td::mean_squared_error(a, b); },
      [](auto& a, auto& b) { return torch::mse_loss(b, a); });
  pairwise(
      c, "huber_loss", [](auto& a, auto& b) { return td::huber_loss(a, b); },
      [](auto& a, auto& b) { return torch::huber_loss(b, a); });
  pairwise(
      c, "sigmoid_cross_entropy", [](auto& a, auto& b) { return td::sigmoid_cross_entropy(a, b); },
      [](auto& a, auto& b) {
        return torch::binary_cross_entropy_with_logits(b, a, {}, {}, at::Reduction::None);
      },
      0.1, 0.9);
  add({"where",
       {truths({1000, 1000}), normal({1000, 1000}), normal({1000, 1000})},
       [](const Ours& x) { return td::where(x[0], x[1], x[2]); },
       [](const Theirs& x) { return torch::where(x[0], x[1], x[2]); }});
  add({"add a row",
       {normal({1000, 1000}), normal({1000})},
       [](const Ours& x) { return x[0] + x[1]; },
       [](const Theirs& x) { return x[0] + x[1]; }});
  add({"add a column",
       {normal({1000, 1000}), normal({1000, 1})},
       [](const Ours& x) { return x[0] + x[1]; },
       [](const Theirs& x) { return x[0] + x[1]; }});
  add({"cross",
       {normal({100000, 3}), normal({100000, 3})},
       [](const Ours& x) { return td::cross(x[0], x[1]); },
       [](const Theirs& x) { return torch::linalg_cross(x[0], x[1]); }});

  for (const int axis : {0, 1}) {
    const auto named = [&](const char* name) { return name + (" over axis " + std::to_string(axis)); };
    const std::vector<Input> square = {normal({1000, 1000})}, small = {uniform({1000, 1000}, 0.9, 1.1)};
    add({named("sum"), square, [=](const Ours& x) { return td::sum(x[0], axis); },
         [=](const Theirs& x) { return x[0].sum(axis); }});
    add({named("mean"), square, [=](const Ours& x) { return td::mean(x[0], axis); },
         [=](const Theirs& x) { return x[0].mean(axis); }});
    add({named("prod"), small, [=](const Ours& x) { return td::prod(x[0], axis); },
         [=](const Theirs& x) { return x[0].prod(axis); }});
    add({named("max"), square, [=](const Ours& x) { return td::max(x[0], axis); },
         [=](const Theirs& x) { return x[0].amax(axis); }});
    add({named("min"), square, [=](const Ours& x) { return td::min(x[0], axis); },
         [=](const Theirs& x) { return x[0].amin(axis); }});
    add({named("logsumexp"), square, [=](const Ours& x) { return td::logsumexp(x[0], axis); },
         [=](const Theirs& x) { return torch::logsumexp(x[0], axis); }});
    add({named("variance"), square, [=](const Ours& x) { return td::variance(x[0], axis); },
         [=](const Theirs& x) { return torch::var(x[0], {axis}, 0); }});
    add({named("stddev"), square, [=](const Ours& x) { return td::stddev(x[0], axis); },
         [=](const Theirs& x) { return torch::std(x[0], {axis}, 0); }});
    add({named("euclidean_norm"), square, [=](const Ours& x) { return td::euclidean_norm(x[0], axis); },
         [=](const Theirs& x) { return torch::norm(x[0], 2, axis); }});
    add(Case{
        named("argmax"), square, [=](const Ours& x) { return td::argmax(x[0], axis); },
        [=](const Theirs& x) {
          return x[0].argmax(axis);
        }}.forward_only());
    add(Case{
        named("count_nonzero"), square, [=](const Ours& x) { return td::count_nonzero(x[0], axis); },
        [=](const Theirs& x) {
          return x[0].count_nonzero(c10::optional<std::int64_t>(axis));
        }}.forward_only());
    add(Case{
        named("any"),
        {truths({1000, 1000})},
        [=](const Ours& x) { return td::any(x[0], axis); },
        [=](const Theirs& x) {
          return x[0].any(axis);
        }}.forward_only());
    add({named("softmax"), square, [=](const Ours& x) { return td::softmax(x[0], axis); },
         [=](const Theirs& x) { return torch::softmax(x[0], axis); }});
    add({named("log_softmax"), square, [=](const Ours& x) { return td::log_softmax(x[0], axis); },
         [=](const Theirs& x) { return torch::log_softmax(x[0], axis); }});
    add({named("cumsum"), square, [=](const Ours& x) { return td::cumsum(x[0], axis); },
         [=](const Theirs& x) { return x[0].cumsum(axis); }});
    add({named("cumprod"), small, [=](const Ours& x) { return td::cumprod(x[0], axis); },
         [=](const Theirs& x) { return x[0].cumprod(axis); }});
    add({named("cumulative_logsumexp"), square,
         [=](const Ours& x) { return td::cumulative_logsumexp(x[0], axis); },
         [=](const Theirs& x) { return torch::logcumsumexp(x[0], axis); }});
    add(Case{
        named("sort"), square, [=](const Ours& x) { return td::sort(x[0], axis); },
        [=](const Theirs& x) {
          return std::get<0>(x[0].sort(axis));
        }}.with(Case::same_values));
    add(Case{named("argsort"), square, [=](const Ours& x) { return td::argsort(x[0], axis); },
             [=](const Theirs& x) { return x[0].argsort(std::int64_t{axis}); }}
            .forward_only()
            .with(Case::other));
    add({named("top_k of 10"), square, [=](const Ours& x) { return td::top_k(x[0], 10, axis).values; },
         [=](const Theirs& x) { return std::get<0>(x[0].topk(10, axis)); }});
    add({named("nth_element"), square, [=](const Ours& x) { return td::nth_element(x[0], 499, axis); },
         [=](const Theirs& x) { return std::get<0>(x[0].kthvalue(500, axis)); }});
    add({named("concat"),
         {normal({500, 1000}), normal({500, 1000})},
         [=](const Ours& x) { return td::concat(x, axis); },
         [=](const Theirs& x) { return torch::cat(x, axis); }});
    add({named("stack"),
         {normal({500, 1000}), normal({500, 1000})},
         [=](const Ours& x) { return td::stack(x, axis); },
         [=](const Theirs& x) { return torch::stack(x, axis); }});
    add({named("roll"), square, [=](const Ours& x) { return td::roll(x[0], 7, axis); },
         [=](const Theirs& x) { return torch::roll(x[0], 7, axis); }});
    add({named("reverse"), square, [=](const Ours& x) { return td::reverse(x[0], axis); },
         [=](const Theirs& x) { return torch::flip(x[0], {axis}); }});
    add({named("repeat"), square, [=](const Ours& x) { return td::repeat(x[0], 2, axis); },
         [=](const Theirs& x) { return torch::repeat_interleave(x[0], 2, axis); }});
    add({named("gather"),
         {normal({1000, 1000}), numbers({1000}, 1000)},
         [=](const Ours& x) { return td::gather(x[0], x[1], axis); },
         [=](const Theirs& x) { return x[0].index_select(axis, x[1]); }});
    add({named("take_along_axis"),
         {normal({1000, 1000}), numbers({1000, 1000}, 1000)},
         [=](const Ours& x) { return td::take_along_axis(x[0], x[1], axis); },
         [=](const Theirs& x) { return x[0].gather(axis, x[1]); }});
    add({named("scatter_add"),
         {normal({1000, 1000}), numbers({1000}, 1000)},
         [=](const Ours& x) {
           return td::scatter_add(x[0], x[1], {1000, 1000}, axis);
         },
         [=](const Theirs& x) {
           return torch::zeros({1000, 1000}).index_add(axis, x[1], x[0]);
         }});
  }
  add({"sum",
       {normal({1000, 1000})},
       [](const Ours& x) { return td::sum(x[0]); },
       [](const Theirs& x) { return x[0].sum(); }});
  add({"max",
       {normal({1000, 1000})},
       [](const Ours& x) { return td::max(x[0]); },
       [](const Theirs& x) { return x[0].amax(); }});
  add({"transpose",
       {normal({1000, 1000})},
       [](const Ours& x) { return td::transpose(x[0]); },
       [](const Theirs& x) { return x[0].t().contiguous(); }});
  add({"transpose of heads",
       {normal({32, 128, 8, 64})},
       [](const Ours& x) {
         return td::transpose(x[0], {0, 2, 1, 3});
       },
       [](const Theirs& x) {
         return x[0].permute({0, 2, 1, 3}).contiguous();
       }});
  add({"transpose to channels last",
       {normal({16, 64, 56, 56})},
       [](const Ours& x) {
         return td::transpose(x[0], {0, 2, 3, 1});
       },
       [](const Theirs& x) {
         return x[0].permute({0, 2, 3, 1}).contiguous();
       }});
  add({"broadcast_to",
       {normal({1000, 1})},
       [](const Ours& x) {
         return td::broadcast_to(x[0], {1000, 1000});
       },
       [](const Theirs& x) {
         return x[0].expand({1000, 1000}).contiguous();
       }});
  add({"tile",
       {normal({500, 500})},
       [](const Ours& x) {
         return td::tile(x[0], {2, 2});
       },
       [](const Theirs& x) {
         return x[0].repeat({2, 2});
       }});
  add(Case{
      "one_hot",
      {numbers({1000}, 1000)},
      [](const Ours& x) { return td::one_hot(x[0], 1000); },
      [](const Theirs& x) {
        return torch::one_hot(x[0], 1000).to(torch::kFloat);
      }}.forward_only());
  add({"slice",
       {normal({1000, 1000})},
       [](const Ours& x) {
         return td::slice(x[0], {100, 100}, {800, 800});
       },
       [](const Theirs& x) { return x[0].narrow(0, 100, 800).narrow(1, 100, 800).contiguous(); }});
  add({"strided_slice",
       {normal({1000, 1000})},
       [](const Ours& x) {
         return td::strided_slice(x[0], {td::Slice{0, 1000, 2}, td::Slice{1, 1000, 2}});
       },
       [](const Theirs& x) { return x[0].slice(0, 0, 1000, 2).slice(1, 1, 1000, 2).contiguous(); }});
  add({"pad",
       {normal({1000, 1000})},
       [](const Ours& x) {
         return td::pad(x[0], {3, 5}, {2, 7});
       },
       [](const Theirs& x) {
         return torch::constant_pad_nd(x[0], {5, 7, 3, 2});
       }});
  add({"pad of images",
       {normal({16, 56, 56, 64})},
       [](const Ours& x) {
         return td::pad(x[0], {0, 1, 1, 0}, {0, 1, 1, 0});
       },
       [](const Theirs& x) {
         return torch::constant_pad_nd(x[0], {0, 0, 1, 1, 1, 1});
       }});
  add({"mirror_pad",
       {normal({4, 500, 500})},
       [](const Ours& x) {
         return td::mirror_pad(x[0], {0, 3, 5}, {0, 2, 7});
       },
       [](const Theirs& x) {
         return torch::reflection_pad2d(x[0], {5, 7, 3, 2});
       }});
  add({"gather_nd",
       {normal({1000, 1000}), numbers({100000, 2}, 1000)},
       [](const Ours& x) { return td::gather_nd(x[0], x[1]); },
       [](const Theirs& x) {
         return x[0].index({x[1].select(1, 0), x[1].select(1, 1)});
       }});
  add({"scatter_nd",
       {numbers({100000, 1}, 10000), normal({100000, 8})},
       [](const Ours& x) {
         return td::scatter_nd(x[0], x[1], {10000, 8});
       },
       [](const Theirs& x) {
         return torch::zeros({10000, 8}).index_put({x[0].select(1, 0)}, x[1], true);
       }});
  add({"segment_sum",
       {normal({100000, 16}), ordered({100000}, 1000)},
       [](const Ours& x) { return td::unsorted_segment_sum(x[0], x[1], 1000); },
       [](const Theirs& x) {
         return torch::zeros({1000, 16}).index_add(0, x[1], x[0]);
       }});
  add({"embedding",
       {normal({50000, 64}), numbers({1024}, 50000)},
       [](const Ours& x) { return td::gather(x[0], x[1]); },
       [](const Theirs& x) { return torch::embedding(x[0], x[1]); }});
  add(Case{
      "nonzero",
      {truths({1000, 1000})},
      [](const Ours& x) { return td::nonzero(x[0]); },
      [](const Theirs& x) {
        return torch::nonzero(x[0]);
      }}.forward_only());
  add({"boolean_mask",
       {normal({1000, 1000}), truths({1000, 1000})},
       [](const Ours& x) { return td::boolean_mask(x[0], x[1]); },
       [](const Theirs& x) { return torch::masked_select(x[0], x[1]); }});
  add(Case{"unique",
           {numbers({100000}, 1000)},
           [](const Ours& x) { return td::unique(x[0]).values; },
           [](const Theirs& x) { return std::get<0>(torch::_unique2(x[0], true, true, true)); }}
          .forward_only()
          .with(Case::other));
  add(Case{
      "searchsorted",
      {ordered({10000}, 1e6), numbers({100000}, 1e6)},
      [](const Ours& x) { return td::searchsorted(x[0], x[1]); },
      [](const Theirs& x) {
        return torch::searchsorted(x[0], x[1]);
      }}.forward_only());

  for (const std::int64_t n : {64, 256})
    add({"matmul",
         {normal({n, n}), normal({n, n})},
         [](const Ours& x) { return td::matmul(x[0], x[1]); },
         [](const Theirs& x) { return torch::mm(x[0], x[1]); }});
  add({"matmul of batches",
       {normal({16, 128, 128}), normal({16, 128, 128})},
       [](const Ours& x) { return td::matmul(x[0], x[1]); },
       [](const Theirs& x) { return torch::bmm(x[0], x[1]); }});
  add({"einsum, attention",
       {normal({4, 128, 8, 64}), normal({4, 128, 8, 64})},
       [](const Ours& x) { return td::einsum("bqhd,bkhd->bhqk", x); },
       [](const Theirs& x) { return torch::einsum("bqhd,bkhd->bhqk", x); }});
  for (const td::Shape& s : {td::Shape{64, 64}, td::Shape{64, 8, 8}}) {
    td::Shape rhs = s;
    add({"cholesky",
         {definite(s)},
         [](const Ours& x) { return td::cholesky(x[0]); },
         [](const Theirs& x) { return torch::linalg_cholesky(x[0]); }});
    add({"inv",
         {definite(s)},
         [](const Ours& x) { return td::inv(x[0]); },
         [](const Theirs& x) { return torch::linalg_inv(x[0]); }});
    add({"det",
         {definite(s)},
         [](const Ours& x) { return td::det(x[0]); },
         [](const Theirs& x) { return torch::linalg_det(x[0]); }});
    add({"slogdet",
         {definite(s)},
         [](const Ours& x) { return td::slogdet(x[0]).log_abs; },
         [](const Theirs& x) { return std::get<1>(torch::linalg_slogdet(x[0])); }});
    add({"solve",
         {definite(s), normal(s)},
         [](const Ours& x) { return td::solve(x[0], x[1]); },
         [](const Theirs& x) { return torch::linalg_solve(x[0], x[1]); }});
    add({"triangular_solve",
         {definite(s), normal(s)},
         [](const Ours& x) { return td::triangular_solve(x[0], x[1]); },
         [](const Theirs& x) { return torch::linalg_solve_triangular(x[0], x[1], false); }});
    add({"qr",
         {normal(s)},
         [](const Ours& x) { return td::qr(x[0]).r; },
         [](const Theirs& x) { return std::get<1>(torch::linalg_qr(x[0])); }});
    add(Case{
        "eigh",
        {definite(s)},
        [](const Ours& x) { return td::eigh(x[0]).values; },
        [](const Theirs& x) {
          return std::get<0>(torch::linalg_eigh(x[0]));
        }}.with(Case::same_values));
    add({"svd",
         {normal(s)},
         [](const Ours& x) { return td::svd(x[0]).s; },
         [](const Theirs& x) { return std::get<1>(torch::linalg_svd(x[0], false)); }});
    add({"matrix_exponential",
         {uniform(s, -0.1, 0.1)},
         [](const Ours& x) { return td::matrix_exponential(x[0]); },
         [](const Theirs& x) { return torch::matrix_exp(x[0]); }});
  }
  add({"tril",
       {normal({1000, 1000})},
       [](const Ours& x) { return td::tril(x[0]); },
       [](const Theirs& x) { return torch::tril(x[0]); }});
  add({"diagonal",
       {normal({1000, 1000})},
       [](const Ours& x) { return td::diagonal(x[0]); },
       [](const Theirs& x) { return x[0].diagonal().contiguous(); }});
  add({"matrix_diag",
       {normal({1000})},
       [](const Ours& x) { return td::matrix_diag(x[0]); },
       [](const Theirs& x) { return torch::diag_embed(x[0]); }});

  add({"layer_norm",
       {normal({1000, 1000}), normal({1000}), normal({1000})},
       [](const Ours& x) { return td::layer_norm(x[0], x[1], x[2]); },
       [](const Theirs& x) { return torch::layer_norm(x[0], {1000}, x[1], x[2]); }});
  add(Case{
      "batch_norm",
      {image(64), normal({64}), normal({64})},
      [](const Ours& x) { return td::batch_norm(x[0], x[1], x[2], 1e-3).y; },
      [](const Theirs& x) {
        return torch::batch_norm(x[0], x[1], x[2], {}, {}, true, 0.1, 1e-3, false);
      }}.on_images());
  add(Case{
      "local_response_normalization",
      {image(16)},
      [](const Ours& x) {
        return td::local_response_normalization(x[0], {.radius = 2, .bias = 1, .alpha = 1e-4, .beta = 0.75});
      },
      [](const Theirs& x) {
        return tf::local_response_norm(x[0], tf::LocalResponseNormFuncOptions(5).alpha(5e-4).beta(0.75).k(1));
      }}.on_images());
  add({"sparse_softmax_cross_entropy",
       {numbers({1000}, 1000), normal({1000, 1000})},
       [](const Ours& x) { return td::sparse_softmax_cross_entropy(x[0], x[1]); },
       [](const Theirs& x) { return torch::cross_entropy_loss(x[1], x[0], {}, at::Reduction::None); }});
  add(Case{
      "dropout",
      {normal({1000, 1000})},
      [](const Ours& x) { return td::dropout(x[0], 0.5, {.seed = 1}); },
      [](const Theirs& x) {
        return torch::dropout(x[0], 0.5, true);
      }}.with(Case::other));
  add(Case{"bias_add",
           {normal({1000, 1000}), normal({1000})},
           [](const Ours& x) { return td::bias_add(x[0], x[1]); },
           [](const Theirs& x) { return x[0] + x[1]; }});

  const td::Conv2dOptions same{.padding = td::Padding::same};
  add(Case{
      "conv2d 3x3",
      {image(64), normal({3, 3, 64, 64})},
      [=](const Ours& x) { return td::conv2d(x[0], x[1], same); },
      [](const Theirs& x) {
        return torch::conv2d(x[0], x[1], {}, 1, 1);
      }}.on_images());
  add(Case{
      "conv2d 1x1",
      {image(64), normal({1, 1, 64, 64})},
      [=](const Ours& x) { return td::conv2d(x[0], x[1], same); },
      [](const Theirs& x) {
        return torch::conv2d(x[0], x[1]);
      }}.on_images());
  add(Case{
      "conv2d 3x3, stride 2",
      {image(64), normal({3, 3, 64, 64})},
      [](const Ours& x) { return td::conv2d(x[0], x[1], {.strides = 2, .padding = 1}); },
      [](const Theirs& x) {
        return torch::conv2d(x[0], x[1], {}, 2, 1);
      }}.on_images());
  add(Case{
      "conv2d 3x3, dilation 2",
      {image(64), normal({3, 3, 64, 64})},
      [](const Ours& x) { return td::conv2d(x[0], x[1], {.dilation = 2, .padding = 2}); },
      [](const Theirs& x) {
        return torch::conv2d(x[0], x[1], {}, 1, 2, 2);
      }}.on_images());
  add(Case{
      "conv2d 3x3, 4 groups",
      {image(64), normal({3, 3, 16, 64})},
      [](const Ours& x) { return td::conv2d(x[0], x[1], {.padding = 1, .groups = 4}); },
      [](const Theirs& x) {
        return torch::conv2d(x[0], x[1], {}, 1, 1, 1, 4);
      }}.on_images());
  add(Case{
      "conv2d 3x3, 32 groups",
      {normal({16, 28, 28, 128}), normal({3, 3, 4, 128})},
      [](const Ours& x) { return td::conv2d(x[0], x[1], {.padding = 1, .groups = 32}); },
      [](const Theirs& x) {
        return torch::conv2d(x[0], x[1], {}, 1, 1, 1, 32);
      }}.on_images());
  add(Case{
      "conv2d 5x5, small",
      {normal({8, 8, 8, 4}), normal({3, 3, 4, 8})},
      [=](const Ours& x) { return td::conv2d(x[0], x[1], same); },
      [](const Theirs& x) {
        return torch::conv2d(x[0], x[1], {}, 1, 1);
      }}.on_images());
  add(Case{
      "conv2d_transpose",
      {normal({16, 28, 28, 64}), normal({3, 3, 32, 64})},
      [](const Ours& x) {
        return td::conv2d_transpose(x[0], x[1], {.strides = 2, .padding = 1, .size = 56});
      },
      [](const Theirs& x) {
        return torch::conv_transpose2d(x[0], x[1], {}, 2, 1, 1);
      }}.on_images());
  add(Case{
      "depthwise_conv2d",
      {image(64), normal({3, 3, 64, 1})},
      [=](const Ours& x) { return td::depthwise_conv2d(x[0], x[1], same); },
      [](const Theirs& x) {
        return torch::conv2d(x[0], x[1].permute({1, 0, 2, 3}), {}, 1, 1, 1, 64);
      }}.on_images());
  add(Case{
      "conv1d",
      {normal({32, 500, 64}), normal({3, 64, 64})},
      [](const Ours& x) { return td::conv1d(x[0], x[1], {.padding = td::Padding::same}); },
      [](const Theirs& x) {
        return torch::conv1d(x[0], x[1], {}, 1, 1);
      }}.on_images());
  add(Case{
      "conv3d",
      {normal({2, 16, 28, 28, 16}), normal({3, 3, 3, 16, 32})},
      [](const Ours& x) { return td::conv3d(x[0], x[1]); },
      [](const Theirs& x) {
        return torch::conv3d(x[0], x[1]);
      }}.on_images());
  add(Case{
      "conv3d, few channels",
      {normal({4, 16, 32, 32, 3}), normal({3, 3, 3, 3, 16})},
      [](const Ours& x) { return td::conv3d(x[0], x[1], {.padding = td::Padding::same}); },
      [](const Theirs& x) {
        return torch::conv3d(x[0], x[1], {}, 1, 1);
      }}.on_images());
  add(Case{
      "conv3d_transpose",
      {normal({2, 8, 14, 14, 32}), normal({2, 2, 2, 16, 32})},
      [](const Ours& x) { return td::conv3d_transpose(x[0], x[1], {.strides = 2}); },
      [](const Theirs& x) {
        return torch::conv_transpose3d(x[0], x[1], {}, 2);
      }}.on_images());
  add(Case{
      "max_pool2d",
      {image(64)},
      [](const Ours& x) { return td::max_pool2d(x[0], {.window = 2}); },
      [](const Theirs& x) {
        return torch::max_pool2d(x[0], 2);
      }}.on_images());
  add(Case{
      "max_pool2d, overlapping",
      {image(64)},
      [](const Ours& x) { return td::max_pool2d(x[0], {.window = 3, .strides = 2}); },
      [](const Theirs& x) {
        return torch::max_pool2d(x[0], 3, 2);
      }}.on_images());
  add(Case{
      "avg_pool2d",
      {image(64)},
      [](const Ours& x) { return td::avg_pool2d(x[0], {.window = 2}); },
      [](const Theirs& x) {
        return torch::avg_pool2d(x[0], 2);
      }}.on_images());
  add(Case{
      "max_pool1d",
      {normal({32, 500, 64})},
      [](const Ours& x) { return td::max_pool1d(x[0], {.window = 2}); },
      [](const Theirs& x) {
        return torch::max_pool1d(x[0], 2);
      }}.on_images());
  add(Case{
      "max_pool3d",
      {normal({2, 16, 28, 28, 16})},
      [](const Ours& x) { return td::max_pool3d(x[0], {.window = 2}); },
      [](const Theirs& x) {
        return torch::max_pool3d(x[0], 2);
      }}.on_images());
  add(Case{
      "avg_pool3d",
      {normal({2, 16, 28, 28, 16})},
      [](const Ours& x) { return td::avg_pool3d(x[0], {.window = 2}); },
      [](const Theirs& x) {
        return torch::avg_pool3d(x[0], 2);
      }}.on_images());
  const auto resized = [](int to, auto mode) {
    return [=](const Theirs& x) {
      auto options = tf::InterpolateFuncOptions().size(std::vector<std::int64_t>{to, to}).mode(mode);
      if (!std::is_same_v<decltype(mode), torch::enumtype::kNearest>) options.align_corners(false);
      return tf::interpolate(x[0], options);
    };
  };
  for (const int to : {28, 112}) {
    add(Case{"resize_bilinear to " + std::to_string(to),
             {image(16)},
             [=](const Ours& x) { return td::resize_bilinear(x[0], to); },
             resized(to, torch::kBilinear)}
            .on_images());
    add(Case{"resize_nearest to " + std::to_string(to),
             {image(16)},
             [=](const Ours& x) { return td::resize_nearest(x[0], to); },
             resized(to, torch::kNearest)}
            .on_images()
            .with(Case::other));
    add(Case{"resize_bicubic to " + std::to_string(to),
             {image(16)},
             [=](const Ours& x) { return td::resize_bicubic(x[0], to); },
             resized(to, torch::kBicubic)}
            .on_images()
            .with(Case::other));
  }
  add(Case{"extract_image_patches",
           {image(16)},
           [](const Ours& x) { return td::extract_image_patches(x[0], {.window = 3}); },
           [](const Theirs& x) {
             return torch::im2col(x[0], {3, 3}, {1, 1}, {0, 0}, {1, 1});
           }}
          .on_images()
          .with(Case::same_in_another_order));
  add(Case{"space_to_depth",
           {image(16)},
           [](const Ours& x) { return td::space_to_depth(x[0], 2); },
           [](const Theirs& x) { return torch::pixel_unshuffle(x[0], 2); }}
          .on_images()
          .with(Case::same_in_another_order));
  add(Case{"depth_to_space",
           {image(16)},
           [](const Ours& x) { return td::depth_to_space(x[0], 2); },
           [](const Theirs& x) { return torch::pixel_shuffle(x[0], 2); }}
          .on_images()
          .with(Case::same_in_another_order));

  add(Case{"random uniform",
           {normal({1000000})},
           [](const Ours&) { return td::random::uniform({1'000'000}, {.seed = 1}); },
           [](const Theirs&) { return torch::rand({1'000'000}); }}
          .forward_only()
          .with(Case::other));
  add(Case{"random normal",
           {normal({1000000})},
           [](const Ours&) { return td::random::normal({1'000'000}, {.seed = 1}); },
           [](const Theirs&) { return torch::randn({1'000'000}); }}
          .forward_only()
          .with(Case::other));
  return c;
}

}   // namespace
