// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/progress_line.hpp"

#include "apps/catena/style.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace catena::cli {

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(profile::MeasureProgress const& progress) {
  constexpr unsigned kWidth = 30;
  constexpr unsigned kTenths = 10;
  const unsigned total = std::max(1U, progress.total);
  if (terminal_) {
    const unsigned filled = progress.done * kWidth / total;
    // to the end of the line, so that nothing of a longer text stays
    write_control(std::cerr, "\r");
    std::cerr << fmt::format("[{:=<{}}{:<{}}] {}", "", filled, "", kWidth - filled, progress.what);
    write_control(std::cerr, "\x1b[K");
    std::cerr << (progress.done == total ? "\n" : "") << std::flush;
  } else if (const unsigned tenth = progress.done * kTenths / total; tenth >= next_tenth_) {
    std::cerr << fmt::format("{:>3} %  {}\n", tenth * 100 / kTenths, progress.what);
    next_tenth_ = tenth + 1;
  }
}

}  // namespace catena::cli
