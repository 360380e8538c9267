// compile(f): a function of tensors that is recorded at its first call and replayed afterwards, without
// dispatch, tapes and allocations, and with the same bits. docs/guide/compile.md explains what can be
// recorded.
#pragma once
#include <concepts>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>

#include "tapedeck/function.h"
#include "tapedeck/random_key.h"
#include "tapedeck/variable.h"

namespace tapedeck {

class Profile;

/// Whether a compiled function may refer to tensors that are not arguments.
enum class Captures : std::uint8_t {
  allow,    // other tensors are constants: a replay uses their values at the recording
  forbid,   // reading another tensor throws TraceError; variables and numbers may be read
};

/// Options of compile().
struct CompileOptions {
  std::string name = "function";   // for messages
  int max_programs = 16;           // beyond it, calls with new signatures run f uncompiled
  Captures captures = Captures::allow;
  /// At every `check`-th call, f runs in addition to the replay, and TraceError is thrown if a bit of a
  /// result or of a variable differs; 0: never. For functions without optimizers and other stateful objects.
  int check = 0;
  /// Whether tapes and accumulators of the caller see a call as one op with recorded derivatives. Else f runs
  /// uncompiled under them.
  bool as_one_op = false;
};

/// Describes a program; a function has one for each signature.
struct ProgramInfo {
  std::string signature;          // "f32[2,3], f32[3]"
  std::int64_t calls = 0;         // number of replays
  std::int64_t nodes = 0;         // number of kernels and derivatives that a replay runs
  std::int64_t fused = 0;         // number of nodes that are in groups
  std::int64_t groups = 0;        // number of passes over memory that each compute several nodes
  std::int64_t arena_bytes = 0;   // memory for intermediate values
};

namespace detail {

/// The arguments of a call, in one list for each kind. `rest` contains everything else that distinguishes
/// calls: their types, the default dtype, the bytes of numbers and the sizes of lists.
struct Arguments {
  std::vector<Tensor> tensors = {};
  std::vector<random::Key> keys = {};
  std::string rest = {};

