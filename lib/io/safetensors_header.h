// The header of a safetensors file: its tensors and their byte ranges. A file is 8 bytes, the header's
// length, little-endian; the header, JSON padded with spaces; then the tensors' bytes without gaps.
#pragma once
#include <optional>
#include <vector>

#include "core/file.h"
#include "tapedeck/safetensors.h"

namespace tapedeck {

struct StoredTensor {
  std::string name;
  Spec spec;
  std::int64_t begin = 0, end = 0;   // byte range, relative to the end of the header
  std::optional<std::uint64_t> checksum = {};
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;   // in file order
  Metadata metadata;                   // the user's metadata
  Metadata kinds = {};                 // of objects, by name: see SavedState
};

/// The header's text, with placeholders for checksums, which are known only after the tensors are written.
class HeaderText {
 public:
  /// Throws ArgumentError for names that the format cannot store; `op` begins the message.
  HeaderText(std::string_view op, const SafetensorsHeader& header);

  /// Sets the checksum of the i-th tensor.
  void enter(std::size_t i, std::uint64_t checksum);
  /// Sets the checksum of the header itself; call it last.
  void seal();
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<std::size_t> places_;   // positions of checksums in the text
};

/// Parses a header, which is followed by `data_bytes` bytes in the file.
SafetensorsHeader read_header(const FileName& file, const std::string& text, std::int64_t data_bytes);

/// The longest header that the format allows.
inline constexpr std::int64_t kMaxHeaderBytes = 100'000'000;

}   // namespace tapedeck
