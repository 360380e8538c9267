// Replicas as the ranks of an MPI job. All communication follows a binomial tree rooted at rank 0, up and
// down: first plans, so that all ranks see the same error if they differ; then buckets of dense gradients;
// then slices. Every wait polls, and has a timeout.
//
// Overlap with the backward pass: if a step has the same variables as an earlier one, its buckets are
// predicted from what the ranks agreed on then: the gradients that were dense on all ranks, in the order in
// which they became final on rank 0. So a bucket is sent as soon as its gradients are final. After the pass
// the merged plan verifies the prediction: all ranks have cut the same buckets, and step with the gradients
// that were sent. If not, early messages are received and discarded, and the buckets are sent again.
#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <thread>

#include "core/format.h"
#include "core/host_view.h"
#include "core/storage.h"
#include "distribute/exchange.h"
#include "distribute/plan.h"
#include "distribute/sum.h"
#include "io/checksum.h"
#include "op/recorder.h"
#include "optim/communicator.h"
#include "optim/master.h"
#include "tape/variable.h"
#include "tapedeck/distribute.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

#ifdef TAPEDECK_MPI

namespace tapedeck {
namespace {

/// Whether both are the same tensors, not only equal values.
bool is_same(const Gradient& a, const Gradient& b) {
  if (a.slices() && b.slices())
    return a.slices()->values.id() == b.slices()->values.id() &&
           a.slices()->indices.id() == b.slices()->indices.id();
  return a.is_dense() && b.is_dense() ? a.tensor().id() == b.tensor().id() : !a.defined() && !b.defined();
}

class RankCommunicator final : public Communicator {
 public:
  RankCommunicator(Replica replica, const RanksOptions& options, MPI_Comm comm)
      : Communicator(options.reduction, replica, Variables::own),
        rank_(replica.index),
        options_(options),
        tree_(comm, replica) {}
  ~RankCommunicator() {
    if (broken_) new Traffic(std::move(traffic_));   // leaked on purpose: MPI may still access the buffers
  }

  Arrival begin_pass(std::span<const Variable> variables) override {
    if (traffic_.early) return {};   // early buckets of a pass that led to no step are still in flight
    pass_ = {pass_.number + 1, {variables.begin(), variables.end()}};
    const auto known =
        std::find_if(predictions_.begin(), predictions_.end(),
                     [wanted = ids(variables)](const Prediction& p) { return p.variables == wanted; });
    if (known != predictions_.end()) start_early_exchange(*known);
    return [this, number = pass_.number](std::size_t i, const Gradient& g) {
      if (number == pass_.number) arrived(i, g);
    };
  }

  void step(const StepTogether& own) override {
    const std::string caller = fmt::format("apply_gradients: rank {}", rank_);
    std::vector<Variable> variables;
    Plan plan = {.name = "apply_gradients"};
    for (const auto& [gradient, variable] : own.pairs) {
      if (gradient.defined()) own.check({gradient, variable}, caller);
      variables.push_back(variable);
      plan.subjects.push_back(
          fmt::format("variable \"{}\" {}{}", variable.name(), Spec{variable.dtype(), variable.shape()},
                      steps_ ? "" : fmt::format(" of checksum {:x}", checksum(variable))));
      plan.kinds.push_back(!gradient.defined() ? kNone : gradient.slices() ? kSlices : kDense);
    }
    if (own.global_step) plan.subjects.push_back("global_step"), plan.kinds.push_back(kNone);
    plan.min_kinds = plan.kinds;
    if (pass_.variables == variables) {
      plan.order = pass_.order;
      if (complete(own.pairs)) plan.prediction = pass_.prediction;
    }
    plan = agree(std::move(plan));
    ++steps_;
    if (!plan.order.empty()) predict(variables, plan);
    own.apply([&] {
      const RecordingScope unrecorded(nullptr);
      return sums(own.pairs, variables, plan);
    }());
  }

