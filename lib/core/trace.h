// Trace: is told of all that its thread computes while a function is recorded. While none is,
// thread_state.trace is null and nothing here is called. Whoever sets it makes an observer, too, which is
// what dispatch looks for.
#pragma once
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/thread_state.h"
#include "tapedeck/random_key.h"
#include "tapedeck/refs.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

struct Attrs;
struct Call;
struct Op;
namespace detail {
struct VariableCell;
}
namespace kernels {
struct MapKernel;
struct PassTensors;
class StridedView;
struct UserLoops;
struct VjpKernel;
}   // namespace kernels

class Trace {
 public:
  /// Computes something from tensors, at once and at every replay.
  using Action = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
  /// The same with the key of random numbers that its op is called with.
  using KeyedAction = std::function<std::vector<Tensor>(std::span<const Tensor>, const random::Key&)>;

  Trace() = default;
  virtual ~Trace() = default;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Runs the kernel of a call.
  virtual void run(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>)) = 0;
  /// An elementwise kernel is about to run, of an op or by itself; so are the loops of a vjp, and those of a
  /// user's map.
  virtual void on_map(const kernels::MapKernel& kernel, Refs x, const Tensor& y) = 0;
  virtual void on_vjp(const Op& op, const kernels::VjpKernel& kernel, const Tensor& dy,
                      const Tensor* const* x, const Tensor& y, const Tensor* dx, unsigned adds) = 0;
  virtual void on_user_map(const kernels::UserLoops& loops, const Attrs& f,
                           const kernels::PassTensors& pass) = 0;

  /// y is the elements of x from `first` on, or a copy of those that a view selects; y was made of numbers on
  /// the host; the numbers of x are read there, by a function of this name, which may throw.
  virtual void on_view(const Tensor& y, const Tensor& x, std::int64_t first) = 0;
  virtual void on_select(const Tensor& y, const Tensor& x, const kernels::StridedView& view) = 0;
  virtual void on_host_tensor(const Tensor& y) = 0;
  virtual void on_host_read(const Tensor& x, std::string_view reader = {}) = 0;

  /// A variable is made; its value is read as this tensor; it has a new value.
  virtual void on_variable(detail::VariableCell& cell) = 0;
  virtual void on_read(detail::VariableCell& cell, const Tensor& value) = 0;
  virtual void on_assign(detail::VariableCell& cell) = 0;
  /// Runs an action, during which nothing is recorded. In a replay its tensors are there for the call alone.
  /// It may read and change variables.
  virtual std::vector<Tensor> act(std::vector<Tensor> x, Action action) = 0;

  /// Runs f, of whose ops the program is made. False: f also reads numbers or writes memory, and nothing of
  /// it is in the program; `become` then says what gives y from x: a rule of `op`. It throws where f has used
  /// what is not in x, which the action would have from the recording.
  virtual bool attempt(const std::function<void()>& f) = 0;
  virtual void become(const Op& op, std::span<const Tensor> x, std::span<const Tensor> y,
                      const random::Key& key, KeyedAction action) = 0;

  /// What this is the name of is about to throw, because of numbers. Where the function catches it and goes
  /// on, the recording fails, since it is that of these numbers.
  virtual void on_throw(std::string_view thrower) = 0;

  /// `part` is key i of `key`. Returns it as a key that remembers that.
  virtual random::Key on_split(const random::Key& key, std::uint64_t i, const random::Key& part) = 0;
  /// A number of the key from that source is read on the host, which may throw.
  virtual void on_key_read(std::uint64_t source) = 0;
};

/// y, which has been made of numbers on the host: a recording of this thread takes them for constants.
inline Tensor shown(Tensor y) {
  if (thread_state.trace) [[unlikely]]
    thread_state.trace->on_host_tensor(y);
  return y;
}

}   // namespace tapedeck
