// An open safetensors file: the header is parsed, tensors are read on demand.
#pragma once
#include "io/safetensors_header.h"

namespace tapedeck {

class TensorReader {
 public:
  explicit TensorReader(FileName name);

  const FileName& name() const { return file_.name(); }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const Metadata& metadata() const { return header_.metadata; }
  /// The kinds of objects, by name.
  const Metadata& kinds() const { return header_.kinds; }
  /// Fails if the bytes do not match the tensor's checksum.
  Tensor read(const StoredTensor& stored) const;

 private:
  InputFile file_;
  std::int64_t data_ = 0;   // offset of the data
  SafetensorsHeader header_;
};

/// Writes a whole file, as save_safetensors does.
void write_tensors(const FileName& name, const NamedTensors& tensors, const Metadata& metadata,
                   const Metadata& kinds = {});

/// Fails unless each byte of a bool tensor is 0 or 1. The message continues from `what`.
void check_booleans(const FileName& file, std::string_view what, const Tensor& x);

}   // namespace tapedeck
