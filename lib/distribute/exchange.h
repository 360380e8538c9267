// Exchange: buckets of numbers that go up a tree of ranks, are added on their way, and come down as sums.
#pragma once
#ifdef TAPEDECK_MPI
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <deque>
#include <vector>

#include "tapedeck/distribute.h"

namespace tapedeck {

/// Throws Error unless the code is that of success.
void check_mpi(int code, const char* what);
/// Words of four bytes, of which messages consist; buffers are padded to more. Throws ShapeError for more
/// than one message carries.
int words(std::int64_t nbytes);

/// A rank's place in the binomial tree with its root at rank 0, along which sum_in_tree adds.
struct Tree {
  Tree(MPI_Comm comm, const Replica& replica);

  MPI_Comm comm;
  std::vector<int> children;   // ascending
  int parent = -1;             // of the root
};

/// Of the same buckets on all ranks. A bucket goes up when the one before it has, the rank's own part is
/// there, and those of its children are added, one after the other. Nothing here waits. It owns the memory of
/// messages that are on their way, and must not end before they have come.
class Exchange {
 public:
  Exchange(const Tree& tree, int tag, std::vector<Spec> buckets);
  Exchange(const Exchange&) = delete;

  /// This rank's part of a bucket, in any order.
  void put(std::size_t bucket, Tensor own);
  /// Goes as far as it can.
  void advance();
  bool done() const { return down_ == buckets_.size() && sent_.empty(); }
  /// Over all ranks, when it is done.
  const Tensor& sum(std::size_t bucket) const { return buckets_[bucket].sum; }

  /// Counts all that happens.
  std::size_t progress() const { return progress_; }
  /// What it waits for: a bucket, and the rank that it comes from, or -1 where another rank is to receive.
  struct Wait {
    std::size_t bucket;
    int from;
  };
  Wait waits_for() const;

  /// To give it up: from here on it sends nothing.
  void stop() { stopped_ = true; }
  std::size_t sent_to(int rank) { return peer(rank).sent; }
  /// Whether as many messages of a neighbour have come as it has sent; what is in them is forgotten.
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
  std::vector<Peer> children_, parent_;   // none or one
  std::vector<Bucket> buckets_;
  std::size_t up_ = 0, down_ = 0;   // buckets that are
  std::deque<Sent> sent_;
  std::size_t progress_ = 0;
  bool stopped_ = false;
};

}   // namespace tapedeck
#endif
