// Handlers: the functions that run the instructions of a group on a block of vectors. A handler ends with a
// tail call of the next one, to which it passes the last result in vector registers.
#pragma once
#include <array>
#include <span>
#include <utility>

#include "compile/fuse/arithmetic.h"
#include "compile/fuse/cursor.h"
#include "compile/fuse/partial_sum.h"

namespace tapedeck::compiled {

inline constexpr std::int64_t kBlockVectors = 8;                                               // at most
template <class T> inline constexpr std::int64_t kBlock = kBlockVectors* kernels::kWidth<T>;   // elements

/// The tables of pointers for reading and for writing.
template <class T> struct Tables {
  const T* const* from;
  T* const* to;
};

/// The state of one piece of a group.
template <class T> struct GroupState {
  const GroupCode& code;
  PartialSum<T>* sums;
  Cursor* cursors;
  // The entries of the tables that advance from block to block.
  std::span<const T*> elements, bytes;
  std::span<T*> results, bool_results;
  std::int64_t length = 0;                  // the length of the block, in elements
  const GroupInstruction* next = nullptr;   // the first instruction of the next chain of handlers
  alignas(64) T held[kBlock<T>] = {};       // the last result, if it is needed in memory

  GroupState(const GroupCode& c, PartialSum<T>* s, Cursor* views) : code(c), sums(s), cursors(views) {}

  /// Advances all pointers that move by n elements, to the next block.
  void advance(std::int64_t n) {
    for (const T*& p : elements)
      p += n;
    for (T*& p : results)
      p += n;
    for (const T*& p : bytes)
      p = reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(p) + n);
    for (T*& p : bool_results)
      p = reinterpret_cast<T*>(reinterpret_cast<std::byte*>(p) + n);
  }
};

/// Runs an instruction whose operands and results are in memory.
template <class T>
void run_in_memory(const GroupInstruction& i, const Tables<T>& tables, GroupState<T>& state);

/// y = op(x), for `vectors` vectors of x that are `step` elements apart. Not inline, so that it is compiled
/// once for blocks of all sizes.
template <Arithmetic op, class T>
[[gnu::flatten, gnu::noinline]] void run_function(const T* x, std::size_t step, std::size_t vectors, T* y) {
  using Vector = kernels::Batch<T>;
  for (const T* const end = y + vectors * Vector::size; y < end; x += step, y += Vector::size) {
    const Vector v = Vector::load_unaligned(x);
    compute<op>(v, v).store_unaligned(y);
  }
}

template <std::size_t, class V> using EachOf = V;
template <class T, class Index> class Handlers;

