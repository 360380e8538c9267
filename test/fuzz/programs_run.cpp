// Runs a random program.
#include <cmath>

#include "programs.h"
#include "tensors_of.h"

namespace tapedeck::fuzz {

Tensor fit(const Tensor& x, const Spec& spec) {
  Tensor y = x;
  if (is_complex(x.dtype()) && !is_complex(spec.dtype)) y = real(x) + 0.5 * imag(x);
  y = astype(y, is_complex(y.dtype()) ? spec.dtype : real_of(spec.dtype));
  if (is_complex(spec.dtype) && !is_complex(y.dtype())) y = complex(y, 0.5 * y);
  if (y.shape() == spec.shape) return y;
  const std::int64_t n = spec.shape.size();
  if (y.size() == 0 || n == 0) return broadcast_to(sum(y), spec.shape);
  y = reshape(y, {-1});
  if (y.size() < n) y = tile(y, Shape{(n + y.size() - 1) / y.size()});
  if (y.size() > n) y = slice(y, {0}, {n});
  return reshape(y, spec.shape);
}

namespace {

/// Smooth, and between -1 and 1.
Tensor bounded(const Tensor& x) {
  return is_complex(x.dtype()) ? complex(sin(real(x)), sin(imag(x))) : sin(x);
}
Tensor near(const Tensor& constant, const Tensor& x) {
  return constant + 0.1 * bounded(fit(x, constant.spec()));
}
Tensor next_state(const Tensor& state, const Tensor& y) {
  return 0.5 * state + 0.3 * bounded(fit(y, state.spec()));
}

Tensor or_zeros(const Tensor& x, const Tensor& like) { return x.defined() ? x : zeros_like(like); }
std::vector<Tensor> or_zeros(const std::vector<Gradient>& g, std::span<const Tensor> like) {
  std::vector<Tensor> list;
  for (std::size_t i = 0; i < g.size(); ++i)
    list.push_back(g[i].defined() ? g[i].dense() : zeros_like(like[i]));
  return list;
}

// Arguments that stand for themselves, though the same tensor may be given twice.
std::vector<Tensor> copies(std::span<const Tensor> x) {
  std::vector<Tensor> list;
  for (const Tensor& t : x)
    list.push_back(t.defined() ? identity(t) : t);
  return list;
}

// The gradient of f, by running it again; of the sum of its results without dy.
std::vector<Tensor> gradient_of(const tapedeck::Function& f, std::span<const Tensor> x,
                                std::span<const Tensor> dy = {}, std::span<const Variable> variables = {}) {
  GradientTape tape;
  std::vector<Source> sources;
  std::vector<Tensor> like;
  for (const Tensor& t : copies(x))
    tape.watch(t), sources.emplace_back(t), like.push_back(t);
  const std::vector<Tensor> own = like;
  for (const Variable& v : variables)
    sources.emplace_back(v), like.push_back(v.value());
  const std::vector<Tensor> y = f(own);
  OutputGradients cotangents(std::vector<Tensor>(dy.begin(), dy.end()));
  return or_zeros(tape.gradient(Targets(y), Sources(sources), {.output_gradients = cotangents}), like);
}

}   // namespace

Run::Run(const Program& p, Precision precision) : program_(p), precision_(precision) {}

std::vector<Source> Run::sources() const {
  std::vector<Source> list;
  for (const Tensor& x : inputs)
    list.emplace_back(x);
  for (const Variable& v : variables)
    list.emplace_back(v);
  return list;
}

void Run::begin() {
  const auto at = [&](bool narrow) {
    return precision_ == Precision::wide || (precision_ == Precision::mixed && !narrow);
  };
  inputs.clear(), variables.clear(), slots.clear();
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    Tensor x = program_.inputs[i];
    if (moved != 0) x = x + moved * program_.directions[i];
    inputs.push_back(identity(astype(x, with_precision(x.dtype(), at(program_.narrow_input[i])))));
  }
  for (std::size_t i = 0; i < program_.variables.size(); ++i) {
    const Tensor& x = program_.variables[i];
    variables.emplace_back(astype(x, with_precision(x.dtype(), at(program_.narrow_variable[i]))));
  }
  slots = inputs;
  for (const int v : program_.read_before)
    slots.push_back(variables[static_cast<std::size_t>(v)].value());
  if (cuts) cuts->next = 0;
}

