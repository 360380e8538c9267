// Tracer: sees a function run, and writes the program that computes the same.
#pragma once
#include <unordered_map>
#include <unordered_set>

#include "compile/ir/program.h"
#include "core/trace.h"
#include "op/observer.h"

namespace tapedeck::compiled {

class Tracer final : public Trace {
 public:
  /// Starts to record on this thread. Precondition: nothing records there. captures: whether the function may
  /// read tensors that it is not called with.
  Tracer(std::string name, bool captures);
  ~Tracer() override;

  /// What the function is called with, before it runs. Returns a key that remembers where it comes from.
  void add_argument(const Tensor& x);
  random::Key add_key(const random::Key& key);
  /// Ends the recording, of a function that has returned these tensors, of which some may be undefined.
  Program finish(std::span<const Tensor> outputs);
  /// Whether variables were made.
  bool made_variables() const { return made_variables_; }

  void run(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>)) override;
  void on_map(const kernels::MapKernel& kernel, Refs x, const Tensor& y) override;
  void on_vjp(const Op& op, const kernels::VjpKernel& kernel, const Tensor& dy, const Tensor* const* x,
              const Tensor& y, const Tensor* dx, unsigned adds) override;
  void on_user_map(const kernels::UserLoops& loops, const Attrs& f,
                   const kernels::PassTensors& pass) override;
  void on_view(const Tensor& y, const Tensor& x, std::int64_t first) override;
  void on_select(const Tensor& y, const Tensor& x, const kernels::StridedView& view) override;
  void on_host_tensor(const Tensor& y) override;
  void on_host_read(const Tensor& x, std::string_view reader) override;
  void on_variable(detail::VariableCell& cell) override;
  void on_read(detail::VariableCell& cell, const Tensor& value) override;
  void on_assign(detail::VariableCell& cell) override;
  std::vector<Tensor> act(std::vector<Tensor> x, Action action) override;
  bool attempt(const std::function<void()>& f) override;
  void become(std::span<const Tensor> x, std::span<const Tensor> y, const random::Key& key,
              KeyedAction action) override;
  random::Key on_split(const random::Key& key, std::uint64_t i, const random::Key& part) override;
  void on_key_read(std::uint64_t source) override;

 private:
  /// Valid until the next tensor gets a name.
  const Access* find(const Tensor& x) const;
  Access access_to(const Tensor& x, std::string_view reader);
  Access add_constant(const Tensor& x);
  void name(const Tensor& y, const Access& a);
  std::uint32_t& place_of(std::uint64_t id);
  void forget(std::uint64_t id) {
    others_.erase(id);
    place_of(id) = 0;
  }
  ValueId new_value(const Tensor& y);
  bool is_constant(const Access& a) const { return program_[a.of].from == Value::From::constant; }
  bool is_recorded(const Tensor& x) const { return x.id() >= first_id_; }
  bool is_given_up() const { return opaque_ && *opaque_; }
  std::vector<Access> operands_of(const Call& c);
  KeyId key_of(const random::Key& key) const;
  KeyId key_of(const Call& c) const;
  void add_op(OpNode node, std::span<const Tensor> y);
  /// What a kernel adds to in place: the value that is there.
  Access accumulator(const Tensor& y);
  void run_kernel(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>));
  void run_composite(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>));
  void flush_stores();
  std::string place() const;

  std::string name_;
  bool captures_;
  Program program_;
  Observer presence_;        // which dispatch looks for
  std::uint64_t first_id_;   // of tensors that are made while this records
  /// What tensors are, by their ids: those of the recording, which lie close together, and others.
  std::vector<Access> accesses_;
  std::vector<std::uint32_t> recorded_;   // by id - first_id_: places in accesses_, from 1 on
  std::unordered_map<std::uint64_t, std::uint32_t> others_;
  std::unordered_set<std::uint64_t> host_;          // tensors of numbers that were on the host
  std::unordered_map<std::uint64_t, KeyId> keys_;   // by their sources
  /// Variables with a new value that no node has stored yet, in the order in which they got it.
  std::vector<std::pair<std::shared_ptr<detail::VariableCell>, Access>> stores_;
  std::vector<std::uint64_t> named_;   // ids in the order in which they got values
  bool blind_ = false;                 // a kernel or an action runs: nothing is recorded
  bool* opaque_ = nullptr;             // of the innermost kernel that is made of ops: see run_composite
  const Call* call_ = nullptr;         // of the kernel that runs
  const kernels::MapKernel* map_ = nullptr;   // what that kernel is
  bool made_variables_ = false;
};

}   // namespace tapedeck::compiled
