// Replicas as threads of one process. A replica that reaches a collective operation waits; when no replica is
// running any more, the thread that called run() performs the operation and resumes them. So replicas may
// read what a step changes without a lock.
#include "tapedeck/distribute.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "core/format.h"
#include "distribute/sum.h"
#include "op/recorder.h"
#include "optim/communicator.h"
#include "optim/master.h"
#include "tape/variable.h"
#include "tapedeck/operators.h"

namespace tapedeck {
namespace {

/// A replica's contribution to a collective operation.
struct Contribution {
  std::string_view name;
  std::string_view kind;
  const void* of;   // the object of the operation, which must be the same for all replicas
  const void* own;
  // Performs the operation for all replicas.
  std::function<void(std::span<const Contribution* const> contributions)> run;
};

void check_same(std::span<const Contribution* const> contributions) {
  for (std::size_t i = 1; i < contributions.size(); ++i) {
    if (contributions[i]->name != contributions[0]->name)
      throw_error<GradientError>(
          "{}: replica {} calls this while replica 0 calls {}; all replicas must take the same steps in the "
          "same order",
          contributions[i]->name, i, contributions[0]->name);
    if (contributions[i]->of != contributions[0]->of)
      throw_error<GradientError>(
          "{}: replica {} has another {} than replica 0; all replicas must take the same steps in the same "
          "order",
          contributions[i]->name, i, contributions[i]->kind);
  }
}

class Group {
 public:
  Group(int count, int most_running)
      : most_running_(most_running),
        contributions_(static_cast<std::size_t>(count)),
        ends_(static_cast<std::size_t>(count)) {}

  /// Runs f(i) for all replicas i and serves their collective operations on the calling thread.
  void run(const std::function<void(int)>& f) {
    std::vector<std::thread> threads;
    try {
      for (int i = 0; i < count(); ++i)
        threads.emplace_back([this, &f, i] { run_one(f, i); });
    } catch (...) {
      end_missing(threads.size(), std::current_exception());
    }
    serve();
    for (std::thread& t : threads)
      t.join();
    for (const End& end : ends_)
      if (end.error && !end.stopped) std::rethrow_exception(end.error);
  }

  /// Called on a replica's thread; returns when the collective operation is done.
  void synchronize(int replica, const Contribution& contribution) {
    std::unique_lock lock(mutex_);
    if (failed_) throw_stopped(replica, contribution);
    contributions_[static_cast<std::size_t>(replica)] = &contribution;
    ++waiting_;
    --running_;
    const std::uint64_t round = rounds_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return rounds_ != round && running_ < most_running_; });
    ++running_;
    if (cancelled_) throw_stopped(replica, contribution);
    if (outcome_) std::rethrow_exception(outcome_);
  }

 private:
  struct End {
    bool stopped = false;   // because another replica failed
    std::exception_ptr error;
  };

  int count() const { return static_cast<int>(contributions_.size()); }

