// Replicas as processes of an MPI job. Messages go along a binomial tree with its root at rank 0, up and down again: first what each
// rank is about to do, so that all of them see the same error where they differ, then buckets of dense gradients, then slices. Every wait
// is polled, and has an end.
#include <chrono>
#include <cstring>
#include <deque>
#include <limits>
#include <thread>

#include "autodiff/recorder.h"
#include "autodiff/variable.h"
#include "base/format.h"
#include "io/checksum.h"
#include "optim/communicator.h"
#include "tapedeck/distribute.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"
#include "tensor/storage.h"

#ifdef TAPEDECK_MPI
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

namespace tapedeck {
namespace {

class Writer {
 public:
  void put(std::int64_t n) { bytes.append(reinterpret_cast<const char*>(&n), sizeof n); }
  void put(std::string_view s) { put(static_cast<std::int64_t>(s.size())), bytes.append(s); }
  std::string bytes;
};

// Of what another rank of the same program wrote.
class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  std::int64_t number() {
    std::int64_t n;
    std::memcpy(&n, bytes_.data() + at_, sizeof n);
    at_ += sizeof n;
    return n;
  }
  std::string text() {
    const auto n = static_cast<std::size_t>(number());
    return bytes_.substr(std::exchange(at_, at_ + n), n);
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

enum Kind : char { kNone, kSlices, kDense };

/// What a rank is about to do; of several, what they agree on, or why they do not.
struct Plan {
  std::string name;
  std::vector<std::string> subjects;   // the same on all ranks
  std::string kinds;                   // of each; the highest of all ranks
  std::string error;

  std::string bytes() const {
    Writer w;
    for (const std::string* s : {&name, &kinds, &error}) w.put(*s);
    w.put(static_cast<std::int64_t>(subjects.size()));
    for (const std::string& s : subjects) w.put(s);
    return std::move(w.bytes);
  }
  static Plan of(std::string bytes) {
    Reader r(std::move(bytes));
    Plan p;
    for (std::string* s : {&p.name, &p.kinds, &p.error}) *s = r.text();
    p.subjects.resize(static_cast<std::size_t>(r.number()));
    for (std::string& s : p.subjects) s = r.text();
    return p;
  }

  // This one is of `rank`, the other one of `from`.
  void merge(const Plan& other, int rank, int from) {
    if (!error.empty()) return;
    error = !other.error.empty() ? other.error : difference(other, rank, from);
    if (!error.empty()) return;
    for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = std::max(kinds[i], other.kinds[i]);
  }

 private:
  std::string difference(const Plan& other, int rank, int from) const {
    constexpr std::string_view advice = "all replicas take the same steps in the same order";
    if (name != other.name) return fmt::format("{}: rank {} calls this while rank {} calls {}; {}", name, rank, from, other.name, advice);
    if (subjects.size() != other.subjects.size()) return fmt::format("{}: rank {} has {} variables, rank {} has {}; {}", name, rank, subjects.size(), from, other.subjects.size(), advice);
    for (std::size_t i = 0; i < subjects.size(); ++i)
      if (subjects[i] != other.subjects[i]) return fmt::format("{}: {} on rank {} is {} on rank {}; {}", name, subjects[i], rank, other.subjects[i], from, advice);
    return {};
  }
};

void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw_error<Error>("ranks: {} fails: {}", what, std::string_view(text, static_cast<std::size_t>(length)));
}

class OverRanks final : public Communicator {
 public:
  OverRanks(Replica replica, const RanksOptions& options, MPI_Comm comm)
      : Communicator(options.reduction == LossReduction::mean ? 1.0 / replica.count : 1), rank_(replica.index), options_(options), comm_(comm) {
    for (int stride = 1; stride < replica.count; stride *= 2) {
      if (rank_ & stride) {
        parent_ = rank_ - stride;
        break;
      }
      if (rank_ + stride < replica.count) children_.push_back(rank_ + stride);
    }
  }

