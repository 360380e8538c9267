// Tables of numbers in text files.
#pragma once
#include <string>
#include <vector>

#include "tapedeck/tensor.h"

namespace tapedeck {

struct CsvOptions {
  char separator = ',';
  bool has_header = false;   // the first line has names, most often of the columns
  DType dtype = DType::f32;
};
struct CsvTable {
  std::vector<std::string> names;   // empty without a header
  Tensor values;                    // [rows, columns]
};

/// Reads numbers as from_chars knows them, spaces around them left out; empty lines are passed over. Throws
/// FileError, with the line, for anything else and for lines that differ in length.
TAPEDECK_EXPORT CsvTable load_csv(const std::string& path, const CsvOptions& options = {});

}   // namespace tapedeck