  void run_one(const std::function<void(int)>& f, int i) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ < most_running_; });
    ++running_;
    std::exception_ptr error;
    if (!failed_) {
      lock.unlock();
      try {
        f(i);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
    }
    End& end = ends_[static_cast<std::size_t>(i)];
    if (error && !end.stopped)
      fail(i, std::move(error));
    else
      end.error = std::move(error);
    --running_;
    ++ended_;
    changed_.notify_all();
  }

  // Performs collective operations until all replicas have ended.
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return waiting_ + ended_ == count(); });
      if (waiting_ == 0) return;
      outcome_ = nullptr;
      cancelled_ = failed_;
      if (!cancelled_) {
        try {
          errors_.reserve(errors_.size() + 1);
          if (ended_ > 0) throw_missing_replica();
          check_same(contributions_);
          lock.unlock();
          contributions_[0]->run(contributions_);
          lock.lock();
        } catch (...) {
          if (!lock.owns_lock()) lock.lock();
          outcome_ = std::current_exception();
          if (errors_.size() < errors_.capacity()) errors_.push_back(outcome_);
        }
      }
      for (const Contribution*& p : contributions_)
        p = nullptr;
      waiting_ = 0;
      ++rounds_;
      changed_.notify_all();
    }
  }

  // Marks replicas from `first` on, whose threads could not be created, as ended.
  void end_missing(std::size_t first, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    ended_ += count() - static_cast<int>(first);
    fail(static_cast<int>(first), std::move(error));
  }

  void fail(int replica, std::exception_ptr error) {
    if (!failed_) failure_ = replica;
    failed_ = true;
    ends_[static_cast<std::size_t>(replica)].error = std::move(error);
  }

  [[noreturn]] void throw_stopped(int replica, const Contribution& contribution) {
    ends_[static_cast<std::size_t>(replica)].stopped = true;
    throw_error<GradientError>("{}: replica {} stops because replica {} has failed", contribution.name,
                               replica, failure_);
  }

  [[noreturn]] void throw_missing_replica() const {
    std::size_t waits = 0, ended = 0;
    while (!contributions_[waits])
      ++waits;
    while (contributions_[ended])
      ++ended;
    throw_error<GradientError>(
        "{}: replica {} waits for replica {}, which has ended; all replicas must take the same steps in the "
        "same order",
        contributions_[waits]->name, waits, ended);
  }

  const int most_running_;
  std::mutex mutex_;   // guards the members below
  std::condition_variable changed_;
  int running_ = 0, waiting_ = 0, ended_ = 0;
  std::uint64_t rounds_ = 0;                         // collective operations done so far
  std::vector<const Contribution*> contributions_;   // of the waiting replicas; else null
  std::vector<End> ends_;
  bool cancelled_ = false;       // whether the last operation was cancelled, since a replica had failed
  std::exception_ptr outcome_;   // of the last operation
  // Exceptions that other threads have seen, kept so that they are destroyed on this thread.
  std::vector<std::exception_ptr> errors_;
  bool failed_ = false;
  int failure_ = 0;   // the replica that failed first
};

class ThreadCommunicator final : public Communicator {
  struct Step {
    const StepTogether& together;
    std::uint64_t replica;   // its number
  };
  struct Term {
    const Tensor& x;
    Tensor& sum;
    const Collective& collective;
  };

 public:
  ThreadCommunicator(Group& group, Replica replica, LossReduction reduction)
      : Communicator(reduction, replica, Variables::shared), group_(group), replica_(replica) {}

  void step(const StepTogether& own) override {
    const std::string caller = fmt::format("apply_gradients: replica {}", replica_.index);
    for (const GradientAndVariable& p : own.pairs)
      if (p.gradient.defined()) own.check(p, caller);
    const Step step{own, number()};
    group_.synchronize(replica_.index, {"apply_gradients", "optimizer", own.optimizer, &step, step_all});
  }

  Tensor sum(const Tensor& own, const Collective& collective) override {
    check_term(own, collective.name, "replica", replica_.index);
    Tensor sum;
    const Term term{own, sum, collective};
    group_.synchronize(replica_.index, {collective.name, collective.kind, collective.of, &term, sum_all});
    return sum;
  }

 private:
  static void step_all(std::span<const Contribution* const> contributions) {
    const auto of = [&](std::size_t i) -> const StepTogether& {
      return static_cast<const Step*>(contributions[i]->own)->together;
    };
    std::vector<std::span<const GradientAndVariable>> pairs;
    for (std::size_t i = 0; i < contributions.size(); ++i) {
      if (of(i).global_step != of(0).global_step)
        throw_error<GradientError>(
            "apply_gradients: replica {} has another global_step than replica 0; use one for all", i);
      pairs.push_back(of(i).pairs);
    }
    for (std::size_t i = 0; i < contributions.size(); ++i)
      check_shared(pairs, i, static_cast<const Step*>(contributions[i]->own)->replica);
    const auto sums = [&] {
      const RecordingScope unrecorded(nullptr);
      return sum_pairs(pairs);
    }();
    of(0).apply(sums);
  }

