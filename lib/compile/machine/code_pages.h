// Memory from which machine code runs. It is never writable and executable at a time.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

namespace tapedeck::compiled {

/// Copies position-independent code to the beginning of executable pages, which live as long as the pointer.
/// Null if the system gives no such memory; errno tells why.
std::shared_ptr<const std::byte> executable_copy(std::span<const std::byte> code);

}   // namespace tapedeck::compiled
