// What a walk of a network collects, or replaces.
#include "tapedeck/nn/variables.h"

#include <unordered_map>
#include <unordered_set>

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
    } else if (star != pattern.npos) {   // the last star takes one more
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
  std::unordered_map<std::uint64_t, Variable> copies;   // by the id of the original
};

Copier::Copier() : state_(new State) {}
Copier::~Copier() = default;

void Copier::replace(const Node& node) {
  if (!node.variable) return;
  const Variable& v = *node.variable;
  const auto [at, is_new] = state_->copies.try_emplace(v.id(), v);
  if (is_new)
    at->second =
        Variable(v.value(), {.name = v.name(), .trainable = v.trainable(), .constraint = v.constraint()});
  *node.variable = at->second;
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
