// The attributes of ops as JSON, for scripts/oracle.
#pragma once
#include <nlohmann/json.hpp>

#include "tapedeck/op.h"

namespace tapedeck::test {

/// The fields in their order; of axes in a bit mask, the list of axes, which count from the end. Null for
/// attributes that no oracle needs.
nlohmann::json shown(const Attrs& a);

}   // namespace tapedeck::test
