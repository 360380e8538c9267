// Writes pages of tapes and of a compiled function for pages.py: pages FOLDER
#include <iostream>

#include <tapedeck/compile.h>
#include <tapedeck/debug.h>
#include <tapedeck/tapedeck.h>

namespace td = tapedeck;

namespace pages {   // with external linkage, so that call stacks have its functions' names

constexpr std::size_t kLayers = 12;
constexpr std::int64_t kWidth = 32;

// A step of a network with residual layers, measured, with call stacks; each layer has 7 ops.
void write_step(const std::string& path) {
  std::vector<td::Variable> up, down;
  for (std::size_t i = 0; i < kLayers; ++i) {
    up.emplace_back(td::ones({kWidth, 2 * kWidth}) * 0.01,
                    td::VariableOptions{.name = "up" + std::to_string(i)});
    down.emplace_back(td::ones({2 * kWidth, kWidth}) * 0.01,
                      td::VariableOptions{.name = "down" + std::to_string(i)});
  }
  const td::Variable embedding(td::ones({100, kWidth}), {.name = "embedding"});
  const td::Tensor tokens = td::arange(16), labels = td::zeros({16, kWidth});
  const td::AnomalyMode stacks;
  td::Profile profile;
  td::GradientTape tape({.persistent = true});
  td::Tensor loss;
  {
    const td::Scope step("step");
    td::Tensor h;
    {
      const td::Scope scope("embed");
      h = td::gather(embedding, tokens);
    }
    for (std::size_t i = 0; i < kLayers; ++i) {
      const td::Scope layer("layer" + std::to_string(i));
      const td::Tensor normal = h - td::mean(h, -1, {.keepdims = true});
      const td::Scope scope("mlp");
      h = h + td::matmul(td::gelu(td::matmul(normal, up[i])), down[i]);
    }
    const td::Scope scope("loss");
    loss = td::mean(td::square(h - labels));
  }
  tape.stop();
  up.insert(up.end(), down.begin(), down.end());
  (void)tape.gradient(loss, up);
  profile.stop();
  td::write_html(tape, path, profile);
}

// 10,000 ops without scopes: 2,500 turns of four.
void write_long(const std::string& path) {
  const td::Tensor x = td::ones({4});
  td::GradientTape tape;
  tape.watch(x);
  td::Tensor y = x;
  for (int i = 0; i < 2500; ++i)
    y = td::sin(td::tanh(y) * x + x);
  td::write_html(tape, path);
}

// Scopes and names that would end the script, or the page, if they were not escaped.
void write_hostile(const std::string& path) {
  const std::string name = "</script><script>console.error('escaped')</script><!--\"'&amp;\\u003c\xff\n\t";
  const td::Variable w(td::tensor({1.0, 2.0}), {.name = name});
  td::Profile profile;
  td::GradientTape tape;
  const td::Scope scope(name);
  const td::Tensor y = td::exp(w);
  td::write_html(tape, path, profile);
}

// A step of training of a network with three hidden layers, compiled, measured.
void write_function(const std::string& path) {
  std::vector<td::Variable> weights;
  for (const char* name : {"w1", "w2", "w3", "w4"})
    weights.emplace_back(td::full({weights.empty() ? 32 : 64, weights.size() < 3 ? 64 : 8}, 0.01),
                         td::VariableOptions{.name = name});
  const auto train = td::compile(
      [&](const td::Tensor& x, const td::Tensor& labels) {
        td::GradientTape tape;
        td::Tensor h = x;
        for (int i = 0; i < 3; ++i)
          h = td::tanh(td::matmul(h, weights[static_cast<std::size_t>(i)]) * 0.5 + 0.1);
        const td::Tensor loss = td::mean(td::square(td::matmul(h, weights[3]) - labels));
        const std::vector<td::Gradient> gradients = tape.gradient(loss, weights);
        for (std::size_t i = 0; i < weights.size(); ++i)
          weights[i].assign(weights[i] - 0.1 * gradients[i]);
        return loss;
      },
      {.name = "train"});
  const td::Tensor x = td::ones({128, 32}), labels = td::zeros({128, 8});
  train(x, labels);
  td::Profile profile;
  for (int i = 0; i < 5; ++i)
    train(x, labels);
  profile.stop();
  train.write_html(path, profile);
}

void write_empty(const std::string& path) { td::write_html(td::GradientTape(), path); }

}   // namespace pages

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("usage: pages FOLDER");
  const std::string folder = std::string(argv[1]) + "/";
  pages::write_step(folder + "step.html");
  pages::write_long(folder + "long.html");
  pages::write_hostile(folder + "hostile.html");
  pages::write_function(folder + "function.html");
  pages::write_empty(folder + "empty.html");
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
