// In: attributes of any op. Out: their fields as JSON.
#include "ops/shown_attrs.h"

#include <type_traits>

#include "ops/elementwise/math.h"
#include "ops/elementwise/quantize.h"
#include "ops/image/crop.h"
#include "ops/image/resize.h"
#include "ops/layout/array.h"
#include "ops/layout/diag.h"
#include "ops/layout/index.h"
#include "ops/layout/join.h"
#include "ops/layout/partition.h"
#include "ops/layout/repeat.h"
#include "ops/layout/slice.h"
#include "ops/layout/space_to_batch.h"
#include "ops/layout/take_along_axis.h"
#include "ops/layout/tensor_scatter.h"
#include "ops/linalg/decompositions.h"
#include "ops/linalg/einsum.h"
#include "ops/linalg/fft.h"
#include "ops/nn/attention.h"
#include "ops/nn/nn.h"
#include "ops/nn/normalization.h"
#include "ops/nn/pool.h"
#include "ops/nn/rnn.h"
#include "ops/nn/softmax.h"
#include "ops/nn/window.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/reduce/segments.h"
#include "ops/reduce/statistics.h"
#include "ops/reduce/unsorted_segment.h"
#include "ops/sort/sort.h"
#include "ops/special/special.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using Json = nlohmann::json;

Json list(const Shape& s) { return std::vector<std::int64_t>(s.begin(), s.end()); }
Json axes(unsigned mask) {
  Json all = Json::array();
  for (int i = 0; mask >> i; ++i)
    if (mask >> i & 1) all.push_back(-1 - i);
  return all;
}

Json show(const OrderAttrs& a) { return Json::array({a.order}); }
Json show(const DerivativeAttrs& a) { return Json::array({static_cast<int>(a.f), a.order}); }
Json show(const ReduceAttrs& a) { return Json::array({axes(a.axes), a.keepdims}); }
Json show(const CountAttrs& a) { return Json::array({axes(a.axes), a.keepdims}); }
Json show(const RowsAttrs& a) { return Json::array({a.axis}); }
Json show(const ScanAttrs& a) { return Json::array({a.axis, a.exclusive, a.reverse}); }
Json show(const LogSumAttrs& a) { return Json::array({a.reverse}); }
Json show(const SortAttrs& a) { return Json::array({a.descending, a.axis, a.k}); }
Json show(const NthAttrs& a) { return Json::array({a.n, a.reverse}); }
Json show(const DivisorsAttrs& a) {
  return Json::array({a.count, a.axis, a.divisor == kernels::Divisor::root});
}
Json show(const CountOfPartsAttrs& a) { return Json::array({a.count}); }
Json show(const PlacesAttrs& a) { return Json::array({a.places}); }
Json show(const SegmentAttrs& a) { return Json::array({a.count, a.axis}); }
Json show(const ReshapeAttrs& a) { return Json::array({a.axes, list(a.shape)}); }
Json show(const MaskAttrs& a) { return Json::array({axes(a.mask)}); }
Json show(const TransposeAttrs& a) { return Json::array({std::vector<int>(a.all().begin(), a.all().end())}); }
Json show(const Shape& a) { return list(a); }
Json show(const TileAttrs& a) { return list(a.reps); }
Json show(const OneHotAttrs& a) { return Json::array({a.depth}); }
Json show(const RollAttrs& a) { return Json::array({a.axis, a.by}); }
Json show(const RepeatAttrs& a) { return Json::array({a.axis, a.count, a.counts}); }
Json show(const SequenceAttrs& a) { return Json::array({a.sequence, a.batch}); }
Json show(const SliceAttrs& a) { return Json::array({list(a.begin), list(a.size)}); }
Json show(const PadAttrs& a) { return Json::array({list(a.before), list(a.after), a.value}); }
Json show(const StridedAttrs& a) {
  return Json::array({list(a.whole), list(a.begin), list(a.size), list(a.stride), list(a.shape)});
}
Json show(const AxisAttrs& a) { return Json::array({a.axis}); }
Json show(const SplitAttrs& a) { return Json::array({a.axis, a.sizes}); }
Json show(const DiagonalAttrs& a) {
  return Json::array(
      {a.d.low, a.d.high, a.d.rows, a.d.columns, a.d.longest, a.d.left_above, a.d.left_below, a.padding});
}
Json show(const BandAttrs& a) { return Json::array({a.low, a.high}); }
Json show(const AxesAttrs& a) { return Json::array({a.axes}); }
Json show(const BlockAttrs& a) { return Json::array({a.ndim, list(a.block), list(a.before), list(a.after)}); }
Json show(const DepthAttrs& a) { return Json::array({a.block}); }
Json show(const GatherAttrs& a) { return Json::array({a.axis, a.batch}); }
Json show(const ScatterAttrs& a) { return Json::array({list(a.shape), a.axis, a.batch}); }
Json show(const GatherNdAttrs& a) { return Json::array({a.axes}); }
Json show(const ScatterNdAttrs& a) { return Json::array({list(a.shape)}); }
Json show(const TakeAttrs& a) { return Json::array({a.axis, a.axes}); }
Json show(const AddAttrs& a) { return Json::array({list(a.shape), a.axis}); }
Json show(const IntoAttrs& a) { return Json::array({a.axes}); }
Json show(const RowAttrs& a) { return Json::array({a.rest}); }
Json show(const PartAttrs& a) { return Json::array({a.rest, a.count}); }
Json show(const MatmulOptions& a) { return Json::array({a.transpose_a, a.transpose_b}); }
Json show(const SolveOptions& a) { return Json::array({a.transpose_a}); }
Json show(const TriangularSolveOptions& a) { return Json::array({a.lower, a.transpose_a}); }
Json show(const Full& a) { return Json::array({a.full}); }
Json show(const Cutoff& a) { return Json::array({a.rcond}); }
Json show(const Ridge& a) { return Json::array({a.l2}); }
Json show(const EinsumAttrs& a) { return Json::array({a.a, a.b, a.output}); }
Json show(const FftAttrs& a) { return Json::array({a.axes, a.inverse}); }
Json show(const RealFftAttrs& a) { return Json::array({a.axes, a.n}); }
Json show(const SoftmaxAttrs& a) { return Json::array({a.axis}); }
Json show(const DropoutAttrs& a) { return Json::array({a.rate}); }
Json show(const NormAttrs& a) { return Json::array({a.epsilon}); }
Json show(const LocalResponseNormalizationOptions& a) {
  return Json::array({a.radius, a.bias, a.alpha, a.beta});
}
Json show(const LstmAttrs& a) { return Json::array({a.forget_bias}); }
Json show(const AttentionAttrs& a) { return Json::array({a.heads, a.causal, a.scale}); }
Json show(const CtcAttrs& a) { return Json::array({a.blank}); }
Json show(const FakeQuantAttrs& a) {
  return Json::array({a.options.bits, a.options.narrow_range, a.min, a.max});
}
Json show(const QuantizeAttrs& a) {
  const QuantizeAndDequantizeOptions& o = a.options;
  return Json::array({o.is_signed, o.bits, o.narrow_range,
                      o.round == QuantizeAndDequantizeOptions::Round::half_up,
                      o.axis ? Json(*o.axis) : Json(), a.range_of_x});
}
/// Per axis: extent, size, stride, dilation, padding before, outputs; then the groups.
Json show(const WindowAttrs& a) {
  Json all = Json::array();
  const kernels::WindowAxis windows[] = {a.window.planes, a.window.plane.rows, a.window.plane.columns};
  for (int i = 3 - a.axes; i < 3; ++i) {
    const kernels::WindowAxis& w = windows[i];
    all.push_back({w.extent, w.size, w.stride, w.dilation, w.before, w.outputs});
  }
  return Json::array({all, a.groups});
}
/// The extent, and the first and last cell of each window.
Json show(const kernels::PoolAxis& a) {
  Json cells = Json::array();
  for (const kernels::PoolAxis::Cells& c : a.cells)
    cells.push_back({c.begin, c.end});
  return Json::array({a.extent, cells});
}
Json show(const PoolAttrs& a) {
  if (a.axes == 1) return Json::array({Json::array({show(a.pool->columns)}), a.through});
  return Json::array({Json::array({show(a.pool->rows), show(a.pool->columns)}), a.through});
}
Json show(const VolumeAttrs& a) {
  return Json::array(
      {Json::array({show(a.across.pool->rows), show(a.plane.pool->rows), show(a.plane.pool->columns)}),
       false});
}
/// The matrix of weights, and the axis.
Json show(const ResampleAttrs& a) {
  Json matrix = Json::array();
  for (std::int64_t o = 0; o < a.table->outputs(); ++o) {
    std::vector<double> row(static_cast<std::size_t>(a.table->inputs));
    for (std::int64_t k = a.table->begin[static_cast<std::size_t>(o)];
         k < a.table->begin[static_cast<std::size_t>(o) + 1]; ++k)
      row[static_cast<std::size_t>(a.table->position[static_cast<std::size_t>(k)])] +=
          a.table->weight[static_cast<std::size_t>(k)];
    matrix.push_back(row);
  }
  return Json::array({matrix, a.axis, a.table->inputs});
}
Json show(const ResizeAttrs& a) { return Json::array({show(a.rows), show(a.columns)}); }
Json show(const FrameAttrs& a) {
  return Json::array(
      {a.images, a.height, a.width, a.size.height, a.size.width, static_cast<int>(a.method), a.outside});
}

