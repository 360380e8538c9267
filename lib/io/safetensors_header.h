// The header of a safetensors file: which tensors it holds, and where. A file is 8 bytes, the header's
// length, little-endian; the header, JSON, padded with spaces; then the tensors' bytes without gaps.
#pragma once
#include <optional>
#include <vector>

#include "io/file.h"
#include "tapedeck/safetensors.h"

namespace tapedeck {

struct StoredTensor {
  std::string name;
  Spec spec;
  std::int64_t begin = 0, end = 0;   // its bytes, behind the header
  std::optional<std::uint64_t> checksum = {};
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;   // in the order of their bytes
  Metadata metadata;                   // the user's
};

/// The header's text with room for checksums, which are not known before the tensors are written.
class HeaderText {
 public:
  /// Throws ArgumentError for names that a file cannot have; `op` begins the message.
  HeaderText(std::string_view op, const SafetensorsHeader& header);

  /// Enters the checksum of the i-th tensor.
  void enter(std::size_t i, std::uint64_t checksum);
  /// Enters that of the header itself, which comes last.
  void seal();
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<std::size_t> places_;   // of checksums in the text
};

/// Reads a header's text. `data_bytes` follow it in the file.
SafetensorsHeader read_header(const FileName& file, const std::string& text, std::int64_t data_bytes);

/// The longest header that the format allows.
inline constexpr std::int64_t kMaxHeaderBytes = 100'000'000;

}   // namespace tapedeck
