// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/io/output_file.hpp"
#include "dataplane/unit.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/instance.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace catena::dataplane {

/// Moves the lines of `instance` that are about the packets of `unit` into the unit.
void take_records(nf::Instance& instance, std::uint32_t position, Unit& unit);

/// Writes `--record FILE.jsonl`: one line per packet and NF decision, in packet order, within a packet in chain order.
/// Thread rule: one thread at a time.
class Recorder {
 public:
  /// `file`: opened and started. `nfs`: the chain's instances, by position.
  Recorder(OutputFile file, std::vector<nf::Instance const*> nfs) : file_(std::move(file)), nfs_(std::move(nfs)) {}
  /// Writes the unit's lines; the unit then has none. DataLoss if the file cannot be written.
  Status write(Unit& unit);
  /// Writes out what is buffered and closes the file; often is no harm. DataLoss as write().
  Status finish();

 private:
  static constexpr std::size_t kBufferBytes = 64 << 10;
  Status flush();

  OutputFile file_;
  std::vector<nf::Instance const*> nfs_;
  std::string text_;  ///< lines that are not in the file yet
};

}  // namespace catena::dataplane