std::vector<Tensor> Run::run() {
  run_body(program_.steps, slots);
  std::vector<Tensor> y;
  for (const int t : program_.targets)
    y.push_back(slots[static_cast<std::size_t>(t)]);
  return y;
}

void Run::run_body(const std::vector<Step>& body, Slots& s) {
  for (const Step& step : body)
    run_step(step, s);
}

void Run::run_step(const Step& s, Slots& to) {
  std::vector<Tensor> y;
  if (s.frozen) {
    for (const Tensor& v : s.values)
      y.push_back(astype(v, dtype_of(s, v.dtype())));
  } else {
    std::optional<StopRecording> stop;
    if (s.stopped) stop.emplace();
    y = results(s, to);
    if (s.stopped) y = copies(y);   // what is returned as it came would not be cut
  }
  for (const Tensor& v : y) {
    if (!v.defined() || !is_trainable(v.dtype())) continue;
    to.push_back(shaken ? shake(v, to.size()) : v);
    if (is_cut(s)) to.back() = cut_off(to.back());
    if (stop == static_cast<int>(to.size()) - 1 && &to == &slots) to.back() = stop_gradient(to.back());
  }
}

Tensor Run::cut_off(const Tensor& x) {
  if (!cuts) return x;
  if (cuts->replayed && cuts->next == cuts->values.size())
    throw ArgumentError("programs: another branch was taken than at first");
  if (cuts->replayed) return cuts->values[cuts->next++];
  cuts->values.push_back(x);
  return x;
}

DType Run::dtype_of(const Step& s, DType type) const {
  const bool narrow = precision_ == Precision::narrow || (precision_ == Precision::mixed && s.narrow);
  return with_precision(type, !narrow);
}

Tensor Run::shake(const Tensor& x, std::size_t number) const {
  Draw d(shaken, number);
  std::vector<double> factor(static_cast<std::size_t>(x.size()));
  for (double& f : factor)
    f = 1 + 6e-8 * d.in(-100, 100) / 100.0;
  return x * astype(tensor(factor, x.shape()), x.dtype());
}

Tensor Run::read(int variable) const {
  const auto i = static_cast<std::size_t>(variable);
  const Tensor x = variables[i].value();
  return moved == 0 ? x : x + moved * program_.directions[inputs.size() + i];
}

std::vector<Tensor> Run::results(const Step& s, const Slots& from) {
  const auto slot = [&](std::size_t i) -> const Tensor& {
    return from[static_cast<std::size_t>(s.slots[i])];
  };
  switch (s.kind) {
    case Step::call:
      return call(s, from);
    case Step::read:
      return {read(s.variable)};
    case Step::assign: {
      const Variable& v = variables[static_cast<std::size_t>(s.variable)];
      v.assign(cut_off(fit(slot(0), {v.dtype(), v.shape()})));
      return {};
    }
    case Step::rows:
      return {gather(slot(0), s.indices)};
    default:
      return with_body(s, from);
  }
}

const Function& Run::function_of(const Step& s) const {
  const bool narrow = precision_ == Precision::narrow || (precision_ == Precision::mixed && s.narrow);
  return narrow ? *s.narrow_function : *s.wide_function;
}

std::vector<Tensor> Run::call(const Step& s, const Slots& from) {
  const std::unique_ptr<Function> f = function_of(s).clone();
  std::size_t next = 0;
  int number = 0;
  f->each_tensor([&](Tensor& x) {
    const Others::Place place(&s, number++);
    if (!x.defined()) return;
    if (!is_trainable(x.dtype())) {
      if (others) x = others->tensors.at(place);
      return;
    }
    const Argument a = s.arguments.at(next++);
    if (a.slot < 0) return;
    const Tensor& v = from[static_cast<std::size_t>(a.slot)];
    x = a.whole ? astype(v, x.dtype()) : near(x, v);
    if (shaken && !a.whole) x = shake(x, 1000 * from.size() + next);
  });
  number = 0;
  if (others)
    f->each_key([&](random::Key& k) {
      if (const auto other = others->keys.find({&s, number++}); other != others->keys.end())
        k = other->second;
    });
  return f->call();
}

