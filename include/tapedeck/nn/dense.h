// Dense layers and embeddings. A layer is a struct with its sizes and variables, which copies share. The key
// determines the initial values of its variables.
#pragma once
#include "tapedeck/nn/new_variables.h"

namespace tapedeck::nn {

/// x · kernel + bias for x [..., inputs]; the result is [..., outputs]. Throws ShapeError for another x.
struct TAPEDECK_EXPORT Dense {
  std::int64_t inputs, outputs;
  Variable kernel;                // [inputs, outputs]
  std::optional<Variable> bias;   // [outputs]

  /// Throws ArgumentError for sizes below 1.
  Dense(std::int64_t inputs_, std::int64_t outputs_, random::Key key, const LayerOptions& options = {});

  /// Applies the layer to x.
  Tensor operator()(const Tensor& x) const;
  /// Visits the variables: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("kernel", kernel), visit("bias", bias);
  }
};

/// Looks up rows of a table: for ids, integers of any shape [...], the result is [..., outputs]. The
/// gradient of the table is sparse (IndexedSlices). Throws ShapeError unless 0 ≤ id < count.
struct TAPEDECK_EXPORT Embedding {
  std::int64_t count, outputs;
  Variable table;   // [count, outputs]; initialized by options.kernel

  /// Throws ArgumentError for sizes below 1.
  Embedding(std::int64_t count_, std::int64_t outputs_, random::Key key, const LayerOptions& options = {});

  /// The rows of these ids.
  Tensor operator()(const Tensor& ids) const;
  /// Visits the variables: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) { visit("table", table); }
};

}   // namespace tapedeck::nn
