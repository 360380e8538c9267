// Compiled functions under tapes and accumulators of the caller.
//
// A call is one op there. Its first derivatives are programs that were recorded with the function, and cut
// off it (inner.h); further ones, and tangents, are compiled functions themselves, which are recorded when
// they are needed.
#pragma once
#include <mutex>

#include "compile/record/signature.h"

namespace tapedeck::compiled {

struct TapedProgram;

/// The programs of a function for calls in which recorders follow what it reads.
class TapedPrograms {
 public:
  explicit TapedPrograms(const CompileOptions& options) : options_(options) {}
  ~TapedPrograms();

  enum class Way : std::uint8_t {
    by_itself,      // the function has to run, seen by the recorders
    as_unwatched,   // no recorder has to see the call
    done            // y and structure are set
  };
  /// Calls the program for these arguments and for what is followed, if there is one. The first call only
  /// notes them, since the function may create variables in it; the second one makes the program.
  Way call(const detail::Arguments& x, const detail::Eager& f, std::vector<Tensor>& y,
           std::shared_ptr<const void>& structure);

 private:
  // What calls have in common that may use one program.
  struct Pattern {
    Signature signature;
    std::vector<std::size_t> wanted;   // the arguments that recorders follow
    bool refused = false;              // the function cannot be recorded

    bool matches(const detail::Arguments& x, const std::vector<std::size_t>& followed) const {
      return wanted == followed && signature.matches(x);
    }
  };
  bool is_full() const { return patterns_.size() >= static_cast<std::size_t>(options_.max_programs); }

  const CompileOptions& options_;
  std::mutex mutex_;
  std::vector<Pattern> patterns_;
  std::vector<std::shared_ptr<TapedProgram>> programs_;
};

}   // namespace tapedeck::compiled