std::vector<Tensor> Run::with_body(const Step& s, const Slots& from) {
  const tapedeck::Function f = [this, &s, from](std::span<const Tensor> x) {
    Slots all = from;
    all.insert(all.end(), x.begin(), x.end());
    run_body(s.body, all);
    return std::vector<Tensor>{all.back()};
  };
  std::vector<Tensor> x;
  for (const int i : s.slots)
    x.push_back(from[static_cast<std::size_t>(i)]);
  switch (s.kind) {
    case Step::branch:
      return cond(greater(mean(fit(x[0], {real_of(x[0].dtype()), x[0].shape()})), 0.0123), x, f,
                  [](std::span<const Tensor> t) { return std::vector<Tensor>{bounded(t[0])}; });
    case Step::loop:
    case Step::scan:
      return loops(s, x, f);
    case Step::recompute:
      return recompute_grad(f)(x);
    case Step::custom:
      return customs(x, f);
    case Step::operation:
      return operation(s, x, f);
    case Step::mapped:
      return mapped(s.count, x[0], fit(x[1], x[0].spec()));
    case Step::through:
      return {grad_pass_through([](const Tensor& t) { return t + 0.25; })(x[0])};
    case Step::gradient:
      return gradient_of(f, x);
    default: {
      std::vector<Tensor> dx;
      for (const Tensor& t : x)
        dx.push_back(fit(tensor({0.5, -1.0, 0.25}), t.spec()));
      const std::vector<Tensor> own = copies(x);
      const ForwardAccumulator forward{Sources(own), std::span<const Tensor>(dx)};
      const std::vector<Tensor> y = f(own);
      return {or_zeros(forward.jvp(y[0]).tensor(), y[0])};
    }
  }
}

std::vector<Tensor> Run::customs(const std::vector<Tensor>& x, const tapedeck::Function& f) {
  const auto g = custom_gradient([f](std::span<const Tensor> in) {
    const std::vector<Tensor> kept(in.begin(), in.end());
    return std::pair(f(in), [f, kept](std::span<const Tensor> dy, std::span<const Variable> variables) {
      std::vector<Tensor> all = gradient_of(f, kept, dy, variables);
      const auto middle = all.begin() + static_cast<std::ptrdiff_t>(kept.size());
      return std::pair(std::vector<Tensor>(all.begin(), middle), std::vector<Tensor>(middle, all.end()));
    });
  });
  return g(x);
}

std::vector<Tensor> Run::operation(const Step& s, const std::vector<Tensor>& x, const tapedeck::Function& f) {
  std::vector<Tensor> y;
  {
    const StopRecording stop;
    y = f(x);
    for (Tensor& t : y)
      t = identity(t);
  }
  const auto backward = [f, x](std::span<const Tensor> dy) {
    std::vector<Gradient> g;
    for (const Tensor& t : gradient_of(f, x, dy))
      g.emplace_back(t);
    return g;
  };
  const auto forward = [f, x](std::span<const Tensor> dx) {
    std::vector<Tensor> v;
    for (std::size_t i = 0; i < x.size(); ++i)
      v.push_back(or_zeros(dx[i], x[i]));
    const std::vector<Tensor> own = copies(x);
    const ForwardAccumulator along{Sources(own), std::span<const Tensor>(v)};
    const std::vector<Tensor> out = f(own);
    return test::tensors_of(along.jvp(Sources(out)));
  };
  if (s.count % 2)
    record_operation("operation", y, x, backward, forward);
  else
    record_operation("operation", y, x, backward);
  return y;
}

std::vector<Tensor> Run::loops(const Step& s, const std::vector<Tensor>& x, const tapedeck::Function& f) {
  const std::int64_t snapshots = s.count / 10 % 2 ? 1 + s.count / 40 % 3 : 0, steps = s.count % 5;
  if (s.kind == Step::scan)
    return scan(
        [f](std::span<const Tensor> in) {
          const Tensor y = f(in)[0];
          return std::vector<Tensor>{next_state(in[0], y), fit(y, in[1].spec())};
        },
        {x[0]}, {x[1]}, {.reverse = s.count % 2 == 1, .snapshots = snapshots});
  if (s.count / 20 % 2)
    return fori_loop(0, steps,
                     [f](std::int64_t, std::span<const Tensor> in) {
                       return std::vector<Tensor>{next_state(in[0], f(in)[0])};
                     },
                     x, {.snapshots = snapshots});
  return while_loop([steps](std::span<const Tensor> in) { return in[1] < steps; },
                    [f](std::span<const Tensor> in) {
                      const std::span<const Tensor> state = in.first(1);
                      return std::vector<Tensor>{next_state(in[0], f(state)[0]), in[1] + 1};
                    },
                    {x[0], tensor(std::int64_t{0})}, {.snapshots = snapshots});
}

}   // namespace tapedeck::fuzz
