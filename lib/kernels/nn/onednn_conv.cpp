// Convolutions by oneDNN, which compiles a kernel per geometry and expects filters in that kernel's own
// layout. A call is cut, by sizes alone, into pieces: whole images or bands (ranges) of their planes. The
// library's threads split the pieces; each piece is a convolution on one OpenMP thread. The input gradient is
// the convolution of dy with reversed filters, for which oneDNN has better kernels. Geometries for which
// oneDNN was measured to be slower than the library's own kernels are declined.
#include "kernels/nn/onednn_conv.h"

#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <string>

#include <oneapi/dnnl/dnnl.hpp>

#include "core/fork.h"
#include "core/onednn.h"
#include "kernels/layout/scratch.h"
#include "kernels/linalg/one_openmp_thread.h"
#include "tapedeck/error.h"

namespace tapedeck::kernels::onednn {
namespace {

using dnnl::memory;

constexpr double kLeast = 1 << 19;               // least multiplications that are worth compiling a kernel
constexpr double kOnednnTask = 1 << 25;          // least multiplications per thread
constexpr std::int64_t kMostWeights = 1 << 20;   // filters are reordered in every call
constexpr std::int64_t kLeastOut = 16;           // least output channels: fewer leave vectors partly empty
constexpr std::int64_t kLeastOfGroup = 4;        // likewise, per group, for several groups
constexpr std::size_t kKept = 256;               // cached kernels
constexpr int kFirst = 64;                       // kernels that create all statics of oneDNN
constexpr std::int64_t kMostFloats = 1 << 29;    // of an operand: oneDNN supports less than 2^31 bytes

// An input gradient is also a convolution, with filters [rows, columns, out, in].
enum class ConvProduct : std::int64_t { forward, input_gradient, filter_gradient };

// Calls f and translates oneDNN's exceptions into the library's.
template <class F> decltype(auto) translated(const F& f) {
  try {
    return f();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) throw std::bad_alloc();
    throw InternalError(std::string("convolution: oneDNN failed: ") + e.what());
  }
}

// Never destroyed, since oneDNN's own statics may be destroyed first.
const dnnl::engine& processor() {
  [[gnu::used]] static const auto* const kept = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *kept;
}

std::int64_t reach(const WindowAxis& a) { return (a.size - 1) * a.dilation + 1; }
// The padding after the last position of the image that windows read, if any.
std::int64_t after(const WindowAxis& a) {
  return std::max<std::int64_t>(0, a.position(a.outputs - 1, a.size - 1) + 1 - a.extent);
}
/// The spatial axes: three, or two if planes have one row.
std::vector<WindowAxis> axes_of(const Window3d& w) {
  if (w.plane.rows == kOne) return {w.planes, w.plane.columns};
  return {w.planes, w.plane.rows, w.plane.columns};
}

/// A compiled kernel, and the reordering of filters into its layout or out of it.
class Kernel {
 public:
  // Throws dnnl::error if oneDNN has no such kernel.
  Kernel(ConvProduct product, const Conv& c) : sums_up_(product == ConvProduct::filter_gradient) {
    const bool grouped = c.groups > 1;
    const std::int64_t in = c.in / c.groups, out = c.out / c.groups;
    memory::dims x{c.images, c.in}, y{c.images, c.out}, strides, dilates, left, right;
    // Filters are [cells…, in, groups · out] or, transposed, [cells…, out, groups · in].
    memory::dims shape{out, in},
        steps = product == ConvProduct::input_gradient ? memory::dims{c.in, 1} : memory::dims{1, c.out};
    if (grouped)
      shape.insert(shape.begin(), c.groups),
          steps.insert(steps.begin(), product == ConvProduct::input_gradient ? in : out);
    std::int64_t step = c.weights();
    for (const WindowAxis& a : axes_of(c.window)) {
      x.push_back(a.extent), y.push_back(a.outputs), shape.push_back(a.size), steps.push_back(step /= a.size);
      strides.push_back(a.stride), dilates.push_back(a.dilation - 1), left.push_back(a.before),
          right.push_back(after(a));
    }
    const Tag channels_last = x.size() == 4 ? Tag::nhwc : Tag::ndhwc;
    plain_ = memory::desc(shape, memory::data_type::f32, steps);
    x_ = floats(x, channels_last);
    y_ = floats(y, channels_last);
    const memory::desc any = floats(shape, Tag::any);
    constexpr auto direct = dnnl::algorithm::convolution_direct;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);

