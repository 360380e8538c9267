// The limits by which an elementwise pass chooses its path, and the sizes of its blocks and pieces, in
// elements where nothing else is said. docs/inside/elementwise.md describes the paths. Limits that decide how
// a sum is split also decide its bits.
#pragma once
#include <cstdint>

#include "core/parallel.h"

namespace tapedeck::kernels {

/// The most inputs of an elementwise op with a fused derivative; dispatch takes as many inputs without an
/// allocation. Arrays of operands and results in the loops have this size.
inline constexpr int kFusedInputs = 4;
/// The most operands of a loop: a jvp reads the inputs, the output, and a tangent for each input.
inline constexpr int kMaxOperands = 2 * kFusedInputs + 1;
/// The most operands that broadcast in one pass: the inputs of a user's map.
inline constexpr int kMaxBroadcast = 16;

/// How elementwise passes are cut for threads: a piece is worth a task, and less than `least` is not worth
/// waking threads for (core/parallel.h).
inline constexpr Cut kElementwise = {1 << 14, 1 << 17};
/// Whether a pass has too few elements for a second thread.
inline bool is_few(std::int64_t n) { return n < kElementwise.least; }
/// The same for comparisons and selections.
inline constexpr Cut kCompareCut = {1 << 15, 1 << 17};
/// The same for complex numbers that are made or taken apart.
inline constexpr Cut kComplexPartsCut = {1 << 14, 1 << 17};

/// The longest piece of a forward pass over rows that share a row of an operand: the piece of that row stays
/// in the L1 cache while all rows are processed.
inline constexpr std::int64_t kSharedPiece = 2048;

/// The most elements of a block of short rows, whose operands are written out to buffers of this size.
inline constexpr std::int64_t kShortBlock = 1024;
/// The most elements of a short row, so that a block has at least four of them. A row that is taken by itself
/// costs some 20 ns in addition to its elements. Up to here, gradients of broadcast operands are the op sum,
/// too, since the pass would add up a few elements at a time.
inline constexpr std::int64_t kShortRow = kShortBlock / 4;
/// The same where an operand has a single element per row, since repeating elements takes longer than
/// repeating whole rows.
inline constexpr std::int64_t kRepeatedRow = kShortRow / 2;
/// The fewest adjacent rows that are taken together.
inline constexpr std::int64_t kFewestShortRows = 4;

/// The elements of a block of halves, converted to f32 in buffers that stay in the L1 cache. A multiple of
/// the groups of f32 and of halves.
inline constexpr std::int64_t kHalfBlock = 512;

/// The elements in a block of a vjp's loop, a kilobyte: what is added or summed is buffered there.
template <class T> inline constexpr std::int64_t kVjpBlock = 1024 / static_cast<std::int64_t>(sizeof(T));
/// The gradient of a single element is a sum over pieces of this size, whose sums are added pairwise, so that
/// errors grow with log n.
inline constexpr std::int64_t kSumPiece = 4096;
/// The most numbers of a pairwise sum that are added one after the other, where the recursion ends.
inline constexpr std::int64_t kPairwiseEnd = 8;

/// The least elements of a band, on average, in a pass over rows that sums gradients; also the elements of a
/// part of a row, into which rows of more than twice as many are cut.
inline constexpr std::int64_t kGradientBand = 1 << 14;
/// The fewest steps to divide into bands, if the axes outside the rows have as many: further inner axes count
/// as steps until this number is reached.
inline constexpr std::int64_t kFewestSteps = 8;
/// The most bands of a pass, each of which may have a copy of a gradient.
inline constexpr std::int64_t kMostBands = 32;
/// All copies of a gradient for bands have together at most the elements of the pass, divided by this, to
/// stay small compared with the operands.
inline constexpr std::int64_t kCopiesShare = 4;

/// The elements of a block of add_n, which stays in the L1 cache while all terms are added.
inline constexpr std::int64_t kAddNBlock = 4096;
/// How add_n is cut for threads: into whole blocks.
inline constexpr Cut kAddNCut = {4 * kAddNBlock, 16 * kAddNBlock};

/// The fewest elements for which a recorded vjp runs as one op by a pass, if its rule has one: fewer stay in
/// the caches from one op to the next.
inline constexpr std::int64_t kRecordedPassLeast = 1 << 14;

/// The most stacked directions of a user's map that take a pass each where it has fewer results: each pass
/// computes the function again. For more directions, partials are computed once, and multiplied.
inline constexpr std::int64_t kFewDirections = 4;

}   // namespace tapedeck::kernels