  void step(const StepTogether& own) override {
    const std::string caller = fmt::format("apply_gradients: rank {}", rank_);
    Plan plan{"apply_gradients", {}, {}, {}};
    for (const auto& [gradient, variable] : own.pairs) {
      if (gradient.defined()) own.check({gradient, variable}, caller);
      plan.subjects.push_back(fmt::format("variable \"{}\" {}{}", variable.name(), Spec{variable.dtype(), variable.shape()}, stepped_ ? "" : fmt::format(" of checksum {:x}", checksum(variable))));
      plan.kinds.push_back(!gradient.defined() ? kNone : gradient.slices() ? kSlices : kDense);
    }
    if (own.global_step) plan.subjects.push_back("global_step"), plan.kinds.push_back(kNone);
    plan = agreed(std::move(plan));
    own.apply([&] {
      const RecordingScope unrecorded(nullptr);
      return sums(own.pairs, plan.kinds);
    }());
    stepped_ = true;
  }

  Tensor sum(const Tensor& own) override {
    if (!own.defined()) throw_error<ArgumentError>("sum_over_replicas: rank {}: x is undefined", rank_);
    if (!is_trainable(own.dtype()) && own.dtype() != DType::i32 && own.dtype() != DType::i64) throw_error<DTypeError>("sum_over_replicas: x is {}; use astype", own.spec());
    agreed({"sum_over_replicas", {fmt::format("x {}", own.spec())}, std::string(1, kDense), {}});
    const RecordingScope unrecorded(nullptr);
    const std::string what = "x";
    const Tensor total = broadcast(reduce(own, what), own.spec(), what);
    flush(what);
    return total;
  }

  /// After the last step: throws where other ranks take one more.
  void end() { agreed({"the end of run", {}, {}, {}}); }
  /// Tells the other ranks that this one ends with an error, unless they know or cannot be reached.
  void fail(std::string_view why) noexcept {
    if (broken_) return;
    try {
      agreed({"", {}, {}, fmt::format("ranks: rank {} has failed: {}", rank_, why)});
    } catch (...) {
    }
  }
  bool broken() const { return broken_; }

 private:
  static std::uint64_t checksum(const Variable& v) {
    const Tensor& x = v.cell().value;
    Checksum sum;
    sum.add(x.raw(), x.nbytes());
    return sum.value();
  }

  struct Bucket { std::vector<std::size_t> pairs; std::int64_t nbytes = 0; };

  Plan agreed(Plan plan) {
    const std::string what = plan.name;
    for (const int c : children_) plan.merge(Plan::of(receive_text(c, what)), rank_, c);
    if (parent_ >= 0) {
      send_text(parent_, plan.bytes());
      plan = Plan::of(receive_text(parent_, what));
    }
    const std::string bytes = plan.bytes();
    for (const int c : children_) send_text(c, bytes);
    flush(what);
    if (plan.error.empty()) return plan;
    broken_ = true;
    throw GradientError(plan.error);
  }

  std::vector<GradientAndVariable> sums(std::span<const GradientAndVariable> own, std::string_view kinds) {
    std::vector<GradientAndVariable> result;
    for (const GradientAndVariable& p : own) result.push_back({Gradient(), p.variable});
    // All buckets go up before the first is awaited from above, so that they are on their way at the same time.
    const std::vector<Bucket> buckets = cut(own, kinds);
    std::vector<Tensor> reduced;
    for (const Bucket& b : buckets) reduced.push_back(reduce(packed(b, own), own[b.pairs[0]].variable.name()));
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const std::string& what = own[buckets[i].pairs[0]].variable.name();
      unpack(buckets[i], broadcast(reduced[i], reduced[i].spec(), what), result);
    }
    for (std::size_t i = 0; i < own.size(); ++i) if (kinds[i] == kSlices) result[i].gradient = gathered(own[i]);
    flush("the last message");
    return result;
  }

