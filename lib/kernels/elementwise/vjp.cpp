// What surrounds the loops of fused vjps, and those of users' maps: dtypes, shapes, rows, tails, and sums
// over broadcast axes in a fixed order.
#include "kernels/elementwise/vjp.h"

#include <cstring>

#include "core/parallel.h"
#include "core/storage.h"
#include "kernels/elementwise/grid.h"
#include "kernels/elementwise/half_row.h"

namespace tapedeck::kernels {
namespace {

template <class T> constexpr bool kIsHalf = std::is_same_v<T, Half>;

// What a pass reads only for gradients that nobody wants need not be there.
template <class T> alignas(64) constexpr T kNothing[kGroup<T>] = {};

template <class T> void add_up(const T* copies, std::int64_t count, T* y, std::int64_t n) {
  parallel_for(n, cut_of(kElementwise, count), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = 0; c < count; ++c)
      for (std::int64_t j = begin; j < end; ++j)
        y[j] += copies[c * n + j];
  });
}

template <class T, int I, int O, class Loop> class Pass {
 public:
  Pass(const Loop& loop, const PassTensors& tensors) : loop_(loop), t_(tensors) {}

  void run() {
    bool flat = true, sums = false;
    for (int i = 0; i < t_.inputs; ++i)
      flat &= t_.x[i]->size() == t_.n || t_.x[i]->size() == 1;
    for (int k = 0; k < t_.results; ++k) {
      const Tensor& out = t_.out[k];
      if (!out.defined()) continue;
      const bool all = !t_.gradients || t_.x[k]->size() == t_.n;
      all_.out[k] = reinterpret_cast<T*>(out.raw());
      all_.put[k] = !all ? Put::sum : t_.adds >> k & 1 ? Put::add : Put::store;
      if (all) continue;
      sums = true;
      std::memset(out.raw(), 0, static_cast<std::size_t>(out.nbytes()));
    }
    if (t_.n == 0) return;
    for (int i = 0; i < t_.operands; ++i)
      row_.x[i] = {kNothing<T>, 0};
    if (!flat) return run_rows();
    for (int i = 0; i < t_.operands; ++i)
      if (reads(i)) row_.set(i, elements<T>(*t_.x[i]), i >= t_.inputs || t_.x[i]->size() == t_.n);
    if constexpr (!kIsHalf<T>)
      if (sums) return sum_flat();
    run_flat();
  }

 private:
  using Given = PassRow<T, I, O>;

  bool reads(int i) const { return t_.read >> i & 1; }

  // The groups up to n, then what is left of the row through buffers.
  void run_row(Given& pass, Row<T, I>& row, std::int64_t n) const {
    if constexpr (kIsHalf<T>) {   // whose loop takes any n
      go(pass, row, n);
    } else {
      const std::int64_t main = whole<T>(n);
      go(pass, row, main);
      if (main != n) run_tail(pass, row, main, n);
    }
  }
  void go(Given& pass, const Row<T, I>& row, std::int64_t n) const {
    std::copy(row.x, row.x + t_.operands, pass.x);
    pass.n = n;
    loop_(pass);
  }
  void run_tail(Given& pass, Row<T, I>& row, std::int64_t main, std::int64_t n) const {
    const std::int64_t left = n - main;
    const Given before = pass;
    alignas(64) T last[O][kGroup<T>];
    for (int k = 0; k < t_.results; ++k) {
      if (pass.put[k] == Put::nothing) continue;
      pass.out[k] = last[k];
      pass.put[k] = Put::store;
    }
    row.cut(main, n);
    go(pass, row, kGroup<T>);
    for (int k = 0; k < t_.results; ++k) {
      T* out = before.out[k];
      if (before.put[k] == Put::store) std::copy(last[k], last[k] + left, out + main);
      if (before.put[k] == Put::add)
        for (std::int64_t j = 0; j < left; ++j)
          out[main + j] += last[k][j];
      if (before.put[k] == Put::sum)
        for (std::int64_t j = 0; j < left; ++j)
          *out += last[k][j];
    }
    pass = before;
  }

  // The part of a flat pass that starts at `begin`.
  void advance(Given& pass, Row<T, I>& row, std::int64_t begin) const {
    for (Stream<T>& s : row.x)
      if (s.p) s.p += begin & s.mask;
    for (int k = 0; k < t_.results; ++k)
      if (pass.put[k] == Put::store || pass.put[k] == Put::add) pass.out[k] += begin;
  }

  void run_flat() const {
    parallel_for(kIsHalf<T> ? t_.n : padded<T>(t_.n), kElementwise,
                 [&](std::int64_t begin, std::int64_t end) {
                   Given pass = all_;
                   Row<T, I> part = row_;
                   advance(pass, part, begin);
                   run_row(pass, part, end - begin);
                 });
  }

  // Gradients of single elements: one sum for each short piece, then these in a tree, so that errors grow
  // with log n.
  void sum_flat() const {
    constexpr std::int64_t piece = kSumPiece;
    const std::int64_t n = t_.n, pieces = (n + piece - 1) / piece;
    std::vector<T> sums(static_cast<std::size_t>(pieces * t_.results));
    parallel_for(pieces, cut_of(kElementwise, piece), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t j = first; j < last; ++j) {
        Given pass = all_;
        Row<T, I> part = row_;
        advance(pass, part, j * piece);
        for (int k = 0; k < t_.results; ++k)
          if (pass.put[k] == Put::sum) pass.out[k] = &sums[static_cast<std::size_t>(k * pieces + j)];
        run_row(pass, part, std::min(piece, n - j * piece));
      }
    });
    for (int k = 0; k < t_.results; ++k)
      if (all_.put[k] == Put::sum)
        *all_.out[k] = sum_pairwise(&sums[static_cast<std::size_t>(k * pieces)], pieces);
  }

  void run_rows() {
    const Shape* shapes[I];
    for (int i = 0; i < t_.inputs; ++i)
      shapes[i] = &t_.x[i]->shape();
    const Rows rows = rows_of(t_.shape, {shapes, static_cast<std::size_t>(t_.inputs)});
    const int gradients = t_.gradients ? t_.results : 0;
    for (int i = 0; i < gradients; ++i)
      if (all_.put[i] == Put::sum && rows.moves[static_cast<std::size_t>(i)]) all_.put[i] = Put::add;
    std::int64_t sizes[O] = {};
    for (int i = 0; i < gradients; ++i)
      if (t_.out[i].defined()) sizes[i] = t_.out[i].size();
    const Grid grid(rows, all_.put, gradients, sizes);
    std::vector<T> copies[O];
    for (int i = 0; i < gradients; ++i)
      if (grid.copies(i) > 1) copies[i].resize(static_cast<std::size_t>(grid.copies(i) * t_.out[i].size()));
    const auto run_piece = [&](std::int64_t piece) {
      Given pass = all_;
      Row<T, I> row;
      T* first[O];
      for (int k = 0; k < t_.results; ++k)
        first[k] =
            copies[k].empty() ? all_.out[k] : copies[k].data() + grid.copy_of(k, piece) * t_.out[k].size();
      std::copy(row_.x, row_.x + t_.operands, row.x);
      grid.each(
          rows, piece, [&](std::int64_t r, const Offsets& offset, std::int64_t begin, std::int64_t end) {
            const std::int64_t here = r * rows.inner + begin;
            for (int i = 0; i < t_.operands; ++i) {
              const bool input = i < t_.inputs, moves = !input || rows.moves[static_cast<std::size_t>(i)];
              const std::int64_t at =
                  input ? offset[static_cast<std::size_t>(i)] + (moves ? begin : 0) : here;
              if (reads(i)) row.set(i, elements<T>(*t_.x[i]) + at, moves);
              if (i < gradients && first[i]) pass.out[i] = first[i] + at;
            }
            if (!t_.gradients)
              for (int k = 0; k < t_.results; ++k)
                if (first[k]) pass.out[k] = first[k] + here;
            run_row(pass, row, end - begin);
          });
    };
    parallel_for(grid.pieces(), t_.n < kElementwise.least ? grid.pieces() : 1,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t piece = begin; piece < end; ++piece)
                     run_piece(piece);
                 });
    if constexpr (!kIsHalf<T>)
      for (int i = 0; i < gradients; ++i)
        if (!copies[i].empty()) add_up(copies[i].data(), grid.copies(i), all_.out[i], t_.out[i].size());
  }

  Loop loop_;
  const PassTensors& t_;
  Given all_{};
  Row<T, I> row_;
};

