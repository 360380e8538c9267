// In: places of arguments and results. Out: what is copied and bound in each run of a replay.
#include "compile/replay/loop_replay.h"

#include <utility>

namespace tapedeck::compiled {

LoopReplay::LoopReplay(Replay& replay, std::vector<Source> sources, std::vector<Target> targets,
                       std::vector<random::Key> keys)
    : replay_(replay), sources_(std::move(sources)), targets_(std::move(targets)), keys_(std::move(keys)) {
  const Program& p = replay.plan_.program;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const ValueId v = p.arguments()[i];
    const Source& from = sources_[i];
    if (!from.base.get() || replay.plan_.homes[v].in == Home::In::registers) continue;
    if (replay.is_own(v))
      copied_in_.push_back({from, replay.memory_.write[v], replay.argument_bytes_[i]});
    else if (from.per_entry == 0 && from.per_buffer == 0)
      replay.fill(v, from.at(0, 0).get());
    else
      bound_in_.push_back({v, i});
  }

  using How = Replay::Output::How;
  const auto is_direct = [&](std::size_t i) {
    return targets_[i].is_padded || replay.outputs_[i].bytes % kLine == 0;
  };
  const auto room_for = [&](std::size_t i) { return padded_bytes(replay.outputs_[i].access->spec); };
  std::int64_t room = 0;
  for (std::size_t i = 0; i < targets_.size(); ++i)
    if (replay.outputs_[i].how == How::computed && !is_direct(i)) room += room_for(i);
  if (room) room_ = Arena(room);
  room = 0;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const Replay::Output& out = replay.outputs_[i];
    const auto move = [&](const Source& from) { moves_.push_back({from, targets_[i], out.bytes}); };
    switch (out.how) {
      case How::none:
        break;
      case How::computed:
        if (is_direct(i)) {
          bound_out_.push_back({out.access->of, i});
        } else {
          const Writable place = room_.at(std::exchange(room, room + room_for(i)));
          replay.bind(out.access->of, place);
          copied_out_.push_back({place, targets_[i], out.bytes});
        }
        break;
      case How::copied:
        if (replay.is_fixed(out.access->of))
          copied_out_.push_back({ReadOnly(replay.place_of(*out.access)), targets_[i], out.bytes});
        else
          late_.push_back(i);
        break;
      case How::given:
      case How::shares_given:
        if (out.constant)
          move({.base = ReadOnly(replay.constant_of(out))});
        else
          move(sources_[out.of]);
        break;
      case How::repeated:
      case How::shares: {   // the target of the other result, which is in the other buffer
        const Target& other = targets_[out.of];
        move({.base = other.base,
              .offset = other.offset + other.per_buffer,
              .per_entry = other.per_entry,
              .per_buffer = -other.per_buffer});
        break;
      }
    }
  }
}

void LoopReplay::run(std::int64_t entry, int buffer) {
  const Replay::EndOfCall end{replay_};
  const int other = 1 - buffer;
  for (const auto& c : copied_in_)
    copy_bytes(c.from.at(entry, buffer).get(), c.to.get(), c.bytes);
  for (const Binding& b : bound_in_)
    replay_.fill(b.value, sources_[b.at].at(entry, buffer).get());
  for (const Binding& b : bound_out_)
    replay_.bind(b.value, targets_[b.at].at(entry, other));
  replay_.run_bound(keys_, [&](std::size_t i) { return sources_[i].at(entry, buffer).get(); });
  for (const auto& c : copied_out_)
    copy_bytes(c.from.get(), c.to.at(entry, other).get(), c.bytes);
  for (const std::size_t i : late_) {
    const Replay::Output& out = replay_.outputs_[i];
    copy_bytes(replay_.place_of(*out.access), targets_[i].at(entry, other).get(), out.bytes);
  }
  for (const auto& m : moves_)
    copy_bytes(m.from.at(entry, buffer).get(), m.to.at(entry, other).get(), m.bytes);
}

}   // namespace tapedeck::compiled
