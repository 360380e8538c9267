#include "nn/in_layer.h"

#include <algorithm>
#include <typeinfo>

#include "core/format.h"

namespace tapedeck::nn {
namespace {

// The layer that an error comes from.
class Place {
 public:
  Place(const void* layer, std::string_view type, std::string below, std::string error)
      : layer_(layer), type_(type), below_(std::move(below)), error_(std::move(error)) {
    set_path(below_);
  }

  // Whether the walk reaches the layer; if so, its path is the one in the walk.
  bool find(const std::function<void(const detail::Visit&)>& walk) {
    bool found = false;
    walk([&](const detail::Node& node) {
      if (found || node.address != layer_ || node.type != type_) return;
      found = true;
      set_path(below_.empty() ? node.path : detail::join(node.path, below_));
    });
    return found;
  }
  void put_below(const std::string& above) { set_path(path_.empty() ? above : detail::join(above, path_)); }
  const std::string& text() const { return text_; }

 private:
  void set_path(const std::string& path) {
    text_ = path.empty() ? error_ : path + ": " + error_;
    path_ = path;
  }

  const void* layer_;
  std::string_view type_;
  std::string below_, error_, path_, text_;
};

// An E with the place of the error, so that handlers for E catch it.
template <class E> class ErrorAt final : public E, public Place {
 public:
  explicit ErrorAt(Place place) : E(""), Place(std::move(place)) {}
  const char* what() const noexcept override { return text().c_str(); }
};

// Call this in a handler of `e`. An error of a class that a user has derived from one of these is rethrown
// unchanged.
[[noreturn]] void rethrow_at(const Error& e, Place place) {
  if (typeid(e) == typeid(ShapeError)) throw ErrorAt<ShapeError>(std::move(place));
  if (typeid(e) == typeid(DTypeError)) throw ErrorAt<DTypeError>(std::move(place));
  if (typeid(e) == typeid(ArgumentError)) throw ErrorAt<ArgumentError>(std::move(place));
  throw;
}

bool are_met(std::string_view axes, std::int64_t n, const Tensor& x) {
  if (!x.defined()) return false;
  const std::size_t at = axes.find('#');
  if (at == axes.npos) return is_integer(x.dtype());
  const bool is_open = axes.find("...") != axes.npos;
  const auto named = std::ranges::count(axes, ',') + (is_open ? 0 : 1),
             behind = std::ranges::count(axes.substr(at), ',');
  const int axis = x.ndim() - 1 - static_cast<int>(behind);
  return is_floating(x.dtype()) && (is_open ? x.ndim() >= named : x.ndim() == named) && axis >= 0 &&
         x.shape()[axis] == n;
}

std::string expected(std::string_view axes, std::int64_t n) {
  const std::size_t at = axes.find('#');
  if (at == axes.npos) return std::string(axes);
  return fmt::format("[{}{}{}]", axes.substr(0, at), n, axes.substr(at + 1));
}

}   // namespace

void rethrow_in_layer(const Takes& takes, const Tensor& x) {
  try {
    throw;
  } catch (const Place&) {
    throw;
  } catch (const Error& e) {
    const std::string given = x.defined() ? to_string(x.spec()) : "an undefined tensor";
    const Spec weights{takes.weights.dtype(), takes.weights.shape()};
    rethrow_at(e, {takes.layer, takes.type, "",
                   are_met(takes.axes, takes.n, x)
                       ? fmt::format("{} of {}, called with {}: {}", takes.type, weights, given, e.what())
                       : fmt::format("{} of {} expects {}, got {}: {}", takes.type, weights,
                                     expected(takes.axes, takes.n), given, e.what())});
  }
}

void rethrow_in_sequence(const void* sequence, std::size_t i,
                         const std::function<void(const detail::Visit&)>& walk) {
  try {
    throw;
  } catch (Place& place) {
    if (!place.find(walk)) place.put_below(std::to_string(i));
    throw;
  } catch (const Error& e) {
    rethrow_at(e, {sequence, "Sequential", std::to_string(i), e.what()});
  }
}

void detail::name_failing_layer(const std::function<void(const Visit&)>& walk) {
  try {
    throw;
  } catch (Place& place) {
    (void)place.find(walk);
  } catch (...) {   // not from a layer
  }
}

}   // namespace tapedeck::nn
