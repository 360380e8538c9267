// The arguments of random calls: ordinary, boundary and absurd ones.
#include <algorithm>
#include <climits>
#include <cmath>

#include "calls.h"

namespace tapedeck::fuzz {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                       kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t k31 = std::int64_t{1} << 31, k62 = std::int64_t{1} << 62;

template <class T, std::size_t n> T one_of(Draw& d, const T (&list)[n]) {
  return list[d.in(0, static_cast<int>(n) - 1)];
}

// An empty tensor of huge extents.
Shape huge_and_empty(Draw& d) {
  Shape s;
  const int rank = d.in(1, 6), empty = d.in(0, rank - 1);
  for (int i = 0; i < rank; ++i)
    s.push_back(i == empty ? 0 : one_of<std::int64_t>(d, {0, 1, 2, 3, 5, k31 - 1, k31, k31 + 1, k62, kMost}));
  return s;
}

DType any_dtype(Draw& d) { return static_cast<DType>(d.in(0, kDTypes - 1)); }

}   // namespace

// SplitMix64 (Steele, Lea and Flood 2014).
Draw::Draw(std::uint64_t seed, std::uint64_t number) : state_(seed * 0x9e3779b97f4a7c15u) {
  state_ = bits() ^ number * 0xd1342543de82ef95u;
  bits();
}
std::uint64_t Draw::bits() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

void Draw::begin(Kind kind) {
  using enum DType;
  if (tame)
    dtype = kind == Kind::logical                                        ? boolean
            : kind == Kind::floating || kind == Kind::real || chance(70) ? f64
                                                                         : c128;
  else if (chance(5))
    dtype = any_dtype(*this);
  else if (kind == Kind::floating)
    dtype = one_of(*this, {f32, f64});
  else if (kind == Kind::trainable)
    dtype = one_of(*this, {f32, f64, f32, f64, c64, c128});
  else if (kind == Kind::real)
    dtype = one_of(*this, {f32, f64, f32, f64, i8, i32, i64, u8});
  else if (kind == Kind::numeric)
    dtype = one_of(*this, {f32, f64, f32, f64, c64, c128, i8, i32, i64, u8});
  else if (kind == Kind::logical)
    dtype = boolean;
  else
    dtype = any_dtype(*this);
  shape = !tame && chance(4) ? huge_and_empty(*this) : extents(0, chance(70) ? 3 : 6);
  if (!like) return;
  shape = like->shape;
  const bool real_only = kind == Kind::floating || kind == Kind::real;
  if (is_trainable(dtype) && !(real_only && is_complex(like->dtype))) dtype = like->dtype;
}

std::int64_t Draw::extent() { return chance(4) ? 0 : in(1, chance(80) ? 3 : 5); }
Shape Draw::extents(int min_rank, int max_rank) {
  Shape s;
  for (int rank = in(min_rank, max_rank); s.ndim() < rank;)
    s.push_back(extent());
  return s;
}
Shape Draw::narrower() {
  Shape s;
  for (int i = chance(15) ? in(0, shape.ndim()) : 0; i < shape.ndim(); ++i)
    s.push_back(chance(10) ? 1 : shape[i]);
  return s;
}
Shape Draw::behind(Shape x, std::initializer_list<std::int64_t> extents) {
  for (const std::int64_t n : extents)
    if (x.ndim() < Shape::kMaxRank) x.push_back(n);
  return x;
}
Shape Draw::front(const Shape& x, int n) {
  return Shape(x.dims().first(static_cast<std::size_t>(std::max(0, x.ndim() - n))));
}

double Draw::element(DType type) {
  if (is_trainable(type)) return in(-2000, 2000) / 1000.0;
  return type == DType::boolean ? in(0, 1) : in(type == DType::u8 ? 0 : -3, 3);
}

