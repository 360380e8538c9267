// In: code, and where its operands are. Out: machine code, shared by equal code.
#include "compile/machine/machine_code.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "compile/machine/code_pages.h"
#include "compile/machine/emitter.h"
#include "core/fork.h"
#include "core/format.h"
#include "kernels/simd/simd.h"

namespace tapedeck::compiled {

namespace {

static_assert(!kernels::kTraced || kVectors.bytes == sizeof(xsimd::batch<float>));

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

std::size_t hash_of(const PlacedCode& p, const VectorSet& set) {
  std::uint64_t h = mixed(static_cast<std::uint64_t>(p.code.lane_bytes), p.places.first_single);
  h = mixed(mixed(h, static_cast<std::uint64_t>(p.code.most_vectors)), static_cast<std::uint64_t>(set.bytes));
  for (const CodeNode& n : p.code.nodes)
    h = mixed(h, hash_of(n));
  for (const auto* list : {&p.places.streams, &p.places.results})
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
  KnownCode(MachineCode made, PlacedCode code, const VectorSet& set)
      : MachineCode(std::move(made)), code_(std::move(code)), set_(set) {}
  ~KnownCode() {
    const std::lock_guard lock(code_lock);
    if (at_ != all_code().end()) all_code().erase(at_);
  }
  KnownCode(const KnownCode&) = delete;

  static std::shared_ptr<const MachineCode> find(std::size_t hash, const PlacedCode& code,
                                                 const VectorSet& set) {
    const std::lock_guard lock(code_lock);
    const auto [from, to] = all_code().equal_range(hash);
    for (auto at = from; at != to; ++at)
      if (at->second->code_ == code && at->second->set_ == set)
        if (auto known = at->second->weak_from_this().lock()) return known;   // else it is being destroyed
    return nullptr;
  }
  void be_found(std::size_t hash) {
    const std::lock_guard lock(code_lock);
    at_ = all_code().emplace(hash, this);
  }

 private:
  PlacedCode code_;
  VectorSet set_;
  AllCode::iterator at_ = all_code().end();
};

void warn_of_refusal(int reason) {
  if (refused.exchange(true)) return;
  warn(
      fmt::format("compile: the system gives no memory for machine code ({}), so compiled functions run "
                  "without it, slower; set TAPEDECK_MACHINE_CODE=0 in the environment to choose that",
                  std::strerror(reason)));
}

}   // namespace

std::vector<std::shared_ptr<const MachineCode>> machine_code(std::vector<PlacedCode> all,
                                                             const VectorSet& set) {
  struct New {
    std::size_t index, hash, entry;   // entry: in memory
  };
  std::vector<std::shared_ptr<const MachineCode>> made(all.size());
  std::vector<New> news;
  std::vector<std::pair<std::size_t, std::size_t>> equals;   // indices of one, and of an earlier equal one
  std::vector<std::byte> joined;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t hash = hash_of(all[i], set);
    if ((made[i] = KnownCode::find(hash, all[i], set))) continue;
    const auto same = std::find_if(news.begin(), news.end(),
                                   [&](const New& n) { return n.hash == hash && all[n.index] == all[i]; });
    if (same != news.end()) {
      equals.push_back({i, same->index});
      continue;
    }
    const EmittedCode emitted = emit(all[i].code, all[i].places, set);
    news.push_back({i, hash, joined.size() + emitted.entry});
    joined.insert(joined.end(), emitted.bytes.begin(), emitted.bytes.end());
    joined.resize(static_cast<std::size_t>(lines(static_cast<std::int64_t>(joined.size()))));
  }
  if (news.empty()) return made;
  const std::shared_ptr<const std::byte> memory = executable_copy(joined);
  if (!memory) {
    warn_of_refusal(errno);
    return {};
  }
  for (const New& n : news) {
    std::byte* const entry = const_cast<std::byte*>(memory.get() + n.entry);   // which nobody writes
    auto known =
        std::make_shared<KnownCode>(MachineCode{reinterpret_cast<decltype(MachineCode::run)>(entry), memory},
                                    std::move(all[n.index]), set);
    known->be_found(n.hash);
    made[n.index] = std::move(known);
  }
  for (const auto& [one, earlier] : equals)
    made[one] = made[earlier];
  return made;
}
#else
std::vector<std::shared_ptr<const MachineCode>> machine_code(std::vector<PlacedCode>, const VectorSet&) {
  return {};
}
#endif

}   // namespace tapedeck::compiled
