// Ops whose rules count and record what the engine passes to them, for tests of tape and engine.
#pragma once
#include "tapedeck/op.h"
#include "tapedeck/tapedeck.h"

namespace tapedeck::test {

/// The arguments that the rules below have received since `seen = {}`.
struct Seen {
  int runs = 0;          // calls of a vjp
  int zeros = 0;         // cotangents that are all zero
  int nones = 0;         // cotangents that are none
  int slices = 0;        // cotangents that are slices
  unsigned wanted = 0;   // bit i: input i was wanted at the last call
};
inline Seen seen;

inline void note(const Call& c, std::span<const Gradient> dy) {
  ++seen.runs;
  seen.wanted = 0;
  for (int i = 0; i < c.x.size(); ++i)
    seen.wanted |= c.needs_gradient(i) ? 1u << i : 0u;
  for (const Gradient& g : dy) {
    if (!g.defined())
      ++seen.nones;
    else if (g.slices())
      ++seen.slices;
    else if (sum(abs(g.dense())).item() == 0)
      ++seen.zeros;
  }
}

inline std::vector<Spec> twice(const Call& c) { return {c.x[0].spec(), c.x[0].spec()}; }
inline Spec like_first(const Call& c) { return c.x[0].spec(); }

/// x and 2 x.
inline constexpr Op kPair = {
    .name = "pair",
    .doc = "x and 2 x.",
    .args = {"x"},
    .infer = twice,
    .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = identity(c.x[0]), y[1] = c.x[0] * 2; },
                Outputs::by_kernel},
    .rule = Rule::custom({}, [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
      note(c, dy);
      dx[0] = dy[0].dense() + 2 * dy[1].dense();
    })};

/// 2 x, and x, whose cotangent may be none.
inline constexpr Op kLoose = {
    .name = "loose",
    .doc = "2 x and x.",
    .args = {"x"},
    .infer = twice,
    .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = c.x[0] * 2, y[1] = identity(c.x[0]); },
                Outputs::by_kernel},
    .rule = Rule::custom({}, [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
              note(c, dy);
              if (dy[0].defined()) dx[0] = 2 * dy[0].dense();
              if (dy[1].defined()) dx[0] = dx[0].defined() ? dx[0].dense() + dy[1].dense() : dy[1].dense();
            }).accepting_none()};

/// Both inputs as they are, of any dtypes.
inline constexpr Op kIdentities = {
    .name = "identities",
    .doc = "a and b.",
    .args = {"a", "b"},
    .infer =
        [](const Call& c) {
          return std::vector<Spec>{c.x[0].spec(), c.x[1].spec()};
        },
    .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = identity(c.x[0]), y[1] = identity(c.x[1]); },
                Outputs::by_kernel},
    .rule = Rule::custom({}, [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
              note(c, dy);
              for (std::size_t i : {0u, 1u})
                dx[i] = std::move(dy[i]);
            }).accepting_none()};

/// x, with a rule that throws.
inline constexpr Op kThrowingRule = {
    .name = "throwing_rule",
    .doc = "x.",
    .args = {"x"},
    .infer = like_first,
    .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = identity(c.x[0]); }, Outputs::by_kernel},
    .rule = Rule::custom({}, [](const Call& c, std::span<Gradient> dy, std::span<Gradient>) {
      note(c, dy);
      throw std::runtime_error("this rule throws");
    })};

/// x, with a kernel that throws.
inline constexpr Op kThrowingKernel = {
    .name = "throwing_kernel",
    .doc = "x.",
    .args = {"x"},
    .infer = like_first,
    .forward = [](const Call&, std::span<Tensor>) { throw std::runtime_error("this kernel throws"); },
    .rule = Rule::custom(
        {}, [](const Call&, std::span<Gradient> dy, std::span<Gradient> dx) { dx[0] = std::move(dy[0]); })};

/// Cross entropy of each row, and its gradient in the logits; the cotangent of the latter may be none.
inline constexpr Op kCrossEntropy = {
    .name = "cross_entropy",
    .doc = "-sum(labels * log_softmax(logits)), and softmax(logits) - labels.",
    .args = {"labels", "logits"},
    .infer =
        [](const Call& c) {
          return std::vector<Spec>{{c.x[1].dtype(), {c.x[1].shape()[0]}}, c.x[1].spec()};
        },
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  y[0] = -sum(c.x[0] * log_softmax(c.x[1]), -1);
                  y[1] = softmax(c.x[1]) - c.x[0];
                },
                Outputs::by_kernel},
    .rule = Rule::custom({.x = 3}, [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
              note(c, dy);
              dx[1] = expand_dims(dy[0].dense(), -1) * (softmax(c.x[1]) - c.x[0]);
            }).accepting_none()};

inline std::vector<Tensor> outputs(const Op& op, std::initializer_list<Tensor> x) {
  return op.run(std::span<const Tensor>(x.begin(), x.size()));
}
inline Tensor output(const Op& op, const Tensor& x) { return op(Operand(x)); }

}   // namespace tapedeck::test
