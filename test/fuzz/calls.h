// Random calls of the public functions: draws, spoils and prints arguments of each type, and calls functions
// with them.
#pragma once
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tapedeck/tapedeck.h"

namespace tapedeck::fuzz {

// The dtypes that a function accepts.
enum class Kind { floating, trainable, real, numeric, any, logical };

/// The source of random numbers of one call, and the dtype and shape that its arguments share.
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t number);

  std::uint64_t bits();
  int in(int low, int high) {
    return low + static_cast<int>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return in(1, 100) <= percent; }

  /// Chooses the dtype and the shape that the tensors of a call share: those of `like`, if there is one and
  /// its dtype suits.
  void begin(Kind kind);
  DType dtype = DType::f32;
  Shape shape;
  std::optional<Spec> like;
  bool tame = false;   // no extents, elements and dtypes beyond the ordinary

  std::int64_t extent();   // 0 to 5, seldom 0
  Shape extents(int min_rank, int max_rank);
  /// Shapes that broadcast to `shape`.
  Shape narrower();
  /// The shape x followed by these extents; ranks beyond 8 are truncated.
  static Shape behind(Shape x, std::initializer_list<std::int64_t> extents);
  /// x without its last n extents.
  static Shape front(const Shape& x, int n);

  /// A tensor of random elements, sometimes a row of a larger one.
  Tensor tensor(const Shape& of, DType type);
  Tensor tensor(const Shape& of) { return tensor(of, dtype); }
  Tensor indices(const Shape& of, std::int64_t count);   // 0 to count - 1, i32 or i64
  Tensor sorted_indices(std::int64_t n, std::int64_t count);
  Tensor truths(const Shape& of);

  std::int64_t absurd_integer();
  double absurd_number();

 private:
  double element(DType type);
  std::uint64_t state_;
};

/// An argument of elementwise functions: a tensor, a temporary one, or a number.
struct Operator {
  enum Use { tensor, temporary, number, integer };
  Use use = tensor;
  Tensor x;
  double value = 0;
  Tensor passed;

  Operand operand();
};

// How an argument is stored between drawing it and the call.
template <class T> struct StoredAs { using type = T; };
template <> struct StoredAs<Operand> { using type = Operator; };
template <> struct StoredAs<std::span<const Tensor>> { using type = std::vector<Tensor>; };
template <> struct StoredAs<Ints> { using type = Shape; };
template <> struct StoredAs<std::span<const std::int64_t>> { using type = std::vector<std::int64_t>; };
template <> struct StoredAs<std::span<const Slice>> { using type = std::vector<Slice>; };
template <> struct StoredAs<std::string_view> { using type = std::string; };
template <class A> using Stored = typename StoredAs<std::remove_cvref_t<A>>::type;

// The initial value of an ordinary argument, with values for options that have no default.
template <class T> T start() { return T{}; }
template <> inline PatchOptions start() { return {.window = 1}; }
template <> inline VolumePatchOptions start() { return {.window = 1}; }
template <> inline Pool1dOptions start() { return {.window = 1}; }
template <> inline Pool2dOptions start() { return {.window = 1}; }
template <> inline Pool3dOptions start() { return {.window = 1}; }
template <> inline FractionalPoolOptions start() { return {.height_ratio = 1, .width_ratio = 1}; }
template <> inline HeightWidth start() { return 1; }

// The members of structs of options.
#define TAPEDECK_MEMBERS(T, ...)                                         \
  template <class F> void members(T& o, F&& f) {                         \
    auto& [__VA_ARGS__] = o;                                             \
    std::apply([&](auto&... m) { (f(m), ...); }, std::tie(__VA_ARGS__)); \
  }
