// In: code, and where its operands are. Out: machine code, shared by equal code.
#include "compile/machine/machine_code.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "compile/machine/code_pages.h"
#include "compile/machine/emitter.h"
#include "core/fork.h"
#include "core/format.h"
#include "kernels/simd/simd.h"

namespace tapedeck::compiled {

namespace {

constinit std::atomic<bool> refused{false};   // by the system

bool is_wanted() {
  const char* asked = std::getenv("TAPEDECK_MACHINE_CODE");
  return !(asked && *asked == '0');
}

}   // namespace

bool makes_machine_code() {
  static const bool wanted = is_wanted();
  return kernels::kTraced && wanted && !refused.load(std::memory_order_relaxed);
}

#ifdef TAPEDECK_MACHINE_CODE
namespace {

std::size_t hash_of(const Code& code, const CodePlaces& places, const VectorSet& set) {
  std::uint64_t h = mixed(static_cast<std::uint64_t>(code.lane_bytes + 16 * code.most_vectors + 256 * set.bytes), places.first_single);
  for (const CodeNode& n : code.nodes)
    h = mixed(h, hash_of(n));
  for (const auto* list : {&places.streams, &places.results})
    for (const std::uint32_t entry : *list)
      h = mixed(h, entry);
  return static_cast<std::size_t>(h);
}

class KnownCode;
/// By hash. Guarded by code_lock.
using AllCode = std::multimap<std::size_t, KnownCode*>;
AllCode& all_code() {
  static AllCode& all = *new AllCode;   // which other static objects may use at exit
  return all;
}

/// Machine code that can be found as long as it is in use.
class KnownCode : public MachineCode, public std::enable_shared_from_this<KnownCode> {
 public:
  KnownCode(MachineCode made, Code code, CodePlaces places, const VectorSet& set)
      : MachineCode(std::move(made)), code_(std::move(code)), places_(std::move(places)), set_(set) {}
  ~KnownCode() {
    const std::lock_guard lock(code_lock);
    if (at_ != all_code().end()) all_code().erase(at_);
  }
  KnownCode(const KnownCode&) = delete;

  static std::shared_ptr<const MachineCode> find(std::size_t hash, const Code& code, const CodePlaces& places,
                                                 const VectorSet& set) {
    const std::lock_guard lock(code_lock);
    const auto [from, to] = all_code().equal_range(hash);
    for (auto at = from; at != to; ++at)
      if (at->second->code_ == code && at->second->places_ == places && at->second->set_ == set)
        if (auto known = at->second->weak_from_this().lock()) return known;   // else it is being destroyed
    return nullptr;
  }
  void be_found(std::size_t hash) {
    const std::lock_guard lock(code_lock);
    at_ = all_code().emplace(hash, this);
  }

 private:
  Code code_;
  CodePlaces places_;
  VectorSet set_;
  AllCode::iterator at_ = all_code().end();
};

}   // namespace

std::shared_ptr<const MachineCode> machine_code(const Code& code, const CodePlaces& places,
                                                const VectorSet& set) {
  const std::size_t hash = hash_of(code, places, set);
  if (auto known = KnownCode::find(hash, code, places, set)) return known;
  const EmittedCode emitted = emit(code, places, set);
  const std::shared_ptr<const std::byte> memory = executable_copy(emitted.bytes);
  if (!memory) {
    const int reason = errno;
    if (!refused.exchange(true))
      warn(
          fmt::format("compile: the system gives no memory for machine code ({}), so compiled functions run "
                      "without it, slower; set TAPEDECK_MACHINE_CODE=0 in the environment to choose that",
                      std::strerror(reason)));
    return nullptr;
  }
  std::byte* const entry = const_cast<std::byte*>(memory.get() + emitted.entry);   // which nobody writes
  const auto made = std::make_shared<KnownCode>(
      MachineCode{reinterpret_cast<decltype(MachineCode::run)>(entry), memory}, code, places, set);
  made->be_found(hash);
  return made;
}
#else
std::shared_ptr<const MachineCode> machine_code(const Code&, const CodePlaces&, const VectorSet&) {
  return nullptr;
}
#endif

}   // namespace tapedeck::compiled
