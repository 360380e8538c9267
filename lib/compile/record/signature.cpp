#include "compile/record/signature.h"

#include <unordered_map>

#include "core/format.h"
#include "core/storage.h"

namespace tapedeck::compiled {
namespace {

// The index of the first element that equals x[i].
template <class T, class Same> std::size_t first_of(std::span<const T> x, std::size_t i, const Same& same) {
  std::size_t k = 0;
  while (!same(x[k], x[i]))
    ++k;
  return k;
}
std::size_t first_tensor(std::span<const Tensor> x, std::size_t i) {
  return first_of(x, i, [](const Tensor& a, const Tensor& b) { return a.id() == b.id(); });
}
std::size_t first_key(const detail::Arguments& x, std::size_t i) {
  return first_of(std::span(x.keys), i, random::KeyAccess::equal);
}

}   // namespace

// In linear time.
std::vector<std::size_t> first_tensors(std::span<const Tensor> x) {
  std::unordered_map<std::uint64_t, std::size_t> known;
  std::vector<std::size_t> firsts;
  for (std::size_t i = 0; i < x.size(); ++i)
    firsts.push_back(known.try_emplace(x[i].id(), i).first->second);
  return firsts;
}

Signature::Signature(const detail::Arguments& x) : tensors(first_tensors(x.tensors)), rest(x.rest) {
  for (const Tensor& t : x.tensors)
    specs.push_back(t.spec());
  for (std::size_t i = 0; i < x.keys.size(); ++i)
    keys.push_back(first_key(x, i));
}

bool Signature::matches(const detail::Arguments& x) const {
  if (x.tensors.size() != specs.size() || x.keys.size() != keys.size() || x.rest != rest) return false;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const Tensor& t = x.tensors[i];
    if (t.dtype() != specs[i].dtype || t.shape() != specs[i].shape) return false;
  }
  if (!are_the_same(x.tensors)) return false;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (first_key(x, i) != keys[i]) return false;
  return true;
}

bool Signature::are_the_same(std::span<const Tensor> x) const {
  constexpr std::size_t few = 32;   // up to which comparing is faster than hashing
  if (x.size() > few) return first_tensors(x) == tensors;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (first_tensor(x, i) != tensors[i]) return false;
  return true;
}

std::string Signature::text() const {
  std::string all;
  for (const Spec& s : specs)
    all += (all.empty() ? "" : ", ") + to_string(s);
  return all;
}

std::vector<Tensor> with_fresh_ids(std::span<const Tensor> x) {
  const std::vector<std::size_t> firsts = first_tensors(x);
  std::vector<Tensor> own;
  for (std::size_t i = 0; i < x.size(); ++i)
    own.push_back(firsts[i] < i ? own[firsts[i]] : share(x[i]));
  return own;
}

}   // namespace tapedeck::compiled
