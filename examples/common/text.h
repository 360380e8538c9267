// The guides of this repository as a text of numbered characters.
#pragma once
#include <string>
#include <vector>

#include "tapedeck/random_key.h"
#include "tapedeck/tensor.h"

class Text {
 public:
  /// Reads the guides, without what is not ASCII. A tenth of the text, in blocks, is kept for tests.
  Text();

  /// How many different characters there are.
  std::int64_t characters() const { return static_cast<std::int64_t>(alphabet_.size()); }
  std::int64_t size() const { return static_cast<std::int64_t>(train_.size() + test_.size()); }
  std::string words(const std::vector<std::int64_t>& ids) const;
  std::vector<std::int64_t> ids(const std::string& words) const;

  /// i64[rows,length], from random places of the training text, or evenly spaced ones of the test's.
  tapedeck::Tensor train(std::int64_t rows, std::int64_t length, tapedeck::random::Key key) const;
  tapedeck::Tensor test(std::int64_t rows, std::int64_t length) const;

  /// Bits that a character of the test takes by how often it is in the training text, alone or after the one
  /// before it: what a network has to beat.
  double bits_alone() const;
  double bits_of_pairs() const;

 private:
  std::string alphabet_;
  std::vector<std::int64_t> train_, test_;
};
