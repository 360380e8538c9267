// Traversal of networks: visits every member of a struct, and the elements of its lists, down to the
// variables.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "tapedeck/nn/fields.h"
#include "tapedeck/nn/run.h"
#include "tapedeck/variable.h"

namespace tapedeck::nn::detail {

/// A std::shared_ptr that is a member.
class SharedMember {
 public:
  virtual ~SharedMember() = default;
  /// A copy of its object; null if the type cannot be copied, or is a base class.
  virtual std::shared_ptr<void> copy() const = 0;
  virtual void point_to(const std::shared_ptr<void>& other) const = 0;
};

/// A node of a walk: a struct, visited before its members; a variable; or a std::shared_ptr, visited before
/// its object.
struct Node {
  const std::string& path;   // "encoder/0/attention"; "" for the network itself
  std::string_view type;     // "Dense"; "" for a variable and a pointer
  const void* address;       // for a pointer, the address of its object
  Variable* variable;        // null for anything else
  const SharedMember* shared = nullptr;
};
using Visit = std::function<void(const Node&)>;

/// A member whose type is hidden, as in an nn::Layer.
class HiddenMember {
 public:
  virtual ~HiddenMember() = default;
  virtual void walk(const std::string& path, const Visit& visit) = 0;
};

template <class T>
concept ListsItsMembers = requires(T& x) {
  x.for_each_member([](std::string_view, auto&) {});
};
template <class T>
concept PointsToMember = requires(T& x) {
  x.operator->();
  {x ? 0 : 1};
};
template <class T> inline constexpr bool is_shared_ptr = false;
template <class T> inline constexpr bool is_shared_ptr<std::shared_ptr<T>> =
    std::is_object_v<T> && !std::is_array_v<T>;
template <class T> inline constexpr bool is_function = false;
template <class F> inline constexpr bool is_function<std::function<F>> = true;
template <class F> inline constexpr bool is_function<const std::function<F>> = true;
template <class T>
concept ListOfMembers =
    !std::convertible_to<T&, std::string_view> && !std::derived_from<T, Tensor> && requires(T & x) {
  x.begin() != x.end();
  // A path is a list of paths.
  requires !std::same_as<std::remove_cvref_t<decltype(*x.begin())>, std::remove_const_t<T>>;
};
template <class T>
concept TupleOfMembers = requires {
  std::tuple_size<T>::value;
};
template <class T>
concept MapEntry = requires(T& x) {
  { x.first } -> std::convertible_to<std::string_view>;
  x.second;
};
/// A class that can be called like a layer, but whose members are not accessible: it has a constructor or
/// private members.
template <class T>
concept ClosedLayer = std::is_class_v<T> && !std::is_aggregate_v<T> && !std::is_empty_v<T> &&
                      (std::invocable<T&, const Tensor&> || std::invocable<T&, const Tensor&, const Run&>);

/// The class of a member function.
template <class R, class C, class... X> C class_of(R (C::*)(X...));
template <class R, class C, class... X> C class_of(R (C::*)(X...) const);
struct AnyVisit {
  template <class M> void operator()(std::string_view, M&) const {}
};
/// A class that inherits for_each_member from its base class, which omits its own members.
template <class T>
concept VisitedAsBase = requires {
  requires sizeof(T) > sizeof(class_of(&T::template for_each_member<AnyVisit>));
};

/// Converts only to the base classes of T, which the first initializer of an aggregate initializes.
template <class T> struct AnyBase {
  template <class B>
  requires(!std::same_as<B, T> && std::is_base_of_v<B, T>) operator B() const;
};
struct NoBase {};   // for first members that accept any type
template <class T, class First>
concept BeginsWith = requires(First first) {
  T{first};
};
template <class T>
concept HasBase = BeginsWith<T, AnyBase<T>> && !BeginsWith<T, NoBase>;

template <class T> void walk(T& x, const std::string& path, const Visit& visit);

/// Marks the object of a pointer during its walk. Throws ArgumentError if the object is already being walked.
class TAPEDECK_EXPORT Pointee {
 public:
  Pointee(const void* address, std::string_view type, const std::string& path);
  ~Pointee();
  Pointee(const Pointee&) = delete;
  Pointee& operator=(const Pointee&) = delete;

 private:
  const void* address_;
  std::string_view type_;   // a struct and its first member have one address
  Pointee* outer_;
};
template <class T> void walk_pointee(T& x, const std::string& path, const Visit& visit) {
  const Pointee pointee(&x, type_name<std::remove_const_t<T>>(), path);
  walk(x, path, visit);
}

/// To be called in a catch handler: adds the path of the layer to the message of an error that a layer of
/// this network has thrown.
TAPEDECK_EXPORT void name_failing_layer(const std::function<void(const Visit&)>& walk);

template <class T> class SharedMemberOf final : public SharedMember {
 public:
  explicit SharedMemberOf(std::shared_ptr<T>& pointer) : pointer_(pointer) {}
  std::shared_ptr<void> copy() const override {
    if constexpr (std::is_copy_constructible_v<T> && !std::is_polymorphic_v<T>)
      return std::make_shared<T>(*pointer_);
    else
      return nullptr;
  }
  void point_to(const std::shared_ptr<void>& other) const override {
    pointer_ = std::static_pointer_cast<T>(other);
  }

 private:
  std::shared_ptr<T>& pointer_;
};

inline std::string join(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + '/' + std::string(name);
}

template <class T> void walk_list(T& list, const std::string& path, const Visit& visit) {
  std::size_t i = 0;
  for (auto&& x : list) {
    if constexpr (MapEntry<std::remove_cvref_t<decltype(x)>>)
      walk(x.second, join(path, x.first), visit);
    else if constexpr (std::is_lvalue_reference_v<decltype(x)>)
      walk(x, join(path, std::to_string(i++)), visit);
  }
}

template <class T> void walk_fields(T& x, const std::string& path, const Visit& visit) {
  auto fields = fields_of(x);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (walk(std::get<I>(fields), join(path, field_name<std::remove_const_t<T>, I>()), visit), ...);
  }
  (std::make_index_sequence<field_count<T>()>{});
}

