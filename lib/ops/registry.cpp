// The list of families.
#include "tapedeck/op.h"

namespace tapedeck {

std::span<const Op> math_ops();
std::span<const Op> elementary_ops();
std::span<const Op> compare_ops();
std::span<const Op> reduce_ops();
std::span<const Op> array_ops();
std::span<const Op> part_ops();
std::span<const Op> index_ops();
std::span<const Op> linalg_ops();
std::span<const Op> nn_ops();
std::span<const Op> conv_ops();
std::span<const Op> random_ops();

std::span<const OpFamily> op_families() {
  static const OpFamily families[] = {
      {"math", math_ops()},   {"elementary", elementary_ops()}, {"compare", compare_ops()}, {"reduce", reduce_ops()}, {"array", array_ops()},
      {"parts", part_ops()},  {"index", index_ops()},           {"linalg", linalg_ops()},   {"nn", nn_ops()},         {"conv", conv_ops()},
      {"random", random_ops()}};
  return families;
}

}  // namespace tapedeck
