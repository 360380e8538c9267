// Tensor: an immutable, dense, row-major array with shared ownership. Copying a handle increments a reference
// count. Also: factories, and functions that read values.
#pragma once
#include <atomic>
#include <concepts>
#include <iosfwd>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tapedeck/creation.h"

namespace tapedeck {

class Tensor;
struct Slice;

namespace detail {

/// Memory of a large tensor, shared by its reshapes and slices.
struct Buffer {
  std::atomic<std::uint32_t> refs;
};

struct Bytes;   // access to the memory: lib/core/bytes.h
inline constexpr std::int64_t kInlineBytes = 64;

/// State of one tensor: two cache lines, then up to 64 bytes of inline data in a third.
struct alignas(64) Block {
  std::atomic<std::uint32_t> refs;
  std::int32_t slot;                 // index of this tensor in `tape`; read on that tape's thread only
  std::atomic<std::uint64_t> tape;   // serial number of the first tape that tracked it; 0: none
  DType dtype;
  bool saved;                 // a tape's saved copy of a handle; does not keep the tape entry alive
  std::uint16_t copies;       // number of saved copies made of this tensor
  std::atomic<bool> mapped;   // true: further recorders look it up by id
  Shape shape;
  std::int64_t size;
  std::uint64_t id;

  bool has_values() const { return data; }

 private:
  friend Bytes;
  friend Tensor;
  std::byte* data;   // null: a placeholder that has a shape but no values

 public:
  Buffer* buffer;   // null: the data is inline or absent

 private:
  alignas(64) std::byte inline_data[kInlineBytes];
};

TAPEDECK_EXPORT void free_block(Block* block) noexcept;
[[noreturn]] TAPEDECK_EXPORT void throw_undefined();
TAPEDECK_EXPORT Tensor tensor_from(const void* values, DType from, const Shape& shape, DType to);
TAPEDECK_EXPORT void convert_to(const Tensor& x, std::int64_t first, std::int64_t count, DType to, void* out);
TAPEDECK_EXPORT std::int64_t offset_of(const Tensor& x, std::span<const std::int64_t> index);

}   // namespace detail

/// An immutable value: no op writes to its inputs. Handles may be copied and destroyed on any thread. A
/// default-constructed or moved-from Tensor is undefined: it may be assigned, copied, destroyed and tested
/// with `defined()`; everything else throws ArgumentError.
class TAPEDECK_EXPORT Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& o) noexcept : b_(o.b_) {
    if (b_) b_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  Tensor(Tensor&& o) noexcept : b_(std::exchange(o.b_, nullptr)) {}
  /// Makes this handle refer to another value; other handles are unaffected.
  Tensor& operator=(const Tensor& o) & noexcept {
    Tensor t(o);
    std::swap(b_, t.b_);
    return *this;
  }
  Tensor& operator=(Tensor&& o) & noexcept {
    Tensor t(std::move(o));
    std::swap(b_, t.b_);
    return *this;
  }
  /// Not of temporaries.
  template <class Value>
  void operator=(Value&&) && = delete;   // x[i] = y would change nothing: a Tensor is a value
  template <class Number>
  requires std::is_arithmetic_v<Number>
  explicit Tensor(Number) = delete;   // tensor(1.0) makes one of a number
  ~Tensor() {
    if (b_) release();
  }

  /// Rejects a tensor as a condition at compile time, with a message that says what to write.
  template <class Bool>
  requires std::same_as<Bool, bool>
  explicit operator Bool() const {
    static_assert(sizeof(Bool) == 0,
                  "a Tensor is not a condition: use item() of a tensor with one element, as in all(x > "
                  "0).item(); where and cond select by a tensor");
    return false;
  }

  /// Properties of the tensor. All but `defined` throw ArgumentError for an undefined tensor. nbytes is
  /// size() times the bytes of an element.
  bool defined() const { return b_ != nullptr; }
  DType dtype() const { return block().dtype; }
  const Shape& shape() const { return block().shape; }
  int ndim() const { return block().shape.ndim(); }
  std::int64_t size() const { return block().size; }
  std::int64_t nbytes() const { return block().size * size_of(block().dtype); }
  /// Unique in the process for every value created by an op or factory; copies of a handle share it.
  std::uint64_t id() const { return block().id; }
  /// The dtype and the shape.
  Spec spec() const { return {dtype(), shape()}; }

