// The evals' plain functions by ADOL-C, recorded once on a tape, which is not timed. Evals whose tapes would
// have more than kMost operations are left out.
#include <adolc/adolc.h>

#include "../ba.h"
#include "../det.h"
#include "../gmm.h"
#include "../hello.h"
#include "../ht.h"
#include "../kmeans.h"
#include "../llsq.h"
#include "../lse.h"
#include "../lstm.h"
#include "../ode.h"

namespace gradbench {
namespace {

constexpr double kMost = 6e7;

/// f(x, y) on a tape in memory.
class Trace {
 public:
  template <class F> Trace(Values x, std::size_t outputs, const F& f)
      : x_(std::move(x)), outputs_(static_cast<int>(outputs)) {
    constexpr std::size_t operations = 1 << 28;   // larger tapes go to files
    trace_on(tag_, 0, operations, 4 * operations, operations, operations);
    {
      std::vector<adouble> in(x_.size()), out(outputs);
      for (std::size_t i = 0; i < in.size(); ++i)
        in[i] <<= x_[i];
      f(in.data(), out.data());
      double value;
      for (adouble& y : out)
        y >>= value;
    }
    trace_off();
  }
  Trace(const Trace&) = delete;
  ~Trace() { removeTape(tag_, ADOLC_REMOVE_COMPLETELY); }

  int inputs() const { return static_cast<int>(x_.size()); }
  void gradient(Values& g) {
    g.resize(x_.size());
    ::gradient(tag_, inputs(), x_.data(), g.data());
  }
  void hessian_vector_product(Values v, Values& to) {
    to.resize(x_.size());
    hess_vec(tag_, inputs(), x_.data(), v.data(), to.data());
  }
  /// The Jacobian at other inputs; to: a row for each output.
  void jacobian(const double* x, double** to) { ::jacobian(tag_, outputs_, inputs(), x, to); }
  /// Products of the Jacobian with the columns of seed, [inputs, directions]; to: [outputs, directions].
  void forward(int directions, double** seed, double** to) {
    y_.resize(static_cast<std::size_t>(outputs_));
    fov_forward(tag_, outputs_, inputs(), directions, x_.data(), seed, y_.data(), to);
  }