TAPEDECK_MEMBERS(HeightWidth, a, b)
TAPEDECK_MEMBERS(DepthHeightWidth, a, b, c)
TAPEDECK_MEMBERS(Padding, a, b, c, d, e)
TAPEDECK_MEMBERS(Padding3d, a, b, c)
TAPEDECK_MEMBERS(Conv1dOptions, a, b, c, d, e)
TAPEDECK_MEMBERS(Conv2dOptions, a, b, c, d, e)
TAPEDECK_MEMBERS(Conv3dOptions, a, b, c, d, e)
TAPEDECK_MEMBERS(Conv2dTransposeOptions, a, b, c, d, e, g)
TAPEDECK_MEMBERS(Conv3dTransposeOptions, a, b, c, d, e, g)
TAPEDECK_MEMBERS(CropOptions, a, b)
TAPEDECK_MEMBERS(ProjectiveOptions, a, b)
TAPEDECK_MEMBERS(LstsqOptions, a, b)
TAPEDECK_MEMBERS(Diagonals, a, b)
TAPEDECK_MEMBERS(MatrixDiagOptions, a, b, c, d)
TAPEDECK_MEMBERS(MatmulOptions, transpose_a, transpose_b)
TAPEDECK_MEMBERS(MaxPoolWithArgmaxOptions, a)
TAPEDECK_MEMBERS(NthElementOptions, a)
TAPEDECK_MEMBERS(QrOptions, a)
TAPEDECK_MEMBERS(ReduceOptions, a)
TAPEDECK_MEMBERS(SolveOptions, a)
TAPEDECK_MEMBERS(SortOptions, a)
TAPEDECK_MEMBERS(SvdOptions, a)
TAPEDECK_MEMBERS(TriangularSolveOptions, a, b)
TAPEDECK_MEMBERS(VarianceOptions, a, b)
TAPEDECK_MEMBERS(LocalResponseNormalizationOptions, a, b, c, d)
TAPEDECK_MEMBERS(DotProductOptions, a, b, c)
TAPEDECK_MEMBERS(PatchOptions, a, b, c, d)
TAPEDECK_MEMBERS(VolumePatchOptions, a, b, c, d)
TAPEDECK_MEMBERS(Pool1dOptions, a, b, c)
TAPEDECK_MEMBERS(Pool2dOptions, a, b, c)
TAPEDECK_MEMBERS(Pool3dOptions, a, b, c)
TAPEDECK_MEMBERS(FractionalPoolOptions, a, b, c, d)
TAPEDECK_MEMBERS(FakeQuantOptions, a, b)
TAPEDECK_MEMBERS(QuantizeAndDequantizeOptions, a, b, c, d, e)
TAPEDECK_MEMBERS(ScaleAndTranslateOptions, a, b, c, d, e, g)
TAPEDECK_MEMBERS(ScanOptions, a, b)
TAPEDECK_MEMBERS(LstmState, a, b)
TAPEDECK_MEMBERS(GruWeights, a, b, c, d)
TAPEDECK_MEMBERS(MaxAndPosition, a, b)
TAPEDECK_MEMBERS(Fractional, a, b, c)
TAPEDECK_MEMBERS(Qr, a, b)
TAPEDECK_MEMBERS(Eigh, a, b)
TAPEDECK_MEMBERS(Eig, a, b)
TAPEDECK_MEMBERS(Svd, a, b, c)
TAPEDECK_MEMBERS(Lu, a, b)
TAPEDECK_MEMBERS(SignAndLog, a, b)
TAPEDECK_MEMBERS(TopK, a, b)
TAPEDECK_MEMBERS(Unique, a, b, c)
TAPEDECK_MEMBERS(BatchNorm, a, b, c, d, e)
#undef TAPEDECK_MEMBERS

template <class T>
concept HasMembers = requires(T& t) {
  members(t, [](auto&) {});
};

/// Calls f with each number, flag, name, shape, list and tensor of which v consists.
template <class T, class F> void each_leaf(T& v, const F& f) {
  if constexpr (HasMembers<T>)
    members(v, [&](auto& m) { each_leaf(m, f); });
  else
    f(v);
}

// The number of enumerators.
template <class E> inline constexpr int enumerators = 2;
template <> inline constexpr int enumerators<DType> = kDTypes;
template <> inline constexpr int enumerators<Padding::Mode> = 3;
template <> inline constexpr int enumerators<DiagonalAlign> = 4;
template <> inline constexpr int enumerators<Align> = 3;
template <> inline constexpr int enumerators<Kernel2d> = 8;

