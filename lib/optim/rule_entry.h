// Helpers that build an entry of the table of update rules from hyperparameters, whose defaults come from an
// optimizer's options, and formulas.
#pragma once
#include <algorithm>

#include "optim/rules.h"
#include "optim/update_rows.h"
#include "tapedeck/optimizer.h"

namespace tapedeck {

/// A hyperparameter that several rules share. Get()(options) is its value in an optimizer's options: the
/// default, or the value that the user has set.
template <class Get> struct Known : HyperparameterSpec {
  constexpr Known in(Domain other) const {
    Known k = *this;
    k.domain = other;
    return k;
  }
  constexpr Known changes(Change other) const {
    Known k = *this;
    k.change = other;
    return k;
  }
};

template <class Get> constexpr Known<Get> known(std::string_view name, Domain domain, Get) {
  return {{name, kRequired, domain}};
}

/// A hyperparameter of a rule with one type of options.
struct Field : HyperparameterSpec {
  Scheduled (*get)(const void* options);
};

template <class Options, class Get> constexpr Field field(const Known<Get>& k) {
  return {k, [](const void* options) -> Scheduled {
            const Options& o = *static_cast<const Options*>(options);
            auto value = Get()(o);
            if constexpr (std::is_same_v<decltype(value), Scheduled>)
              return value;
            else
              return static_cast<double>(value);
          }};
}

/// Options with their defaults; the learning rate is kRequired if it has none.
template <class Options> Options default_options() {
  if constexpr (requires { Options{}; })
    return Options{};
  else
    return Options{.learning_rate = kRequired};
}

/// The hyperparameters of a rule, in the order in which Names has them.
template <template <class> class Names, class Options> struct Fields {
  std::array<Field, kMaxHyperparameters> all;
  bool (*is_for)(const void* options) = nullptr;
  Options (*defaults)() = default_options<Options>;

  /// The hyperparameters of a variant of an earlier rule. It is used for options for which Holds()(options)
  /// is true, and has these defaults.
  template <class Holds, class Defaults> constexpr Fields when(Holds, Defaults made) const {
    return {all, [](const void* o) -> bool { return Holds()(*static_cast<const Options*>(o)); }, made};
  }
};

template <template <class> class Names, class Options, class... Get>
constexpr Fields<Names, Options> fields(const Known<Get>&... k) {
  return {{field<Options>(k)...}};
}

/// Numbers that the optimizer keeps, and the function that updates them after a step.
struct KeptScalars {
  ScalarSpec specs[kMaxScalars] = {};
  void (*finish)(Step& step) noexcept = nullptr;
};

/// Fields of an UpdateRule that few rules have.
struct Extras {
  RowUpdate others = {};
  RowMeasure measure = {};
  void (*scale)(Step& step, const RowSums& sums) noexcept = nullptr;
};

template <class Names> void set_coefficients(Step& step, const Names& h) {
  std::memcpy(step.c.data(), &h, sizeof h);
}

template <class Names, class Prepare> void prepare(Step& step) {
  std::array<double, kMaxCoefficients> values = {};
  std::ranges::copy(step.h, values.begin());
  Names h = with_names<Names>(values);
  Prepare()(h, step);
  set_coefficients(step, h);
}

/// The library's rules, in the order in which they are added.
class RuleTable {
 public:
  std::span<const RuleEntry> entries() const { return entries_; }

  /// `prepare` is a lambda (h, step), called once a step. It may change h, the hyperparameters by name,
  /// before formulas get it, and choose other rows in `step`.
  template <template <class> class Names, class Options, class Prepare>
  void add(std::string_view name, std::initializer_list<SlotSpec> slots,
           const Fields<Names, Options>& hyperparameters, const KeptScalars& scalars, std::string_view doc,
           Prepare, const RowUpdate& rows, const Extras& extras = {}) {
    RuleEntry entry = {.rule = {.name = name,
                                .doc = doc,
                                .prepare = prepare<Names<double>, Prepare>,
                                .rows = rows,
                                .others = extras.others,
                                .measure = extras.measure,
                                .scale = extras.scale,
                                .finish = scalars.finish},
                       .options = &typeid(Options),
                       .is_for = hyperparameters.is_for};
    std::ranges::copy(slots, entry.rule.slots);
    std::ranges::copy(scalars.specs, entry.rule.scalars);
    const Options defaults = hyperparameters.defaults();
    for (std::size_t i = 0; i < kMaxHyperparameters && hyperparameters.all[i].get; ++i) {
      const Field& f = hyperparameters.all[i];
      entry.rule.hyperparameters[i] = f;
      entry.rule.hyperparameters[i].initial = f.get(&defaults).at(0);
      entry.get[i] = f.get;
    }
    entries_.push_back(entry);
  }

 private:
  std::vector<RuleEntry> entries_;
};

}   // namespace tapedeck
