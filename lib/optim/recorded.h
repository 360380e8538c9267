// Actions for objects with state on the host, such as an optimizer, in a function that is recorded.
#pragma once
#include <functional>

#include "core/trace.h"
#include "tapedeck/optimizer.h"

namespace tapedeck {

using PairsAction = std::function<void(std::span<const GradientAndVariable>)>;

/// The name of an action, and the lifetime of the object that it refers to. A replay throws TraceError if
/// this object has been destroyed or moved.
struct Actor {
  std::string_view name;
  std::weak_ptr<const void> lifetime;
};

/// Calls f with these tensors now, and in every replay with the corresponding tensors of that replay.
void act(const Actor& actor, std::vector<Tensor> x, std::function<void(std::span<const Tensor>)> f);
/// As act, but f returns tensors, with these specs.
std::vector<Tensor> results_of(const Actor& actor, std::vector<Tensor> x, std::span<const Spec> y,
                               Trace::Action f);
/// Calls f with these pairs now, and in every replay with the gradients of that replay. `keeps` is called
/// each time, and returns whether f may keep tensors of these gradients.
void act(const Actor& actor, std::span<const GradientAndVariable> pairs, std::function<bool()> keeps,
         PairsAction f);
/// Throws TraceError while a function is recorded: a replay would not read or change this number again.
void refuse_in_recording(std::string_view name, std::string_view number);

}   // namespace tapedeck