template <class... T> Json first_of(const Attrs& a) {
  Json found;
  ((a.type == &kAttrsType<T> ? void(found = show(*static_cast<const T*>(a.data))) : void()), ...);
  return found;
}

}   // namespace

Json shown(const Attrs& a) {
  return first_of<OrderAttrs, DerivativeAttrs, ReduceAttrs, CountAttrs, RowsAttrs, ScanAttrs, LogSumAttrs,
                  SortAttrs, NthAttrs, SegmentAttrs, ReshapeAttrs, MaskAttrs, TransposeAttrs, Shape,
                  TileAttrs, OneHotAttrs, RollAttrs, RepeatAttrs, SequenceAttrs, SliceAttrs, PadAttrs,
                  StridedAttrs, AxisAttrs, SplitAttrs, DiagonalAttrs, BandAttrs, AxesAttrs, BlockAttrs,
                  DepthAttrs, GatherAttrs, ScatterAttrs, GatherNdAttrs, ScatterNdAttrs, TakeAttrs, AddAttrs,
                  IntoAttrs, RowAttrs, PartAttrs, CountOfPartsAttrs, PlacesAttrs, DivisorsAttrs,
                  MatmulOptions, SolveOptions, TriangularSolveOptions, Full, Cutoff, Ridge, EinsumAttrs,
                  FftAttrs, RealFftAttrs, SoftmaxAttrs, DropoutAttrs, NormAttrs,
                  LocalResponseNormalizationOptions, LstmAttrs, AttentionAttrs, CtcAttrs, FakeQuantAttrs,
                  QuantizeAttrs, WindowAttrs, PoolAttrs, VolumeAttrs, ResampleAttrs, ResizeAttrs, FrameAttrs>(
      a);
}

}   // namespace tapedeck::test
