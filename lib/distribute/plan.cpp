// Serializes plans, and merges the plans of several ranks.
#include "distribute/plan.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/format.h"

namespace tapedeck {
namespace {

class Writer {
 public:
  void put(std::int64_t n) { bytes.append(reinterpret_cast<const char*>(&n), sizeof n); }
  void put(std::string_view s) { put(static_cast<std::int64_t>(s.size())), bytes.append(s); }
  std::string bytes;
};

// Reads what Writer wrote on another rank of the same program.
class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  std::int64_t number() {
    std::int64_t n;
    std::memcpy(&n, bytes_.data() + at_, sizeof n);
    at_ += sizeof n;
    return n;
  }
  std::string text() {
    const auto n = static_cast<std::size_t>(number());
    return bytes_.substr(std::exchange(at_, at_ + n), n);
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

std::string difference(const Plan& own, const Plan& other, int rank, int from) {
  constexpr std::string_view advice = "all replicas must take the same steps in the same order";
  if (own.name != other.name)
    return fmt::format("{}: rank {} calls this while rank {} calls {}; {}", own.name, rank, from, other.name,
                       advice);
  if (own.options != other.options)
    return fmt::format("{}: rank {} has the options {}; rank {} has {}; use the same on all ranks", own.name,
                       rank, own.options, from, other.options);
  if (own.subjects.size() != other.subjects.size())
    return fmt::format("{}: rank {} has {} variables, rank {} has {}; {}", own.name, rank,
                       own.subjects.size(), from, other.subjects.size(), advice);
  for (std::size_t i = 0; i < own.subjects.size(); ++i)
    if (own.subjects[i] != other.subjects[i])
      return fmt::format("{}: {} on rank {} is {} on rank {}; {}", own.name, own.subjects[i], rank,
                         other.subjects[i], from, advice);
  return {};
}

}   // namespace

std::string Plan::bytes() const {
  Writer w;
  for (const std::string* s : {&name, &options, &kinds, &min_kinds, &error})
    w.put(*s);
  w.put(static_cast<std::int64_t>(subjects.size()));
  for (const std::string& s : subjects)
    w.put(s);
  w.put(static_cast<std::int64_t>(order.size()));
  for (const std::int64_t n : order)
    w.put(n);
  for (const std::int64_t n : {prediction, sent})
    w.put(n);
  return std::move(w.bytes);
}

Plan Plan::of(std::string bytes) {
  Reader r(std::move(bytes));
  Plan p;
  for (std::string* s : {&p.name, &p.options, &p.kinds, &p.min_kinds, &p.error})
    *s = r.text();
  p.subjects.resize(static_cast<std::size_t>(r.number()));
  for (std::string& s : p.subjects)
    s = r.text();
  p.order.resize(static_cast<std::size_t>(r.number()));
  for (std::int64_t& n : p.order)
    n = r.number();
  for (std::int64_t* n : {&p.prediction, &p.sent})
    *n = r.number();
  return p;
}

void Plan::merge(const Plan& other, int rank, int from) {
  if (!error.empty()) return;
  error = !other.error.empty() ? other.error : difference(*this, other, rank, from);
  if (!error.empty()) return;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    kinds[i] = std::max(kinds[i], other.kinds[i]), min_kinds[i] = std::min(min_kinds[i], other.min_kinds[i]);
  if (prediction != other.prediction) prediction = 0;
  sent |= other.sent;
}

}   // namespace tapedeck