/// Visits x and everything in it. Types that cannot contain variables, such as numbers, are ignored.
template <class T> void walk(T& x, const std::string& path, const Visit& visit) {
  using Mutable = std::remove_const_t<T>;
  if constexpr (std::same_as<const Variable, T>) {
    // A walk that copies a network replaces its variables.
    static_assert(!std::same_as<const Variable, T>,
                  "a variable of a network may not be const; its value is what changes");
  } else if constexpr (std::is_const_v<T> && ListsItsMembers<Mutable>) {
    static_assert(!std::is_const_v<T>, "a layer of a network may not be const; make the network const");
  } else if constexpr (VisitedAsBase<Mutable>) {
    static_assert(!VisitedAsBase<Mutable>,
                  "a layer that is derived from a layer needs a for_each_member of its own, which calls "
                  "visit(name, member) for the members of both; or make the base class a member");
  } else if constexpr (!std::same_as<T, Variable> && std::derived_from<T, Variable>) {
    static_assert(
        !std::derived_from<T, Variable>,
        "a class that is derived from Variable would lose its other members; make the Variable a member");
  } else if constexpr (std::same_as<T, Variable>) {
    visit({path, {}, &x, &x});
  } else if constexpr (std::same_as<T, HiddenMember>) {
    x.walk(path, visit);
  } else if constexpr (ListsItsMembers<T>) {
    bool is_met = false;
    const auto meet = [&] {
      if (!std::exchange(is_met, true)) visit({path, type_name<T>(), &x, nullptr});
    };
    int members = 0;
    x.for_each_member([&](std::string_view, auto&) { ++members; });
    x.for_each_member([&](std::string_view name, auto& member) {
      // A member without a name has the path of x, and stands for x if it is the only one.
      if (!name.empty() || members > 1) meet();
      is_met = true;
      walk(member, name.empty() ? path : join(path, name), visit);
    });
    meet();
  } else if constexpr (ListOfMembers<T>) {
    walk_list(x, path, visit);
  } else if constexpr (is_shared_ptr<T>) {
    if constexpr (!std::is_const_v<typename T::element_type>)   // a const object is owned by others
      if (x) {
        const SharedMemberOf shared(x);
        visit({path, {}, x.get(), nullptr, &shared});
        walk_pointee(*x, path, visit);
      }
  } else if constexpr (PointsToMember<T>) {
    if (x) walk_pointee(*x, path, visit);
  } else if constexpr (TupleOfMembers<Mutable>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (walk(std::get<I>(x), join(path, std::to_string(I)), visit), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Mutable>>{});
  } else if constexpr (requires { std::variant_size<Mutable>::value; }) {
    std::visit([&](auto& one) { walk(one, path, visit); }, x);
  } else if constexpr (std::is_class_v<T> && std::is_aggregate_v<T> && !std::is_empty_v<T> && HasBase<T>) {
    static_assert(!HasBase<T>,
                  "a network or layer that is an aggregate may not have a base class: make that a member, or "
                  "give the struct a member template for_each_member(visit) that calls visit(name, member) "
                  "for each");
  } else if constexpr (std::is_class_v<T> && std::is_aggregate_v<T> && !std::is_empty_v<T>) {
    static_assert(
        field_count<Mutable>() > 0,
        "the members of this struct cannot be found, since one is a reference: make it a pointer, or "
        "give the struct a member template for_each_member(visit) that calls visit(name, member) for "
        "each");
    visit({path, type_name<Mutable>(), &x, nullptr});
    walk_fields(x, path, visit);
  } else {
    static_assert(!is_function<T> || !ClosedLayer<T>,
                  "the variables of a layer in a std::function cannot be seen: make it an nn::Layer, which "
                  "holds any layer, function or lambda");
    static_assert(is_function<T> || !ClosedLayer<T>,
                  "the members of this layer cannot be seen: make it an aggregate (of a lambda with "
                  "captures: a struct with "
                  "these members), or give it a member template for_each_member(visit) that calls "
                  "visit(name, member) for each");
  }
}

/// Calls f, which calls the network; errors of its layers contain their paths.
template <class Network, class F> auto in_network(const Network& network, const F& f) {
  try {
    return f();
  } catch (const Error&) {
    // A walk does not change anything by itself.
    name_failing_layer([&](const Visit& visit) { walk(const_cast<Network&>(network), {}, visit); });
    throw;
  }
}

}   // namespace tapedeck::nn::detail
