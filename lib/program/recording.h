// Recording: sees a function run, and writes the program that computes the same.
#pragma once
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/trace.h"
#include "op/observer.h"
#include "program/program.h"

namespace tapedeck::program {

class Recording final : public Trace {
 public:
  /// From here on the thread records, which it must not do yet.
  explicit Recording(std::string name);
  ~Recording() override;

  /// What the function is called with, before it runs.
  void add_argument(const Tensor& x);
  void add_key(const random::Key& key);
  /// Ends the recording, of a function that has returned these tensors, of which some may be undefined.
  Program finish(std::span<const Tensor> outputs);
  /// Whether variables were made.
  bool made_variables() const { return made_variables_; }

  void run(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>)) override;
  void mapped(const kernels::MapKernel& kernel, Refs x, const Tensor& y) override;
  void pulled(const Op& op, const kernels::VjpKernel& kernel, const Tensor& dy, const Tensor* const* x,
              const Tensor& y, const Tensor* dx, unsigned adds) override;
  void passed(const kernels::UserLoops& loops, const Attrs& f, const kernels::PassTensors& pass) override;
  void shared(const Tensor& y, const Tensor& x, std::int64_t first) override;
  void selected(const Tensor& y, const Tensor& x, const kernels::StridedView& view) override;
  void made(const Tensor& y) override;
  void looked_at(const Tensor& x, std::string_view reader) override;
  void made(detail::VariableCell& cell) override;
  void read(detail::VariableCell& cell, const Tensor& value) override;
  void assigned(detail::VariableCell& cell) override;
  std::vector<Tensor> act(std::vector<Tensor> x, Action action) override;
  bool attempt(const std::function<void()>& f) override;
  void become(std::span<const Tensor> x, std::span<const Tensor> y, Action action) override;
  void split(const random::Key& key, std::uint64_t i, const random::Key& part) override;

 private:
  using Bits = std::pair<std::uint64_t, std::uint64_t>;   // of a key

  ValueId find(const Tensor& x) const;
  ValueId value_of(const Tensor& x, std::string_view reader);
  ValueId add_constant(const Tensor& x);
  void name_value(const Tensor& y, ValueId v);
  bool is_constant(ValueId v) const;
  bool is_recorded(const Tensor& x) const { return x.id() >= first_id_; }
  ValueId add_value(Value v);
  void add_node(Node node, std::span<const Tensor> y);
  /// What is added to in place.
  ValueId value_before(const Tensor& y);
  Node node_of(const Call& c);
  void add_op(Node node, std::span<const Tensor> y);
  void run_kernel(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>));
  void run_composite(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>));
  void flush_stores();
  std::int32_t key_of(const Call& c) const;

  std::string name_;
  Program program_;
  Observer presence_;        // which dispatch looks for
  std::uint64_t first_id_;   // of tensors that are made while this records
  std::unordered_map<std::uint64_t, ValueId> ids_;
  std::unordered_set<std::uint64_t> host_;   // tensors of numbers that were on the host
  std::map<Bits, std::int32_t> keys_;
  /// Variables with a new value that no node has stored yet, in the order in which they got it.
  std::vector<std::pair<std::shared_ptr<detail::VariableCell>, ValueId>> stores_;
  std::vector<std::uint64_t> named_;   // ids in the order in which they got values
  bool blind_ = false;                 // a kernel or an action runs: nothing is recorded
  bool* opaque_ = nullptr;             // of the innermost kernel that is made of ops: see run_composite
  const Call* call_ = nullptr;         // of the kernel that runs
  const kernels::MapKernel* map_ = nullptr;   // what that kernel is
  bool made_variables_ = false;
};

}   // namespace tapedeck::program
