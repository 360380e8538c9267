// Prints tensors as nested brackets with aligned columns.
#include <algorithm>
#include <cmath>
#include <complex>
#include <ostream>

#include "core/format.h"
#include "tapedeck/tensor.h"

namespace tapedeck {
namespace {

constexpr std::int64_t kLong = 1000;   // larger tensors show only kEdge entries at both ends of each axis
constexpr std::int64_t kEdge = 3;
constexpr int kDecimals = 4;

// The number format of a tensor, common to all of its elements: as many decimals as they need, up to
// kDecimals.
class NumberFormat {
 public:
  explicit NumberFormat(const std::vector<double>& values) {
    for (const double v : values)
      if (const double size = std::abs(v); std::isfinite(v) && size > 0)
        scientific_ |= size >= 1e8 || size < 1e-4;
    int decimals = 1;
    for (const double v : values)
      decimals = std::max(decimals, std::isfinite(v) ? needed(text(v)) : 0);
    decimals_ = decimals;
  }

  std::string text(double v) const {
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    return scientific_ ? fmt::format("{:.{}e}", v, decimals_) : fmt::format("{:.{}f}", v, decimals_);
  }

 private:
  // The number of decimals up to the last one that is not zero.
  static int needed(const std::string& number) {
    const std::size_t point = number.find('.'), end = std::min(number.find('e'), number.size());
    std::size_t last = end - 1;
    while (number[last] == '0')
      --last;
    return static_cast<int>(last - point);
  }

  bool scientific_ = false;
  int decimals_ = kDecimals;
};

template <class T> T element(const Tensor& x, std::int64_t i) {
  T value;
  detail::convert_to(x, i, 1, dtype_of<T>, &value);
  return value;
}

std::vector<std::string> texts_of(const Tensor& x, const std::vector<std::int64_t>& shown) {
  std::vector<std::string> texts;
  if (is_complex(x.dtype())) {
    std::vector<double> parts;
    for (const std::int64_t i : shown) {
      const auto z = element<std::complex<double>>(x, i);
      parts.push_back(z.real());
      parts.push_back(z.imag());
    }
    const NumberFormat format(parts);
    for (std::size_t i = 0; i < parts.size(); i += 2) {
      const std::string imaginary = format.text(parts[i + 1]);
      texts.push_back(format.text(parts[i]) + (imaginary[0] == '-' ? "" : "+") + imaginary + "i");
    }
  } else if (is_floating(x.dtype())) {
    std::vector<double> values;
    for (const std::int64_t i : shown)
      values.push_back(element<double>(x, i));
    const NumberFormat format(values);
    for (const double v : values)
      texts.push_back(format.text(v));
  } else if (x.dtype() == DType::boolean) {
    for (const std::int64_t i : shown)
      texts.push_back(element<bool>(x, i) ? "true" : "false");
  } else {
    for (const std::int64_t i : shown)
      texts.push_back(std::to_string(element<std::int64_t>(x, i)));
  }
  return texts;
}

// Walks the printed entries twice: to collect the elements, and to write them.
class Printer {
 public:
  explicit Printer(const Tensor& x) : shape_(x.shape()), shortened_(x.size() > kLong) {
    std::vector<std::int64_t> shown;
    walk(
        0, 0, [&](std::int64_t i) { shown.push_back(i); }, [](const char*) {}, [](int) {});
    texts_ = texts_of(x, shown);
    for (const std::string& s : texts_)
      width_ = std::max(width_, s.size());
  }

  std::string text() const {
    std::string out;
    std::size_t next = 0;
    walk(
        0, 0,
        [&](std::int64_t) {
          const std::string& number = texts_[next++];
          out.append(width_ - number.size(), ' ') += number;
        },
        [&](const char* mark) { out += mark; },
        [&](int axis) {
          const int lines = shape_.ndim() - 1 - axis;
          out += lines ? std::string(static_cast<std::size_t>(lines), '\n') +
                             std::string(static_cast<std::size_t>(axis + 1), ' ')
                       : " ";
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
  std::size_t width_ = 0;
};

}   // namespace

std::string to_string(const Tensor& x) {
  if (!x.defined()) return "undefined";
  if (x.size() == 0) return "[] " + to_string(x.spec());
  std::string out = Printer(x).text();
  if (x.dtype() != DType::f32) out += fmt::format(" {}", x.dtype());
  return out;
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << to_string(x); }

}   // namespace tapedeck
