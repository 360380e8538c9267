#!/usr/bin/env bash
# Checks that programs which must not compile are refused in words that say what to do.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../include"
failed=0

# refused TEXT: the program on the standard input does not compile, and the compiler says TEXT.
refused() {
  local output
  if output=$({ echo '#include "tapedeck/nn.h"'; echo '#include "tapedeck/tapedeck.h"'; echo 'namespace td = tapedeck;'; cat; } |
    ${CXX:-g++} -std=c++20 -fsyntax-only -I. -x c++ - 2>&1); then
    echo "refused: a program compiles, for which the compiler should say: $1"
    failed=1
  elif [[ $output != *"$1"* ]]; then
    printf 'refused: expected "%s", got:\n%s\n' "$1" "$(head -n 5 <<< "$output")"
    failed=1
  fi
}

refused 'custom_gradient: the function has to return a pair of its value and its gradient function' << 'END'
const auto f = td::custom_gradient([](const td::Tensor& x) { return exp(x); });
td::Tensor y(const td::Tensor& x) { return f(x); }
END
refused 'custom_gradient: the function has to return a pair of its value and its gradient function' << 'END'
const auto f = td::custom_gradient([](const td::Tensor& x) { return std::pair(exp(x), x); });
td::Tensor y(const td::Tensor& x) { return f(x); }
END
refused 'may not have a base class: make that a member' << 'END'
struct Base { td::nn::Dense first{2, 3, {1}}; };
struct Net : Base { td::nn::Dense second{3, 1, {2}}; };
auto all(const Net& net) { return td::nn::variables(net); }
END
refused 'may not have a base class: make that a member' << 'END'
struct Base {};
struct Net : Base { td::nn::Dense only{3, 1, {2}}; };
auto all(const Net& net) { return td::nn::variables(net); }
END
refused 'the members of this layer cannot be seen: make it an aggregate' << 'END'
class Net {
 public:
  td::Tensor operator()(const td::Tensor& x) const { return only(x); }

 private:
  td::nn::Dense only{3, 1, {2}};
};
struct All { Net net; };
auto all(const All& net) { return td::nn::variables(net); }
END
refused 'a variable of a network may not be const' << 'END'
struct Net { const td::Variable w{td::ones({2})}; };
auto all(const Net& net) { return td::nn::variables(net); }
END
refused 'a layer of a network may not be const' << 'END'
struct Net { const td::nn::Dense hidden{2, 3, {1}}; };
auto all(const Net& net) { return td::nn::variables(net); }
END
refused 'a layer of a network may not be const' << 'END'
struct Net { const std::vector<td::nn::Sequential> parts; };
auto all(const Net& net) { return td::nn::variables(net); }
END
refused 'of a lambda with captures: a struct with these members' << 'END'
struct Net { td::nn::Sequential all; };
auto all(const td::nn::Dense& dense) { return td::nn::Sequential{[dense](const td::Tensor& x) { return dense(x); }}; }
END
refused 'the members of this layer cannot be seen: make it an aggregate' << 'END'
auto all(const td::nn::Dense& dense) {
  return td::nn::variables(td::nn::Sequential{[dense](const td::Tensor& x, td::nn::Run) { return dense(x); }});
}
END
refused 'derived from a layer needs a for_each_member of its own' << 'END'
struct Lora : td::nn::Dense {
  td::Variable down{td::ones({2})};
  Lora() : Dense(2, 3, {.seed = 1}) {}
};
auto all(const Lora& net) { return td::nn::variables(net); }
END
refused 'derived from a layer needs a for_each_member of its own' << 'END'
struct Net : td::nn::Sequential { td::nn::Dense head{3, 1, {2}}; };
auto all(const Net& net) { return td::nn::variables(net); }
END
refused 'derived from Variable would lose its other members' << 'END'
struct Named : td::Variable { using Variable::Variable; std::string name; };
struct Net { Named w{td::ones({2})}; };
auto all(const Net& net) { return td::nn::variables(net); }
END
refused 'cannot be found, since one is a reference' << 'END'
struct Net { td::nn::Dense a; std::ostream& log; };
auto all(const Net& net) { return td::nn::variables(net); }
END
exit $failed
