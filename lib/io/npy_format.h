// The .npy format, independent of where its bytes are stored: a file or an archive.
#pragma once
#include "core/file.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// A sequential source of bytes.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// For error messages.
  virtual const FileName& name() const = 0;
  /// The number of bytes left.
  virtual std::int64_t left() const = 0;
  /// Reads the next n bytes; n is at most left().
  virtual void read(void* to, std::int64_t n) = 0;
};

/// Reads an array that fills the rest of the source. Fails before it allocates more memory than the source
/// has bytes.
Tensor read_npy(ByteSource& source);

/// Everything in front of an array's elements.
std::string npy_header(std::string_view op, const Spec& spec);

}   // namespace tapedeck