  Tensor sum(const Tensor& own, const Collective& collective) override {
    check_term(own, collective.name, "rank", rank_);
    const std::string dense(1, kDense);
    agree({.name = std::string(collective.name),
           .subjects = {fmt::format("x {}", own.spec())},
           .kinds = dense,
           .min_kinds = dense},
          During::pass);
    const RecordingScope unrecorded(nullptr);
    const Tensor sum = astype(sums_of({in_f32(own)}, {"x"})[0], own.dtype());
    if (collective.then) collective.then(sum);
    return sum;
  }

  /// After the last step: throws if another rank takes one more.
  void end() { agree({.name = "the end of run"}); }
  /// Tells the other ranks that this one fails, unless they know or are unreachable.
  void fail(std::string_view why) noexcept {
    if (broken_) return;
    try {
      agree({.error = fmt::format("ranks: rank {} has failed: {}", rank_, why)});
    } catch (...) {}
    broken_ = true;
  }

 private:
  static std::uint64_t checksum(const Variable& v) {
    const Tensor& x = v.cell().value;
    Checksum sum;
    sum.add(HostView<std::byte>(x, "ranks").data(), x.nbytes());
    return sum.value();
  }

  struct Bucket {
    std::vector<std::size_t> pairs;
    std::int64_t nbytes = 0;
  };
  /// From a step's merged plan: which gradients a later step with the same variables will have, and in which
  /// order.
  struct Prediction {
    std::vector<std::uint64_t> variables;
    std::int64_t step;
    std::vector<std::int64_t> order;
  };
  /// The latest backward pass, which may lead to the next step.
  struct BackwardPass {
    std::int64_t number = 0;
    std::vector<Variable> variables = {};
    std::vector<std::int64_t> order = {};   // the order in which gradients became final
    std::int64_t prediction = 0;            // 0: none; nothing is sent early
    std::vector<Bucket> buckets = {};
    std::vector<std::size_t> missing = {};   // per bucket: gradients that are not final yet
    struct PendingGradient {
      std::size_t bucket;
      std::optional<Gradient> gradient = {};
    };
    std::map<std::size_t, PendingGradient> pending = {};   // the gradients in buckets, by index
  };

  static std::vector<std::uint64_t> ids(std::span<const Variable> variables) {
    std::vector<std::uint64_t> result;
    for (const Variable& v : variables)
      result.push_back(v.id());
    return result;
  }

  void predict(std::span<const Variable> variables, const Plan& plan) {
    Prediction p{ids(variables), steps_, {}};
    for (const std::int64_t i : plan.order)
      if (plan.min_kinds[static_cast<std::size_t>(i)] == kDense) p.order.push_back(i);
    std::erase_if(predictions_, [&](const Prediction& other) { return other.variables == p.variables; });
    predictions_.insert(predictions_.begin(), std::move(p));
    if (predictions_.size() > 16) predictions_.pop_back();
  }

  void start_early_exchange(const Prediction& p) {
    pass_.prediction = p.step;
    pass_.buckets = cut(pass_.variables, {p.order.begin(), p.order.end()});
    for (std::size_t b = 0; b < pass_.buckets.size(); ++b) {
      pass_.missing.push_back(pass_.buckets[b].pairs.size());
      for (const std::size_t i : pass_.buckets[b].pairs)
        pass_.pending.insert({i, {b}});
    }
    traffic_.early = std::make_unique<Exchange>(tree_, kEarly, specs(pass_.buckets, pass_.variables));
  }