  /// The elements in row-major order. Valid as long as this handle exists, hence deleted for temporaries.
  /// Throws DTypeError if T is not the tensor's element type.
  template <class T> std::span<const T> data() const& {
    return {static_cast<const T*>(data_as(dtype_of<T>)), static_cast<std::size_t>(b_->size)};
  }
  template <class T> void data() const&& = delete;
  /// The single element, converted to T. Throws ShapeError unless the tensor has exactly one element.
  template <class T = double> T item() const {
    require_one();
    T out;
    detail::convert_to(*this, 0, 1, dtype_of<T>, &out);
    return out;
  }
  /// One element, converted to T; negative indices count from the end. Throws ShapeError if an index is out
  /// of range.
  template <class T = double> T at(std::initializer_list<std::int64_t> index) const {
    T out;
    detail::convert_to(*this, detail::offset_of(*this, {index.begin(), index.size()}), 1, dtype_of<T>, &out);
    return out;
  }
  /// All elements in row-major order, converted to T.
  template <class T = double> std::vector<T> to_vector() const {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> is packed: use to_vector<std::uint8_t>()");
    std::vector<T> out(static_cast<std::size_t>(size()));
    detail::convert_to(*this, 0, size(), dtype_of<T>, out.data());
    return out;
  }

  /// Parts of the tensor, like NumPy's brackets; include tapedeck/ops/slice.h, which defines Slice. x[2] is
  /// the third entry of axis 0, and x[{0, {1, 5}}] is strided_slice(x, {0, {1, 5}}).
  Tensor operator[](const Slice& at) const;
  Tensor operator[](std::initializer_list<Slice> at) const;
  /// The entries of axis 0 at integer indices, like gather(x, at), or where bools are true, like
  /// boolean_mask(x, at).
  Tensor operator[](const Tensor& at) const;

  /// For kernels: true if no other handle or tensor shares the memory, so that it may be overwritten.
  bool unique() const {
    return b_->refs.load(std::memory_order_acquire) == 1 &&
           (!b_->buffer || b_->buffer->refs.load(std::memory_order_acquire) == 1);
  }
  /// For the library: the memory. Only files that include lib/core/bytes.h can call it, that is kernels and
  /// code that moves whole buffers. Other code reads numbers by HostView or the functions above, which notify
  /// an active recording.
  template <class Door = detail::Bytes> std::byte* raw() const { return Door::of(*this); }
  /// Whether the tensor has elements, and their address, for comparisons.
  bool has_values() const { return b_->has_values(); }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(b_->data); }
  /// The state behind the handle.
  const detail::Block& block() const {
    if (!b_) [[unlikely]]
      detail::throw_undefined();
    return *b_;
  }
  detail::Block* handle() const { return b_; }
  static Tensor adopt(detail::Block* b) {
    Tensor t;
    t.b_ = b;
    return t;
  }

 private:
  const void* data_as(DType t) const;
  void require_one() const;
  void release() noexcept {
    // A sole owner needs no atomic read-modify-write.
    if (b_->refs.load(std::memory_order_acquire) == 1 ||
        b_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
      detail::free_block(b_);
  }

  detail::Block* b_ = nullptr;
};

/// Prints like NumPy: nested brackets, aligned columns, lines of up to 75 columns, long tensors abbreviated,
/// then the dtype unless it is f32. Numbers are printed with as many decimals as distinguish them, at most 8
/// (for a tensor of rank 0: as many as determine the number), and with exponents if their magnitudes are too
/// far apart. A stream precision other than the default, 6, replaces the 8; with std::fixed or
/// std::scientific, which choose the notation, all numbers have the stream's precision.
TAPEDECK_EXPORT std::ostream& operator<<(std::ostream& out, const Tensor& x);
TAPEDECK_EXPORT std::string to_string(const Tensor& x);