Tensor Draw::tensor(const Shape& of, DType type) {
  const std::int64_t size = of.size();
  if (size == 0 || size > 1 << 16) return zeros(of, type);
  if (of.ndim() < Shape::kMaxRank && chance(15)) {   // a row
    Shape larger{3};
    for (const std::int64_t n : of)
      larger.push_back(n);
    return strided_slice(tensor(larger, type), {Slice(in(0, 2))});
  }
  std::vector<double> values(static_cast<std::size_t>(size));
  for (double& v : values)
    v = element(type);
  if (!tame && chance(4)) values[bits() % values.size()] = absurd_number();
  const Tensor x = astype(tapedeck::tensor(values, of), type);
  if (!is_complex(type)) return x;
  const Tensor im = astype(tensor(of, DType::f64), real_of(type));
  return complex(real(x), im);
}

Tensor Draw::indices(const Shape& of, std::int64_t count) {
  const std::int64_t size = of.size();
  const DType type = chance(50) ? DType::i32 : DType::i64;
  if (size == 0 || size > 1 << 16) return zeros(of, type);
  std::vector<std::int64_t> values(static_cast<std::size_t>(size));
  for (std::int64_t& v : values)
    v = count > 0 ? static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(count)) : 0;
  return astype(tapedeck::tensor(values, of), type);
}
Tensor Draw::sorted_indices(std::int64_t n, std::int64_t count) { return sort(indices({n}, count)); }
Tensor Draw::truths(const Shape& of) { return tensor(of, DType::boolean); }

std::int64_t Draw::absurd_integer() {
  if (chance(20)) return in(-8, 8);
  return one_of<std::int64_t>(
      *this, {0, -1, 1, kLeast, kLeast + 1, kMost, kMost - 1, k31, k31 - 1, -k31, k62, -k62, 1 << 16, 1 << 20,
              1 << 24, std::int64_t{1} << 32, std::int64_t{1} << 45});
}
double Draw::absurd_number() {
  return one_of<double>(*this, {0.0, -0.0, -1.0, 1.0, NAN, INFINITY, -double{INFINITY}, 1e308, -1e308, 5e-324,
                                1e-40, 1e19, -1e19, 2147483648.0, 0.5, 1e-9, 17.0});
}

Operand Operator::operand() {
  switch (use) {
    case tensor:
      return x;
    case temporary:
      passed = identity(x);
      return Operand(std::move(passed));
    case number:
      return value;
    default:
      return static_cast<std::int64_t>(std::clamp(std::isnan(value) ? 0 : value, -1e18, 1e18));
  }
}

void ordinary(Draw& d, Tensor& v) { v = d.tensor(d.shape); }
void ordinary(Draw& d, Operator& v) {
  v.use = d.chance(20)   ? Operator::temporary
          : d.chance(10) ? Operator::number
          : d.chance(5)  ? Operator::integer
                         : Operator::tensor;
  v.value = d.in(-40, 40) / 8.0;
  v.x = d.tensor(d.narrower());
}
void ordinary(Draw& d, std::int64_t& v) { v = d.chance(10) ? 0 : d.in(1, 3); }
void ordinary(Draw& d, int& v) {
  const int rank = d.shape.ndim();
  v = rank == 0 ? d.in(-1, 0) : d.in(-rank, rank - 1);
}
void ordinary(Draw& d, double& v) { v = d.chance(50) ? d.in(1, 3) : d.in(-2000, 2000) / 1000.0; }
void ordinary(Draw& d, bool& v) { v = d.chance(50); }
void ordinary(Draw& d, Shape& v) { v = d.extents(0, 4); }
void ordinary(Draw& d, Axes& v) {
  if (d.chance(30)) {
    v = Axes();
    return;
  }
  std::vector<int> list;
  const int rank = d.shape.ndim();
  for (int i = 0; i < rank; ++i)
    if (d.chance(40)) list.push_back(d.chance(30) ? i - rank : i);
  v = list;
}
void ordinary(Draw& d, std::string& v) { v = d.chance(80) ? "name" : ""; }
void ordinary(Draw& d, random::Key& v) { v = {.seed = d.bits(), .stream = d.bits()}; }
void ordinary(Draw& d, std::vector<int>& v) {
  v.resize(static_cast<std::size_t>(d.in(0, 3)));
  for (int& i : v)
    ordinary(d, i);
}
void ordinary(Draw& d, std::vector<std::int64_t>& v) {
  v.resize(static_cast<std::size_t>(d.in(0, 4)));
  for (std::int64_t& i : v)
    ordinary(d, i);
}
void ordinary(Draw& d, std::vector<Tensor>& v) {
  v.resize(static_cast<std::size_t>(d.in(1, 4)));
  for (Tensor& x : v)
    ordinary(d, x);
}
void ordinary(Draw& d, std::vector<Slice>& v) {
  for (const std::int64_t n : d.shape) {
    const auto within = [&] { return d.in(-6, 6); };
    if (d.chance(20)) break;
    if (d.chance(10)) v.push_back(Slice::new_axis);
    if (d.chance(30) && n > 0)
      v.emplace_back(static_cast<std::int64_t>(d.bits() % static_cast<std::uint64_t>(n)));
    else if (d.chance(50))
      v.emplace_back(within(), within(), d.chance(50) ? 1 : d.chance(50) ? -d.in(1, 3) : d.in(1, 3));
    else
      v.emplace_back();
  }
  if (d.chance(20)) v.push_back(Slice::ellipsis);
}

