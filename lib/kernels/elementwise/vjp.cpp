// The code around the loops of fused vjps and of users' maps: dtypes, shapes, rows, tails, and sums over
// broadcast axes in a fixed order.
#include "kernels/elementwise/vjp.h"

#include <cstring>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "kernels/elementwise/grid.h"
#include "kernels/elementwise/half_row.h"
#include "kernels/elementwise/lines.h"
#include "kernels/elementwise/short_rows.h"

namespace tapedeck::kernels {
namespace {

template <class T> constexpr bool kIsHalf = std::is_same_v<T, Half>;

// Placeholder for operands that no wanted result reads, which need no data.
template <class T> alignas(64) constexpr T kNothing[kGroup<T>] = {};

template <class T> void add_up(const T* copies, std::int64_t count, T* y, std::int64_t n) {
  parallel_for(n, cut_of(kElementwise, count), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = 0; c < count; ++c)
      for (std::int64_t j = begin; j < end; ++j)
        y[j] += copies[c * n + j];
  });
}

template <class T, int I, int O, class Loop> class PassLoop {
 public:
  PassLoop(const Loop& loop, const PassTensors& tensors)
      : loop_(loop), t_(tensors), lines_(tensors.shape, tensors.shifts, tensors.operands) {}

  void run() {
    for (; direction_ < t_.directions; ++direction_)
      run_direction();
  }

 private:
  using Given = PassRow<T, I, O>;

  bool reads(int i) const { return t_.read >> i & 1; }
  // The operands for which the last elements of a row can be read as a whole group in place, since more rows
  // or padding follow. Excludes tensors whose elements are in their handle, and operands that share memory
  // with a result if another thread may be writing the next row.
  unsigned find_readable() const {
    unsigned readable = 0;
    for (int i = 0; i < t_.operands; ++i) {
      if (!reads(i) || !t_.x[i]->handle()->buffer) continue;
      const auto written = [&](const Tensor& y) { return y.defined() && y.raw() == t_.x[i]->raw(); };
      if (is_few(t_.n) || std::none_of(t_.out, t_.out + t_.results, written)) readable |= 1u << i;
    }
    return readable;
  }
  const T* operand(int i) const { return elements<T>(*t_.x[i]) + (i < t_.inputs ? 0 : direction_ * t_.n); }
  // The elements of result k in one direction.
  std::int64_t size_of_result(int k) const { return t_.out[k].size() / t_.directions; }
  std::int64_t shift_of_result(int k) const { return t_.gradients ? lines_.by(k) : 0; }

  void run_direction() {
    bool flat = true, sums = false;
    for (int i = 0; i < t_.inputs; ++i)
      flat &= t_.x[i]->size() == t_.n || t_.x[i]->size() == 1;
    for (int k = 0; k < t_.results; ++k)
      if (t_.out[k].defined()) sums |= prepare(k);
    if (t_.n == 0) return;
    for (int i = 0; i < t_.operands; ++i)
      row_.x[i] = {kNothing<T>, 0};
    if (!flat) return run_rows();
    for (int i = 0; i < t_.operands; ++i)
      if (reads(i)) row_.set(i, operand(i), i >= t_.inputs || t_.x[i]->size() == t_.n);
    if constexpr (!kIsHalf<T>)
      if (sums) return sum_flat();
    run_flat();
  }

  // Sets the destination of result k, and clears it if it is a sum. Returns whether it is a sum.
  bool prepare(int k) {
    const std::int64_t size = size_of_result(k);
    const bool all = size == t_.n;
    T* out = all_.out[k] = reinterpret_cast<T*>(t_.out[k].raw()) + direction_ * size;
    all_.put[k] = !all ? Put::sum : t_.adds >> k & 1 ? Put::add : Put::store;
    if (!all)
      std::memset(static_cast<void*>(out), 0, static_cast<std::size_t>(size) * sizeof(T));
    else if (all_.put[k] == Put::store && shift_of_result(k))
      clear_unread(k, out);
    return !all;
  }
  // The gradient of a shifted operand is 0 for elements that were never read.
  void clear_unread(int k, T* out) const {
    const auto [begin, end] = lines_.unread(k);
    for (T* line = out; line < out + t_.n; line += lines_.length())
      std::fill(line + begin, line + end, T{});
  }

  // Runs a row of n elements, the first of which is at `position` in its line: whole groups in place, the
  // rest through buffers. Not inline, since four loops over rows call it.
  [[gnu::noinline]] void run_row(Given& pass, const Row<T, I>& row, std::int64_t position,
                                 std::int64_t n) const {
    if constexpr (kIsHalf<T>) {   // the loop over halves accepts any n
      go(pass, row, n);
    } else if (lines_.moved()) {
      const auto edge = [&](std::int64_t begin, std::int64_t end, std::int64_t at) {
        for (std::int64_t i = begin; i < end; i += kGroup<T>)
          run_buffered(pass, row, i, std::min(end, i + kGroup<T>), at + i - begin);
      };
      const auto inner = [&](std::int64_t begin, std::int64_t end, std::int64_t at) {
        const std::int64_t main = whole<T>(end - begin);
        go_moved(pass, row, begin, main);
        edge(begin + main, end, at + main);
      };
      lines_.each(position, n, inner, edge);
    } else {
      const std::int64_t main = whole<T>(n);
      go(pass, row, main);
      if (main != n) run_buffered(pass, row, main, n, 0);
    }
  }
  void go(Given& pass, const Row<T, I>& row, std::int64_t n) const {
    std::copy(row.x, row.x + t_.operands, pass.x);
    pass.n = n;
    loop_(pass);
  }
  // Runs n elements from `begin` on, with shifted operands.
  [[gnu::noinline]] void go_moved(const Given& pass, const Row<T, I>& row, std::int64_t begin,
                                  std::int64_t n) const {
    if (n == 0) return;
    Given moved = pass;
    for (int i = 0; i < t_.operands; ++i)
      moved.x[i] = {row.x[i].p + ((begin - lines_.by(i)) & row.x[i].mask), row.x[i].mask};
    for (int k = 0; k < t_.results; ++k)
      if (pass.put[k] == Put::store || pass.put[k] == Put::add) moved.out[k] += begin - shift_of_result(k);
    moved.n = n;
    loop_(moved);
  }

  // Runs elements [begin, end), at most a group, through buffers: part of the group may be beyond the end of
  // memory, or beyond the elements of a shifted operand.
  [[gnu::noinline]] void run_buffered(const Given& pass, const Row<T, I>& row, std::int64_t begin,
                                      std::int64_t end, std::int64_t position) const {
    Given buffered = pass;
    alignas(64) T in[I][kGroup<T>], out[O][kGroup<T>];
    for (int i = 0; i < t_.operands; ++i) {
      buffered.x[i] = row.x[i];
      if (readable_ >> i & 1) {
        buffered.x[i].p += begin & row.x[i].mask;
        continue;
      }
      if (!row.x[i].mask && !lines_.by(i)) continue;
      const auto [first, last] = lines_.inside(i, begin, end, position);
      std::fill_n(in[i], kGroup<T>, static_cast<T>(lines_.fill(i)));
      for (std::int64_t j = first; j < last; ++j)
        in[i][j - begin] = row.x[i].p[(j - lines_.by(i)) & row.x[i].mask];
      buffered.x[i] = {in[i], -1};
    }
    for (int k = 0; k < t_.results; ++k) {
      if (pass.put[k] == Put::nothing) continue;
      buffered.out[k] = out[k];
      buffered.put[k] = Put::store;
    }
    buffered.n = kGroup<T>;
    loop_(buffered);
    for (int k = 0; k < t_.results; ++k) {
      if (pass.put[k] == Put::nothing) continue;
      const auto [first, last] =
          t_.gradients ? lines_.inside(k, begin, end, position) : std::pair(begin, end);
      put_back(pass.put[k], pass.out[k], first - shift_of_result(k), out[k] + (first - begin), last - first);
    }
  }
  static void put_back(Put how, T* out, std::int64_t at, const T* from, std::int64_t n) {
    if (how == Put::store) std::copy(from, from + n, out + at);
    if (how == Put::add)
      for (std::int64_t j = 0; j < n; ++j)
        out[at + j] += from[j];
    if (how == Put::sum)
      for (std::int64_t j = 0; j < n; ++j)
        *out += from[j];
  }

  // Advances a flat pass to element `begin`.
  void advance(Given& pass, Row<T, I>& row, std::int64_t begin) const {
    std::copy(row_.x, row_.x + t_.operands, row.x);
    for (int i = 0; i < t_.operands; ++i)
      row.x[i].p += begin & row.x[i].mask;
    for (int k = 0; k < t_.results; ++k)
      if (pass.put[k] == Put::store || pass.put[k] == Put::add) pass.out[k] += begin;
  }

  void run_flat() const {
    const bool exact = kIsHalf<T> || lines_.moved() || t_.directions > 1;
    parallel_for(exact ? t_.n : padded<T>(t_.n), kElementwise, [&](std::int64_t begin, std::int64_t end) {
      Given pass = all_;
      Row<T, I> part;
      advance(pass, part, begin);
      run_row(pass, part, lines_.position(begin), end - begin);
    });
  }

  // Sums the gradients of single elements: one sum per piece of kSumPiece elements, then pairwise, so that
  // errors grow with log n.
  void sum_flat() const {
    constexpr std::int64_t piece = kSumPiece;
    const std::int64_t n = t_.n, pieces = (n + piece - 1) / piece;
    std::vector<T> sums(static_cast<std::size_t>(pieces * t_.results));
    parallel_for(pieces, cut_of(kElementwise, piece), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t j = first; j < last; ++j) {
        Given pass = all_;
        Row<T, I> part;
        advance(pass, part, j * piece);
        for (int k = 0; k < t_.results; ++k)
          if (pass.put[k] == Put::sum) pass.out[k] = &sums[static_cast<std::size_t>(k * pieces + j)];
        run_row(pass, part, lines_.position(j * piece), std::min(piece, n - j * piece));
      }
    });
    for (int k = 0; k < t_.results; ++k)
      if (all_.put[k] == Put::sum)
        *all_.out[k] = sum_pairwise(&sums[static_cast<std::size_t>(k * pieces)], pieces);
  }

  void run_rows() {
    if (!lines_.moved()) readable_ = find_readable();
    const Shape* shapes[I];
    for (int i = 0; i < t_.inputs; ++i)
      shapes[i] = &t_.x[i]->shape();
    const Rows rows = rows_of(t_.shape, {shapes, static_cast<std::size_t>(t_.inputs)});
    const int gradients = t_.gradients ? t_.results : 0;
    for (int i = 0; i < gradients; ++i)
      if (all_.put[i] == Put::sum && rows.moves[static_cast<std::size_t>(i)]) all_.put[i] = Put::add;
    std::int64_t sizes[O] = {};
    bool sums = false;
    for (int i = 0; i < gradients; ++i)
      if (t_.out[i].defined()) {
        sizes[i] = size_of_result(i);
        sums |= sizes[i] != t_.n;
      }
    if (!sums && !lines_.moved() && are_short(rows)) return run_short_rows(rows);
    const Grid grid(rows, all_.put, gradients, sizes);
    std::vector<T> copies[O];
    for (int i = 0; i < gradients; ++i)
      if (grid.copies(i) > 1) copies[i].resize(static_cast<std::size_t>(grid.copies(i) * sizes[i]));
    const auto run_piece = [&](std::int64_t piece) {
      Given pass = all_;
      Row<T, I> row;
      T* first[O];
      for (int k = 0; k < t_.results; ++k)
        first[k] = copies[k].empty() ? all_.out[k] : copies[k].data() + grid.copy_of(k, piece) * sizes[k];
      std::copy(row_.x, row_.x + t_.operands, row.x);
      grid.each(
          rows, piece, [&](std::int64_t r, const Offsets& offset, std::int64_t begin, std::int64_t end) {
            const std::int64_t here = r * rows.inner + begin;
            for (int i = 0; i < t_.operands; ++i) {
              const bool input = i < t_.inputs, moves = !input || rows.moves[static_cast<std::size_t>(i)];
              const std::int64_t at =
                  input ? offset[static_cast<std::size_t>(i)] + (moves ? begin : 0) : here;
              if (reads(i)) row.set(i, operand(i) + at, moves);
              if (i < gradients && first[i]) pass.out[i] = first[i] + (sizes[i] == t_.n ? here : at);
            }
            if (!t_.gradients)
              for (int k = 0; k < t_.results; ++k)
                if (first[k]) pass.out[k] = first[k] + here;
            run_row(pass, row, lines_.position(begin), end - begin);
          });
    };
    parallel_for(grid.pieces(), is_few(t_.n) ? grid.pieces() : 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t piece = begin; piece < end; ++piece)
        run_piece(piece);
    });
    if constexpr (!kIsHalf<T>)
      for (int i = 0; i < gradients; ++i)
        if (!copies[i].empty()) add_up(copies[i].data(), grid.copies(i), all_.out[i], sizes[i]);
  }

  // Runs short rows in blocks. Precondition: no result is a sum.
  void run_short_rows(const Rows& rows) const {
    const auto begin_of = [&](int i) { return reads(i) ? operand(i) : nullptr; };
    ShortRows<T, I>(rows).each(begin_of, [&](Row<T, I>& row, std::int64_t first, std::int64_t n) {
      Given pass = all_;
      for (int i = 0; i < t_.operands; ++i)
        if (!reads(i))
          row.x[i] = row_.x[i];
        else if (i >= t_.inputs)
          row.set(i, operand(i) + first, true);
      for (int k = 0; k < t_.results; ++k)
        if (pass.put[k] != Put::nothing) pass.out[k] += first;
      run_row(pass, row, 0, n);
    });
  }

  Loop loop_;
  const PassTensors& t_;
  const Lines lines_;
  unsigned readable_ = 0;   // bit i: operand i is readable
  std::int64_t direction_ = 0;
  Given all_{};
  Row<T, I> row_;
};