    using Forward = dnnl::convolution_forward;
    using Gradient = dnnl::convolution_backward_weights;
    const Forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, direct, x_, any, y_, strides, dilates, left, right}, attributes,
        processor());
    if (!sums_up_) {
      take(forward, forward.weights_desc());
      primitive_ = Forward(forward);
    } else {
      const Gradient::primitive_desc gradient({direct, x_, any, y_, strides, dilates, left, right},
                                              attributes, processor(), forward);
      take(gradient, gradient.diff_weights_desc());
      primitive_ = Gradient(gradient);
    }
    reorder_ = sums_up_ ? dnnl::reorder({processor(), filters_, processor(), plain_})
                        : dnnl::reorder({processor(), plain_, processor(), filters_});
  }

  /// Whether it is a JIT kernel, not plain loops or a matrix product.
  bool is_good() const { return name_.starts_with("jit") || name_.starts_with("brg"); }

  /// Streams belong to one thread. Only the product is written.
  void run(dnnl::stream& stream, const float* x, const float* filters, const float* y) const {
    const Scratch<char> scratch = scratch_for<char>(static_cast<std::int64_t>(scratch_.get_size()));
    primitive_.execute(stream, {{DNNL_ARG_SRC, of(x_, x)},
                                {sums_up_ ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, of(filters_, filters)},
                                {sums_up_ ? DNNL_ARG_DIFF_DST : DNNL_ARG_DST, of(y_, y)},
                                {DNNL_ARG_SCRATCHPAD, of(scratch_, scratch.get())}});
    stream.wait();
  }

  bool has_order_of(const Kernel& other) const { return filters_ == other.filters_; }
  Scratch<float> scratch_for_filters() const {
    return scratch_for<float>(static_cast<std::int64_t>(filters_.get_size() / sizeof(float)));
  }
  /// Reorders filters into the kernel's layout or, for filter gradients, out of it.
  void reorder(dnnl::stream& stream, const float* from, float* to) const {
    reorder_.execute(stream, {{DNNL_ARG_FROM, of(sums_up_ ? filters_ : plain_, from)},
                              {DNNL_ARG_TO, of(sums_up_ ? plain_ : filters_, to)}});
    stream.wait();
  }

 private:
  using Tag = memory::format_tag;
  static memory::desc floats(const memory::dims& shape, Tag tag) {
    return {shape, memory::data_type::f32, tag};
  }
  static memory of(const memory::desc& d, const void* p) { return {d, processor(), const_cast<void*>(p)}; }
  template <class D> void take(const D& desc, const memory::desc& filters) {
    name_ = desc.impl_info_str(), filters_ = filters, scratch_ = desc.scratchpad_desc();
  }

  bool sums_up_;
  std::string name_;
  memory::desc x_, y_, filters_, plain_, scratch_;
  dnnl::primitive primitive_;
  dnnl::reorder reorder_;
};

// The first kFirst kernels create all statics of oneDNN.
void note_kernel() {
  static int noted = 0;   // guarded by rare_lock
  if (noted == kFirst) return;
  ++noted;
  OnednnCall::has_made_statics();
}

