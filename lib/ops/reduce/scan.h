// The attributes of the scans.
#pragma once

namespace tapedeck {

struct ScanAttrs {
  int axis;
  bool exclusive, reverse;   // the axis counts from the end
};

struct LogSumAttrs {
  bool reverse;
};

}   // namespace tapedeck
