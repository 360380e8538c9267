// The handwritten digits as tensors.
#pragma once
#include <string>

#include "tapedeck/tapedeck.h"

struct Digits {
  tapedeck::Tensor pixels;   // f32[n,64], from 0 (paper) to 1 (ink), row by row
  tapedeck::Tensor labels;   // i64[n], from 0 to 9

  std::int64_t size() const { return labels.size(); }
  /// A selection by row index.
  Digits at(const tapedeck::Tensor& rows) const {
    return {tapedeck::gather(pixels, rows), tapedeck::gather(labels, rows)};
  }
};

/// Reads a .csv or .csv.gz file. Throws FileError with the line number if the file is invalid.
Digits load_digits(const std::string& path);

struct Split {
  Digits train, test;
};
/// 1,437 and 360 rows, always the same, in an order that mixes the writers.
Split split(const Digits& digits);