template <class T, int I, int O, class Loop> void run(const Loop& loop, const PassTensors& tensors) {
  Pass<T, I, O, Loop>(loop, tensors).run();
}

// A user's loop with what it closes over.
template <class T> struct Closure {
  UserLoop<T> loop;
  const void* f;
  void operator()(const UserRow<T>& row) const { loop(f, row); }
};

// The pass of halves in f32, on copies. For gradients of fewer elements, which are sums, and users' loops.
template <class Run> void run_on_copies(const PassTensors& t, Run run) {
  std::vector<Tensor> copies(static_cast<std::size_t>(t.operands)), out(static_cast<std::size_t>(t.results));
  std::vector<const Tensor*> x(t.x, t.x + t.operands);
  for (int i = 0; i < t.operands; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (t.read >> i & 1) x[at] = &(copies[at] = cast(*t.x[i], DType::f32));
  }
  for (int k = 0; k < t.results; ++k) {
    if (!t.out[k].defined()) continue;
    Tensor& y = out[static_cast<std::size_t>(k)];
    const Tensor* const same =
        std::find_if(t.out, t.out + k, [&](const Tensor& o) { return o.handle() == t.out[k].handle(); });
    if (same != t.out + k)
      y = out[static_cast<std::size_t>(same - t.out)];
    else
      y = t.adds >> k & 1 ? cast(t.out[k], DType::f32) : allocate({DType::f32, t.out[k].shape()});
  }
  run(PassTensors{DType::f32, t.shape, t.n, t.inputs, t.operands, t.results, t.gradients, t.read, x.data(),
                  out.data(), t.adds});
  for (int k = 0; k < t.results; ++k) {
    Tensor y = t.out[k];
    if (y.defined()) cast(out[static_cast<std::size_t>(k)], y);
  }
}
bool sums(const PassTensors& t) {
  bool any = false;
  for (int k = 0; k < t.results && t.gradients; ++k)
    any |= t.out[k].defined() && t.out[k].size() != t.n;
  return any;
}

}   // namespace