  template <class T> void add_bytes(const T& v) { rest.append(reinterpret_cast<const char*>(&v), sizeof v); }
};

/// Its address identifies the type of the arguments and result of a call.
template <class T> inline constexpr char kTypeTag = 0;

template <class X>
concept ListOfArguments = requires(X& x) {
  x.begin();
  x.end();
  x.size();
};
template <class X>
concept TupleOfArguments = requires {
  std::tuple_size<X>::value;
};

template <class X, std::size_t... I> constexpr bool has_references(std::index_sequence<I...>) {
  return (std::is_reference_v<std::tuple_element_t<I, X>> || ...);
}

/// Adds an argument of a compiled function.
template <class X> void collect(Arguments& all, X& x) {
  using T = std::remove_const_t<X>;
  if constexpr (std::same_as<T, Tensor>) {
    all.tensors.push_back(x);
  } else if constexpr (std::same_as<T, random::Key>) {
    all.keys.push_back(x);
  } else if constexpr (std::same_as<T, Variable>) {
    all.add_bytes(x.id());
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    all.add_bytes(x);
  } else if constexpr (ListOfArguments<X>) {
    static_assert(
        std::copyable<T> && !std::ranges::view<T> && std::is_reference_v<decltype(*x.begin())>,
        "a compiled function takes lists with elements of their own, such as a std::vector of tensors");
    all.add_bytes(x.size());
    for (auto& e : x)
      collect(all, e);
  } else {
    static_assert(
        TupleOfArguments<T>,
        "a compiled function takes tensors, variables, keys, numbers, and lists and tuples of these");
    static_assert(
        !has_references<T>(std::make_index_sequence<std::tuple_size_v<T>>()),
        "a compiled function takes tuples of values, and not of references, as std::tie makes them");
    std::apply([&](auto&... e) { (collect(all, e), ...); }, x);
  }
}
/// Replaces the tensors and keys of an argument, in the order of collect.
struct Replacements {
  std::vector<Tensor>::const_iterator tensor;
  std::vector<random::Key>::const_iterator key;
};
template <class X> void replace(X& x, Replacements& by) {
  if constexpr (std::same_as<X, Tensor>) {
    x = *by.tensor++;
  } else if constexpr (std::same_as<X, random::Key>) {
    x = *by.key++;
  } else if constexpr (!std::is_arithmetic_v<X> && !std::is_enum_v<X> && !std::same_as<X, Variable>) {
    if constexpr (ListOfArguments<X>) {
      for (auto& e : x)
        replace(e, by);
    } else {
      std::apply([&](auto&... e) { (replace(e, by), ...); }, x);
    }
  }
}

/// Replaces the tensors and keys of all arguments.
template <class... X> void replace_all(std::tuple<X...>& x, const std::vector<Tensor>& tensors,
                                       const std::vector<random::Key>& keys) {
  Replacements by = {tensors.begin(), keys.begin()};
  std::apply([&](X&... each) { (replace(each, by), ...); }, x);
}

/// n undefined tensors.
TAPEDECK_EXPORT std::vector<Tensor> undefined(std::size_t n);

/// The result of a function: its tensors, and the structure from which take_tensors moved them; null for a
/// single tensor.
struct Returned {
  std::vector<Tensor> tensors = {};
  std::shared_ptr<const void> structure = {};
};

/// A function that is called with replacements for its tensors and keys, and owns what it needs.
using OwnedFunction = std::function<Returned(const std::vector<Tensor>&, const std::vector<random::Key>&)>;

/// A reference to such a function, and to one that makes an OwnedFunction of it.
class Eager {
 public:
  using Tensors = const std::vector<Tensor>&;
  using Keys = const std::vector<random::Key>&;
  template <class F, class O> Eager(const F& f, const O& owned)
      : f_(&f),
        owned_(&owned),
        run_([](const void* f, Tensors x, Keys k) { return (*static_cast<const F*>(f))(x, k); }),
        own_([](const void* f) -> OwnedFunction { return (*static_cast<const O*>(f))(); }) {}
  Returned operator()(Tensors x, Keys k) const { return run_(f_, x, k); }
  OwnedFunction owned() const { return own_(owned_); }

 private:
  const void *f_, *owned_;
  Returned (*run_)(const void*, Tensors, Keys);
  OwnedFunction (*own_)(const void*);
};

/// The lists of a call, initially empty. The next call of the thread reuses their memory.
class TAPEDECK_EXPORT CallLists {
 public:
  struct Lists {
    Arguments x;
    std::vector<Tensor> y;
  };

  CallLists();
  ~CallLists();
  CallLists(const CallLists&) = delete;
  Lists* operator->() const { return lists_; }

 private:
  Lists* lists_;
};

/// The programs of a function. Several threads may call it at once.
class TAPEDECK_EXPORT Programs {
 public:
  explicit Programs(CompileOptions options);
  ~Programs();

  /// Sets y to the result of the function, by a replay, or by calling `eager`, which is recorded if a program
  /// can be used. A replay writes into the tensors already in y if their specs fit and nothing else shares
  /// them. Returns the structure.
  std::shared_ptr<const void> call(const Arguments& x, const Eager& eager, std::vector<Tensor>& y);

  std::vector<ProgramInfo> list() const;
  std::string summary() const;
  std::string to_dot(std::size_t number) const;
  void write_html(const std::string& path, std::size_t number, const Profile* profile) const;