 private:
  static short next_tag() {
    static short tag = 0;
    return ++tag;
  }
  short tag_ = next_tag();
  Values x_, y_;
  int outputs_;
};

std::vector<double*> rows_of(Values& matrix, std::size_t columns) {
  std::vector<double*> rows;
  for (std::size_t i = 0; i < matrix.size(); i += columns)
    rows.push_back(&matrix[i]);
  return rows;
}

Values joined(std::initializer_list<const Values*> parts) {
  Values all;
  for (const Values* part : parts)
    all.insert(all.end(), part->begin(), part->end());
  return all;
}

/// A number and its gradient.
template <class Input>
std::optional<Form> number(const std::shared_ptr<const Input>& in, Values x, double operations) {
  if (operations > kMost) return {};
  return Form{"adolc", [=] {
                const auto f = [in](const auto* v, auto* y) { *y = objective(*in, v); };
                const auto trace = std::make_shared<Trace>(x, 1, f);
                return std::vector<Work>{
                    work([in, x](Values& out) { out.assign(1, objective(*in, x.data())); }),
                    work([trace](Values& out) { trace->gradient(out); })};
              }};
}

std::optional<Form> of(const std::shared_ptr<const hello::Input>& in) { return number(in, {in->x}, 1); }
std::optional<Form> of(const std::shared_ptr<const lse::Input>& in) {
  return number(in, in->x, 3 * static_cast<double>(in->x.size()));
}
std::optional<Form> of(const std::shared_ptr<const llsq::Input>& in) {
  return number(in, in->x, 2 * static_cast<double>(in->x.size()) * in->n);
}
std::optional<Form> of(const std::shared_ptr<const det::Input>& in) {
  double products = 1;
  for (int m = 2; m <= in->n; ++m)
    products = m * (products + 1);
  return number(in, in->a, 2 * products);
}
std::optional<Form> of(const std::shared_ptr<const gmm::Input>& in) {
  return number(in, joined({&in->alpha, &in->mu, &in->q, &in->l}), 1.0 * in->n * in->k * (in->d + 3) * in->d);
}
std::optional<Form> of(const std::shared_ptr<const lstm::Input>& in) {
  return number(in, joined({&in->main, &in->extra}), 30.0 * in->layers * in->count * in->bits);
}

std::optional<Form> of(const std::shared_ptr<const kmeans::Input>& in) {
  if (3.0 * in->k * in->n * in->d > kMost) return {};
  return Form{"adolc", [=] {
                const auto f = [in](const auto* x, auto* y) { *y = objective(*in, x); };
                const auto trace = std::make_shared<Trace>(in->centroids, 1, f);
                return std::vector<Work>{
                    work([in](Values& out) { out.assign(1, objective(*in, in->centroids.data())); }),
                    work([in, trace](Values& out) {
                      Values hessian;
                      trace->gradient(out);
                      trace->hessian_vector_product(Values(out.size(), 1), hessian);
                      for (std::size_t i = 0; i < out.size(); ++i)
                        out[i] /= hessian[i];
                    })};
              }};
}

std::optional<Form> of(const std::shared_ptr<const ode::Input>& in) {
  if (30.0 * static_cast<double>(in->x.size()) * in->s > kMost) return {};
  return Form{"adolc", [=] {
                const auto f = [in](const auto* x, auto* last) {
                  std::vector<std::remove_pointer_t<decltype(last)>> y(in->x.size());
                  ode::solve(*in, x, y.data());
                  *last = y.back();
                };
                const auto trace = std::make_shared<Trace>(in->x, 1, f);
                return std::vector<Work>{work([in](Values& out) {
                                           out.resize(in->x.size());
                                           ode::solve(*in, in->x.data(), out.data());
                                         }),
                                         work([trace](Values& out) { trace->gradient(out); })};
              }};
}

/// The input of one observation; all observations use one tape.
Values ba_input(const ba::Input& in, int i) {
  Values x;
  const auto add = [&](const Values& from, int which, int count) {
    const auto first = from.begin() + which * count;
    x.insert(x.end(), first, first + count);
  };
  add(in.cameras, in.camera(i), ba::kCamera);
  add(in.points, in.point(i), 3);
  add(in.weights, i, 1);
  add(in.features, i, 2);
  return x;
}
void ba_jacobian(const ba::Input& in, Trace& trace, Values& out) {
  constexpr std::size_t columns = ba::kColumns;
  const auto p = static_cast<std::size_t>(in.p);
  out.resize((2 * columns + 1) * p);
  Values block(2 * (columns + 2)), x(columns + 2);
  const std::vector<double*> rows = rows_of(block, columns + 2);
  for (std::size_t i = 0; i < p; ++i) {
    x = ba_input(in, static_cast<int>(i));
    trace.jacobian(x.data(), const_cast<double**>(rows.data()));
    for (std::size_t row = 0; row < 2; ++row)
      std::copy_n(rows[row], columns, &out[(2 * i + row) * columns]);
    out[2 * columns * p + i] = -2 * in.weights[i];
  }
}
void ba_objective(const ba::Input& in, Values& out) {
  const auto p = static_cast<std::size_t>(in.p);
  out.resize(3 * p);
  for (std::size_t i = 0; i < p; ++i) {
    const int at = static_cast<int>(i);
    ba::residual(&in.cameras[static_cast<std::size_t>(in.camera(at) * ba::kCamera)],
                 &in.points[static_cast<std::size_t>(in.point(at) * 3)], in.weights[i], &in.features[2 * i],
                 &out[2 * i]);
    out[2 * p + i] = 1 - in.weights[i] * in.weights[i];
  }
}
std::optional<Form> of(const std::shared_ptr<const ba::Input>& in) {
  return Form{"adolc", [=] {
                const auto f = [](const auto* x, auto* y) { ba::residual(x, x + 11, x[14], x + 15, y); };
                const auto trace = std::make_shared<Trace>(ba_input(*in, 0), 2, f);
                return std::vector<Work>{work([in](Values& out) { ba_objective(*in, out); }),
                                         work([in, trace](Values& out) { ba_jacobian(*in, *trace, out); })};
              }};
}

/// 28 directions, since the places of all points share two.
std::optional<Form> of(const std::shared_ptr<const ht::Input>& in) {
  return Form{"adolc", [=] {
                const Values x = joined({&in->theta, &in->places});
                const std::size_t rows = in->points.size();
                const auto f = [in](const auto* v, auto* y) { ht::objective(*in, v, y); };
                const auto trace = std::make_shared<Trace>(x, rows, f);
                const auto seed = std::make_shared<Values>(x.size() * ht::kColumns);
                for (std::size_t i = 0; i < x.size(); ++i)
                  (*seed)[i * ht::kColumns + (i < ht::kPose ? 2 + i : i % 2)] = 1;
                return std::vector<Work>{work([in, x, rows](Values& out) {
                                           out.resize(rows);
                                           ht::objective(*in, x.data(), out.data());
                                         }),
                                         work([trace, seed, rows](Values& out) {
                                           out.resize(rows * ht::kColumns);
                                           trace->forward(ht::kColumns, rows_of(*seed, ht::kColumns).data(),
                                                          rows_of(out, ht::kColumns).data());
                                         })};
              }};
}

template <class Input> void add() {
  peers<Input>().push_back([](const std::shared_ptr<const Input>& in) { return of(in); });
}

}   // namespace

void add_adolc() {
  add<ba::Input>();
  add<det::Input>();
  add<gmm::Input>();
  add<hello::Input>();
  add<ht::Input>();
  add<kmeans::Input>();
  add<llsq::Input>();
  add<lse::Input>();
  add<lstm::Input>();
  add<ode::Input>();
}

}   // namespace gradbench