// Ordinary values.
void ordinary(Draw& d, Tensor& v);
void ordinary(Draw& d, Operator& v);
void ordinary(Draw& d, std::int64_t& v);
void ordinary(Draw& d, int& v);
void ordinary(Draw& d, double& v);
void ordinary(Draw& d, bool& v);
void ordinary(Draw& d, Shape& v);
void ordinary(Draw& d, Axes& v);
void ordinary(Draw& d, std::string& v);
void ordinary(Draw& d, random::Key& v);
void ordinary(Draw& d, std::vector<int>& v);
void ordinary(Draw& d, std::vector<std::int64_t>& v);
void ordinary(Draw& d, std::vector<Tensor>& v);
void ordinary(Draw& d, std::vector<Slice>& v);
template <class T> void ordinary(Draw& d, std::optional<T>& v) {
  if (d.chance(50)) ordinary(d, v.emplace());
}
template <class E>
requires std::is_enum_v<E>
void ordinary(Draw& d, E& v) { v = static_cast<E>(d.in(0, enumerators<E> - 1)); }

// Boundary and absurd values.
void absurd(Draw& d, Tensor& v);
void absurd(Draw& d, Operator& v);
void absurd(Draw& d, std::int64_t& v);
void absurd(Draw& d, int& v);
void absurd(Draw& d, double& v);
void absurd(Draw& d, bool& v);
void absurd(Draw& d, Shape& v);
void absurd(Draw& d, Axes& v);
void absurd(Draw& d, std::string& v);
void absurd(Draw& d, random::Key& v);
void absurd(Draw& d, std::vector<int>& v);
void absurd(Draw& d, std::vector<std::int64_t>& v);
void absurd(Draw& d, std::vector<Tensor>& v);
void absurd(Draw& d, std::vector<Slice>& v);
template <class T> void absurd(Draw& d, std::optional<T>& v) { absurd(d, v.emplace()); }
template <class E>
requires std::is_enum_v<E>
void absurd(Draw& d, E& v) { v = static_cast<E>(d.chance(50) ? d.in(0, 10) : d.in(0, 255)); }

std::string text_of(const Tensor& v);
std::string text_of(const Operator& v);
std::string text_of(const Shape& v);
std::string text_of(const Axes& v);
std::string text_of(const std::string& v);
std::string text_of(const random::Key& v);
std::string text_of(const Slice& v);
template <class T>
requires std::is_arithmetic_v<T> std::string text_of(T v) {
  std::ostringstream out;
  out << v;
  return out.str();
}
template <class E>
requires std::is_enum_v<E> std::string text_of(E v) { return "#" + std::to_string(static_cast<int>(v)); }
template <class T> std::string text_of(const std::optional<T>& v) { return v ? text_of(*v) : "none"; }
template <class T> std::string text_of(const std::vector<T>& v) {
  std::string out = "{";
  for (const auto& e : v)
    out += (out.size() > 1 ? ", " : "") + text_of(e);
  return out + "}";
}

/// One public function, with the arguments of the call that is being made.
class Function {
 public:
  Function(std::string_view name, Kind kind) : name_(name), kind_(kind) {}
  virtual ~Function() = default;
  std::string_view name() const { return name_; }

  /// Draws compatible arguments.
  virtual void draw(Draw& d) = 0;
  /// Replaces one of the arguments.
  virtual void spoil(Draw& d) = 0;
  virtual std::vector<Tensor> call() = 0;
  virtual std::vector<Tensor> tensors() = 0;
  /// The call in words; `names` stand for the tensors, in order, if there are any.
  virtual std::string text(std::span<const std::string> names = {}) = 0;
  virtual void clear() = 0;
  virtual std::unique_ptr<Function> clone() const = 0;

  virtual void each_tensor(const std::function<void(Tensor&)>& f) = 0;
  virtual void each_key(const std::function<void(random::Key&)>& f) = 0;
  /// Makes all arguments f64 and c128 that are f32 and c64, or the other way round.
  virtual void set_precision(bool wide) = 0;

 protected:
  Kind kind() const { return kind_; }

 private:
  std::string_view name_;
  Kind kind_;
};

std::vector<std::unique_ptr<Function>> all_functions();

/// The dtype of the same kind in f64 and c128, or in f32 and c64.
constexpr DType with_precision(DType type, bool wide) {
  using enum DType;
  if (!is_trainable(type)) return type;
  return is_complex(type) ? (wide ? c128 : c64) : (wide ? f64 : f32);
}

