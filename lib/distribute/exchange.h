// Exchange: an all-reduce of buckets of numbers over a tree of ranks: reduced up the tree, then broadcast
// down.
#pragma once
#ifdef TAPEDECK_MPI
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <deque>
#include <vector>

#include "tapedeck/distribute.h"

namespace tapedeck {

/// Throws Error unless the code is MPI_SUCCESS.
void check_mpi(int code, const char* what);
/// The length of a message in words of four bytes; buffers are padded to whole words. Throws ShapeError if
/// one message cannot carry it.
int words(std::int64_t nbytes);

/// A rank's position in the binomial tree rooted at rank 0, in whose order sum_in_tree adds.
struct Tree {
  Tree(MPI_Comm comm, const Replica& replica);

  MPI_Comm comm;
  std::vector<int> children;   // ascending
  int parent = -1;             // -1: this is the root
};

/// All ranks have the same buckets. A bucket is sent up when the previous one has been, this rank's part has
/// been put, and the children's parts have been added, in order. No function blocks. Owns the memory of
/// messages in flight, and must not be destroyed before they complete.
class Exchange {
 public:
  Exchange(const Tree& tree, int tag, const std::vector<Spec>& buckets);
  Exchange(const Exchange&) = delete;

  /// Provides this rank's part of a bucket; in any order.
  void put(std::size_t bucket, Tensor own);
  /// Makes as much progress as possible without waiting.
  void advance();
  bool done() const { return down_ == buckets_.size() && sent_.empty(); }
  /// The sum over all ranks; valid once done().
  const Tensor& sum(std::size_t bucket) const { return buckets_[bucket].sum; }

  /// A counter that grows with every event.
  std::size_t progress() const { return progress_; }
  /// The bucket that the exchange is waiting for, and the rank that sends it, or -1 while other ranks still
  /// have to receive.
  struct Wait {
    std::size_t bucket;
    int from;
  };
  Wait waits_for() const;

  /// Aborts: from now on nothing is sent.
  void stop() { stopped_ = true; }
  std::size_t sent_to(int rank) { return peer(rank).sent; }
  /// Receives and discards a neighbour's messages; true once `count` have arrived.
  bool has_drained(int rank, std::size_t count);
  bool all_sent() const { return sent_.empty(); }

 private:
  struct Bucket {
    Spec spec;
    Tensor own, sum;
    std::size_t added = 0;
  };
  struct Peer {
    int rank;
    std::size_t sent = 0, received = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    Tensor incoming = {};
  };
  struct Sent {
    MPI_Request request;
    Tensor x;
  };

  bool reduce(Bucket& b);
  bool broadcast(Bucket& b);
  void send(Peer& to, const Tensor& x);
  Tensor receive(Peer& from, const Spec& spec);
  Peer& peer(int rank);

  const MPI_Comm comm_;
  const int tag_;
  std::vector<Peer> children_, parent_;   // parent_: one or, at the root, none
  std::vector<Bucket> buckets_;
  std::size_t up_ = 0, down_ = 0;   // buckets already sent up, and already summed
  std::deque<Sent> sent_;
  std::size_t progress_ = 0;
  bool stopped_ = false;
};

}   // namespace tapedeck
#endif