template <class T, int I, int O, class Loop> void run(const Loop& loop, const PassTensors& tensors) {
  PassLoop<T, I, O, Loop>(loop, tensors).run();
}

// Whether all operands have one shape, with too few elements for a second thread: the pass is then one row of
// whole groups.
bool is_one_row(const PassTensors& t) {
  bool one = t.n > 0 && is_few(t.n);
  for (int i = 0; i < t.inputs; ++i)
    one &= t.x[i]->size() == t.n;
  return one;
}
template <class T, class Loop> void run_one_row(const Loop& loop, const PassTensors& t) {
  VjpRow<T> row;
  for (int i = 0; i < t.operands; ++i) {
    const bool read = t.read >> i & 1;
    row.x[i] = {read ? elements<T>(*t.x[i]) : kNothing<T>, read ? -1 : 0};
  }
  for (int k = 0; k < t.results; ++k) {
    row.out[k] = reinterpret_cast<T*>(t.out[k].defined() ? t.out[k].raw() : nullptr);
    row.put[k] = !row.out[k] ? Put::nothing : t.adds >> k & 1 ? Put::add : Put::store;
  }
  row.n = padded_few<T>(t.n);
  loop(row);
}
template <class T, class Loop> void run_loop(const Loop& loop, const PassTensors& t) {
  if (is_one_row(t))
    run_one_row<T>(loop, t);
  else
    run<T, kFusedInputs + 2, kFusedInputs>(loop, t);
}

