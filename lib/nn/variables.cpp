// Collects or replaces variables in a walk of a network.
#include "tapedeck/nn/variables.h"

#include <unordered_map>
#include <unordered_set>

#include "core/format.h"

namespace tapedeck::nn {
namespace {

// "*" stands for any characters.
bool matches(std::string_view name, std::string_view pattern) {
  std::size_t n = 0, p = 0, star = pattern.npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != pattern.npos) {   // the last star matches one more
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

}   // namespace

namespace detail {
namespace {
thread_local Pointee* innermost = nullptr;
}

Pointee::Pointee(const void* address, std::string_view type, const std::string& path)
    : address_(address), type_(type), outer_(innermost) {
  for (const Pointee* p = outer_; p; p = p->outer_)
    if (p->address_ == address && p->type_ == type)
      throw_error<ArgumentError>(
          "network: member \"{}\" points back to a layer that holds it; make it a std::weak_ptr, which is "
          "skipped",
          path);
  innermost = this;
}
Pointee::~Pointee() { innermost = outer_; }

struct Collector::State {
  std::string pattern;
  std::vector<NamedVariable> found;
  std::unordered_set<std::uint64_t> ids;
};

Collector::Collector(std::string_view pattern) : state_(new State{std::string(pattern), {}, {}}) {}
Collector::~Collector() = default;

void Collector::add(const Node& node) {
  if (node.variable && state_->ids.insert(node.variable->id()).second && matches(node.path, state_->pattern))
    state_->found.push_back({node.path, *node.variable});
}
std::vector<NamedVariable> Collector::take() { return std::move(state_->found); }

struct Copier::State {
  std::unordered_map<std::uint64_t, Variable> variables;             // id -> copy; a copy's id -> itself
  std::unordered_map<const void*, std::shared_ptr<void>> pointees;   // address -> copy
  std::unordered_set<const void*> originals;                         // addresses of the original's variables
};

Copier::Copier() : state_(new State) {}
Copier::~Copier() = default;

void Copier::note(const Node& node) {
  if (node.variable) state_->originals.insert(node.variable);
}

void Copier::replace(const Node& node) {
  if (node.shared) return copy_pointee(node);
  if (!node.variable) return;
  if (state_->originals.contains(node.variable))
    throw_error<ArgumentError>(
        "copy: member \"{}\" of the copy is a pointer into the original; hold the member by value or by a "
        "std::shared_ptr to its own type",
        node.path);
  const Variable& v = *node.variable;
  const auto [at, is_new] = state_->variables.try_emplace(v.id(), v);
  if (is_new) {
    const Variable own(v.value(),
                       {.name = v.name(), .trainable = v.trainable(), .constraint = v.constraint()});
    at->second = own;
    state_->variables.emplace(own.id(), own);   // since another pointer may lead to it
    *node.variable = own;
  } else {
    *node.variable = at->second;
  }
}

void Copier::copy_pointee(const Node& node) {
  auto [at, is_new] = state_->pointees.try_emplace(node.address);
  if (is_new) at->second = node.shared->copy();
  if (at->second) return node.shared->point_to(at->second);   // else replace() checks the variables in it
}

}   // namespace detail

std::vector<Variable> trainable(const std::vector<NamedVariable>& variables) {
  std::vector<Variable> result;
  for (const NamedVariable& v : variables)
    if (v.variable.trainable()) result.push_back(v.variable);
  return result;
}

std::function<bool(const Variable&)> among(std::vector<NamedVariable> variables) {
  std::unordered_set<std::uint64_t> ids;
  for (const NamedVariable& v : variables)
    ids.insert(v.variable.id());
  return [ids = std::move(ids)](const Variable& v) { return ids.contains(v.id()); };
}

std::int64_t element_count(const std::vector<NamedVariable>& variables) {
  std::int64_t count = 0;
  for (const NamedVariable& v : variables)
    count += v.variable.shape().size();
  return count;
}

}   // namespace tapedeck::nn
