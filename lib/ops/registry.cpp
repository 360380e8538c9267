// The list of all op tables.
#include "tapedeck/op.h"

namespace tapedeck {

std::span<const Op* const> math_ops();
std::span<const Op* const> rounding_ops();
std::span<const Op* const> elementary_ops();
std::span<const Op* const> special_ops();
std::span<const Op* const> bessel_ops();
std::span<const Op* const> integrals_ops();
std::span<const Op* const> compare_ops();
std::span<const Op* const> complex_ops();
std::span<const Op* const> reduce_ops();
std::span<const Op* const> statistics_ops();
std::span<const Op* const> scan_ops();
std::span<const Op* const> array_ops();
std::span<const Op* const> repeat_ops();
std::span<const Op* const> slice_ops();
std::span<const Op* const> pad_ops();
std::span<const Op* const> join_ops();
std::span<const Op* const> check_numerics_ops();
std::span<const Op* const> diag_ops();
std::span<const Op* const> space_to_batch_ops();
std::span<const Op* const> index_ops();
std::span<const Op* const> take_along_axis_ops();
std::span<const Op* const> tensor_scatter_ops();
std::span<const Op* const> partition_ops();
std::span<const Op* const> sort_ops();
std::span<const Op* const> segment_ops();
std::span<const Op* const> unsorted_segment_ops();
std::span<const Op* const> matmul_ops();
std::span<const Op* const> cross_ops();
std::span<const Op* const> einsum_ops();
std::span<const Op* const> solve_ops();
std::span<const Op* const> decompositions_ops();
std::span<const Op* const> eig_ops();
std::span<const Op* const> matrix_functions_ops();
std::span<const Op* const> banded_ops();
std::span<const Op* const> activations_ops();
std::span<const Op* const> softmax_ops();
std::span<const Op* const> losses_ops();
std::span<const Op* const> nn_ops();
std::span<const Op* const> normalization_ops();
std::span<const Op* const> conv_ops();
std::span<const Op* const> depthwise_ops();
std::span<const Op* const> pool_ops();
std::span<const Op* const> patches_ops();
std::span<const Op* const> rnn_ops();
std::span<const Op* const> attention_ops();
std::span<const Op* const> resize_ops();
std::span<const Op* const> crop_ops();
std::span<const Op* const> color_space_ops();
std::span<const Op* const> quantize_ops();
std::span<const Op* const> fft_ops();
std::span<const Op* const> random_ops();
std::span<const Op* const> distributions_ops();

std::span<const ops::Family> ops::families() {
  static const ops::Family families[] = {
      {"math", math_ops()},
      {"rounding", rounding_ops()},
      {"elementary", elementary_ops()},
      {"special", special_ops()},
      {"bessel", bessel_ops()},
      {"integrals", integrals_ops()},
      {"compare", compare_ops()},
      {"complex", complex_ops()},
      {"reduce", reduce_ops()},
      {"statistics", statistics_ops()},
      {"scan", scan_ops()},
      {"array", array_ops()},
      {"repeat", repeat_ops()},
      {"slice", slice_ops()},
      {"pad", pad_ops()},
      {"join", join_ops()},
      {"check_numerics", check_numerics_ops()},
      {"diag", diag_ops()},
      {"space_to_batch", space_to_batch_ops()},
      {"index", index_ops()},
      {"take_along_axis", take_along_axis_ops()},
      {"tensor_scatter", tensor_scatter_ops()},
      {"partition", partition_ops()},
      {"sort", sort_ops()},
      {"segment", segment_ops()},
      {"unsorted_segment", unsorted_segment_ops()},
      {"matmul", matmul_ops()},
      {"cross", cross_ops()},
      {"einsum", einsum_ops()},
      {"solve", solve_ops()},
      {"decompositions", decompositions_ops()},
      {"eig", eig_ops()},
      {"matrix_functions", matrix_functions_ops()},
      {"banded", banded_ops()},
      {"activations", activations_ops()},
      {"softmax", softmax_ops()},
      {"losses", losses_ops()},
      {"nn", nn_ops()},
      {"normalization", normalization_ops()},
      {"conv", conv_ops()},
      {"depthwise", depthwise_ops()},
      {"pool", pool_ops()},
      {"patches", patches_ops()},
      {"rnn", rnn_ops()},
      {"attention", attention_ops()},
      {"resize", resize_ops()},
      {"crop", crop_ops()},
      {"color_space", color_space_ops()},
      {"quantize", quantize_ops()},
      {"fft", fft_ops()},
      {"random", random_ops()},
      {"distributions", distributions_ops()},
  };
  return families;
}

}   // namespace tapedeck
