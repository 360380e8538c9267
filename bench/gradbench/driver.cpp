// Speaks GradBench's protocol, so that the suite's own harness can run tapedeck: JSON messages, one per line,
// on standard input, and a reply to each on standard output. Argument: the form that computes, "expert" by
// default; evals without it compute in their natural form.
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "messages.h"
#include "tapedeck/threads.h"

namespace {

using namespace gradbench;
using json = nlohmann::json;
using Clock = std::chrono::steady_clock;

long nanoseconds(Clock::time_point begin) {
  return static_cast<long>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

const Eval& eval_of(const std::string& module) {
  for (const Eval& e : evals())
    if (e.name == module) return e;
  throw std::invalid_argument("there is no module " + module);
}
std::size_t function_of(const Eval& eval, const std::string& name) {
  for (std::size_t i = 0; i < eval.functions.size(); ++i)
    if (eval.functions[i] == name) return i;
  throw std::invalid_argument(eval.name + " has no function " + name);
}
const Form& form_of(const Forms& forms, const std::string& name) {
  for (const Form& f : forms)
    if (f.name == name) return f;
  return forms.at(0);
}

class Driver {
 public:
  explicit Driver(std::string form) : form_(std::move(form)) {}

  json reply(const json& message) const {
    json reply = {{"id", message.at("id")}};
    const std::string kind = message.at("kind");
    try {
      if (kind == "start") {
        reply["tool"] = "tapedeck";
      } else if (kind == "define") {
        eval_of(message.at("module"));
        reply["success"] = true;
      } else if (kind == "evaluate") {
        reply.update(evaluate(message));
      }
    } catch (const std::exception& e) {
      reply["success"] = false;
      reply["error"] = e.what();
    }
    return reply;
  }

 private:
  /// Runs at least min_runs times, and for at least min_seconds in total.
  json evaluate(const json& message) const {
    const Eval& eval = eval_of(message.at("module"));
    const std::size_t function = function_of(eval, message.at("function"));
    const json& input = message.at("input");
    const Question question = read(eval.name, input);
    json timings = json::array();
    const auto add = [&](const char* name, long time) {
      timings.push_back({{"name", name}, {"nanoseconds", time}});
    };
    auto begin = Clock::now();
    const std::vector<Work> works = form_of(question.forms, form_).prepare();
    add("prepare", nanoseconds(begin));
    const json runs = input.is_object() ? input : json::object();
    const long min_runs = runs.value("min_runs", 1L);
    const double min_seconds = runs.value("min_seconds", 0.0);
    double spent = 0;
    for (long i = 0; i < min_runs || spent < min_seconds; ++i) {
      begin = Clock::now();
      works[function].run();
      const long time = nanoseconds(begin);
      add("evaluate", time);
      spent += static_cast<double>(time) * 1e-9;
    }
    return {{"success", true},
            {"output", question.output(function, works[function].values())},
            {"timings", timings}};
  }

  std::string form_;
};

}   // namespace

int main(int argc, char** argv) {
  tapedeck::set_num_threads(1);
  const Driver driver(argc > 1 ? argv[1] : "expert");
  for (std::string line; std::getline(std::cin, line);)
    std::cout << driver.reply(nlohmann::json::parse(line)) << std::endl;
}