namespace {

Shape absurd_shape(Draw& d, const Shape& of) {
  if (d.chance(25)) return huge_and_empty(d);
  if (d.chance(25)) return d.extents(0, 6);
  std::vector<std::int64_t> dims(of.begin(), of.end());
  const auto at = [&] { return dims.begin() + d.in(0, static_cast<int>(dims.size()) - 1); };
  if (dims.empty() || (d.chance(25) && dims.size() < Shape::kMaxRank))
    dims.insert(dims.begin() + d.in(0, static_cast<int>(dims.size())), d.extent());
  else if (d.chance(30))
    dims.erase(at());
  else if (std::int64_t& n = *at(); d.chance(50))
    n += n == 0 || n == kLeast || (n < kMost && d.chance(50)) ? 1 : -1;
  else
    n = 0;
  return Shape(dims);
}

}   // namespace

void absurd(Draw& d, Tensor& v) {
  const DType type = v.defined() ? v.dtype() : d.dtype;
  const Shape of = v.defined() ? v.shape() : d.shape;
  const int what = d.in(0, 9);
  if (what == 0) {
    v = Tensor();
  } else if (what <= 2) {
    v = d.tensor(of, any_dtype(d));
  } else if (what <= 6) {
    Shape other = absurd_shape(d, of);
    for (int i = 0; i < other.ndim(); ++i)
      other.set(i, std::max<std::int64_t>(other[i], 0));
    v = d.tensor(other, type);
  } else {
    v = d.chance(50) || !is_trainable(type)
            ? astype(full(of,
                          type == DType::i64 || type == DType::i32 ? static_cast<double>(d.absurd_integer())
                                                                   : d.absurd_number(),
                          DType::f64),
                     type)
            : where(d.truths(of), d.tensor(of, type), astype(full(of, d.absurd_number(), DType::f64), type));
  }
}
void absurd(Draw& d, Operator& v) {
  if (v.use <= Operator::temporary && d.chance(80)) return absurd(d, v.x);
  v.use = d.chance(70) ? Operator::number : Operator::integer;
  v.value = d.chance(50) ? d.absurd_number() : static_cast<double>(d.absurd_integer());
}
void absurd(Draw& d, std::int64_t& v) { v = d.absurd_integer(); }
void absurd(Draw& d, int& v) {
  v = d.chance(30)
          ? d.in(-9, 9)
          : one_of(d, {0, -1, INT_MIN, INT_MIN + 1, INT_MAX, INT_MAX - 1, 1 << 16, 31, 32, 33, 63, 64, -64});
}
void absurd(Draw& d, double& v) { v = d.absurd_number(); }
void absurd(Draw&, bool& v) { v = !v; }
void absurd(Draw& d, Shape& v) {
  if (v.ndim() == 0 || d.chance(30))
    v = absurd_shape(d, v);
  else
    v.set(d.in(0, v.ndim() - 1), d.absurd_integer());
}
void absurd(Draw& d, std::vector<int>& v) {
  if (v.empty() || d.chance(20)) v.push_back(v.empty() ? 0 : v[0]);
  if (d.chance(20)) v.insert(v.end(), 40, v[0]);
  absurd(d, v[static_cast<std::size_t>(d.in(0, static_cast<int>(v.size()) - 1))]);
}
void absurd(Draw& d, Axes& v) {
  v.all = false;
  if (d.chance(30) && !v.list.empty())
    v.list.push_back(v.list[0]);
  else
    absurd(d, v.list);
}
void absurd(Draw& d, std::string& v) {
  for (int i = d.in(1, 3); i-- > 0;)
    v.insert(static_cast<std::size_t>(d.in(0, static_cast<int>(v.size()))), 1,
             d.chance(70) ? "ij.,->A {}%"[d.in(0, 10)] : static_cast<char>(d.in(-128, 127)));
  if (d.chance(10)) v.assign(static_cast<std::size_t>(d.in(0, 300)), 'i');
}
void absurd(Draw& d, random::Key& v) {
  v = {.seed = d.chance(50) ? 0 : ~std::uint64_t{0}, .stream = ~std::uint64_t{0}};
}
void absurd(Draw& d, std::vector<std::int64_t>& v) {
  if (v.empty() || d.chance(20)) v.push_back(1);
  if (d.chance(10)) return v.clear();
  v[static_cast<std::size_t>(d.in(0, static_cast<int>(v.size()) - 1))] = d.absurd_integer();
}
void absurd(Draw& d, std::vector<Tensor>& v) {
  if (d.chance(10)) return v.clear();
  if (v.empty() || d.chance(20)) v.push_back(d.tensor(d.shape));
  absurd(d, v[static_cast<std::size_t>(d.in(0, static_cast<int>(v.size()) - 1))]);
}
void absurd(Draw& d, std::vector<Slice>& v) {
  if (v.empty() || d.chance(20)) v.emplace_back();
  Slice& s = v[static_cast<std::size_t>(d.in(0, static_cast<int>(v.size()) - 1))];
  const int what = d.in(0, 4);
  if (what == 0) s.begin = d.absurd_integer();
  if (what == 1) s.end = d.absurd_integer();
  if (what == 2) s.stride = d.absurd_integer();
  if (what == 3) s.begin.reset();
  if (what == 4) absurd(d, s.kind);
}

