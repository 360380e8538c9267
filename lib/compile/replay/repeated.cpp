// In: places of arguments and results. Out: what is copied and bound in each run of a replay.
#include "compile/replay/repeated.h"

#include <cstring>
#include <utility>

namespace tapedeck::compiled {

RepeatedReplay::RepeatedReplay(Replay& replay, std::vector<Source> sources, std::vector<Target> targets,
                               std::vector<random::Key> keys)
    : replay_(replay), sources_(std::move(sources)), targets_(std::move(targets)), keys_(std::move(keys)) {
  const Program& p = replay.plan_.program;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const ValueId v = p.arguments()[i];
    if (!sources_[i].base.get()) continue;
    const std::int64_t bytes = replay.argument_bytes_[i];
    if (replay.is_own(v))
      (bytes == 8 ? numbers_in_ : copied_in_).push_back({sources_[i], replay.memory_.write[v], bytes});
    else
      bound_in_.push_back({v, i});
  }
  using How = Replay::Output::How;
  const auto is_in_place = [&](std::size_t i) {
    return targets_[i].is_padded || replay.outputs_[i].bytes % kLine == 0;
  };
  std::int64_t room = 0;
  for (std::size_t i = 0; i < targets_.size(); ++i)
    if (replay.outputs_[i].how == How::computed && !is_in_place(i)) room += lines(replay.outputs_[i].bytes);
  if (room) room_ = Arena(room);
  room = 0;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const Replay::Output& out = replay.outputs_[i];
    if (out.how == How::none) continue;
    const ValueId v = out.access->of;
    if (out.how == How::computed && is_in_place(i)) {
      bound_out_.push_back({v, i});
    } else if (out.how == How::computed) {
      const Writable place = room_.at(std::exchange(room, room + lines(out.bytes)));
      replay.bind(v, place);
      copied_out_.push_back({place, targets_[i], out.bytes});
    } else if (out.how == How::copied && replay.is_fixed(v)) {
      const ReadOnly place(replay.place_of(*out.access));
      (out.bytes == 8 ? numbers_out_ : copied_out_).push_back({place, targets_[i], out.bytes});
    } else {
      other_results_.push_back(i);
    }
  }
}

void RepeatedReplay::run(std::int64_t step, int turn) {
  const auto argument = [&](std::size_t i) { return sources_[i].at(step, turn).get(); };
  const auto result = [&](std::size_t i) { return targets_[i].at(step, 1 - turn).get(); };
  for (const CopyIn& c : numbers_in_)
    std::memcpy(c.to.get(), c.from.at(step, turn).get(), 8);
  for (const CopyIn& c : copied_in_)
    copy_bytes(c.from.at(step, turn).get(), c.to.get(), c.bytes);
  for (const Bound& b : bound_in_)
    replay_.fill(b.value, argument(b.at));
  for (const Bound& b : bound_out_)
    replay_.bind(b.value, targets_[b.at].at(step, 1 - turn));
  replay_.run_bound(keys_, argument);
  for (const CopyOut& c : numbers_out_)
    std::memcpy(c.to.at(step, 1 - turn).get(), c.from.get(), 8);
  for (const CopyOut& c : copied_out_)
    copy_bytes(c.from.get(), c.to.at(step, 1 - turn).get(), c.bytes);
  for (const std::size_t i : other_results_) {
    const Replay::Output& out = replay_.outputs_[i];
    copy_bytes(replay_.result_memory(out, argument, result), result(i), out.bytes);
  }
}

}   // namespace tapedeck::compiled
