// A program outside the sources: built against the installed library, or with the sources as its subproject.
#include <tapedeck/tapedeck.h>

#include <iostream>

namespace td = tapedeck;

int main() {
  const td::Variable x(td::tensor({1.0, 2.0, 3.0}));
  td::GradientTape tape;
  const td::Tensor y = td::sum(td::square(x.value()));
  std::cout << tape.gradient(y, x).dense() << " by " << td::build_info().version << '\n';
}