std::string text_of(const Tensor& v) {
  if (!v.defined()) return "undefined";
  std::string out = to_string(v.spec());
  if (v.size() == 0 || v.size() > 24) return out;
  const bool with_imag = is_complex(v.dtype());
  const std::vector<double> im = with_imag ? imag(v).to_vector<double>() : std::vector<double>();
  const std::vector<double> re = (with_imag ? real(v) : v).to_vector<double>();
  out += "{";
  for (std::size_t i = 0; i < re.size(); ++i)
    out += (i ? "," : "") + text_of(re[i]) + (with_imag ? (im[i] < 0 ? "" : "+") + text_of(im[i]) + "i" : "");
  return out + "}";
}
std::string text_of(const Operator& v) {
  return v.use == Operator::tensor      ? text_of(v.x)
         : v.use == Operator::temporary ? "temporary " + text_of(v.x)
         : v.use == Operator::number    ? text_of(v.value)
                                        : "integer of " + text_of(v.value);
}
std::string text_of(const Shape& v) { return to_string(v); }
std::string text_of(const Axes& v) { return v.all ? "all" : text_of(v.list); }
std::string text_of(const std::string& v) { return "\"" + v + "\""; }
std::string text_of(const random::Key& v) { return "key " + std::to_string(std::uint64_t{v.seed}); }
std::string text_of(const Slice& v) {
  return text_of(v.kind) + " " + text_of(v.begin) + ":" + text_of(v.end) + ":" + text_of(v.stride);
}

}   // namespace tapedeck::fuzz
