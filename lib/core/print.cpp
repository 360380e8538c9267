// Prints tensors as nested brackets with aligned columns.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <ostream>

#include "core/format.h"
#include "core/visit.h"
#include "tapedeck/tensor.h"

namespace tapedeck {
namespace {

constexpr std::int64_t kLong = 1000;   // larger tensors show only kEdge entries at both ends of each axis
constexpr std::int64_t kEdge = 3;
constexpr int kColumns = 75;   // a longer row is continued on the next line
constexpr int kDecimals = 8;   // the most in a tensor of rank 1 or more, unless the stream says otherwise
constexpr int kStreamDefault = 6;

// The format that a stream requests.
struct Wish {
  char notation = 0;              // 'f': fixed, 'e': scientific; 0: whichever suits the numbers
  std::optional<int> precision;   // the most decimals; with a notation, the exact number of decimals

  Wish() = default;
  explicit Wish(const std::ios_base& stream) {
    const auto flags = stream.flags() & std::ios_base::floatfield;
    if (flags == std::ios_base::fixed) notation = 'f';
    if (flags == std::ios_base::scientific) notation = 'e';
    const auto digits = stream.precision();
    if (digits >= 0 && (notation || digits != kStreamDefault)) precision = static_cast<int>(digits);
  }
};

// The common format of the numbers of a tensor, by NumPy's rules: notation, decimals, and digits of the
// exponent.
template <class T> class NumberFormat {
 public:
  NumberFormat(const std::vector<T>& values, const Wish& wish, bool scalar, DType dtype)
      : dtype_(dtype), scientific_(wish.notation ? wish.notation == 'e' : has_scale(values, scalar)) {
    const int most = wish.precision.value_or(scalar ? all_decimals() : kDecimals);
    decimals_ = wish.notation ? most : std::min(1, most);
    for (const T v : values)
      if (std::isfinite(v) && !wish.notation) decimals_ = std::max(decimals_, needed(v, most));
    for (const T v : values)   // by the final decimals, since rounding may change an exponent
      if (std::isfinite(v) && scientific_)
        exponent_ = std::max(exponent_, exponent_of(written(v, decimals_)).size());
  }

  std::string text(T v) const {
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    std::string number = written(v, decimals_);
    if (scientific_) {
      const std::size_t digits = exponent_of(number).size();
      number.insert(number.size() - digits, exponent_ - digits, '0');
    }
    return number;
  }

 private:
  // Enough for each number from 0.0001 on.
  int all_decimals() const {
    return (dtype_ == DType::f16 ? 5 : dtype_ == DType::bf16 ? 4 : std::numeric_limits<T>::max_digits10) + 3;
  }

  // Whether the numbers are too large, too small or too far apart for a fixed number of decimals.
  static bool has_scale(const std::vector<T>& values, bool scalar) {
    T least = std::numeric_limits<T>::infinity(), most = 0;
    for (const T v : values)
      if (std::isfinite(v) && v != 0)
        least = std::min(least, std::abs(v)), most = std::max(most, std::abs(v));
    return most > 0 && (most >= (scalar ? 1e16 : 1e8) || least < 1e-4 || most / least > 1000);
  }

  std::string written(T v, int decimals) const {
    return scientific_ ? fmt::format("{:.{}e}", v, decimals) : fmt::format("{:.{}f}", v, decimals);
  }
  static std::string_view exponent_of(std::string_view number) { return number.substr(number.find('e') + 2); }

  // Writes the fewest digits that distinguish v from all other numbers of its type, with an exponent. Returns
  // their end.
  char* write_shortest(T v, std::array<char, 40>& buffer) const {
    char *begin = buffer.data(), *end = begin + buffer.size();
    const auto format = std::chars_format::scientific;
    if (!is_half(dtype_)) return std::to_chars(begin, end, v, format).ptr;
    const auto rounded = [this](T x) {
      const auto f = static_cast<float>(x);
      return static_cast<T>(dtype_ == DType::f16 ? float(float16(f)) : float(bfloat16(f)));
    };
    for (int digits = 0;; ++digits) {
      char* at = std::to_chars(begin, end, v, format, digits).ptr;
      T back = 0;
      std::from_chars(begin, at, back);
      if (rounded(back) == v) return at;
    }
  }
  // The number of decimals that distinguish v from all other numbers of its type, but at most `most`.
  int needed(T v, int most) const {
    std::array<char, 40> buffer{};
    char* end = write_shortest(std::abs(v), buffer);
    const std::string_view shortest(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
    const std::size_t e = shortest.find('e');
    int exponent = 0;
    std::from_chars(buffer.data() + e + (shortest[e + 1] == '+' ? 2 : 1), end, exponent);
    const int decimals = std::max(static_cast<int>(e) - 2, 0) - (scientific_ ? 0 : exponent);
    return decimals <= most ? decimals : without_zeros(written(v, most));
  }
  // The number of decimals up to the last one that is not zero.
  static int without_zeros(std::string_view number) {
    const std::string_view mantissa = number.substr(0, number.find('e'));
    const std::size_t point = mantissa.find('.'), last = mantissa.find_last_not_of('0');
    return point == mantissa.npos ? 0 : static_cast<int>(last - point);
  }

  DType dtype_;
  bool scientific_;
  int decimals_ = 0;
  std::size_t exponent_ = 2;
};

template <class T> std::vector<T> elements_of(const Tensor& x, const std::vector<std::int64_t>& shown) {
  std::vector<T> values;
  for (const std::int64_t i : shown)
    detail::convert_to(x, i, 1, dtype_of<T>, &values.emplace_back());
  return values;
}

template <class T> std::vector<std::string> number_texts(const std::vector<T>& values, const Wish& wish,
                                                         bool scalar, DType dtype = dtype_of<T>) {
  const NumberFormat<T> format(values, wish, scalar, dtype);
  std::vector<std::string> texts;
  for (const T v : values)
    texts.push_back(format.text(v));
  return texts;
}

// Aligns to the right.
void align(std::vector<std::string>& texts) {
  std::size_t width = 0;
  for (const std::string& s : texts)
    width = std::max(width, s.size());
  for (std::string& s : texts)
    s.insert(0, width - s.size(), ' ');
}

template <class Z>
std::vector<std::string> complex_texts(const std::vector<Z>& values, const Wish& wish, bool scalar) {
  std::vector<typename Z::value_type> real, imaginary;
  for (const Z& z : values) {
    real.push_back(z.real());
    imaginary.push_back(z.imag());
  }
  std::vector<std::string> texts = number_texts(real, wish, scalar);
  std::vector<std::string> others = number_texts(imaginary, wish, scalar);
  for (std::string& s : others) {
    if (s[0] != '-') s.insert(0, "+");
    s += "i";
  }
  align(texts);
  align(others);
  for (std::size_t i = 0; i < texts.size(); ++i)
    texts[i] += others[i];
  return texts;
}

std::vector<std::string> texts_of(const Tensor& x, const std::vector<std::int64_t>& shown, const Wish& wish) {
  return visit_stored(x.dtype(), [&]<class T>(T) {
    const bool scalar = x.ndim() == 0;
    std::vector<std::string> texts;
    if constexpr (ComplexNumber<T>) {
      texts = complex_texts(elements_of<T>(x, shown), wish, scalar);
    } else if constexpr (std::is_floating_point_v<T>) {
      texts = number_texts(elements_of<T>(x, shown), wish, scalar);
    } else if constexpr (HalfNumber<T>) {
      texts = number_texts(elements_of<float>(x, shown), wish, scalar, x.dtype());
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      for (const T v : elements_of<T>(x, shown))
        texts.push_back(std::to_string(v));
    } else {
      for (const std::int64_t v : elements_of<std::int64_t>(x, shown))
        texts.push_back(!std::is_same_v<T, bool> ? std::to_string(v) : v ? "true" : "false");
    }
    align(texts);
    return texts;
  });
}

// Walks the printed entries twice: to collect the elements, and to write them.
class Printer {
 public:
  Printer(const Tensor& x, const Wish& wish) : shape_(x.shape()), shortened_(x.size() > kLong) {
    std::vector<std::int64_t> shown;
    walk(
        0, 0, [&](std::int64_t i) { shown.push_back(i); }, [](const char*) {}, [](int) {});
    texts_ = texts_of(x, shown, wish);
  }

  std::string text() const {
    std::string out;
    std::size_t next = 0, line = 0;   // index of the next text; start of the line
    bool separate = false;
    const auto newline = [&](int lines, int indent) {
      out.append(static_cast<std::size_t>(lines), '\n');
      line = out.size();
      out.append(static_cast<std::size_t>(indent), ' ');
    };
    // Leaves columns at the end of a line for the closing brackets.
    const auto word = [&](std::string_view w) {
      if (separate && static_cast<int>(out.size() - line + 1 + w.size()) > kColumns - shape_.ndim())
        newline(1, shape_.ndim());
      else if (separate)
        out += ' ';
      out += w;
      separate = false;
    };
    walk(
        0, 0, [&](std::int64_t) { word(texts_[next++]); }, word,
        [&](int axis) {
          separate = axis == shape_.ndim() - 1;
          if (!separate) newline(shape_.ndim() - 1 - axis, axis + 1);
        });
    return out;
  }

 private:
  // Calls element(i), mark("[", "...", "]") and between(axis) in output order.
  template <class Element, class Mark, class Between> void walk(int axis, std::int64_t first,
                                                                const Element& element, const Mark& mark,
                                                                const Between& between) const {
    if (axis == shape_.ndim()) return element(first);
    const std::int64_t n = shape_[axis];
    mark("[");
    for (std::int64_t i = 0; i < n; ++i) {
      if (i) between(axis);
      if (shortened_ && i == kEdge && n > 2 * kEdge) {
        mark("...");
        between(axis);
        i = n - kEdge;
      }
      walk(axis + 1, first * n + i, element, mark, between);
    }
    mark("]");
  }

  Shape shape_;
  bool shortened_;
  std::vector<std::string> texts_;
};

std::string text_of(const Tensor& x, const Wish& wish) {
  if (!x.defined()) return "undefined";
  if (x.size() == 0) return "[] " + to_string(x.spec());
  std::string out = Printer(x, wish).text();
  if (x.dtype() != DType::f32) out += fmt::format(" {}", x.dtype());
  return out;
}

}   // namespace

std::string to_string(const Tensor& x) { return text_of(x, {}); }

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << text_of(x, Wish(out)); }

}   // namespace tapedeck
