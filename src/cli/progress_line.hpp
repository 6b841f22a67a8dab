// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profile/cost_measure.hpp"

namespace catena::cli {

/// How far a measurement is, on standard error: a bar on a terminal, else a line for each tenth.
class ProgressLine {
 public:
  ProgressLine();
  void show(profile::MeasureProgress const& progress);

 private:
  bool terminal_;
  unsigned next_tenth_ = 0;
};

}  // namespace catena::cli
