// The forward-backward algorithm of Graves et al. 2006, section 4.1. The states of a sequence are its labels
// with blanks around each. A state leads to itself, to the next one and, between two different labels, past
// the blank. A row is an array of one number per state, with margins at both ends; vectors run along it.
// Threads split the sequences.
#include "kernels/nn/ctc.h"

#include <algorithm>
#include <limits>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "core/visit.h"
#include "kernels/simd/lanes.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kCtcCut{1 << 10, 1 << 12};   // states

/// Stands for log(0), but is finite, so that sums never become NaN.
template <class T> constexpr T kLogZero = T(-1e30);

/// log(exp(a) + exp(b) + exp(c))
template <class V> V log_sum(const V& a, const V& b, const V& c) {
  const V most = maximum(maximum(a, b), c);
  return most + log(exp(a - most) + exp(b - most) + exp(c - most));
}

/// The computation for one sequence.
template <class T> class Sequence {
 public:
  Sequence(const CtcLabels& l, const T* log_p, std::int64_t sequences, std::int64_t classes, std::int64_t b)
      : log_p_(log_p + b * classes),
        classes_(classes),
        stride_(sequences * classes),
        steps_(l.steps[static_cast<std::size_t>(b)]),
        states_(2 * l.labels[static_cast<std::size_t>(b)] + 1),
        width_((states_ + kWidth<T> - 1) / kWidth<T> * kWidth<T>),
        class_(static_cast<std::size_t>(states_), l.blank),
        skip_(row(kLogZero<T>)) {
    for (std::int64_t k = 0; 2 * k + 1 < states_; ++k) {
      const std::int64_t* label = l.label.data() + b * l.most + k;
      class_[static_cast<std::size_t>(2 * k + 1)] = *label;
      if (k > 0 && label[0] != label[-1]) at(skip_)[2 * k + 1] = 0;
    }
  }

  T loss() const {
    if (steps_ == 0) return states_ == 1 ? T(0) : std::numeric_limits<T>::infinity();
    Row alpha = first(), next = row(kLogZero<T>), emitted = row(kLogZero<T>);
    for (std::int64_t t = 1; t < steps_; ++t) {
      emit(t, emitted);
      step(alpha, emitted, next);
      alpha.swap(next);
    }
    return loss_of(alpha);
  }

  /// Subtracts from `gradient`, which holds the class probabilities at each step, the posterior probabilities
  /// of the classes given the labels.
  void subtract_posterior(T* gradient) const {
    if (steps_ == 0) return;
    std::vector<Row> alpha{first()};
    Row emitted = row(kLogZero<T>);
    for (std::int64_t t = 1; t < steps_; ++t) {
      alpha.push_back(row(kLogZero<T>));
      emit(t, emitted);
      step(alpha[static_cast<std::size_t>(t - 1)], emitted, alpha.back());
    }
    const T loss = loss_of(alpha.back());
    if (loss == std::numeric_limits<T>::infinity()) {
      for (std::int64_t t = 0; t < steps_; ++t)
        std::fill_n(gradient + t * stride_, classes_, T(0));
      return;
    }
    // beta covers the steps after t. A state's posterior is the probability of all paths through it, divided
    // by the probability of all paths.
    Row beta = row(kLogZero<T>), next = row(kLogZero<T>), posterior = row(T(0)), ahead = row(kLogZero<T>),
        jumps = row(kLogZero<T>);
    for (std::int64_t s = std::max<std::int64_t>(states_ - 2, 0); s < states_; ++s)
      at(beta)[s] = 0;
    for (std::int64_t t = steps_ - 1;; --t) {
      const T* a = at(alpha[static_cast<std::size_t>(t)]);
      for (std::int64_t s = 0; s < width_; s += kWidth<T>)
        exp(load<V>(a + s) + load<V>(at(beta) + s) + V(loss)).store_unaligned(at(posterior) + s);
      for (std::int64_t s = 0; s < states_; ++s)
        gradient[t * stride_ + class_[static_cast<std::size_t>(s)]] -= at(posterior)[s];
      if (t == 0) return;
      emit(t, emitted);
      step_back(beta, emitted, ahead, jumps, next);
      beta.swap(next);
    }
  }

 private:
  using V = Batch<T>;
  using Row = CachedVector<T>;

  // Elements before a row. After a row there is a margin of a whole vector.
  static constexpr std::int64_t kMargin = 2;
  Row row(T value) const { return Row(static_cast<std::size_t>(kMargin + width_ + kWidth<T>), value); }
  static T* at(Row& r) { return r.data() + kMargin; }
  static const T* at(const Row& r) { return r.data() + kMargin; }

  T of(std::int64_t t, std::int64_t state) const {
    return std::max(log_p_[t * stride_ + class_[static_cast<std::size_t>(state)]], kLogZero<T>);
  }
  void emit(std::int64_t t, Row& emitted) const {
    for (std::int64_t s = 0; s < states_; ++s)
      at(emitted)[s] = of(t, s);
  }
  Row first() const {
    Row alpha = row(kLogZero<T>);
    for (std::int64_t s = 0; s < std::min<std::int64_t>(states_, 2); ++s)
      at(alpha)[s] = of(0, s);
    return alpha;
  }
  void step(const Row& alpha, const Row& emitted, Row& next) const {
    const T *a = at(alpha), *e = at(emitted), *skip = at(skip_);
    for (std::int64_t s = 0; s < width_; s += kWidth<T>)
      (log_sum(load<V>(a + s), load<V>(a + s - 1), load<V>(a + s - 2) + load<V>(skip + s)) + load<V>(e + s))
          .store_unaligned(at(next) + s);
  }
  // One step of beta to the previous time; ahead and jumps are scratch rows.
  void step_back(const Row& beta, const Row& emitted, Row& ahead, Row& jumps, Row& next) const {
    for (std::int64_t s = 0; s < width_; s += kWidth<T>) {
      const V v = load<V>(at(beta) + s) + load<V>(at(emitted) + s);
      v.store_unaligned(at(ahead) + s);
      (v + load<V>(at(skip_) + s)).store_unaligned(at(jumps) + s);
    }
    for (std::int64_t s = 0; s < width_; s += kWidth<T>)
      log_sum(load<V>(at(ahead) + s), load<V>(at(ahead) + s + 1), load<V>(at(jumps) + s + 2))
          .store_unaligned(at(next) + s);
    std::fill(at(next) + states_, at(next) + width_, kLogZero<T>);
  }
  T loss_of(const Row& alpha) const {
    const T last = at(alpha)[states_ - 1], before = states_ > 1 ? at(alpha)[states_ - 2] : kLogZero<T>,
            loss = -log_sum(V(last), V(before), V(kLogZero<T>)).get(0);
    return loss > T(1e29) ? std::numeric_limits<T>::infinity() : loss;
  }

  const T* log_p_;
  std::int64_t classes_, stride_, steps_, states_, width_;   // width_: states_ rounded up to whole vectors
  std::vector<std::int64_t> class_;
  Row skip_;
};

