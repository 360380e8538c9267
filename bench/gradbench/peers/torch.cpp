// The evals in libtorch's ops, like tapedeck's natural forms, on one thread. Without ht, whose Jacobian needs
// forward mode, and without the descents, which are programs of numbers.
#include <torch/torch.h>

#include "../ba.h"
#include "../det.h"
#include "../gmm.h"
#include "../hello.h"
#include "../kmeans.h"
#include "../llsq.h"
#include "../lse.h"
#include "../lstm.h"
#include "../ode.h"

namespace gradbench {
namespace {

using torch::Tensor;
using torch::indexing::Slice;
using Tensors = std::vector<Tensor>;

torch::TensorOptions f64() { return torch::TensorOptions().dtype(torch::kDouble); }
Tensor tensor(const Values& v, std::vector<std::int64_t> shape) {
  return torch::from_blob(const_cast<double*>(v.data()), shape, f64()).clone();
}
Tensor tensor(const Values& v) { return tensor(v, {static_cast<std::int64_t>(v.size())}); }
Tensor indices(const std::vector<std::int64_t>& v) {
  return torch::tensor(v, torch::TensorOptions().dtype(torch::kLong));
}

Values flat(const Tensors& list) {
  Values all;
  for (const Tensor& x : list) {
    const Tensor dense = x.contiguous();
    all.insert(all.end(), dense.data_ptr<double>(), dense.data_ptr<double>() + dense.numel());
  }
  return all;
}
template <class F> Work tensor_work(F f) {
  auto result = std::make_shared<Tensors>();
  return {[f, result] {
            result->clear();
            *result = f();
          },
          [result] { return flat(*result); }};
}

/// f(x) without gradients, and g(x), in which x requires gradients.
template <class F, class G> Form form(Tensors x, F f, G g) {
  return {"torch", [=] {
            for (const Tensor& t : x)
              t.requires_grad_(true);
            return std::vector<Work>{tensor_work([=] {
                                       torch::NoGradGuard none;
                                       return Tensors{f(x)};
                                     }),
                                     tensor_work([=] { return Tensors{g(x)}; })};
          }};
}
/// A number and its gradient.
template <class F> Form number(Tensors x, F f) {
  return form(
      x, [f](const Tensors& v) { return Tensors{f(v)}; },
      [f](const Tensors& v) { return torch::autograd::grad({f(v)}, v); });
}

std::optional<Form> of(const std::shared_ptr<const hello::Input>& in) {
  return number({tensor({in->x}, {})}, [](const Tensors& x) { return x[0] * x[0]; });
}
std::optional<Form> of(const std::shared_ptr<const lse::Input>& in) {
  return number({tensor(in->x)}, [](const Tensors& x) { return torch::logsumexp(x[0], 0); });
}
std::optional<Form> of(const std::shared_ptr<const llsq::Input>& in) {
  const Tensor t = torch::linspace(-1, 1, in->n, f64());
  const Tensor a = torch::pow(t.unsqueeze(1), torch::arange(static_cast<std::int64_t>(in->x.size()), f64()));
  return number({tensor(in->x)}, [a, y = torch::sign(t)](const Tensors& x) {
    return 0.5 * torch::square(y - torch::mv(a, x[0])).sum();
  });
}

Tensor determinant(const Tensor& a) {
  const std::int64_t count = a.size(0), m = a.size(1);
  if (m == 1) return a.reshape({count});
  std::vector<std::int64_t> others;
  Values signs;
  for (std::int64_t j = 0; j < m; ++j) {
    signs.push_back(j % 2 ? -1 : 1);
    for (std::int64_t c = 0; c < m; ++c)
      if (c != j) others.push_back(c);
  }
  const Tensor below = a.slice(1, 1).index_select(2, indices(others)).reshape({count, m - 1, m, m - 1});
  const Tensor minors =
      determinant(below.transpose(1, 2).reshape({count * m, m - 1, m - 1})).reshape({count, m});
  return (a.select(1, 0) * minors * tensor(signs)).sum(1);
}
std::optional<Form> of(const std::shared_ptr<const det::Input>& in) {
  if (in->n > 9) return {};   // would need gigabytes
  return number({tensor(in->a, {in->n, in->n})},
                [](const Tensors& x) { return determinant(x[0].unsqueeze(0)).reshape({}); });
}

std::optional<Form> of(const std::shared_ptr<const gmm::Input>& in) {
  const int d = in->d, k = in->k, n = in->n;
  std::vector<std::int64_t> at(static_cast<std::size_t>(d * d), d + in->triangle());
  int next = d;
  for (int i = 0; i < d; ++i) {
    at[static_cast<std::size_t>(i * d + i)] = i;
    for (int j = i + 1; j < d; ++j)
      at[static_cast<std::size_t>(j * d + i)] = next++;
  }
  const Tensor places = indices(at), points = tensor(in->x, {n, d}), none = torch::zeros({k, 1}, f64());
  const double constant = gmm::constant(*in), m = in->m, square = in->gamma * in->gamma;
  return number(
      {tensor(in->alpha), tensor(in->mu, {k, d}), tensor(in->q, {k, d}), tensor(in->l, {k, in->triangle()})},
      [=](const Tensors& x) {
        const Tensor exp_q = torch::exp(x[2]);
        const Tensor lower = torch::cat({exp_q, x[3], none}, 1).index_select(1, places).reshape({k, d, d});
        const Tensor centred = points.unsqueeze(1) - x[1];
        const Tensor product = torch::einsum("kij,nkj->nki", {lower, centred});
        const Tensor main = x[0] + x[2].sum(1) - 0.5 * torch::square(product).sum(2);
        return constant + torch::logsumexp(main, 1).sum() - n * torch::logsumexp(x[0], 0) + m * x[2].sum() -
               0.5 * square * (torch::square(exp_q).sum() + torch::square(x[3]).sum());
      });
}

std::optional<Form> of(const std::shared_ptr<const kmeans::Input>& in) {
  const Tensor points = tensor(in->points, {in->n, in->d});
  const auto cost = [points](const Tensor& c) {
    const Tensor distances =
        torch::square(points).sum(1, true) - 2 * torch::mm(points, c.t()) + torch::square(c).sum(1);
    return std::get<0>(distances.min(1)).sum();
  };
  return form(
      {tensor(in->centroids, {in->k, in->d})}, [=](const Tensors& x) { return Tensors{cost(x[0])}; },
      [=](const Tensors& x) {
        const Tensor g = torch::autograd::grad({cost(x[0])}, {x[0]}, {}, true, true)[0];
        return Tensors{g / torch::autograd::grad({g.sum()}, {x[0]})[0]};
      });
}

std::optional<Form> of(const std::shared_ptr<const ode::Input>& in) {
  if (1.0 * static_cast<double>(in->x.size()) * in->s > 2e6) return {};   // would need gigabytes
  const int s = in->s;
  const auto solve = [s](const Tensor& x) {
    const double h = 2.0 / s;
    const Tensor one = torch::ones({1}, f64());
    const auto slope = [&](const Tensor& y) { return x * torch::cat({one, y.slice(0, 0, -1)}); };
    Tensor y = torch::zeros_like(x);
    for (int t = 0; t < s; ++t) {
      const Tensor k1 = slope(y), k2 = slope(y + h / 2 * k1), k3 = slope(y + h / 2 * k2),
                   k4 = slope(y + h * k3);
      y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
    }
    return y;
  };
  return form(
      {tensor(in->x)}, [=](const Tensors& x) { return Tensors{solve(x[0])}; },
      [=](const Tensors& x) { return torch::autograd::grad({solve(x[0])[-1]}, x); });
}

std::optional<Form> of(const std::shared_ptr<const lstm::Input>& in) {
  const int layers = in->layers, bits = in->bits, steps = in->count - 1;
  const Tensor sequence = tensor(in->sequence, {in->count, bits}), now = sequence.slice(0, 0, steps),
               next = sequence.slice(0, 1), state = tensor(in->state, {2 * layers, bits});
  return number(
      {tensor(in->main, {2 * layers, 4 * bits}), tensor(in->extra, {3, bits})}, [=](const Tensors& x) {
        const Tensors rows = x[0].reshape({8 * layers, bits}).unbind(), inputs = (now * x[1][0]).unbind();
        Tensors h, c, outputs;
        for (int l = 0; l < layers; ++l) {
          h.push_back(state[2 * l]);
          c.push_back(state[2 * l + 1]);
        }
        for (Tensor y : inputs) {
          for (std::size_t l = 0; l < h.size(); ++l) {
            const Tensor* w = &rows[8 * l];
            const Tensor forget = torch::sigmoid(y * w[0] + w[4]),
                         in_gate = torch::sigmoid(h[l] * w[1] + w[5]),
                         out_gate = torch::sigmoid(y * w[2] + w[6]), change = torch::tanh(h[l] * w[3] + w[7]);
            c[l] = c[l] * forget + in_gate * change;
            h[l] = out_gate * torch::tanh(c[l]);
            y = h[l];
          }
          outputs.push_back(y);
        }
        const Tensor y = torch::stack(outputs) * x[1][1] + x[1][2];
        const Tensor norm = torch::log(torch::exp(y).sum(1, true) + 2);
        return -(next * (y - norm)).sum() / (1.0 * steps * bits);
      });
}

Tensors residuals(const Tensor& rows, const Tensor& features) {
  const Tensors c = rows.unbind(1), feature = features.unbind(1);
  const Tensor x = c[11] - c[3], y = c[12] - c[4], z = c[13] - c[5];
  const Tensor angle = torch::sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2]), cosine = torch::cos(angle),
               sine = torch::sin(angle);
  const Tensor a0 = c[0] / angle, a1 = c[1] / angle, a2 = c[2] / angle;
  const Tensor along = (a0 * x + a1 * y + a2 * z) * (1 - cosine);
  const Tensor cx = x * cosine + (a1 * z - a2 * y) * sine + a0 * along,
               cy = y * cosine + (a2 * x - a0 * z) * sine + a1 * along,
               cz = z * cosine + (a0 * y - a1 * x) * sine + a2 * along;
  const Tensor u = cx / cz, v = cy / cz, square = u * u + v * v;
  const Tensor scale = (1 + c[9] * square + c[10] * square * square) * c[6];
  return {c[14] * (u * scale + c[7] - feature[0]), c[14] * (v * scale + c[8] - feature[1])};
}
/// The two rows of each observation, by two backward passes over all observations.
std::optional<Form> of(const std::shared_ptr<const ba::Input>& in) {
  std::vector<std::int64_t> camera, point;
  for (int i = 0; i < in->p; ++i) {
    camera.push_back(in->camera(i));
    point.push_back(in->point(i));
  }
  const Tensor cameras = indices(camera), points = indices(point),
               features = tensor(in->features, {in->p, 2});
  const auto rows_of = [=](const Tensors& x) {
    return torch::cat({x[0].index_select(0, cameras), x[1].index_select(0, points), x[2].unsqueeze(1)}, 1);
  };
  const auto f = [=](const Tensors& x) {
    return Tensors{torch::stack(residuals(rows_of(x), features), 1), 1 - x[2] * x[2]};
  };
  const auto g = [=](const Tensors& x) {
    const Tensor rows = rows_of(x).detach().requires_grad_(true);
    Tensors blocks;
    for (const Tensor& e : residuals(rows, features))
      blocks.push_back(torch::autograd::grad({e.sum()}, {rows}, {}, true)[0]);
    return Tensors{torch::stack(blocks, 1), (-2 * x[2]).detach()};
  };
  return form({tensor(in->cameras, {in->n, 11}), tensor(in->points, {in->m, 3}), tensor(in->weights)}, f, g);
}

template <class Input> void add() {
  peers<Input>().push_back([](const std::shared_ptr<const Input>& in) { return of(in); });
}

}   // namespace

void add_torch() {
  torch::set_num_threads(1);
  add<ba::Input>();
  add<det::Input>();
  add<gmm::Input>();
  add<hello::Input>();
  add<kmeans::Input>();
  add<llsq::Input>();
  add<lse::Input>();
  add<lstm::Input>();
  add<ode::Input>();
}

}   // namespace gradbench