/// Handlers for blocks of sizeof...(k) vectors.
template <class T, std::size_t... k> class Handlers<T, std::index_sequence<k...>> {
 public:
  static void run(std::int64_t blocks, const Tables<T>& t, GroupState<T>& state) {
    for (; blocks > 0; --blocks) {
      for (state.next = state.code.instructions.data(); state.next;)
        go_on(state.next, t.from, t.to, kAll.data(), state, zero<k>()...);
      state.advance(static_cast<std::int64_t>(sizeof...(k) * kWidth));
    }
  }

 private:
  using Vector = kernels::Batch<T>;
  static constexpr auto kWidth = static_cast<std::size_t>(kernels::kWidth<T>);
  struct Handler {
    void (*run)(const GroupInstruction*, const T* const* from, T* const* to, const Handler* all,
                GroupState<T>&, EachOf<k, Vector>... r);
  };
  static constexpr std::size_t kProducts = code_of(Then{}, Form{}, Form{}, Form::moving);
  template <std::size_t> static Vector zero() { return Vector(T(0)); }

  [[gnu::always_inline]] static void go_on(const GroupInstruction* i, const T* const* from, T* const* to,
                                           const Handler* all, GroupState<T>& state, EachOf<k, Vector>... r) {
    return all[i->code].run(i, from, to, all, state, r...);
  }

  template <Form form>
  [[gnu::always_inline]] static Vector take(const Vector& held, const T* p, std::size_t at) {
    if constexpr (form == Form::held)
      return held;
    else
      return Vector::load_unaligned(form == Form::moving ? p + at * kWidth : p);
  }
  // The two most frequent handlers are aligned to cache lines, since processors cache decoded instructions by
  // lines.
  template <Arithmetic op, Form a, Form b>
  [[gnu::aligned(64)]] static void arithmetic(const GroupInstruction* i, const T* const* from, T* const* to,
                                              const Handler* all, GroupState<T>& state,
                                              EachOf<k, Vector>... r) {
    const T *x = from[i->a], *y = from[i->b];
    ((r = compute<op, Vector>(take<a>(r, x, k), take<b>(r, y, k))), ...);
    if (i->stores) {
      T* const out = to[i->y];
      (r.store_unaligned(out + k * kWidth), ...);
    }
    return go_on(i + 1, from, to, all, state, r...);
  }
  template <Then then, Form a, Form b, Form c>
  [[gnu::aligned(64)]] static void product(const GroupInstruction* i, const T* const* from, T* const* to,
                                           const Handler* all, GroupState<T>& state, EachOf<k, Vector>... r) {
    const T *x = from[i->a], *y = from[i->b], *z = from[i->c];
    ((r = product_and<then, Vector>(take<a>(r, x, k), take<b>(r, y, k), take<c>(r, z, k))), ...);
    if (i->stores) {
      T* const out = to[i->y];
      (r.store_unaligned(out + k * kWidth), ...);
    }
    return go_on(i + 1, from, to, all, state, r...);
  }
  // Computes a function in a loop, so that its constants stay in vector registers.
  template <Arithmetic op, Form a> static void function(const GroupInstruction* i, const T* const* from,
                                                        T* const* to, const Handler* all,
                                                        GroupState<T>& state, EachOf<k, Vector>... r) {
    const T* x = from[i->a];
    if constexpr (a == Form::held) {
      (r.store_unaligned(state.held + k * kWidth), ...);
      x = state.held;
    }
    T* const y = i->stores ? to[i->y] : state.held;
    run_function<op>(x, a == Form::single ? 0 : kWidth, sizeof...(k), y);
    ((r = Vector::load_unaligned(y + k * kWidth)), ...);
    return go_on(i + 1, from, to, all, state, r...);
  }
  static void held_sum(const GroupInstruction* i, const T* const* from, T* const* to, const Handler* all,
                       GroupState<T>& state, EachOf<k, Vector>... r) {
    PartialSum<T>& sum = state.sums[i->b];
    bool done = false;
    if constexpr (sizeof...(k) == kBlockVectors) done = sum.add_vectors(r...);
    if (!done) {
      (r.store_unaligned(state.held + k * kWidth), ...);
      sum.add(state.held, state.length);
    }
    return go_on(i + 1, from, to, all, state, r...);
  }
  // Reads the elements in place if they are contiguous or all the same; otherwise copies them first.
  static void fetch(const GroupInstruction* i, const T* const* from, T* const* to, const Handler* all,
                    GroupState<T>& state, EachOf<k, Vector>... r) {
    constexpr auto n = static_cast<std::int64_t>(sizeof...(k) * kWidth);
    Cursor& cursor = state.cursors[i->b];
    const T* const x = cursor.source(from[i->a]);
    if (const std::int64_t step = cursor.step(); step >> 1 == 0 && cursor.left() >= n && state.length == n) {
      const T* const at = cursor.take(x, n);
      if (step == 0) {
        const Vector same(*at);
        ((r = same), ...);
      } else {
        ((r = take<Form::moving>(r, at, k)), ...);
      }
      if (i->stores) {
        T* const out = to[i->y];
        (r.store_unaligned(out + k * kWidth), ...);
      }
    } else {
      T* const y = i->stores ? to[i->y] : state.held;
      cursor.fetch(x, y, state.length);
      ((r = Vector::load_unaligned(y + k * kWidth)), ...);
    }
    return go_on(i + 1, from, to, all, state, r...);
  }
  static void in_memory(const GroupInstruction* i, const T* const* from, T* const* to, const Handler* all,
                        GroupState<T>& state, EachOf<k, Vector>...) {
    run_in_memory<T>(*i, {from, to}, state);
    return go_on(i + 1, from, to, all, state, zero<k>()...);
  }
  static void pause(const GroupInstruction* i, const T* const*, T* const*, const Handler*,
                    GroupState<T>& state, EachOf<k, Vector>...) {
    state.next = i + 1;
  }
  static void end(const GroupInstruction*, const T* const*, T* const*, const Handler*, GroupState<T>& state,
                  EachOf<k, Vector>...) {
    state.next = nullptr;
  }

  template <std::size_t code> static constexpr Handler handler() {
    using Kind = GroupInstruction::Kind;
    if constexpr (code >= kProducts) {
      constexpr std::size_t at = code - kProducts;
      constexpr Form c = at % 2 ? Form::single : Form::moving;
      return {product<static_cast<Then>(at / 18), static_cast<Form>(at / 6 % 3),
                      static_cast<Form>(at / 2 % 3), c>};
    } else if constexpr (code >= code_of(Kind::arithmetic)) {
      constexpr std::size_t at = code - code_of(Kind::arithmetic);
      constexpr auto op = static_cast<Arithmetic>(at / 9);
      constexpr Form a = static_cast<Form>(at / 3 % 3), b = static_cast<Form>(at % 3);
      if constexpr (has_one_operand(op) && a != b)
        return {nullptr};
      else if constexpr (is_long(op))
        return {function<op, a>};
      else
        return {arithmetic<op, a, b>};
    } else if constexpr (code == code_of(Kind::end)) {
      return {end};
    } else if constexpr (code == code_of(Kind::pause)) {
      return {pause};
    } else if constexpr (code == code_of(Kind::held_sum)) {
      return {held_sum};
    } else if constexpr (code == code_of(Kind::fetch)) {
      return {fetch};
    } else {
      return {in_memory};
    }
  }
  template <std::size_t... code>
  static constexpr std::array<Handler, sizeof...(code)> all(std::index_sequence<code...>) {
    return {handler<code>()...};
  }
  static constexpr std::array<Handler, kCodes> kAll = all(std::make_index_sequence<kCodes>());
};

/// Runs the code on `blocks` blocks of `vectors` vectors each, which is a power of two and at least 64 bytes.
template <class T>
void run_blocks(std::int64_t blocks, std::int64_t vectors, const Tables<T>& tables, GroupState<T>& state) {
  constexpr std::int64_t least = kernels::kGroup<T> / kernels::kWidth<T>;
  const auto run = [&]<std::int64_t V>() {
    if constexpr (V >= least)
      Handlers<T, std::make_index_sequence<static_cast<std::size_t>(V)>>::run(blocks, tables, state);
  };
  switch (vectors) {
    case 1:
      return run.template operator()<1>();
    case 2:
      return run.template operator()<2>();
    case 4:
      return run.template operator()<4>();
    default:
      return run.template operator()<kBlockVectors>();
  }
}

}   // namespace tapedeck::compiled