// Calls f(sequence) for all sequences, in parallel.
template <class F> void for_sequences(const CtcLabels& l, std::int64_t time, const F& f) {
  if (l.steps.empty()) return;   // `time` may then be any number
  parallel_for(static_cast<std::int64_t>(l.steps.size()), cut_of(kCtcCut, time * (2 * l.most + 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t b = begin; b < end; ++b)
                   f(b);
               });
}

}   // namespace

void ctc_loss(const CtcLabels& l, const Tensor& log_p, Tensor& loss) {
  visit_floating(log_p.dtype(), [&](auto one) {
    using T = decltype(one);
    const std::int64_t sequences = log_p.shape()[1], classes = log_p.shape()[2];
    for_sequences(l, log_p.shape()[0], [&](std::int64_t b) {
      elements<T>(loss)[b] = Sequence<T>(l, elements<T>(log_p), sequences, classes, b).loss();
    });
  });
}

void ctc_gradient(const CtcLabels& l, const Tensor& log_p, Tensor& gradient) {
  visit_floating(log_p.dtype(), [&](auto one) {
    using T = decltype(one);
    const std::int64_t time = log_p.shape()[0], sequences = log_p.shape()[1], classes = log_p.shape()[2];
    T* out = elements<T>(gradient);
    for_sequences(l, time, [&](std::int64_t b) {
      for (std::int64_t t = l.steps[static_cast<std::size_t>(b)]; t < time; ++t)
        std::fill_n(out + (t * sequences + b) * classes, classes, T(0));
      Sequence<T>(l, elements<T>(log_p), sequences, classes, b).subtract_posterior(out + b * classes);
    });
  });
}

}   // namespace tapedeck::kernels
