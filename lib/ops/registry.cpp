// The list of families.
#include "tapedeck/op.h"

namespace tapedeck {

std::span<const Op> math_ops();
std::span<const Op> rounding_ops();
std::span<const Op> elementary_ops();
std::span<const Op> special_ops();
std::span<const Op> bessel_ops();
std::span<const Op> compare_ops();
std::span<const Op> complex_ops();
std::span<const Op> reduce_ops();
std::span<const Op> statistics_ops();
std::span<const Op> scan_ops();
std::span<const Op> array_ops();
std::span<const Op> arrange_ops();
std::span<const Op> part_ops();
std::span<const Op> join_ops();
std::span<const Op> guard_ops();
std::span<const Op> diag_ops();
std::span<const Op> space_ops();
std::span<const Op> index_ops();
std::span<const Op> along_ops();
std::span<const Op> scatter_ops();
std::span<const Op> partition_ops();
std::span<const Op> sort_ops();
std::span<const Op> segment_ops();
std::span<const Op> unsorted_segment_ops();
std::span<const Op> einsum_ops();
std::span<const Op> linalg_ops();
std::span<const Op> solve_ops();
std::span<const Op> decompositions_ops();
std::span<const Op> eig_ops();
std::span<const Op> matrix_functions_ops();
std::span<const Op> bands_ops();
std::span<const Op> activation_ops();
std::span<const Op> nn_ops();
std::span<const Op> norm_ops();
std::span<const Op> conv_ops();
std::span<const Op> conv_form_ops();
std::span<const Op> pool_ops();
std::span<const Op> rnn_ops();
std::span<const Op> image_ops();
std::span<const Op> crop_ops();
std::span<const Op> colour_ops();
std::span<const Op> quantize_ops();
std::span<const Op> fft_ops();
std::span<const Op> random_ops();
std::span<const Op> distribution_ops();

std::span<const OpFamily> op_families() {
  static const OpFamily families[] = {{"math", math_ops()},
                                      {"rounding", rounding_ops()},
                                      {"elementary", elementary_ops()},
                                      {"special", special_ops()},
                                      {"bessel", bessel_ops()},
                                      {"compare", compare_ops()},
                                      {"complex", complex_ops()},
                                      {"reduce", reduce_ops()},
                                      {"statistics", statistics_ops()},
                                      {"scan", scan_ops()},
                                      {"array", array_ops()},
                                      {"arrange", arrange_ops()},
                                      {"parts", part_ops()},
                                      {"join", join_ops()},
                                      {"guard", guard_ops()},
                                      {"diag", diag_ops()},
                                      {"space", space_ops()},
                                      {"index", index_ops()},
                                      {"along", along_ops()},
                                      {"scatter", scatter_ops()},
                                      {"partition", partition_ops()},
                                      {"sort", sort_ops()},
                                      {"segment", segment_ops()},
                                      {"unsorted_segment", unsorted_segment_ops()},
                                      {"linalg", linalg_ops()},
                                      {"einsum", einsum_ops()},
                                      {"solve", solve_ops()},
                                      {"decompositions", decompositions_ops()},
                                      {"eig", eig_ops()},
                                      {"matrix_functions", matrix_functions_ops()},
                                      {"bands", bands_ops()},
                                      {"activations", activation_ops()},
                                      {"nn", nn_ops()},
                                      {"norm", norm_ops()},
                                      {"conv", conv_ops()},
                                      {"conv_forms", conv_form_ops()},
                                      {"pool", pool_ops()},
                                      {"rnn", rnn_ops()},
                                      {"image", image_ops()},
                                      {"crops", crop_ops()},
                                      {"colours", colour_ops()},
                                      {"quantize", quantize_ops()},
                                      {"fft", fft_ops()},
                                      {"random", random_ops()},
                                      {"distributions", distribution_ops()}};
  return families;
}

}   // namespace tapedeck