 private:
  struct [[gnu::visibility("hidden")]] State;
  std::unique_ptr<State> state_;
};

/// Moves the tensors of a structure to the end of a list: the values and indices of slices, and an undefined
/// tensor for none. The remaining structure records their positions for put_tensors.
template <class R> void take_tensors(R& structure, std::vector<Tensor>& all) {
  for_each_part(structure, [&]<class T>(T& part) {
    if constexpr (std::same_as<T, Tensor>) {
      all.push_back(std::exchange(part, {}));
    } else if (const IndexedSlices* s = part.slices()) {
      all.push_back(s->values), all.push_back(s->indices);
      part = IndexedSlices{{}, {}, s->dense_shape};
    } else {
      all.push_back(part.tensor());
      if (part.is_dense()) part = {};
    }
  });
}
/// Moves the tensors, or others of the same specs, back into the structure.
template <class R> void put_tensors(R& structure, std::vector<Tensor>& all) {
  auto next = all.begin();
  for_each_part(structure, [&]<class T>(T& part) {
    if constexpr (std::same_as<T, Tensor>) {
      part = std::move(*next++);
    } else if (const IndexedSlices* s = part.slices()) {
      Tensor values = std::move(*next++);
      part = IndexedSlices{std::move(values), std::move(*next++), s->dense_shape};
    } else if (Tensor dense = std::move(*next++); dense.defined()) {   // else it stays none
      part = std::move(dense);
    }
  });
}

template <class R> Returned returned(R result) {
  if constexpr (std::same_as<R, Tensor>) {
    return {{std::move(result)}, nullptr};
  } else {
    Returned r;
    take_tensors(result, r.tensors);
    r.structure = std::make_shared<R>(std::move(result));
    return r;
  }
}

}   // namespace detail

/// A compiled function; see compile(). Copies share the programs.
template <class F> class Compiled {
 public:
  Compiled(F f, CompileOptions options)
      : shared_(std::make_shared<Shared>(std::move(f), std::move(options))) {}
  Compiled(const Compiled&) = default;   // no moves: every Compiled has programs
  Compiled& operator=(const Compiled&) = default;

  /// Returns f(x...). Throws what f throws, and TraceError if f cannot be recorded.
  template <class... X>
  requires std::invocable<F&, const X&...>
  auto operator()(const X&... x) const {
    using R = detail::Value<std::invoke_result_t<F&, const X&...>>;
    constexpr bool fits = std::is_void_v<R> || detail::is_structure<R>();
    static_assert(
        fits,
        "compile: the function has to return tensors, or nothing: a Tensor, or a list, array, pair or "
        "tuple of tensors, but no numbers");
    if constexpr (fits) {
      const detail::CallLists lists;
      collect<R>(lists, x...);
      const std::shared_ptr<const void> structure = call<R>(lists, x...);
      if constexpr (std::same_as<R, Tensor>) {
        return std::move(lists->y[0]);
      } else if constexpr (!std::is_void_v<R>) {
        R result = *static_cast<const R*>(structure.get());
        detail::put_tensors(result, lists->y);
        return result;
      }
    }
  }

  /// Assigns f(x...) to `result`, in the memory of its old tensors if these have the dtypes and shapes of the
  /// new ones and nothing else shares them: large results then need no new memory at each call. If f throws,
  /// `result` keeps its tensors, but their elements are unspecified.
  template <class R, class... X>
  requires std::invocable<F&, const X&...>
  void into(R& result, const X&... x) const {
    static_assert(std::same_as<R, detail::Value<std::invoke_result_t<F&, const X&...>>>,
                  "into: the first argument is of the type that the function returns");
    const detail::CallLists lists;
    collect<R>(lists, x...);   // arguments may be tensors of `result`
    detail::take_tensors(result, lists->y);
    std::shared_ptr<const void> structure;   // null for a tensor
    try {
      structure = call<R>(lists, x...);
    } catch (...) {
      detail::put_tensors(result, lists->y);
      throw;
    }
    if constexpr (!std::same_as<R, Tensor>) result = *static_cast<const R*>(structure.get());
    detail::put_tensors(result, lists->y);
  }

  /// The programs so far, in the order of their recordings.
  std::vector<ProgramInfo> programs() const { return shared_->programs.list(); }

  /// The programs as tables, with one line per node in the order in which a replay runs them: its number,
  /// name, inputs ("#2" is the result of node 2), outputs, and the location of these: in the arena, in memory
  /// of a result, a variable or an op, or in registers only. Nodes of one group run in one pass over memory.
  std::string summary() const { return shared_->programs.summary(); }
  /// A program as a graph in Graphviz's DOT language; draw it with `dot -Tsvg`. Ellipses are arguments and
  /// variables, frames are groups, and results have a double border. Constants are not shown. Throws
  /// ArgumentError if there is no program of that number.
  std::string to_dot(std::size_t program = 0) const { return shared_->programs.to_dot(program); }
  /// A program as a page of HTML for a browser: the nodes in the order in which a replay runs them, by
  /// groups, with shapes, the bytes that each writes and their location, and the part of the arena in use.
  /// The file needs no other file and no network, and replaces an earlier one. Throws ArgumentError as to_dot
  /// does, and FileError if the file cannot be written.
  void write_html(const std::string& path, std::size_t program = 0) const {
    shared_->programs.write_html(path, program, nullptr);
  }
  /// write_html with the average times of the replays that the profile has measured.
  void write_html(const std::string& path, const Profile& profile, std::size_t program = 0) const {
    shared_->programs.write_html(path, program, &profile);
  }

 private:
  template <class R, class... X> static void collect(const detail::CallLists& lists, const X&... x) {
    lists->x.add_bytes(&detail::kTypeTag<R(X...)>);
    lists->x.add_bytes(default_dtype());
    (detail::collect(lists->x, x), ...);
  }
  template <class R, class... X>
  std::shared_ptr<const void> call(const detail::CallLists& lists, const X&... x) const {
    const auto eager = [&](detail::Eager::Tensors tensors, detail::Eager::Keys keys) {
      return shared_->template run<R>(std::tuple<X...>(x...), tensors, keys);
    };
    const auto owned = [&] {   // without the tensors of this call
      std::tuple<X...> rest(x...);
      detail::replace_all(rest, detail::undefined(lists->x.tensors.size()), lists->x.keys);
      return [shared = shared_, rest = std::move(rest)](detail::Eager::Tensors tensors,
                                                        detail::Eager::Keys keys) {
        return shared->template run<R>(rest, tensors, keys);
      };
    };
    return shared_->programs.call(lists->x, {eager, owned}, lists->y);
  }

  struct Shared {
    Shared(F function, CompileOptions options) : f(std::move(function)), programs(std::move(options)) {}

    // Calls f with these arguments, whose tensors and keys are replaced.
    template <class R, class... X>
    detail::Returned run(std::tuple<X...> x, detail::Eager::Tensors tensors, detail::Eager::Keys keys) {
      detail::replace_all(x, tensors, keys);
      return std::apply(
          [&](const X&... mine) -> detail::Returned {
            if constexpr (std::is_void_v<R>) {
              f(mine...);
              return {};
            } else {
              return detail::returned<R>(f(mine...));
            }
          },
          x);
    }

    F f;
    detail::Programs programs;
  };
  std::shared_ptr<Shared> shared_;
};

/// Returns a function that computes the same as f. Its first call with arguments of given dtypes and shapes
/// runs f and records the computation: ops, gradients, reads and assignments of variables, steps of
/// optimizers. Later calls replay the recording. Numbers from other sources than the arguments, and tensors
/// that are not arguments, are constants; reading the elements of a computed tensor throws TraceError.
///
/// f may have arguments that are tensors, variables, keys, numbers, and lists and tuples of these, and
/// returns a tensor or gradient, lists and tuples of these, or nothing. Objects to which f refers, such as an
/// optimizer, must live as long as the compiled function. Throws ArgumentError for an empty function and for
/// options out of range.
///
/// While tapes, accumulators or observers of the caller are active, f runs uncompiled; but a Profile measures
/// the replays. With `as_one_op`, tapes and accumulators see a call as one op from the third one for the same
/// signature and the same followed arguments on, unless f cannot be recorded with zeros as arguments, as
/// branches are (control.h); objects to which f refers must then live as long as these tapes.
template <class F> Compiled<F> compile(F f, CompileOptions options = {}) {
  detail::check_function("compile", f);
  return {std::move(f), std::move(options)};
}

}   // namespace tapedeck
