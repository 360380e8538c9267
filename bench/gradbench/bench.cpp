// GradBench's evals, at three sizes: tapedeck compared with derivatives by hand, ADOL-C and libtorch,
// alternately, on one thread. Prints, for each eval and size, the times of derivatives as multiples of the
// derivative by hand, and how much longer a derivative takes than its own function. Each size runs in its own
// process, since the cost of memory depends on what ran before. Arguments: words; only evals whose "name
// size" contains one of them run (all by default); --forms a,b: only these forms, and derivatives by hand;
// --json FILE: also writes the figures to FILE.
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "agree.h"
#include "suite.h"
#include "tapedeck/threads.h"

namespace {

using namespace gradbench;
using json = nlohmann::ordered_json;   // keeps the order of keys

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// The names of all forms, in the order of the columns. Times are multiples of the first form's time.
const std::vector<std::string> kForms = {"manual", "natural", "expert", "suite", "loop", "adolc", "torch"};

/// One function in one form, and the seconds that its runs took.
struct Timed {
  std::string form;
  Work work;
  int repeats = 1;
  std::vector<double> seconds = {};

  void measure() {
    const double begin = now();
    for (int i = 0; i < repeats; ++i)
      work.run();
    seconds.push_back((now() - begin) / repeats);
  }
  /// Runs once, or twice if the first run was short, and chooses how many runs make a measurement.
  void warm_up() {
    measure();
    if (seconds[0] < 0.1) measure();
    repeats = static_cast<int>(std::clamp(2e-3 / (seconds.back() + 1e-9), 1.0, 1e6));
    seconds.clear();
  }
  double first_quartile() const {
    std::vector<double> s = seconds;
    const auto at = s.begin() + static_cast<std::ptrdiff_t>(s.size() / 4);
    std::nth_element(s.begin(), at, s.end());
    return *at;
  }
};

/// Measures all alternately, for at least three rounds; then until a second has passed, or for 60 rounds.
void measure(std::vector<Timed>& all) {
  for (Timed& t : all)
    t.warm_up();
  const double begin = now();
  for (int round = 0; round < 3 || (round < 60 && now() - begin < 1); ++round)
    for (Timed& t : all)
      t.measure();
}

/// A line of the table: a derivative at a size.
struct Row {
  std::string eval, size, function;
  std::map<std::string, double> seconds = {}, primal = {};