  void arrived(std::size_t i, const Gradient& g) {
    pass_.order.push_back(static_cast<std::int64_t>(i));
    if (!traffic_.early) return;
    const RecordingScope unrecorded(nullptr);
    if (const auto pending = pass_.pending.find(i); pending != pass_.pending.end()) put(pending->second, g);
    traffic_.early->advance();
  }
  void put(BackwardPass::PendingGradient& pending, const Gradient& g) {
    pending.gradient = g;
    if (--pass_.missing[pending.bucket] > 0) return;
    const Bucket& b = pass_.buckets[pending.bucket];
    traffic_.early->put(pending.bucket, packed(b, pass_.variables,
                                               [&](std::size_t i) { return *pass_.pending.at(i).gradient; }));
  }
  // Sends the gradients that the pass has not produced. Returns false if the step is given other gradients
  // than were sent.
  bool complete(std::span<const GradientAndVariable> own) {
    if (!traffic_.early) return false;
    for (const auto& [i, pending] : pass_.pending)
      if (pending.gradient && !is_same(*pending.gradient, own[i].gradient)) return false;
    const RecordingScope unrecorded(nullptr);
    for (auto& [i, pending] : pass_.pending)
      if (!pending.gradient) put(pending, own[i].gradient);
    return true;
  }

  // A sum inside of a pass leaves its early buckets in flight.
  enum class During { pass, step };
  Plan agree(Plan plan, During during = During::step) {
    const std::string what = plan.name;
    plan.options = fmt::format("bucket_bytes {}, reduction {}", options_.bucket_bytes,
                               options_.reduction == LossReduction::mean ? "mean" : "sum");
    plan.sent = during == During::step && traffic_.early;
    for (const int c : tree_.children)
      plan.merge(Plan::of(receive_text(c, what)), rank_, c);
    if (tree_.parent >= 0) {
      send_text(tree_.parent, plan.bytes());
      plan = Plan::of(receive_text(tree_.parent, what));
    }
    const std::string bytes = plan.bytes();
    for (const int c : tree_.children)
      send_text(c, bytes);
    flush(what);
    if (!plan.error.empty()) {
      broken_ = true;
      throw GradientError(plan.error);
    }
    if (plan.sent && !plan.prediction) discard_early(what);
    return plan;
  }

  // Receives and discards early messages of a pass that led to no step, on all ranks.
  void discard_early(const std::string& what) {
    if (!traffic_.early) traffic_.early = std::make_unique<Exchange>(tree_, kEarly, std::vector<Spec>());
    Exchange& early = *traffic_.early;
    early.stop();
    std::vector<int> peers = tree_.children;
    if (tree_.parent >= 0) peers.push_back(tree_.parent);
    for (const int p : peers)
      send_text(p, std::to_string(early.sent_to(p)));
    for (const int p : peers) {
      const std::size_t count = std::stoul(receive_text(p, what));
      await([&] { return early.has_drained(p, count); }, [&] { return Wait{p, what}; });
    }
    await([&] { return early.advance(), early.all_sent(); }, [&] { return Wait{-1, what}; });
    flush(what);
    traffic_.early.reset();
  }

  std::vector<GradientAndVariable> sums(std::span<const GradientAndVariable> own,
                                        std::span<const Variable> variables, const Plan& plan) {
    std::vector<GradientAndVariable> result;
    for (const Variable& v : variables)
      result.push_back({Gradient(), v});
    const std::string& kinds = plan.kinds;
    if (traffic_.early)
      unpack(pass_.buckets, finish(traffic_.early, names(pass_.buckets, variables)), kinds, result);
    pass_ = {pass_.number + 1};

    std::vector<std::size_t> rest;
    for (std::size_t i = 0; i < own.size(); ++i)
      if (kinds[i] == kDense && !result[i].gradient.defined()) rest.push_back(i);
    const std::vector<Bucket> buckets = cut(variables, rest);
    std::vector<Tensor> parts;
    for (const Bucket& b : buckets)
      parts.push_back(packed(b, variables, [&](std::size_t i) { return own[i].gradient; }));
    unpack(buckets, sums_of(std::move(parts), names(buckets, variables)), kinds, result);
    for (std::size_t i = 0; i < own.size(); ++i)
      if (kinds[i] == kSlices) result[i].gradient = gathered(own[i]);
    flush("the last message");
    return result;
  }

