#include "../lstm.h"

#include "works.h"

namespace gradbench::GRADBENCH_KIND {
namespace {

/// The numbers that a cell saves for the backward pass: activated gates, the cell, its tanh and the output.
enum Part : std::size_t { forget, in_gate, out_gate, change, cell, tanh_cell, output, parts };

class Lstm {
 public:
  explicit Lstm(const std::shared_ptr<const lstm::Input>& in)
      : in_(*in),
        keep_(in),
        b_(static_cast<std::size_t>(in->bits)),
        layers_(static_cast<std::size_t>(in->layers)),
        steps_(static_cast<std::size_t>(in->count - 1)),
        kept_((steps_ + 1) * layers_ * parts * b_),
        x_(steps_ * b_),
        y_(steps_ * b_),
        norms_(steps_) {
    for (std::size_t l = 0; l < layers_; ++l)   // before the first step
      for (std::size_t i = 0; i < b_; ++i) {
        part(0, l, output)[i] = in_.state[2 * l * b_ + i];
        part(0, l, cell)[i] = in_.state[(2 * l + 1) * b_ + i];
      }
  }

  void objective(Values& out) { out.assign(1, forward()); }

  /// The gradient of main, then of extra.
  void gradient(Values& out) {
    forward();
    out.assign(in_.main.size() + in_.extra.size(), 0);
    double* extra = out.data() + in_.main.size();
    Values dh(layers_ * b_), dc(layers_ * b_), dx(b_);
    for (std::size_t t = steps_; t-- > 0;) {
      loss_back(t, &dh[(layers_ - 1) * b_], extra);
      for (std::size_t l = layers_; l-- > 0;) {
        cell_back(t + 1, l, &dh[l * b_], &dc[l * b_], dx.data(), out.data() + 8 * b_ * l);
        if (l > 0)
          for (std::size_t i = 0; i < b_; ++i)
            dh[(l - 1) * b_ + i] += dx[i];
      }
      for (std::size_t i = 0; i < b_; ++i)
        extra[i] += dx[i] * in_.sequence[t * b_ + i];
    }
  }

 private:
  double* part(std::size_t step, std::size_t layer, std::size_t which) {
    return &kept_[((step * layers_ + layer) * parts + which) * b_];
  }
  const double* input(std::size_t step, std::size_t layer) {
    return layer == 0 ? &x_[(step - 1) * b_] : part(step, layer - 1, output);
  }

  double forward() {
    const double *extra = in_.extra.data(), *weight = extra + b_, *bias = weight + b_;
    double total = 0;
    for (std::size_t t = 0; t < steps_; ++t) {
      for (std::size_t i = 0; i < b_; ++i)
        x_[t * b_ + i] = in_.sequence[t * b_ + i] * extra[i];
      for (std::size_t l = 0; l < layers_; ++l)
        cell_forward(t + 1, l);
      const double *h = part(t + 1, layers_ - 1, output), *next = &in_.sequence[(t + 1) * b_];
      double *y = &y_[t * b_], sum = 2, gold = 0, weights = 0;
      for (std::size_t i = 0; i < b_; ++i) {
        const double value = h[i] * weight[i] + bias[i];
        gold += next[i] * value;
        weights += next[i];
        y[i] = std::exp(value);
        sum += y[i];
      }
      norms_[t] = weights / sum;
      total += gold - weights * std::log(sum);
    }
    return -total / static_cast<double>(steps_ * b_);
  }

  void cell_forward(std::size_t step, std::size_t l) {
    const double* __restrict__ w = &in_.main[8 * b_ * l], * __restrict__ bias = w + 4 * b_;
    const double* __restrict__ x = input(step, l), * __restrict__ h = part(step - 1, l, output), * __restrict__ c = part(step - 1, l, cell);
    double* __restrict__ to = part(step, l, 0);
    const std::size_t b = b_;
    const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
    for (std::size_t i = 0; i < b; ++i) {
      to[forget * b + i] = sigmoid(x[i] * w[i] + bias[i]);
      to[in_gate * b + i] = sigmoid(h[i] * w[b + i] + bias[b + i]);
      to[out_gate * b + i] = sigmoid(x[i] * w[2 * b + i] + bias[2 * b + i]);
      to[change * b + i] = std::tanh(h[i] * w[3 * b + i] + bias[3 * b + i]);
    }
    for (std::size_t i = 0; i < b; ++i) {
      const double next = c[i] * to[forget * b + i] + to[in_gate * b + i] * to[change * b + i];
      to[cell * b + i] = next;
      to[tanh_cell * b + i] = std::tanh(next);
      to[output * b + i] = to[out_gate * b + i] * to[tanh_cell * b + i];
    }
  }

  void loss_back(std::size_t t, double* dh, double* extra) {
    const double *h = part(t + 1, layers_ - 1, output), *next = &in_.sequence[(t + 1) * b_], *y = &y_[t * b_];
    const double scale = -1 / static_cast<double>(steps_ * b_);
    for (std::size_t i = 0; i < b_; ++i) {
      const double dy = scale * (next[i] - norms_[t] * y[i]);
      dh[i] += dy * in_.extra[b_ + i];
      extra[b_ + i] += dy * h[i];
      extra[2 * b_ + i] += dy;
    }
  }

  /// Computes, from the cotangents of output and cell, the cotangents of the previous step's and of the
  /// input.
  void cell_back(std::size_t step, std::size_t l, double* __restrict__ dh, double* __restrict__ dc,
                 double* __restrict__ dx, double* __restrict__ dw) {
    const double* __restrict__ w = &in_.main[8 * b_ * l], * __restrict__ x = input(step, l);
    const double* __restrict__ h = part(step - 1, l, output), * __restrict__ c = part(step - 1, l, cell);
    const double* __restrict__ of = part(step, l, 0);
    double* __restrict__ db = dw + 4 * b_;
    const std::size_t b = b_;
    for (std::size_t i = 0; i < b; ++i) {
      const double f = of[forget * b + i], in = of[in_gate * b + i], out = of[out_gate * b + i],
                   g = of[change * b + i], t = of[tanh_cell * b + i];
      const double d_cell = dc[i] + dh[i] * out * (1 - t * t);
      const double zf = d_cell * c[i] * f * (1 - f), zi = d_cell * g * in * (1 - in),
                   zo = dh[i] * t * out * (1 - out), zg = d_cell * in * (1 - g * g);
      dw[i] += zf * x[i], db[i] += zf;
      dw[b + i] += zi * h[i], db[b + i] += zi;
      dw[2 * b + i] += zo * x[i], db[2 * b + i] += zo;
      dw[3 * b + i] += zg * h[i], db[3 * b + i] += zg;
      dx[i] = zf * w[i] + zo * w[2 * b + i];
      dh[i] = zi * w[b + i] + zg * w[3 * b + i];
      dc[i] = d_cell * f;
    }
  }

  const lstm::Input& in_;
  std::shared_ptr<const lstm::Input> keep_;
  std::size_t b_, layers_, steps_;
  Values kept_, x_, y_, norms_;
};

}   // namespace

std::vector<Work> works(const std::shared_ptr<const lstm::Input>& in) {
  const auto lstm = std::make_shared<Lstm>(in);
  return {work([lstm](Values& out) { lstm->objective(out); }),
          work([lstm](Values& out) { lstm->gradient(out); })};
}

}   // namespace gradbench::GRADBENCH_KIND