  double times(const std::string& form) const { return seconds.at(form) / seconds.at("manual"); }
};

void require_agreement(const std::string& where, const std::vector<Timed>& all) {
  const Values expected = all[0].work.values();
  for (const Timed& t : all)
    if (const double d = difference(t.work.values(), expected); !(d <= kTolerance))
      throw std::runtime_error("gradbench: " + where + ": " + t.form + " differs from " + all[0].form +
                               " by " + std::to_string(d));
}

std::vector<Row> rows_of(const Eval& eval, const Size& size, const std::vector<std::string>& names) {
  const Forms forms = size.forms();
  std::vector<std::vector<Timed>> functions(eval.functions.size());
  for (const std::string& name : names) {
    const auto form = std::find_if(forms.begin(), forms.end(), [&](const Form& f) { return f.name == name; });
    if (form == forms.end()) continue;
    const std::vector<Work> works = form->prepare();
    for (std::size_t i = 0; i < works.size(); ++i)
      functions[i].push_back({name, works[i]});
  }
  std::vector<Row> rows;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    measure(functions[i]);
    require_agreement(eval.name + " " + size.name + " " + eval.functions[i], functions[i]);
    if (i == 0 && eval.has_primal) continue;
    Row row{eval.name, size.name, eval.functions[i]};
    for (const Timed& t : functions[i])
      row.seconds[t.form] = t.first_quartile();
    for (const Timed& t : eval.has_primal ? functions[0] : std::vector<Timed>())
      row.primal[t.form] = t.first_quartile();
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Returns the text that f returns in a child process.
template <class F> std::string written_apart(const std::string& what, const F& f) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("gradbench: no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("gradbench: no process");
  if (child == 0) {
    close(ends[0]);
    int status = 0;
    try {
      const std::string text = f();
      for (std::size_t at = 0; at < text.size();) {
        const ssize_t n = write(ends[1], text.data() + at, text.size() - at);
        if (n < 0) throw std::runtime_error("gradbench: cannot write to a pipe");
        at += static_cast<std::size_t>(n);
      }
    } catch (const std::exception& e) {
      std::cerr << e.what() << '\n';
      status = 1;
    }
    _exit(status);
  }
  close(ends[1]);
  std::string text(1 << 16, '\0'), all;
  for (ssize_t n; (n = read(ends[0], text.data(), text.size())) > 0;)
    all.append(text, 0, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0)
    throw std::runtime_error("gradbench: the process of " + what + " failed");
  return all;
}

std::vector<Row> rows_apart(const Eval& eval, const Size& size, const std::vector<std::string>& names) {
  const std::string text = written_apart(eval.name + " " + size.name, [&] {
    json list = json::array();
    for (const Row& row : rows_of(eval, size, names))
      list.push_back({row.function, row.seconds, row.primal});
    return list.dump();
  });
  std::vector<Row> rows;
  for (const json& row : json::parse(text))
    rows.push_back({eval.name, size.name, row[0], row[1], row[2]});
  return rows;
}

std::string figure(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
std::string short_figure(double x) { return figure(x, x < 0.995 ? "%.2f" : x < 9.95 ? "%.1f" : "%.0f"); }

void print_row(const Row& row) {
  std::printf("%-9s %-12s %-9s %9s", row.eval.c_str(), row.size.c_str(), row.function.c_str(),
              figure(row.seconds.at("manual") * 1e3, "%.4g").c_str());
  for (const std::string& form : kForms) {
    const bool there = row.seconds.contains(form), primal = row.primal.contains(form);
    const std::string times = !there ? "-" : short_figure(row.times(form)),
                      over_primal =
                          !primal ? ""
                                  : " (" + short_figure(row.seconds.at(form) / row.primal.at(form)) + ")";
    std::printf(" %13s", (form == "manual" ? over_primal : times + over_primal).c_str());
  }
  std::printf("\n");
  std::fflush(stdout);
}

/// By form, the geometric mean of `times` over all rows of an eval. If the eval has no form "expert", the
/// natural form stands for it.
std::map<std::string, double> means(const std::vector<Row>& rows) {
  std::map<std::string, double> logs;
  std::map<std::string, int> counts;
  for (const Row& row : rows)
    for (const std::string& form : kForms) {
      const std::string as = row.seconds.contains(form) || form != "expert" ? form : "natural";
      if (!row.seconds.contains(as)) continue;
      logs[form] += std::log(row.times(as));
      ++counts[form];
    }
  std::map<std::string, double> result;
  for (const auto& [form, sum] : logs)
    if (counts[form] == static_cast<int>(rows.size())) result[form] = std::exp(sum / counts[form]);
  return result;
}

void print_means(const std::string& name, const std::map<std::string, double>& by_form) {
  std::printf("%-32s %9s", name.c_str(), "");
  for (const std::string& form : kForms)
    std::printf(" %13s", by_form.contains(form) ? short_figure(by_form.at(form)).c_str() : "-");
  std::printf("\n");
}

json to_json(const std::vector<Row>& rows) {
  json list = json::array();
  for (const Row& row : rows)
    for (const auto& [form, seconds] : row.seconds) {
      json one = {{"eval", row.eval}, {"size", row.size},   {"function", row.function},
                  {"form", form},     {"seconds", seconds}, {"times_manual", row.times(form)}};
      one["times_primal"] = row.primal.contains(form) ? json(seconds / row.primal.at(form)) : json();
      list.push_back(std::move(one));
    }
  return list;
}

bool chosen(const std::string& name, const std::vector<std::string>& words) {
  return words.empty() || std::any_of(words.begin(), words.end(), [&](const std::string& w) {
           return name.find(w) != std::string::npos;
         });
}

/// Whether the suite has derivatives by hand of an eval: the mean of all is over the means of these evals.
bool counts(const std::string& eval) { return eval != "hello" && eval != "particle" && eval != "saddle"; }

struct Options {
  std::vector<std::string> words, forms = kForms;
  std::string json_file;
};

void run(const Options& options, std::vector<Row>& all) {
  std::printf("%-9s %-12s %-9s %9s", "eval", "size", "function", "by hand");
  for (const std::string& form : kForms)
    std::printf(" %13s", form.c_str());
  std::printf("\n%-32s %9s %13s  … times by hand, in brackets times the form's own function\n", "", "ms", "");
  std::vector<std::pair<std::string, std::map<std::string, double>>> by_eval;
  for (const Eval& eval : evals()) {
    std::vector<Row> of_eval;
    for (const Size& size : eval.sizes)
      if (chosen(eval.name + " " + size.name, options.words))
        for (Row& row : rows_apart(eval, size, options.forms)) {
          print_row(row);
          of_eval.push_back(std::move(row));
        }
    if (of_eval.empty()) continue;
    by_eval.emplace_back(eval.name, means(of_eval));
    all.insert(all.end(), of_eval.begin(), of_eval.end());
  }
  std::map<std::string, double> logs;
  std::map<std::string, int> count;
  std::printf("geometric means\n");
  int evals_counted = 0;
  for (const auto& [name, by_form] : by_eval) {
    print_means("  " + name, by_form);
    if (!counts(name)) continue;
    ++evals_counted;
    for (const auto& [form, mean] : by_form) {
      logs[form] += std::log(mean);
      ++count[form];
    }
  }
  std::map<std::string, double> together;
  for (const auto& [form, sum] : logs)
    if (count[form] == evals_counted) together[form] = std::exp(sum / evals_counted);
  print_means("  all but hello, particle, saddle", together);
}

void add_peers() {
  add_manual();
  add_suite();
#ifdef GRADBENCH_ADOLC
  add_adolc();
#endif
#ifdef GRADBENCH_TORCH
  add_torch();
#endif
}

Options options_of(std::vector<std::string> words) {
  const auto take = [&](const char* flag) -> std::string {
    const auto at = std::find(words.begin(), words.end(), flag);
    if (at == words.end()) return {};
    if (at + 1 == words.end()) throw std::runtime_error(std::string("gradbench: ") + flag + " takes a value");
    const std::string value = at[1];
    words.erase(at, at + 2);
    return value;
  };
  Options options;
  options.json_file = take("--json");
  if (const std::string forms = take("--forms"); !forms.empty()) {
    options.forms = {"manual"};
    std::istringstream list(forms);
    for (std::string form; std::getline(list, form, ',');) {
      if (std::find(kForms.begin(), kForms.end(), form) == kForms.end())
        throw std::runtime_error("gradbench: there is no form " + form);
      if (form != "manual") options.forms.push_back(form);
    }
  }
  options.words = std::move(words);
  return options;
}

}   // namespace

int main(int argc, char** argv) try {
  const Options options = options_of({argv + 1, argv + argc});
  std::ofstream file;
  if (!options.json_file.empty()) {
    file.open(options.json_file);
    if (!file) throw std::runtime_error("gradbench: cannot write " + options.json_file);
  }
  tapedeck::set_num_threads(1);
  add_peers();
  std::vector<Row> rows;
  run(options, rows);
  if (file.is_open()) file << to_json(rows).dump(2) << '\n';
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
