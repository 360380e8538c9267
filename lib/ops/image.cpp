// Images [batch, height, width, channels]. In: images of one size. Out: images of another, crops, colours.
#include "tapedeck/ops/image.h"

#include "tapedeck/op.h"

namespace tapedeck {

std::span<const Op> image_ops() { return {}; }

}  // namespace tapedeck