/// Returns null if oneDNN has no better kernel than the library. Kernels are stateless and cached for all
/// threads. oneDNN's own locks are taken only under rare_lock, so that a forked child finds them free.
std::shared_ptr<const Kernel> kernel_for(ConvProduct product, const Conv& c) {
  using Numbers = std::array<std::int64_t, sizeof(Conv) / sizeof(std::int64_t)>;
  using Key = std::pair<ConvProduct, Numbers>;
  const Key key(product, std::bit_cast<Numbers>(c));
  const std::lock_guard lock(rare_lock);
  [[gnu::used]] static auto* const kept = new std::map<Key, std::shared_ptr<const Kernel>>;
  if (const auto found = kept->find(key); found != kept->end()) return found->second;
  std::shared_ptr<const Kernel> kernel;
  try {
    kernel = std::make_shared<const Kernel>(product, c);
    if (!kernel->is_good()) kernel = nullptr;
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) throw;
  }
  note_kernel();
  if (kept->size() == kKept) kept->clear();
  return (*kept)[key] = kernel;
}

/// Whether to ask oneDNN for a kernel of this geometry.
bool is_wanted(const Conv& c) {
  const auto few_zeros = [](const WindowAxis& a) {
    return std::max(a.before, after(a)) < reach(a);   // no window lies entirely in the padding
  };
  const Window3d& w = c.window;
  return !onednn_version().empty() && c.work() >= kLeast &&
         c.out / c.groups >= (c.groups > 1 ? kLeastOfGroup : kLeastOut) && c.weights() <= kMostWeights &&
         few_zeros(w.planes) && few_zeros(w.plane.rows) && few_zeros(w.plane.columns);
}

/// A convolution that is part of another one, and the offsets of its x and y in that one's.
struct Piece {
  Conv c;
  std::int64_t x, y;
};

/// The pieces of a call, with their kernels; only a few pieces differ.
class Pieces {
 public:
  /// Each piece has about `task` multiplications.
  Pieces(ConvProduct product, const Conv& c, double task)
      : c_(c), tasks_(outputs_as_planes(), c.images, c.work() / static_cast<double>(c.images), task) {
    if (!is_wanted(c)) return;
    const OneOpenmpThread guard;
    for (std::int64_t i = 0; i < count(); ++i) {
      const Piece p = (*this)[i];
      if (find(p.c)) continue;
      if (p.c.images * std::max(p.c.window.pixels() * c.in, p.c.window.outputs() * c.out) > kMostFloats)
        return;
      kernels_.push_back({p.c, kernel_for(product, p.c), nullptr, nullptr});
      if (!kernels_.back().kernel) return;
    }
    good_ = true;
  }

  /// Whether every piece has a good kernel.
  explicit operator bool() const { return good_; }
  std::int64_t count() const { return tasks_.count(); }

  /// Reorders the filters. Call once, before run.
  void set_filters(const float* filters) {
    const OneOpenmpThread guard;
    dnnl::stream stream(processor());
    for (One& one : kernels_) {
      for (const One& other : kernels_)
        if (other.filters && one.kernel->has_order_of(*other.kernel)) one.filters = other.filters;
      if (one.filters) continue;
      one.scratch = one.kernel->scratch_for_filters();
      one.kernel->reorder(stream, filters, one.scratch.get());
      one.filters = one.scratch.get();
    }
  }
  /// Calls f(index, piece, kernel, reordered filters, stream) for each piece, in parallel.
  template <class F> void run(const F& f) const {
    parallel_for(count(), 1, [&](std::int64_t begin, std::int64_t end) {
      const OneOpenmpThread guard;
      dnnl::stream stream(processor());
      for (std::int64_t i = begin; i < end; ++i) {
        const Piece p = (*this)[i];
        const One& one = *find(p.c);
        f(i, p, *one.kernel, one.filters, stream);
      }
    });
  }

 private:
  struct One {
    Conv c;
    std::shared_ptr<const Kernel> kernel;
    Scratch<float> scratch;
    const float* filters;
  };

