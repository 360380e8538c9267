// Numeric tables in CSV files.
#pragma once
#include <string>
#include <vector>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// Options of load_csv.
struct CsvOptions {
  char separator = ',';
  bool has_header = false;   // the first line has names, usually of the columns
  DType dtype = default_dtype();
};
/// The result of load_csv.
struct CsvTable {
  std::vector<std::string> names;   // empty without a header
  Tensor values;                    // [rows, columns]; [0, names] for a file with names only
};

/// Reads numbers in the format of std::from_chars: integers for integer dtypes, and 0 and 1 for bool.
/// Surrounding spaces and empty lines are ignored; each number is rounded to the dtype once. Names and
/// numbers may be in quotes, in which a separator is a part of the name and "" is a quote. Throws FileError,
/// with line and column, for other content, for numbers out of the dtype's range, and if lines differ in
/// length; ArgumentError for a separator that may be a part of a number, such as '.', '-' and letters.
TAPEDECK_EXPORT CsvTable load_csv(const std::string& path, const CsvOptions& options = {});

}   // namespace tapedeck
