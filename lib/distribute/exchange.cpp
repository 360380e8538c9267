// Tree all-reduce: receives the children's parts, adds them to this rank's, sends the sum to the parent, and
// passes total sums back down.
#include "distribute/exchange.h"

#ifdef TAPEDECK_MPI
#include <algorithm>
#include <limits>

#include "core/format.h"
#include "core/host_view.h"
#include "core/storage.h"
#include "op/recorder.h"
#include "tapedeck/operators.h"

namespace tapedeck {

void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw_error<Error>("ranks: {} failed: {}", what, std::string_view(text, static_cast<std::size_t>(length)));
}

int words(std::int64_t nbytes) {
  const std::int64_t n = (nbytes + 3) / 4;
  if (n > std::numeric_limits<int>::max())
    throw_error<ShapeError>("ranks: {} bytes are more than one message carries; use less than 8 GiB", nbytes);
  return static_cast<int>(n);
}

Tree::Tree(MPI_Comm c, const Replica& replica) : comm(c) {
  for (int stride = 1; stride < replica.count; stride *= 2) {
    if (replica.index & stride) {
      parent = replica.index - stride;
      break;
    }
    if (replica.index + stride < replica.count) children.push_back(replica.index + stride);
  }
}

Exchange::Exchange(const Tree& tree, int tag, const std::vector<Spec>& buckets)
    : comm_(tree.comm), tag_(tag) {
  for (const int c : tree.children)
    children_.push_back({c});
  if (tree.parent >= 0) parent_.push_back({tree.parent});
  for (const Spec& s : buckets)
    buckets_.push_back({s, {}, {}});
}

void Exchange::put(std::size_t bucket, Tensor own) {
  Bucket& b = buckets_[bucket];
  if (own.spec() != b.spec)
    throw_error<InternalError>("ranks: bucket {} is {}, its part is {}", bucket, b.spec, own.spec());
  b.own = std::move(own);
}

void Exchange::advance() {
  while (!stopped_ && up_ < buckets_.size() && reduce(buckets_[up_]))
    ++up_;
  while (!stopped_ && down_ < up_ && broadcast(buckets_[down_]))
    ++down_;
  for (int done = 1; !sent_.empty();) {
    check_mpi(MPI_Test(&sent_.front().request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (!done) return;
    sent_.pop_front();
    ++progress_;
  }
}

bool Exchange::reduce(Bucket& b) {
  if (!b.own.defined()) return false;
  for (; b.added < children_.size(); ++b.added) {
    Tensor part = receive(children_[b.added], b.spec);
    if (!part.defined()) return false;
    const RecordingScope unrecorded(nullptr);
    b.own = b.own + std::move(part);
  }
  if (parent_.empty())
    b.sum = std::move(b.own);
  else
    send(parent_[0], std::exchange(b.own, {}));
  return true;
}

bool Exchange::broadcast(Bucket& b) {
  if (!parent_.empty()) b.sum = receive(parent_[0], b.spec);
  if (!b.sum.defined()) return false;
  for (Peer& c : children_)
    send(c, b.sum);
  return true;
}

void Exchange::send(Peer& to, const Tensor& x) {
  const int n = words(x.nbytes());
  sent_.push_back({MPI_REQUEST_NULL, x});
  check_mpi(MPI_Isend(HostView<std::byte>(x, "ranks").data(), n, MPI_INT32_T, to.rank, tag_, comm_,
                      &sent_.back().request),
            "MPI_Isend");
  ++to.sent;
}

// Receives the next message, or returns an undefined tensor while there is none. A message of another length
// belongs to a different exchange, so this one is stopped.
Tensor Exchange::receive(Peer& from, const Spec& spec) {
  if (!from.incoming.defined()) {
    int there = 0, length = 0;
    MPI_Message message;
    MPI_Status status;
    check_mpi(MPI_Improbe(from.rank, tag_, comm_, &there, &message, &status), "MPI_Improbe");
    if (!there) return {};
    check_mpi(MPI_Get_count(&status, MPI_INT32_T, &length), "MPI_Get_count");
    const bool fits = length == words(spec.shape.size() * size_of(spec.dtype));
    stopped_ |= !fits;
    from.incoming = allocate(fits ? spec : Spec{DType::i32, {length}});
    check_mpi(MPI_Imrecv(writable_bytes(from.incoming).data(), length, MPI_INT32_T, &message, &from.request),
              "MPI_Imrecv");
  }
  int done = 0;
  check_mpi(MPI_Test(&from.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (!done) return {};
  ++from.received;
  ++progress_;
  Tensor x = std::exchange(from.incoming, {});
  return stopped_ ? Tensor() : x;
}

bool Exchange::has_drained(int rank, std::size_t count) {
  Peer& p = peer(rank);
  while (p.received < count) {
    const std::size_t before = p.received;
    receive(p, {DType::i32, {0}});
    if (p.received == before) return false;
  }
  return true;
}

Exchange::Wait Exchange::waits_for() const {
  if (up_ < buckets_.size() && buckets_[up_].added < children_.size())
    return {up_, children_[buckets_[up_].added].rank};
  if (down_ < buckets_.size() && !parent_.empty()) return {down_, parent_[0].rank};
  return {buckets_.size() - 1, -1};
}

Exchange::Peer& Exchange::peer(int rank) {
  const auto is = [rank](const Peer& p) { return p.rank == rank; };
  const auto child = std::find_if(children_.begin(), children_.end(), is);
  return child != children_.end() ? *child : parent_[0];
}

}   // namespace tapedeck
#endif
