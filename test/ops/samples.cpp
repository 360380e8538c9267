// The list of families, in the order of lib/ops/registry.cpp.
#include "ops/samples.h"

#include <map>
#include <stdexcept>
#include <string>

namespace tapedeck::test {

std::span<const OpSamples> math_samples();
std::span<const OpSamples> rounding_samples();
std::span<const OpSamples> elementary_samples();
std::span<const OpSamples> special_samples();
std::span<const OpSamples> bessel_samples();
std::span<const OpSamples> integrals_samples();
std::span<const OpSamples> compare_samples();
std::span<const OpSamples> complex_samples();
std::span<const OpSamples> reduce_samples();
std::span<const OpSamples> statistics_samples();
std::span<const OpSamples> scan_samples();
std::span<const OpSamples> array_samples();
std::span<const OpSamples> repeat_samples();
std::span<const OpSamples> slice_samples();
std::span<const OpSamples> pad_samples();
std::span<const OpSamples> join_samples();
std::span<const OpSamples> check_numerics_samples();
std::span<const OpSamples> diag_samples();
std::span<const OpSamples> space_to_batch_samples();
std::span<const OpSamples> index_samples();
std::span<const OpSamples> take_along_axis_samples();
std::span<const OpSamples> tensor_scatter_samples();
std::span<const OpSamples> partition_samples();
std::span<const OpSamples> sort_samples();
std::span<const OpSamples> segment_samples();
std::span<const OpSamples> unsorted_segment_samples();
std::span<const OpSamples> matmul_samples();
std::span<const OpSamples> cross_samples();
std::span<const OpSamples> einsum_samples();
std::span<const OpSamples> solve_samples();
std::span<const OpSamples> decompositions_samples();
std::span<const OpSamples> eig_samples();
std::span<const OpSamples> matrix_functions_samples();
std::span<const OpSamples> banded_samples();
std::span<const OpSamples> activations_samples();
std::span<const OpSamples> softmax_samples();
std::span<const OpSamples> losses_samples();
std::span<const OpSamples> nn_samples();
std::span<const OpSamples> normalization_samples();
std::span<const OpSamples> conv_samples();
std::span<const OpSamples> depthwise_samples();
std::span<const OpSamples> pool_samples();
std::span<const OpSamples> patches_samples();
std::span<const OpSamples> rnn_samples();
std::span<const OpSamples> attention_samples();
std::span<const OpSamples> resize_samples();
std::span<const OpSamples> crop_samples();
std::span<const OpSamples> color_space_samples();
std::span<const OpSamples> quantize_samples();
std::span<const OpSamples> fft_samples();
std::span<const OpSamples> random_samples();
std::span<const OpSamples> distributions_samples();

std::span<const SampleFamily> sample_families() {
  static const SampleFamily families[] = {
      {"math", math_samples()},
      {"rounding", rounding_samples()},
      {"elementary", elementary_samples()},
      {"special", special_samples()},
      {"bessel", bessel_samples()},
      {"integrals", integrals_samples()},
      {"compare", compare_samples()},
      {"complex", complex_samples()},
      {"reduce", reduce_samples()},
      {"statistics", statistics_samples()},
      {"scan", scan_samples()},
      {"array", array_samples()},
      {"repeat", repeat_samples()},
      {"slice", slice_samples()},
      {"pad", pad_samples()},
      {"join", join_samples()},
      {"check_numerics", check_numerics_samples()},
      {"diag", diag_samples()},
      {"space_to_batch", space_to_batch_samples()},
      {"index", index_samples()},
      {"take_along_axis", take_along_axis_samples()},
      {"tensor_scatter", tensor_scatter_samples()},
      {"partition", partition_samples()},
      {"sort", sort_samples()},
      {"segment", segment_samples()},
      {"unsorted_segment", unsorted_segment_samples()},
      {"matmul", matmul_samples()},
      {"cross", cross_samples()},
      {"einsum", einsum_samples()},
      {"solve", solve_samples()},
      {"decompositions", decompositions_samples()},
      {"eig", eig_samples()},
      {"matrix_functions", matrix_functions_samples()},
      {"banded", banded_samples()},
      {"activations", activations_samples()},
      {"softmax", softmax_samples()},
      {"losses", losses_samples()},
      {"nn", nn_samples()},
      {"normalization", normalization_samples()},
      {"conv", conv_samples()},
      {"depthwise", depthwise_samples()},
      {"pool", pool_samples()},
      {"patches", patches_samples()},
      {"rnn", rnn_samples()},
      {"attention", attention_samples()},
      {"resize", resize_samples()},
      {"crop", crop_samples()},
      {"color_space", color_space_samples()},
      {"quantize", quantize_samples()},
      {"fft", fft_samples()},
      {"random", random_samples()},
      {"distributions", distributions_samples()},
  };
  return families;
}

const OpSamples& entry_of(const Op& op) {
  static const auto entries = [] {
    std::map<std::string_view, const OpSamples*> all;
    for (const SampleFamily& family : sample_families())
      for (const OpSamples& entry : family.ops)
        all.emplace(entry.op, &entry);
    return all;
  }();
  const auto found = entries.find(op.name);
  if (found == entries.end()) throw std::out_of_range("no samples of " + std::string(op.name));
  return *found->second;
}

}   // namespace tapedeck::test
