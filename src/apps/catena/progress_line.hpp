// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profile/cost_measure.hpp"

namespace catena::cli {

/// Progress of a measurement on standard error: a bar on a terminal, else one line per tenth.
class ProgressLine {
 public:
  ProgressLine();
  void show(profile::MeasureProgress const& progress);

 private:
  bool terminal_;
  unsigned next_tenth_ = 0;
};

}  // namespace catena::cli
