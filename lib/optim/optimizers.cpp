// From options with names and types to the hyperparameters of a rule.
#include "tapedeck/optimizer.h"
#include "tapedeck/update_rule.h"

namespace tapedeck {
namespace {

// What has a default in Keras alone.
Scheduled given(const std::optional<Scheduled>& value, Form form, double keras) {
  return value.value_or(form == Form::keras ? keras : kRequired);
}
double epsilon_of(const std::optional<double>& epsilon, Form form, double v1) {
  return epsilon.value_or(form == Form::keras ? 1e-7 : v1);
}

using Settings = std::vector<Hyperparameter>;

Settings adagrad(const AdagradOptions& o) {
  Settings all = {{"learning_rate", given(o.learning_rate, o.form, 1e-3)},
                  {"initial_accumulator_value", o.initial_accumulator_value}};
  if (o.form == Form::keras) all.push_back({"epsilon", o.epsilon});
  return all;
}

}   // namespace

GradientDescent::GradientDescent(GradientDescentOptions o)
    : Optimizer("gradient_descent", {{"learning_rate", o.learning_rate}}) {}

Momentum::Momentum(MomentumOptions o)
    : Optimizer(o.form == Form::keras ? "keras_sgd" : "momentum",
                {{"learning_rate", given(o.learning_rate, o.form, 0.01)},
                 {"momentum", given(o.momentum, o.form, 0)},
                 {o.form == Form::keras ? "nesterov" : "use_nesterov", double(o.use_nesterov)}}) {}

Adagrad::Adagrad(AdagradOptions o)
    : Optimizer(o.form == Form::keras ? "keras_adagrad" : "adagrad", adagrad(o)) {}

AdagradDA::AdagradDA(AdagradDAOptions o)
    : Optimizer("adagrad_da",
                {{"learning_rate", o.learning_rate},
                 {"initial_gradient_squared_accumulator_value", o.initial_gradient_squared_accumulator_value},
                 {"l1", o.l1},
                 {"l2", o.l2}}) {}

Adadelta::Adadelta(AdadeltaOptions o)
    : Optimizer("adadelta", {{"learning_rate", o.learning_rate},
                             {"rho", o.rho},
                             {"epsilon", epsilon_of(o.epsilon, o.form, 1e-8)}}) {}

Adam::Adam(AdamOptions o)
    : Optimizer("adam", {{"learning_rate", o.learning_rate},
                         {"beta1", o.beta1},
                         {"beta2", o.beta2},
                         {"epsilon", epsilon_of(o.epsilon, o.form, 1e-8)},
                         {"lazy", double(o.lazy)},
                         {"amsgrad", double(o.amsgrad)}}) {}

AdamW::AdamW(AdamWOptions o)
    : Optimizer("adamw", {{"learning_rate", o.learning_rate},
                          {"beta1", o.beta1},
                          {"beta2", o.beta2},
                          {"epsilon", o.epsilon},
                          {"weight_decay", o.weight_decay},
                          {"lazy", double(o.lazy)}}) {}

Adamax::Adamax(AdamaxOptions o)
    : Optimizer("adamax", {{"learning_rate", o.learning_rate},
                           {"beta1", o.beta1},
                           {"beta2", o.beta2},
                           {"epsilon", o.epsilon}}) {}

Nadam::Nadam(NadamOptions o)
    : Optimizer("nadam", {{"learning_rate", o.learning_rate},
                          {"beta1", o.beta1},
                          {"beta2", o.beta2},
                          {"epsilon", o.epsilon}}) {}

RMSProp::RMSProp(RMSPropOptions o)
    : Optimizer(o.form == Form::keras ? "keras_rmsprop" : "rmsprop",
                {{"learning_rate", given(o.learning_rate, o.form, 1e-3)},
                 {o.form == Form::keras ? "rho" : "decay", o.decay},
                 {"momentum", o.momentum},
                 {"epsilon", epsilon_of(o.epsilon, o.form, 1e-10)},
                 {"centered", double(o.centered)}}) {}

Ftrl::Ftrl(FtrlOptions o)
    : Optimizer("ftrl", {{"learning_rate", given(o.learning_rate, o.form, 1e-3)},
                         {"learning_rate_power", o.learning_rate_power},
                         {"initial_accumulator_value", o.initial_accumulator_value},
                         {"l1", o.l1},
                         {"l2", o.l2},
                         {"l2_shrinkage", o.l2_shrinkage},
                         {"beta", o.beta}}) {}

ProximalGradientDescent::ProximalGradientDescent(ProximalGradientDescentOptions o)
    : Optimizer("proximal_gradient_descent",
                {{"learning_rate", o.learning_rate}, {"l1", o.l1}, {"l2", o.l2}}) {}

ProximalAdagrad::ProximalAdagrad(ProximalAdagradOptions o)
    : Optimizer("proximal_adagrad", {{"learning_rate", o.learning_rate},
                                     {"initial_accumulator_value", o.initial_accumulator_value},
                                     {"l1", o.l1},
                                     {"l2", o.l2}}) {}

Lamb::Lamb(LambOptions o)
    : Optimizer("lamb", {{"learning_rate", o.learning_rate},
                         {"beta1", o.beta1},
                         {"beta2", o.beta2},
                         {"epsilon", o.epsilon},
                         {"weight_decay", o.weight_decay}}) {}

Lion::Lion(LionOptions o)
    : Optimizer("lion", {{"learning_rate", o.learning_rate},
                         {"beta1", o.beta1},
                         {"beta2", o.beta2},
                         {"weight_decay", o.weight_decay}}) {}

}   // namespace tapedeck