  // Cuts gradients, in order, into buckets of one dtype. A gradient larger than bucket_bytes gets its own.
  std::vector<Bucket> cut(std::span<const Variable> variables, const std::vector<std::size_t>& order) const {
    std::vector<Bucket> buckets;
    for (const std::size_t i : order) {
      const Variable& v = variables[i];
      const std::int64_t nbytes = v.shape().size() * size_of(computed_in(v.dtype()));
      if (buckets.empty() || variables[buckets.back().pairs[0]].dtype() != v.dtype() ||
          buckets.back().nbytes + nbytes > options_.bucket_bytes)
        buckets.emplace_back();
      buckets.back().pairs.push_back(i);
      buckets.back().nbytes += nbytes;
    }
    return buckets;
  }
  static std::vector<Spec> specs(std::span<const Bucket> buckets, std::span<const Variable> variables) {
    std::vector<Spec> result;
    for (const Bucket& b : buckets) {
      const DType dtype = computed_in(variables[b.pairs[0]].dtype());
      result.push_back({dtype, {b.nbytes / size_of(dtype)}});
    }
    return result;
  }
  static std::vector<std::string> names(std::span<const Bucket> buckets,
                                        std::span<const Variable> variables) {
    std::vector<std::string> result;
    for (const Bucket& b : buckets)
      result.push_back(variables[b.pairs[0]].name());
    return result;
  }

  template <class GradientOf>
  static Tensor packed(const Bucket& b, std::span<const Variable> variables, const GradientOf& gradient_of) {
    std::vector<Tensor> flat;
    for (const std::size_t i : b.pairs) {
      const Variable& v = variables[i];
      const Gradient gradient = gradient_of(i);
      const IndexedSlices* s = gradient.slices();
      // -0 is the neutral element of addition: -0 + x is x, also for x = -0.
      const Tensor g = s                    ? to_dense({s->values, s->indices, v.shape()})
                       : gradient.defined() ? gradient.tensor()
                                            : full(v.shape(), -0.0, v.dtype());
      flat.push_back(reshape(in_f32(g), {g.size()}));
    }
    return flat.size() == 1 ? flat[0] : concat(flat, 0);
  }
  // Takes only gradients that are dense by the plan; others were predicted wrongly.
  static void unpack(std::span<const Bucket> buckets, std::span<const Tensor> sums, const std::string& kinds,
                     std::vector<GradientAndVariable>& result) {
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      std::int64_t at = 0;
      for (const std::size_t i : buckets[b].pairs) {
        const Shape& shape = result[i].variable.shape();
        if (kinds[i] == kDense)
          result[i].gradient = reshape(strided_slice(sums[b], {Slice(at, at + shape.size())}), shape);
        at += shape.size();
      }
    }
  }

  std::vector<Tensor> sums_of(std::vector<Tensor> parts, const std::vector<std::string>& names) {
    std::vector<Spec> specs;
    for (const Tensor& p : parts)
      specs.push_back(p.spec());
    traffic_.late = std::make_unique<Exchange>(tree_, kLate, specs);
    for (std::size_t i = 0; i < parts.size(); ++i)
      traffic_.late->put(i, std::move(parts[i]));
    return finish(traffic_.late, names);
  }
  std::vector<Tensor> finish(std::unique_ptr<Exchange>& exchange, const std::vector<std::string>& names) {
    await([&] { return exchange->advance(), exchange->done(); },
          [&] {
            const Exchange::Wait w = exchange->waits_for();
            return Wait{w.from, names[w.bucket]};
          });
    std::vector<Tensor> result;
    for (std::size_t i = 0; i < names.size(); ++i)
      result.push_back(exchange->sum(i));
    exchange.reset();
    return result;
  }

