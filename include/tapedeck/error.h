// Exceptions and warnings. Messages have the form `op: what is wrong: actual values; what to do`.
#pragma once
#include <functional>
#include <new>
#include <stdexcept>
#include <string_view>

#if defined(__GNUC__)
#define TAPEDECK_EXPORT __attribute__((visibility("default")))
#else
#define TAPEDECK_EXPORT
#endif

namespace tapedeck {

/// Base of all exceptions thrown by the library itself, except OutOfMemory; a std::bad_alloc of the standard
/// library is passed on unchanged.
struct TAPEDECK_EXPORT Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// An invalid value: an option, a count, an index, a name.
struct TAPEDECK_EXPORT ArgumentError : Error {
  using Error::Error;
};
/// Shapes that do not match, axes out of range, element counts that overflow.
struct TAPEDECK_EXPORT ShapeError : ArgumentError {
  using ArgumentError::ArgumentError;
};
/// A dtype that an op does not accept, or two dtypes that cannot be combined.
struct TAPEDECK_EXPORT DTypeError : Error {
  using Error::Error;
};
/// Invalid use of a tape, an accumulator or a rule.
struct TAPEDECK_EXPORT GradientError : Error {
  using Error::Error;
};
/// A function cannot be recorded, since a replay could not reproduce what it does.
struct TAPEDECK_EXPORT TraceError : Error {
  using Error::Error;
};
/// A file that is missing, damaged or in another format.
struct TAPEDECK_EXPORT FileError : Error {
  using Error::Error;
};
/// A bug in the library (please report it) or in a user-defined op.
struct TAPEDECK_EXPORT InternalError : Error {
  using Error::Error;
};

/// There is no memory for a tensor. what() contains its dtype, its shape and the number of bytes. Not derived
/// from Error, since a class that derives from std::runtime_error and from std::bad_alloc is not caught as
/// std::exception.
class TAPEDECK_EXPORT OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string_view text) noexcept { text_[text.copy(text_, sizeof text_ - 1)] = 0; }
  /// "tensor: no memory for the 4096 bytes of f32[1024]"
  const char* what() const noexcept override { return text_; }

 private:
  char text_[256];   // inline: there may be no memory for a string
};

/// Sets the handler of warnings; the default writes to standard error. An empty handler restores the default.
/// Each text is passed on at most five times per process. The handler may be called from any thread, one call
/// at a time; it may set another one, and use functions that warn on its thread.
TAPEDECK_EXPORT void set_warning_handler(std::function<void(std::string_view)> handler);

}   // namespace tapedeck
