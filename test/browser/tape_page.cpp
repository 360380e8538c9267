// Writes pages of tapes for tape_page.py: tape_page FOLDER
#include <iostream>

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
      const td::Tensor normal = h - td::mean(h, -1, true);
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

void write_empty(const std::string& path) { td::write_html(td::GradientTape(), path); }

}   // namespace pages

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("usage: tape_page FOLDER");
  const std::string folder = std::string(argv[1]) + "/";
  pages::write_step(folder + "step.html");
  pages::write_long(folder + "long.html");
  pages::write_hostile(folder + "hostile.html");
  pages::write_empty(folder + "empty.html");
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
