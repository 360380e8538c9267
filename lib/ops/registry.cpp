// The list of all op tables.
#include "tapedeck/op.h"

namespace tapedeck {

std::span<const Op> math_ops();
std::span<const Op> rounding_ops();
std::span<const Op> elementary_ops();
std::span<const Op> special_ops();
std::span<const Op> bessel_ops();
std::span<const Op> integrals_ops();
std::span<const Op> compare_ops();
std::span<const Op> complex_ops();
std::span<const Op> reduce_ops();
std::span<const Op> statistics_ops();
std::span<const Op> scan_ops();
std::span<const Op> array_ops();
std::span<const Op> repeat_ops();
std::span<const Op> slice_ops();
std::span<const Op> pad_ops();
std::span<const Op> join_ops();
std::span<const Op> check_numerics_ops();
std::span<const Op> diag_ops();
std::span<const Op> space_to_batch_ops();
std::span<const Op> index_ops();
std::span<const Op> take_along_axis_ops();
std::span<const Op> tensor_scatter_ops();
std::span<const Op> partition_ops();
std::span<const Op> sort_ops();
std::span<const Op> segment_ops();
std::span<const Op> unsorted_segment_ops();
std::span<const Op> matmul_ops();
std::span<const Op> cross_ops();
std::span<const Op> einsum_ops();
std::span<const Op> solve_ops();
std::span<const Op> decompositions_ops();
std::span<const Op> eig_ops();
std::span<const Op> matrix_functions_ops();
std::span<const Op> banded_ops();
std::span<const Op> activations_ops();
std::span<const Op> softmax_ops();
std::span<const Op> losses_ops();
std::span<const Op> nn_ops();
std::span<const Op> normalization_ops();
std::span<const Op> conv_ops();
std::span<const Op> depthwise_ops();
std::span<const Op> pool_ops();
std::span<const Op> patches_ops();
std::span<const Op> rnn_ops();
std::span<const Op> attention_ops();
std::span<const Op> resize_ops();
std::span<const Op> crop_ops();
std::span<const Op> color_space_ops();
std::span<const Op> quantize_ops();
std::span<const Op> fft_ops();
std::span<const Op> random_ops();
std::span<const Op> distributions_ops();

std::span<const OpFamily> op_families() {
  static const OpFamily families[] = {
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