  // A variable that a replica has created belongs to a network of its own unless another replica lists it,
  // too.
  static void check_shared(std::span<const std::span<const GradientAndVariable>> pairs, std::size_t i,
                           std::uint64_t number) {
    for (const auto& [gradient, variable] : pairs[i]) {
      if (pairs.size() == 1 || variable.cell().replica != number) continue;
      const auto lists = [&v = variable](std::span<const GradientAndVariable> all) {
        return std::any_of(all.begin(), all.end(),
                           [&](const GradientAndVariable& p) { return p.variable == v; });
      };
      if (std::count_if(pairs.begin(), pairs.end(), lists) == 1)
        throw_error<GradientError>(
            "apply_gradients: {} was made by replica {}, and no other replica trains it; make variables "
            "before run, or step with SkipAggregation",
            detail::described(variable.cell()), i);
    }
  }

  static void sum_all(std::span<const Contribution* const> contributions) {
    const auto of = [&](std::size_t i) -> const Term& {
      return *static_cast<const Term*>(contributions[i]->own);
    };
    const Spec first = of(0).x.spec();
    const std::string_view name = of(0).collective.name;
    const RecordingScope unrecorded(nullptr);
    std::vector<Gradient> terms;
    for (std::size_t i = 0; i < contributions.size(); ++i) {
      const Spec spec = of(i).x.spec();
      if (spec.dtype != first.dtype)
        throw_error<DTypeError>("{}: x is {} on replica 0, {} on replica {}", name, first, spec, i);
      if (spec.shape != first.shape)
        throw_error<ShapeError>("{}: x is {} on replica 0, {} on replica {}", name, first, spec, i);
      terms.emplace_back(in_f32(of(i).x));
    }
    const Tensor sum = astype(sum_in_tree(std::move(terms)).dense(), first.dtype);
    if (of(0).collective.then) of(0).collective.then(sum);
    for (std::size_t i = 0; i < contributions.size(); ++i)
      of(i).sum = sum;
  }

  Group& group_;
  const Replica replica_;
};

/// The communicator of the thread that called run(), on which collective operations are errors.
class NoReplica final : public Communicator {
 public:
  NoReplica() : Communicator(LossReduction::sum, {0, 1}, Variables::own) {}
  void step(const StepTogether&) override {
    throw GradientError(
        "apply_gradients: called outside the function passed to Replicas::run; call it inside, or with "
        "SkipAggregation for gradients that are summed already");
  }
  Tensor sum(const Tensor&, const Collective& collective) override {
    throw_error<GradientError>("{}: called outside the function passed to Replicas::run; call it inside",
                               collective.name);
  }
};

}   // namespace

Replicas::Replicas(int count, ReplicasOptions options) : count_(count), options_(options) {
  if (count < 1) throw_error<ArgumentError>("replicas: {} replicas; use 1 or more", count);
  if (options.threads < 0)
    throw_error<ArgumentError>("replicas: {} threads; use 1 or more, or 0 for one per replica",
                               options.threads);
  if (options.reduction != LossReduction::sum && options.reduction != LossReduction::mean)
    throw_error<ArgumentError>("replicas: unknown value for reduction: {}; use LossReduction::sum or mean",
                               static_cast<int>(options.reduction));
}

void Replicas::run(const std::function<void(Replica)>& f) const {
  if (!f) throw ArgumentError("run: the replicas' function is empty");
  if (thread_state.communicator)
    throw GradientError("run: replicas are already running on this thread, and cannot be nested");
  Group group(count_, options_.threads == 0 ? count_ : options_.threads);
  NoReplica no_replica;
  const CommunicatorScope scope(&no_replica);
  group.run([&](int i) {
    ThreadCommunicator own(group, {i, count_}, options_.reduction);
    const CommunicatorScope replica(&own);
    f({i, count_});
  });
}

Tensor scale_loss(const Tensor& loss) {
  const double factor = thread_state.communicator ? thread_state.communicator->scale_loss() : 1;
  return factor == 1 ? loss : loss * factor;
}

bool is_loss_scaled() { return thread_state.communicator && thread_state.communicator->is_loss_scaled(); }

Tensor sum_over_replicas(const Tensor& x) {
  return thread_state.communicator ? thread_state.communicator->sum(x) : x;
}

SkipAggregation::SkipAggregation() : communicator_(exchange_communicator(nullptr)) {}
SkipAggregation::~SkipAggregation() { exchange_communicator(communicator_); }

}   // namespace tapedeck