namespace detail {

/// The type in which a literal is stored: std::int64_t for 3LL and std::uint64_t for 3ULL, which are
/// different types on Linux.
template <class T> using Kept =
    std::conditional_t<std::is_same_v<T, long long>, std::int64_t,
                       std::conditional_t<std::is_same_v<T, unsigned long long>, std::uint64_t, T>>;
/// The dtype of a literal: default_dtype() for double, as in every other factory; the literal's own dtype for
/// other types.
template <class T> DType literal_dtype() {
  if constexpr (std::is_same_v<T, double>)
    return default_dtype();
  else
    return dtype_of<Kept<T>>;
}

template <class T> using List1 = std::initializer_list<T>;
template <class T> using List2 = std::initializer_list<List1<T>>;
template <class T> using List3 = std::initializer_list<List2<T>>;

/// Flattens nested lists in row-major order; throws ShapeError if rows differ in length.
template <class T> struct Flattened {
  static_assert(!std::is_same_v<T, bool>, "write 0 and 1 with DType::boolean");
  std::vector<Kept<T>> values;
  Shape shape;

  template <class L> explicit Flattened(const L& list) { describe(list), append(list, 0); }

 private:
  void describe(const T&) {}
  template <class U> void describe(const std::initializer_list<U>& list) {
    shape.push_back(static_cast<std::int64_t>(list.size()));
    if (list.size()) describe(*list.begin());
  }
  void append(const T& v, int) { values.push_back(Kept<T>(v)); }
  template <class U> void append(const std::initializer_list<U>& list, int depth) {
    if (static_cast<std::int64_t>(list.size()) != shape[depth])
      throw ShapeError("tensor: the rows of the list differ in length");
    for (const U& e : list)
      append(e, depth + 1);
  }
};
template <class T, class L> Tensor tensor_from_list(const L& list, std::optional<DType> dtype) {
  const Flattened<T> flat(list);
  return tensor_from(flat.values.data(), dtype_of<Kept<T>>, flat.shape, dtype ? *dtype : literal_dtype<T>());
}

/// A number, or braces around numbers whose types differ, nested or not.
class TAPEDECK_EXPORT Mixed {
 public:
  template <class T>
  requires((std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) || HalfNumber<T> || ComplexNumber<T>)
      Mixed(T v)
      : values_(of(Kept<T>(v))), dtype_(literal_dtype<T>()) {}
  Mixed(std::initializer_list<Mixed> list);

  Tensor tensor(std::optional<DType> dtype) const;

 private:
  template <class T> static Tensor of(T v) { return tensor_from(&v, dtype_of<T>, {}, dtype_of<T>); }

  Tensor values_;   // doubles are stored in f64
  DType dtype_ = DType::f32;
};

}   // namespace detail

/// A tensor of rank 0. A double becomes default_dtype(), f32, unless `dtype` is given; other types keep their
/// own dtype.
template <class T>
requires(std::is_arithmetic_v<T> || HalfNumber<T> || ComplexNumber<T>) Tensor
    tensor(T value, std::optional<DType> dtype = {}) {
  const detail::Kept<T> kept(value);
  return detail::tensor_from(&kept, dtype_of<detail::Kept<T>>, {},
                             dtype ? *dtype : detail::literal_dtype<T>());
}
// The nested types are written out because clang 14 does not deduce through an alias.

/// A tensor from nested braces: tensor({{1.0, 2.0}, {3.0, 4.0}}) is f32[2,2]. Doubles become default_dtype(),
/// f32, unless `dtype` is given. Throws ShapeError if rows differ in length.
template <class T> Tensor tensor(std::initializer_list<T> v, std::optional<DType> dtype = {}) {
  return detail::tensor_from_list<T>(v, dtype);
}
template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> v, std::optional<DType> dtype = {}) {
  return detail::tensor_from_list<T>(v, dtype);
}
template <class T> Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> v,
                                 std::optional<DType> dtype = {}) {
  return detail::tensor_from_list<T>(v, dtype);
}
template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>> v,
              std::optional<DType> dtype = {}) {
  return detail::tensor_from_list<T>(v, dtype);
}

/// A tensor from numbers of several types, with braces nested to any depth. The dtype is default_dtype() if a
/// number is a double, so that tensor({1, 2.5}) is f32[2], and complex if a number is complex; integers are
/// promoted.
inline Tensor tensor(const detail::Mixed& numbers, std::optional<DType> dtype = {}) {
  return numbers.tensor(dtype);
}

/// Copies values given in row-major order; their C++ type determines the dtype. Throws ShapeError if the
/// number of values does not match the shape.
template <class T> Tensor tensor(std::span<const T> values, const Shape& shape) {
  if (static_cast<std::int64_t>(values.size()) != shape.size())
    throw ShapeError("tensor: " + std::to_string(values.size()) + " values for shape " + to_string(shape));
  return detail::tensor_from(values.data(), dtype_of<T>, shape, dtype_of<T>);
}
template <class T> Tensor tensor(const std::vector<T>& values, const Shape& shape) {
  return tensor(std::span<const T>(values), shape);
}
template <class T> Tensor tensor(const std::vector<T>& values) {
  return tensor(std::span<const T>(values), {static_cast<std::int64_t>(values.size())});
}

}   // namespace tapedeck
