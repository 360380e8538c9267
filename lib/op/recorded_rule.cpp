// In: a rule and its arguments. Out: an action whose operands are the tensors among the arguments.
#include "op/recorded_rule.h"

#include <optional>

#include "core/storage.h"
#include "core/trace.h"

namespace tapedeck {
namespace {

// The layout of a list of tensors, of which some are shape-only or undefined.
class Frame {
 public:
  /// Appends x to the layout, and to `tensors` if it has values that are read.
  void add(const Tensor& x, bool is_read, std::vector<Tensor>& tensors) {
    const bool here = is_read && x.defined() && x.has_values();
    if (here) tensors.push_back(x);
    places_.push_back({here, x.defined() && !here ? std::optional(x.spec()) : std::nullopt});
  }
  /// The list, with these tensors in place of those that had values.
  std::vector<Tensor> with(std::span<const Tensor> tensors) const {
    std::vector<Tensor> all;
    auto next = tensors.begin();
    for (const Place& p : places_)
      all.push_back(p.here ? *next++ : p.spec ? shape_only(*p.spec) : Tensor());
    return all;
  }

 private:
  struct Place {
    bool here;
    std::optional<Spec> spec;
  };
  std::vector<Place> places_;
};

// Whether the rule is a user's function that the attributes hold. Such a function receives cotangents, and
// only the shapes of inputs and outputs; it captures any other tensor that it reads.
bool is_function(const Call& c) {
  const Rule& rule = c.op.rule;
  return rule.kind == RuleKind::custom && !rule.reads_x && !rule.reads_y && c.raw_attrs.type &&
         c.raw_attrs.type->copy;
}

std::vector<const Tensor*> pointers(std::span<const Tensor> x) {
  std::vector<const Tensor*> all;
  for (const Tensor& t : x)
    all.push_back(&t);
  return all;
}
Refs refs(const std::vector<const Tensor*>& x) { return {x.data(), static_cast<int>(x.size())}; }

}   // namespace

void record_rule(const Call& c, std::span<const Tensor> given, std::span<const Tensor> results,
                 RuleAction rule) {
  std::vector<Tensor> tensors;
  Frame frame;
  const bool reads_values = !is_function(c);
  for (const Refs list : {c.x, c.y})
    for (int i = 0; i < list.size(); ++i)
      frame.add(list[i], reads_values, tensors);
  for (const Tensor& t : given)
    frame.add(t, true, tensors);
  const auto x = static_cast<std::size_t>(c.x.size()), y = static_cast<std::size_t>(c.y.size());
  OwnedAttrs attrs(c.raw_attrs);
  const bool keyed = c.raw_attrs.type && c.raw_attrs.type->key;
  const random::Key key = keyed ? attrs.key() : random::Key();
  thread_state.trace->become(
      c.op, tensors, results, key,
      [frame, x, y, keyed, &op = c.op, attrs = std::move(attrs), rule = std::move(rule)](
          std::span<const Tensor> now, const random::Key& key_now) {
        const std::vector<Tensor> all = frame.with(now);
        const std::span<const Tensor> list(all);
        const auto in = pointers(list.first(x)), out = pointers(list.subspan(x, y));
        OwnedAttrs own;
        if (keyed) {
          own = attrs;
          own.key() = key_now;
        }
        return rule({.op = op, .raw_attrs = keyed ? own.view() : attrs.view(), .x = refs(in), .y = refs(out)},
                    list.subspan(x + y));
      });
}

}   // namespace tapedeck