  // Concatenates the slices of all ranks in rank order: a rank's subtree is the ranks that follow it.
  Gradient gathered(const GradientAndVariable& own) {
    const Gradient& gradient = own.gradient;
    const Variable& v = own.variable;
    std::vector<std::int64_t> row(v.shape().begin(), v.shape().end());
    row[0] = 0;
    const DType dtype = computed_in(v.dtype());
    IndexedSlices s{zeros(Shape(row), dtype), zeros({0}, DType::i64), v.shape()};
    if (gradient.slices())
      s = {in_f32(gradient.slices()->values), astype(gradient.slices()->indices, DType::i64), v.shape()};
    const auto receive_slices = [&](int from) -> IndexedSlices {
      row[0] = std::stoll(receive_text(from, v.name()));
      Tensor indices = receive(from, {DType::i64, {row[0]}}, v.name());
      return {receive(from, {dtype, Shape(row)}, v.name()), indices, v.shape()};
    };
    const auto send_slices = [&](int to) {
      send_text(to, std::to_string(s.indices.size()));
      send(to, s.indices);
      send(to, s.values);
    };
    for (const int c : tree_.children) {
      const IndexedSlices more = receive_slices(c);
      s = {concat({s.values, more.values}, 0), concat({s.indices, more.indices}, 0), v.shape()};
    }
    if (tree_.parent >= 0) {
      send_slices(tree_.parent);
      s = receive_slices(tree_.parent);
    }
    for (const int c : tree_.children)
      send_slices(c);
    return s;
  }

  // Messages of one sender with one tag arrive in order. Buffers live until the send completes.
  enum Tag { kLate, kText, kEarly };
  struct Sent {
    MPI_Request request;
    Tensor x;
    std::string text;
  };
  struct Traffic {
    std::deque<Sent> sent;
    Tensor incoming;
    std::unique_ptr<Exchange> early, late;   // buckets sent before the plans were merged, and after

    std::size_t progress() const { return (early ? early->progress() : 0) + (late ? late->progress() : 0); }
  };

  void send(int to, const Tensor& x) {
    traffic_.sent.push_back({MPI_REQUEST_NULL, x, {}});
    check_mpi(MPI_Isend(HostView<std::byte>(x, "ranks").data(), words(x.nbytes()), MPI_INT32_T, to, kLate,
                        tree_.comm, &traffic_.sent.back().request),
              "MPI_Isend");
  }
  void send_text(int to, std::string text) {
    traffic_.sent.push_back({MPI_REQUEST_NULL, {}, std::move(text)});
    Sent& s = traffic_.sent.back();
    check_mpi(MPI_Isend(s.text.data(), static_cast<int>(s.text.size()), MPI_CHAR, to, kText, tree_.comm,
                        &s.request),
              "MPI_Isend");
  }
  Tensor receive(int from, const Spec& spec, const std::string& what) {
    Tensor x = traffic_.incoming = allocate(spec);
    MPI_Request request;
    check_mpi(MPI_Irecv(writable_bytes(x).data(), words(x.nbytes()), MPI_INT32_T, from, kLate, tree_.comm,
                        &request),
              "MPI_Irecv");
    await([&] { return tested([&](int& done) { return MPI_Test(&request, &done, MPI_STATUS_IGNORE); }); },
          [&] {
            return Wait{from, what};
          });
    traffic_.incoming = {};
    return x;
  }
  std::string receive_text(int from, const std::string& what) {
    MPI_Status status;
    await(
        [&] {
          return tested([&](int& done) { return MPI_Iprobe(from, kText, tree_.comm, &done, &status); });
        },
        [&] {
          return Wait{from, what};
        });
    int count = 0;
    check_mpi(MPI_Get_count(&status, MPI_CHAR, &count), "MPI_Get_count");
    std::string text(static_cast<std::size_t>(count), '\0');
    check_mpi(MPI_Recv(text.data(), count, MPI_CHAR, from, kText, tree_.comm, MPI_STATUS_IGNORE), "MPI_Recv");
    return text;
  }
  void flush(const std::string& what) {
    for (std::deque<Sent>& sent = traffic_.sent; !sent.empty(); sent.pop_front())
      await(
          [&] {
            return tested(
                [&](int& done) { return MPI_Test(&sent.front().request, &done, MPI_STATUS_IGNORE); });
          },
          [&] {
            return Wait{-1, what};
          });
  }
  template <class Test> static bool tested(const Test& test) {
    int done = 0;
    check_mpi(test(done), "MPI_Test");
    return done;
  }