namespace detail {

template <class T> void each_tensor(T& leaf, const std::function<void(Tensor&)>& f) {
  if constexpr (std::is_same_v<T, Tensor>)
    f(leaf);
  else if constexpr (std::is_same_v<T, std::vector<Tensor>>)
    std::for_each(leaf.begin(), leaf.end(), f);
  else if constexpr (std::is_same_v<T, Operator>)
    if (leaf.use <= Operator::temporary) f(leaf.x);
}

template <class A> decltype(auto) pass(Stored<A>& v) {
  if constexpr (std::is_same_v<std::remove_cvref_t<A>, Operand>)
    return v.operand();
  else if constexpr (std::is_rvalue_reference_v<A>)
    return Stored<A>(v);
  else if constexpr (std::is_reference_v<A>)
    return (v);
  else
    return std::remove_cvref_t<A>(v);
}

inline void append(std::vector<Tensor>& list, const Tensor& x) { list.push_back(x); }
inline void append(std::vector<Tensor>& list, const std::vector<Tensor>& x) {
  list.insert(list.end(), x.begin(), x.end());
}
inline void append(std::vector<Tensor>& list, const Operator& x) {
  if (x.use <= Operator::temporary) list.push_back(x.x);
}
template <class T> void append(std::vector<Tensor>&, const T&) {}

}   // namespace detail

/// `shaped` makes the arguments, which were drawn as ordinary ones, compatible.
template <class R, class... A> class FunctionOf final : public Function {
 public:
  using Shaped = std::function<void(Draw&, Stored<A>&...)>;
  FunctionOf(std::string_view name, Kind kind, R (*f)(A...), Shaped shaped)
      : Function(name, kind), f_(f), shaped_(std::move(shaped)) {}

  void draw(Draw& d) override {
    d.begin(kind());
    clear();
    std::apply([&](auto&... v) { (draw_one(d, v), ...); }, *arguments_);
    if (shaped_) std::apply([&](auto&... v) { shaped_(d, v...); }, *arguments_);
  }
  void spoil(Draw& d) override {
    int leaves = 0;
    each([&](auto&) { ++leaves; });
    for (int chosen = d.in(0, leaves - 1); leaves; leaves = 0)
      each([&](auto& leaf) {
        if (chosen-- == 0) absurd(d, leaf);
      });
  }
  std::vector<Tensor> call() override {
    R result = std::apply([&](auto&... v) -> R { return f_(detail::pass<A>(v)...); }, *arguments_);
    std::vector<Tensor> list;
    each_leaf(result, [&](auto& leaf) { detail::append(list, leaf); });
    return list;
  }
  std::vector<Tensor> tensors() override {
    std::vector<Tensor> list;
    each([&](auto& leaf) { detail::append(list, leaf); });
    return list;
  }
  std::string text(std::span<const std::string> names) override {
    std::string out = std::string(name()) + "(";
    each([&](auto& leaf) {
      std::string named;
      detail::each_tensor(leaf, [&](Tensor&) {
        if (names.empty()) return;
        named += (named.empty() ? "" : ", ") + names[0];
        names = names.subspan(1);
      });
      out += (out.back() == '(' ? "" : ", ") + (named.empty() ? text_of(leaf) : named);
    });
    return out + ")";
  }
  void clear() override { arguments_.reset(), arguments_.emplace(start<Stored<A>>()...); }
  std::unique_ptr<Function> clone() const override { return std::make_unique<FunctionOf>(*this); }
  void each_tensor(const std::function<void(Tensor&)>& f) override {
    each([&](auto& leaf) { detail::each_tensor(leaf, f); });
  }
  void each_key(const std::function<void(random::Key&)>& f) override {
    each([&](auto& leaf) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(leaf)>, random::Key>) f(leaf);
    });
  }
  void set_precision(bool wide) override {
    each([&](auto& leaf) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(leaf)>, DType>)
        leaf = with_precision(leaf, wide);
    });
    each_tensor([&](Tensor& x) {
      if (x.defined()) x = astype(x, with_precision(x.dtype(), wide));
    });
  }

 private:
  template <class F> void each(const F& f) {
    std::apply([&](auto&... v) { (each_leaf(v, f), ...); }, *arguments_);
  }
  // Most options keep their defaults.
  template <class T> static void draw_one(Draw& d, T& v) {
    if constexpr (HasMembers<T>)
      each_leaf(v, [&](auto& leaf) {
        if (d.chance(30)) ordinary(d, leaf);
      });
    else
      ordinary(d, v);
  }

  R (*f_)(A...);
  Shaped shaped_;
  std::optional<std::tuple<Stored<A>...>> arguments_;
};

}   // namespace tapedeck::fuzz
