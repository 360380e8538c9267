// The guides of this repository as a text, whose characters are numbered.
#pragma once
#include <string>
#include <vector>

#include "tapedeck/random_key.h"
#include "tapedeck/tensor.h"

class Text {
 public:
  /// Reads the guides, and drops characters that are not ASCII. A tenth of the text, in blocks, is kept for
  /// tests.
  Text();

  /// The number of different characters.
  std::int64_t characters() const { return static_cast<std::int64_t>(alphabet_.size()); }
  std::int64_t size() const { return static_cast<std::int64_t>(train_.size() + test_.size()); }
  std::string words(const std::vector<std::int64_t>& ids) const;
  std::vector<std::int64_t> ids(const std::string& words) const;

  /// i64[rows,length], from random positions in the training text, or evenly spaced positions in the test
  /// text.
  tapedeck::Tensor train(std::int64_t rows, std::int64_t length, tapedeck::random::Key key) const;
  tapedeck::Tensor test(std::int64_t rows, std::int64_t length) const;

  /// Mean bits of a character of the test text, by the frequencies of characters in the training text, alone
  /// or given the previous character. A network has to beat these.
  double bits_alone() const;
  double bits_of_pairs() const;

 private:
  std::string alphabet_;
  std::vector<std::int64_t> train_, test_;
};