  /// The event that await waits for, for its error message: a message of a rank or, with -1, that other ranks
  /// receive.
  struct Wait {
    int from;
    std::string what;
  };
  // Polls until ready(). Advances early buckets meanwhile; the timeout restarts whenever they make progress.
  template <class Ready, class Describe> void await(const Ready& ready, const Describe& describe) {
    auto start = std::chrono::steady_clock::now();
    std::size_t progress = traffic_.progress();
    for (int tries = 0;; ++tries) {
      if (ready()) return;
      if (traffic_.early) traffic_.early->advance();
      if (std::exchange(progress, traffic_.progress()) != traffic_.progress())
        start = std::chrono::steady_clock::now(), tries = 0;
      if (tries < 1000) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(std::min(tries / 100, 1000)));
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
          options_.timeout_seconds)
        continue;
      broken_ = true;
      const Wait w = describe();
      throw_error<GradientError>("ranks: rank {} has waited {} s for {} at \"{}\"; it may have ended", rank_,
                                 options_.timeout_seconds,
                                 w.from < 0 ? "others to receive" : fmt::format("rank {}", w.from), w.what);
    }
  }

  const int rank_;
  const RanksOptions options_;
  const Tree tree_;
  Traffic traffic_;
  std::int64_t steps_ = 0;   // before the first step, the variables' values are compared, too
  BackwardPass pass_;
  std::vector<Prediction> predictions_;   // latest first
  bool broken_ = false;                   // communication has ended with an error
};

}   // namespace

struct Ranks::Job {
  MPI_Comm comm = MPI_COMM_NULL;
  bool finalize = false, broken = false;
  const int unwinding = std::uncaught_exceptions();

  ~Job() {
    if (broken || std::uncaught_exceptions() > unwinding)
      return;   // MPI_Finalize would wait for ranks that may have ended or are waiting themselves
    MPI_Comm_free(&comm);
    if (finalize) MPI_Finalize();
  }
};

Ranks::Ranks(RanksOptions options) : options_(options), job_(new Job) {
  if (!(options.timeout_seconds > 0))
    throw_error<ArgumentError>("ranks: timeout_seconds is {}; use a number above 0", options.timeout_seconds);
  if (options.bucket_bytes < 1)
    throw_error<ArgumentError>("ranks: bucket_bytes is {}; use 1 or more", options.bucket_bytes);
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (!initialized) {
    int provided;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    job_->finalize = true;
  }
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &job_->comm), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(job_->comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(job_->comm, &replica_.index);
  MPI_Comm_size(job_->comm, &replica_.count);
}
Ranks::~Ranks() = default;

void Ranks::run(const std::function<void(Replica)>& f) const {
  if (!f) throw ArgumentError("run: the replicas' function is empty");
  if (thread_state.communicator)
    throw GradientError("run: replicas are already running on this thread, and cannot be nested");
  if (job_->broken) throw GradientError("run: these ranks failed in an earlier run");
  RankCommunicator own(replica_, options_, job_->comm);
  try {
    const CommunicatorScope scope(&own);
    f(replica_);
    own.end();
  } catch (const std::exception& e) {
    own.fail(e.what());
    job_->broken = true;
    throw;
  } catch (...) {
    own.fail("an exception of another type");
    job_->broken = true;
    throw;
  }
}

}   // namespace tapedeck
#else

namespace tapedeck {

struct Ranks::Job {};
Ranks::Ranks(RanksOptions) {
  throw ArgumentError(
      "ranks: this library is built without MPI; use Replicas, or install libopenmpi-dev and rebuild it");
}
Ranks::~Ranks() = default;
void Ranks::run(const std::function<void(Replica)>&) const {}

}   // namespace tapedeck
#endif