void run_vjp(const VjpKernel& k, const Tensor& dy, const Tensor* const* x, const Tensor* y, const Tensor* dx,
             unsigned adds) {
  constexpr int I = kFusedInputs + 2, O = kFusedInputs;
  const int n = k.inputs;
  const Tensor* operands[I];
  std::copy(x, x + n, operands);
  operands[n] = y;
  operands[n + 1] = &dy;
  unsigned read = 2u << n;
  for (int i = 0; i < n; ++i)
    if (dx[i].defined()) read |= k.reads[i];
  const PassTensors tensors{dy.dtype(), dy.shape(), dy.size(), n, n + 2, n, true, read, operands, dx, adds};
  if (dy.dtype() == DType::f32)
    run<float, I, O>(k.f32, tensors);
  else if (dy.dtype() == DType::f64)
    run<double, I, O>(k.f64, tensors);
  else if (sums(tensors))
    run_on_copies(tensors, [&](const PassTensors& t) { run<float, I, O>(k.f32, t); });
  else
    run<Half, I, O>(HalfPassLoop<I, O>{dy.dtype(), k.f32, n + 2, n}, tensors);
}

void run_pass(const UserLoops& loops, const void* f, const PassTensors& tensors) {
  const auto run_single = [&](const PassTensors& t) {
    run<float, kMapInputs + kMapResults, kMapInputs>(Closure<float>{loops.f32, f}, t);
  };
  if (tensors.dtype == DType::f32)
    run_single(tensors);
  else if (tensors.dtype == DType::f64)
    run<double, kMapInputs + kMapResults, kMapInputs>(Closure<double>{loops.f64, f}, tensors);
  else
    run_on_copies(tensors, run_single);
}

}   // namespace tapedeck::kernels