  // Dense gradients of one dtype, in their order; one that is larger than a bucket has its own.
  std::vector<Bucket> cut(std::span<const GradientAndVariable> own, std::string_view kinds) const {
    std::vector<Bucket> buckets;
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (kinds[i] != kDense) continue;
      const Variable& v = own[i].variable;
      const std::int64_t nbytes = v.shape().size() * size_of(v.dtype());
      if (buckets.empty() || own[buckets.back().pairs[0]].variable.dtype() != v.dtype() || buckets.back().nbytes + nbytes > options_.bucket_bytes) buckets.emplace_back();
      buckets.back().pairs.push_back(i);
      buckets.back().nbytes += nbytes;
    }
    return buckets;
  }

  static Tensor packed(const Bucket& b, std::span<const GradientAndVariable> own) {
    std::vector<Tensor> flat;
    for (const std::size_t i : b.pairs) {
      const auto& [gradient, v] = own[i];
      const IndexedSlices* s = gradient.slices();
      // -0 is what added to x gives x.
      const Tensor g = s ? to_dense({s->values, s->indices, v.shape()}) : gradient.defined() ? gradient.tensor() : full(v.shape(), -0.0, v.dtype());
      flat.push_back(reshape(g, {g.size()}));
    }
    return flat.size() == 1 ? flat[0] : concat(flat, 0);
  }
  static void unpack(const Bucket& b, const Tensor& sum, std::vector<GradientAndVariable>& result) {
    std::int64_t at = 0;
    for (const std::size_t i : b.pairs) {
      const Shape& shape = result[i].variable.shape();
      result[i].gradient = reshape(strided_slice(sum, {Slice(at, at + shape.size())}), shape);
      at += shape.size();
    }
  }

  // The sum of this rank's part of the tree, which is on its way up.
  Tensor reduce(Tensor x, const std::string& what) {
    for (const int c : children_) x = x + receive(c, x.spec(), what);
    if (parent_ >= 0) send(parent_, x);
    return x;
  }
  Tensor broadcast(Tensor x, const Spec& spec, const std::string& what) {
    if (parent_ >= 0) x = receive(parent_, spec, what);
    for (const int c : children_) send(c, x);
    return x;
  }

  // Slices of all ranks, in their order: a rank's part of the tree is the ranks behind it.
  Gradient gathered(const GradientAndVariable& own) {
    const Gradient& gradient = own.gradient;
    const Variable& v = own.variable;
    std::vector<std::int64_t> row(v.shape().begin(), v.shape().end());
    row[0] = 0;
    IndexedSlices s{zeros(Shape(row), v.dtype()), zeros({0}, DType::i64), v.shape()};
    if (gradient.slices()) s = {gradient.slices()->values, astype(gradient.slices()->indices, DType::i64), v.shape()};
    const auto receive_slices = [&](int from) -> IndexedSlices {
      row[0] = std::stoll(receive_text(from, v.name()));
      Tensor indices = receive(from, {DType::i64, {row[0]}}, v.name());
      return {receive(from, {v.dtype(), Shape(row)}, v.name()), indices, v.shape()};
    };
    const auto send_slices = [&](int to) {
      send_text(to, std::to_string(s.indices.size()));
      send(to, s.indices);
      send(to, s.values);
    };
    for (const int c : children_) {
      const IndexedSlices more = receive_slices(c);
      s = {concat({s.values, more.values}, 0), concat({s.indices, more.indices}, 0), v.shape()};
    }
    if (parent_ >= 0) {
      send_slices(parent_);
      s = receive_slices(parent_);
    }
    for (const int c : children_) send_slices(c);
    return s;
  }

  // Messages. Those of one sender come in their order. What is sent stays alive until it is.
  struct Sent { MPI_Request request; Tensor x; std::string text; };