  WindowAxis outputs_as_planes() const {
    WindowAxis planes = c_.window.planes;
    planes.extent = planes.outputs;
    return planes;
  }
  Piece operator[](std::int64_t i) const {
    const RowTasks::Task t = tasks_[i];
    const Window3d& w = c_.window;
    const WindowAxis& all = w.planes;
    Piece p{c_, t.image_begin * w.pixels() * c_.in, t.image_begin * w.outputs() * c_.out};
    p.c.images = t.image_end - t.image_begin;
    if (t.row_end - t.row_begin == all.outputs) return p;
    const std::int64_t begin = std::max<std::int64_t>(0, all.position(t.row_begin, 0)),
                       end = std::min(all.extent, all.position(t.row_end - 1, all.size - 1) + 1);
    WindowAxis& planes = p.c.window.planes;
    planes.extent = end - begin, planes.outputs = t.row_end - t.row_begin,
    planes.before = begin - all.position(t.row_begin, 0);
    p.x += begin * w.plane.pixels() * c_.in, p.y += t.row_begin * w.plane.outputs() * c_.out;
    return p;
  }
  const One* find(const Conv& c) const {
    for (const One& one : kernels_)
      if (one.c == c) return &one;
    return nullptr;
  }

  const Conv& c_;
  RowTasks tasks_;
  std::vector<One> kernels_;
  bool good_ = false;
};

bool convolve(ConvProduct product, const Conv& c, const float* x, const float* filters, float* y) {
  return translated([&] {
    const OnednnCall call;
    if (!call) return false;
    Pieces pieces(product, c, kOnednnTask);
    if (!pieces) return false;
    pieces.set_filters(filters);
    pieces.run([&](std::int64_t, const Piece& p, const Kernel& k, const float* ordered,
                   dnnl::stream& stream) { k.run(stream, x + p.x, ordered, y + p.y); });
    return true;
  });
}

}   // namespace

bool conv(const Conv& c, const float* x, const float* filters, float* y) {
  return convolve(ConvProduct::forward, c, x, filters, y);
}

bool conv_input_gradient(const Conv& c, const float* dy, const float* filters, float* dx) {
  if (!c.window.has_strides_of_one()) return false;
  const Conv back{c.window.transposed(), c.images, c.out, c.in, c.groups};
  if (!is_wanted(c) || !is_wanted(back)) return false;
  const std::int64_t cells = c.window.cells(), n = c.weights() / cells;
  const Scratch<float> turned_filters = scratch_for<float>(cells * n);
  for (std::int64_t i = 0; i < cells; ++i)
    std::copy_n(filters + i * n, n, turned_filters.get() + (cells - 1 - i) * n);
  return convolve(ConvProduct::input_gradient, back, dy, turned_filters.get(), dx);
}

bool conv_filter_gradient(const Conv& c, const float* x, const float* dy, float* dfilters) {
  if (!c.window.has_strides_of_one()) return false;
  const std::int64_t n = c.weights();
  const std::int64_t most = std::clamp<std::int64_t>(
      kMaxPartialSumBytes / (n * static_cast<std::int64_t>(sizeof(float))), 1, kMaxPartialSums);
  return translated([&] {
    const OnednnCall call;
    if (!call) return false;
    // Partial sums cover several thousand outputs each, to pay for reordering the filter gradient.
    const double task =
        std::max({2 * kOnednnTask, 4096 * static_cast<double>(n), c.work() / static_cast<double>(most)});
    const Pieces pieces(ConvProduct::filter_gradient, c, task);
    if (!pieces) return false;
    const PartialSums<float> sums(pieces.count(), n, dfilters);
    pieces.run([&](std::int64_t i, const Piece& p, const Kernel& k, const float*, dnnl::stream& stream) {
      const Scratch<float> ordered = k.scratch_for_filters();
      k.run(stream, x + p.x, ordered.get(), dy + p.y);
      k.reorder(stream, ordered.get(), sums[i]);
    });
    sums.add_up();
    return true;
  });
}

}   // namespace tapedeck::kernels::onednn