// A user's loop with the captures of the user's function.
template <class T> struct Closure {
  UserLoop<T> loop;
  const void* f;
  void operator()(const UserRow<T>& row) const { loop(f, row); }
};

// Runs a pass over halves on copies in f32: for gradients that are sums, and for users' loops.
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
  PassTensors single = t;
  single.dtype = DType::f32;
  single.x = x.data();
  single.out = out.data();
  run(single);
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

template <class T> void collect(const VjpRow<T>& row, std::size_t k, const T* block, T factor,
                                std::int64_t begin, std::int64_t end, Batch<T>* sums) {
  constexpr std::int64_t w = kWidth<T>, step = 4 * w;
  const Batch<T> all(factor);
  const std::int64_t n = end - begin;
  T* const out = row.out[k] + begin;
  const auto at = [&](std::int64_t i) { return Batch<T>::load_unaligned(block + i) * all; };
  switch (row.put[k]) {
    case Put::nothing:
      return;
    case Put::store:
      for (std::int64_t i = 0; i < n; i += w)
        at(i).store_unaligned(out + i);
      return;
    case Put::add:
      for (std::int64_t i = 0; i < n; i += w)
        (Batch<T>::load_unaligned(out + i) + at(i)).store_unaligned(out + i);
      return;
    case Put::sum:
      Batch<T> s[4];
      for (int j = 0; j < 4; ++j)
        s[j] = begin == 0 ? Batch<T>(T(0)) : sums[j];
      std::int64_t i = 0;
      for (; i + step <= n; i += step)
        for (int j = 0; j < 4; ++j)
          s[j] += at(i + j * w);
      for (int j = 0; i < n; i += w, ++j)
        s[j] += at(i);
      std::copy_n(s, 4, sums);
      return;
  }
}
template void collect(const VjpRow<float>&, std::size_t, const float*, float, std::int64_t, std::int64_t,
                      Batch<float>*);