  void send(int to, const Tensor& x) {
    sent_.push_back({MPI_REQUEST_NULL, x, {}});
    check_mpi(MPI_Isend(x.raw(), length(x.nbytes()), MPI_INT32_T, to, 0, comm_, &sent_.back().request), "MPI_Isend");
  }
  void send_text(int to, std::string text) {
    sent_.push_back({MPI_REQUEST_NULL, {}, std::move(text)});
    check_mpi(MPI_Isend(sent_.back().text.data(), static_cast<int>(sent_.back().text.size()), MPI_CHAR, to, 1, comm_, &sent_.back().request), "MPI_Isend");
  }
  Tensor receive(int from, const Spec& spec, const std::string& what) {
    Tensor x = allocate(spec);
    MPI_Request request;
    check_mpi(MPI_Irecv(x.raw(), length(x.nbytes()), MPI_INT32_T, from, 0, comm_, &request), "MPI_Irecv");
    await(what, from, x, [&](int& done) { return MPI_Test(&request, &done, MPI_STATUS_IGNORE); });
    return x;
  }
  std::string receive_text(int from, const std::string& what) {
    MPI_Status status;
    await(what, from, {}, [&](int& done) { return MPI_Iprobe(from, 1, comm_, &done, &status); });
    int count = 0;
    check_mpi(MPI_Get_count(&status, MPI_CHAR, &count), "MPI_Get_count");
    std::string text(static_cast<std::size_t>(count), '\0');
    check_mpi(MPI_Recv(text.data(), count, MPI_CHAR, from, 1, comm_, MPI_STATUS_IGNORE), "MPI_Recv");
    return text;
  }
  void flush(const std::string& what) {
    for (; !sent_.empty(); sent_.pop_front()) await(what, -1, {}, [&](int& done) { return MPI_Test(&sent_.front().request, &done, MPI_STATUS_IGNORE); });
  }

  /// Words of four bytes; buffers are padded to more.
  int length(std::int64_t nbytes) const {
    const std::int64_t n = (nbytes + 3) / 4;
    if (n > std::numeric_limits<int>::max()) throw_error<ShapeError>("ranks: {} bytes are more than one message carries; use less than 8 GiB", nbytes);
    return static_cast<int>(n);
  }

  // `held` is memory that a message may still come into: where the wait is given up, it is never freed.
  template <class Test> void await(const std::string& what, int from, const Tensor& held, const Test& test) {
    const auto start = std::chrono::steady_clock::now();
    for (int done = 0, tries = 0;; ++tries) {
      check_mpi(test(done), "MPI_Test");
      if (done) return;
      if (tries < 1000) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(std::min(tries / 100, 1000)));
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < options_.timeout_seconds) continue;
      broken_ = true;
      new std::deque<Sent>(std::move(sent_));
      new Tensor(held);
      throw_error<GradientError>("ranks: rank {} has waited {} s for {} at \"{}\"; it may have ended", rank_, options_.timeout_seconds,
                                 from < 0 ? "others to receive" : fmt::format("rank {}", from), what);
    }
  }

  const int rank_;
  const RanksOptions options_;
  const MPI_Comm comm_;
  std::vector<int> children_;   // ascending
  int parent_ = -1;
  std::deque<Sent> sent_;
  bool stepped_ = false;        // before the first step, values are compared too
  bool broken_ = false;         // ranks do not listen to each other any more
};

}  // namespace

struct Ranks::Job {
  MPI_Comm comm = MPI_COMM_NULL;
  bool finalize = false, broken = false;

  ~Job() {
    if (broken) return;   // it would wait for ranks that may have ended
    MPI_Comm_free(&comm);
    if (finalize) MPI_Finalize();
  }
};

Ranks::Ranks(RanksOptions options) : options_(options), job_(new Job) {
  if (!(options.timeout_seconds > 0)) throw_error<ArgumentError>("ranks: timeout_seconds is {}; use a number above 0", options.timeout_seconds);
  if (options.bucket_bytes < 1) throw_error<ArgumentError>("ranks: bucket_bytes is {}; use 1 or more", options.bucket_bytes);
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
  if (thread_state.communicator) throw GradientError("run: replicas run already on this thread, and do not nest");
  if (job_->broken) throw GradientError("run: these ranks have failed before");
  OverRanks own(replica_, options_, job_->comm);
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

}  // namespace tapedeck
#else

namespace tapedeck {

struct Ranks::Job {};
Ranks::Ranks(RanksOptions) { throw ArgumentError("ranks: this library is built without MPI; use Replicas, or install libopenmpi-dev and build it again"); }
Ranks::~Ranks() = default;
void Ranks::run(const std::function<void(Replica)>&) const {}

}  // namespace tapedeck
#endif
