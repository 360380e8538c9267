// The geometry of a window that slides over images [height, width, channels] or volumes: the positions that
// its elements, the cells, read, and how images are cut into tasks.
#pragma once
#include <algorithm>
#include <cstdint>

namespace tapedeck::kernels {

/// One axis. Cell k of output o reads position o · stride + k · dilation - before, which is padding if it is
/// outside of the image.
struct WindowAxis {
  std::int64_t extent, size, stride, dilation, before, outputs;

  std::int64_t position(std::int64_t output, std::int64_t cell) const {
    return output * stride + cell * dilation - before;
  }
  /// The first cell of an output that reads position `from` or a later one.
  std::int64_t cell_at(std::int64_t output, std::int64_t from) const {
    return std::clamp<std::int64_t>(ceil_of(from - position(output, 0), dilation), 0, size);
  }
  /// All outputs that can read positions [from, to) are in [output_begin(from), output_end(to)).
  std::int64_t output_begin(std::int64_t from) const {
    return std::clamp<std::int64_t>(ceil_of(from + before - (size - 1) * dilation, stride), 0, outputs);
  }
  std::int64_t output_end(std::int64_t to) const {
    return std::clamp<std::int64_t>(ceil_of(to + before, stride), 0, outputs);
  }
  /// Whether output i reads just position i.
  bool is_identity() const { return size == 1 && stride == 1 && before == 0 && outputs == extent; }

  WindowAxis transposed() const {
    return {outputs, size, 1, dilation, (size - 1) * dilation - before, extent};
  }

  friend bool operator==(const WindowAxis&, const WindowAxis&) = default;

 private:
  static std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }
};

struct Window2d {
  WindowAxis rows, columns;

  std::int64_t cells() const { return rows.size * columns.size; }
  std::int64_t pixels() const { return rows.extent * columns.extent; }      // per image
  std::int64_t outputs() const { return rows.outputs * columns.outputs; }   // per image of the output

  friend bool operator==(const Window2d&, const Window2d&) = default;
};

/// A window over volumes [depth, height, width, channels]. Images and sequences use kOne for missing axes.
struct Window3d {
  WindowAxis planes;
  Window2d plane;

  std::int64_t cells() const { return planes.size * plane.cells(); }
  std::int64_t pixels() const { return planes.extent * plane.pixels(); }
  std::int64_t outputs() const { return planes.outputs * plane.outputs(); }
  bool has_strides_of_one() const {
    return planes.stride == 1 && plane.rows.stride == 1 && plane.columns.stride == 1;
  }
  /// The window of the transposed convolution, from outputs to inputs; for strides of 1.
  Window3d transposed() const {
    return {planes.transposed(), {plane.rows.transposed(), plane.columns.transposed()}};
  }

  friend bool operator==(const Window3d&, const Window3d&) = default;
};
inline constexpr WindowAxis kOne{1, 1, 1, 1, 0, 1};

/// Cuts images into tasks that own disjoint rows: several whole images each, or a band of rows of one image.
/// Depends on sizes alone.
class RowTasks {
 public:
  /// `work` is the cost of one image. Tasks cost about `wanted`, but bands are wide compared with the rows
  /// that windows of neighbouring bands share.
  RowTasks(const WindowAxis& rows, std::int64_t images, double work, double wanted)
      : images_(images), rows_(rows.extent), band_(rows.extent) {
    const double shared = static_cast<double>(rows.size - 1) * static_cast<double>(rows.dilation);
    const double parts = std::min(work / wanted, static_cast<double>(rows_) / (8 * shared + 1));
    if (work < wanted)
      together_ = static_cast<std::int64_t>(std::min(wanted / std::max(work, 1.0), 1e9));
    else if (parts >= 2)
      band_ = (rows_ + static_cast<std::int64_t>(parts) - 1) / static_cast<std::int64_t>(parts);
    bands_ = rows_ ? (rows_ + band_ - 1) / band_ : 1;
  }

  struct Task {
    std::int64_t image_begin, image_end, row_begin, row_end;
  };
  std::int64_t count() const { return bands_ > 1 ? images_ * bands_ : (images_ + together_ - 1) / together_; }
  Task operator[](std::int64_t i) const {
    if (bands_ > 1)
      return {i / bands_, i / bands_ + 1, i % bands_ * band_, std::min((i % bands_ + 1) * band_, rows_)};
    return {i * together_, std::min((i + 1) * together_, images_), 0, rows_};
  }

 private:
  std::int64_t images_, rows_, band_, bands_, together_ = 1;
};

}   // namespace tapedeck::kernels