template void collect(const VjpRow<double>&, std::size_t, const double*, double, std::int64_t, std::int64_t,
                      Batch<double>*);

bool has_short_rows(const Shape& y, Refs x) {
  if (y.size() == 0) return false;   // the strides of an empty tensor may overflow
  const Shape* shapes[kMaxBroadcast];
  for (int i = 0; i < x.size(); ++i)
    shapes[i] = &x[i].shape();
  return are_within(rows_of(y, {shapes, static_cast<std::size_t>(x.size())}), kShortRow);
}

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
    run_loop<float>(k.f32, tensors);
  else if (dy.dtype() == DType::f64)
    run_loop<double>(k.f64, tensors);
  else if (sums(tensors))
    run_on_copies(tensors, [&](const PassTensors& t) { run<float, I, O>(k.f32, t); });
  else
    run_loop<Half>(HalfPassLoop<I, O>{dy.dtype(), k.f32, n + 2, n}, tensors);
}

void run_pass(const UserLoops& loops, const void* f, const PassTensors& tensors) {
  const auto run_single = [&](const PassTensors& t) {
    run<float, 2 * kMapInputs, kMapInputs>(Closure<float>{loops.f32, f}, t);
  };
  if (tensors.dtype == DType::f32)
    run_single(tensors);
  else if (tensors.dtype == DType::f64)
    run<double, 2 * kMapInputs, kMapInputs>(Closure<double>{loops.f64, f}, tensors);
  else
    run_on_copies(tensors, run_single);
}

}   // namespace tapedeck::kernels
