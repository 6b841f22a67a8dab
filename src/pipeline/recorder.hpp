// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/output_file.hpp"
#include "nf/instance.hpp"
#include "pipeline/unit_records.hpp"

#include <catena/core/status.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace catena::runtime {

/// Moves the record lines and alerts of `instance` about a unit's packets, which are in order, to `lines`.
void take_lines(nf::Instance& instance, std::uint32_t position, packet::Batch const& unit, UnitRecords& lines);

struct RecorderOptions {
  std::string chain;                     ///< its name
  bool numbers_frames = false;           ///< rx is a capture: alerts name their frame, from 1
  std::vector<nf::Instance const*> nfs;  ///< the chain's, by position
};

/// Writes the NFs' lines about packets, in packet order, within a packet in chain order: `--record FILE.jsonl`, a line
/// per packet and decision, and `--eve FILE`, a line per alert. Thread rule: one thread at a time.
class Recorder {
 public:
  /// `record` and `eve`: opened and started, if wanted.
  Recorder(RecorderOptions options, std::optional<io::OutputFile> record, std::optional<io::OutputFile> eve)
      : options_(std::move(options)), record_(std::move(record)), eve_(std::move(eve)) {}
  /// Further lines are of these NFs, of the chain that continues the files.
  void name_by(std::vector<nf::Instance const*> nfs) { options_.nfs = std::move(nfs); }
  /// Writes a unit's lines through to the files, and empties `lines`. DataLoss if a file cannot be written.
  Status write(UnitRecords& lines);
  /// Closes the files; may be called repeatedly. DataLoss as write().
  Status finish();

 private:
  RecorderOptions options_;
  std::optional<io::OutputFile> record_;
  std::optional<io::OutputFile> eve_;
  std::string text_;  ///< a unit's lines, before the write
};

}  // namespace catena::runtime
