// The input of metrics: the examples of a batch, checked, with their weights and classes.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "tapedeck/tensor.h"

namespace tapedeck::nn {

/// The examples whose weight is not 0.
struct Examples {
  Tensor labels, predictions;
  Shape shape;                        // of the examples
  std::vector<double> weights = {};   // above 0
  bool are_weighted = false;          // otherwise all weights are 1
};

/// Weights are undefined, so that all examples count, or numbers of 0 or more whose shape is the first axes
/// of labels and predictions. Throws otherwise, and names the metric, as all functions here do.
Examples weighted(std::string_view metric, const Tensor& labels, const Tensor& predictions,
                  const Tensor& weights);
/// Calls f(i, weight) for each element of a tensor of shape `values`, which begins with the shape of the
/// examples.
void each_weight(std::string_view metric, const Examples& examples, const Shape& values,
                 const std::function<void(std::size_t i, double weight)>& f);

/// The classes of examples, i64 of one shape; binary: 0 or 1; predictions above the threshold are 1.
struct Classes {
  Tensor labels, predictions;
};
/// The classes of labels and predictions, which contain classes or have one more axis, for scores or one-hot
/// labels. `count` is the number of classes; 0: any number.
Classes classes_of(std::string_view metric, const Tensor& labels, const Tensor& predictions,
                   std::int64_t count = 0);
Classes binary_classes(std::string_view metric, const Tensor& labels, const Tensor& predictions,
                       double threshold);
/// The labels as classes, i64 [...], for scores [..., classes].
Tensor labels_of(std::string_view metric, const Tensor& labels, const Tensor& scores);

/// Throws unless both contain real numbers and have the same shape.
void check_alike(std::string_view metric, const Tensor& labels, const Tensor& predictions);
/// Throws unless all labels are 0 or 1.
void check_bits(std::string_view metric, const Tensor& labels);

}   // namespace tapedeck::nn
