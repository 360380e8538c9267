// In: pairs whose gradients were recorded. Out: an action of their tensors.
#include "optim/recorded.h"

#include <memory>
#include <mutex>

#include "core/format.h"
#include "core/storage.h"

namespace tapedeck {
namespace {

std::vector<Tensor> tensors_of(std::span<const GradientAndVariable> pairs) {
  std::vector<Tensor> all;
  for (const auto& [gradient, variable] : pairs) {
    if (const IndexedSlices* s = gradient.slices())
      all.push_back(s->values), all.push_back(s->indices);
    else if (gradient.defined())
      all.push_back(gradient.tensor());
  }
  return all;
}

// Replaces the tensors of the pairs, which are in the order of tensors_of.
void replace(std::vector<GradientAndVariable>& pairs, std::span<const Tensor> by, bool copied) {
  auto next = by.begin();
  const auto take = [&] { return copied ? copy_of(*next++) : *next++; };
  for (GradientAndVariable& p : pairs) {
    if (const IndexedSlices* s = p.gradient.slices()) {
      Tensor values = take();
      p.gradient = IndexedSlices{std::move(values), take(), s->dense_shape};
    } else if (p.gradient.defined()) {
      p.gradient = take();
    }
  }
}

// The pairs of an action, with the gradients of its last replay unless these are kept elsewhere.
struct Kept {
  std::mutex mutex;
  std::vector<GradientAndVariable> pairs;
};

}   // namespace

std::vector<Tensor> results_of(const Actor& actor, std::vector<Tensor> x, std::span<const Spec> y,
                               Trace::Action f) {
  auto now = [name = std::string(actor.name), lifetime = actor.lifetime,
              f = std::move(f)](std::span<const Tensor> tensors) {
    if (lifetime.expired())
      throw_error<TraceError>(
          "{}: a compiled function uses one that has been destroyed or moved; keep it in place, or compile "
          "the function again",
          name);
    return f(tensors);
  };
  return thread_state.trace->act(std::move(x), y, std::move(now));
}
void act(const Actor& actor, std::vector<Tensor> x, std::function<void(std::span<const Tensor>)> f) {
  results_of(actor, std::move(x), {}, [f = std::move(f)](std::span<const Tensor> now) {
    f(now);
    return std::vector<Tensor>();
  });
}

void refuse_in_recording(std::string_view name, std::string_view number) {
  if (!thread_state.trace) return;
  thread_state.trace->on_throw(name);
  throw_error<TraceError>(
      "{}: {} cannot be used in a compiled function, since a replay would not repeat it; do this outside, "
      "after the call",
      name, number);
}

void act(const Actor& actor, std::span<const GradientAndVariable> pairs, std::function<bool()> keeps,
         PairsAction f) {
  std::vector<Tensor> x = tensors_of(pairs);
  const auto kept = std::make_shared<Kept>();
  kept->pairs.assign(pairs.begin(), pairs.end());
  std::vector<Tensor> placeholders;
  for (const Tensor& t : x)
    placeholders.push_back(shape_only(t.spec()));
  replace(kept->pairs, placeholders, false);   // so that the recording keeps no gradient
  act(actor, std::move(x),
      [kept, keeps = std::move(keeps), f = std::move(f)](std::span<const Tensor> gradients) {
        const std::lock_guard lock(kept->mutex);
        std::vector<GradientAndVariable> own;
        const bool to_keep = keeps();
        if (to_keep) own = kept->pairs;
        std::vector<GradientAndVariable>& now = to_keep ? own : kept->pairs;
        replace(now, gradients, to_keep);
        f(now);
      });
}

}   // namespace tapedeck
