// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/unit.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/instance.hpp>

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace catena::dataplane {

/// Whether lines are written about the packets of `unit`: rx notes their arrival then.
bool has_lines(nf::Instance& instance, Unit const& unit);
/// Moves the record lines and alerts of `instance` that are about the packets of `unit` into the unit.
void take_records(nf::Instance& instance, std::uint32_t position, Unit& unit);

struct RecorderOptions {
  std::string record_path;               ///< `--record`; empty: none
  std::string eve_path;                  ///< `--eve`; empty: none
  std::string chain;                     ///< its name
  bool numbers_frames = false;           ///< rx is a capture: alerts name their frame, from 1
  std::vector<nf::Instance const*> nfs;  ///< the chain's, by position
};

/// Writes what NFs say about packets, in packet order, within a packet in chain order: `--record FILE.jsonl`, a line
/// per packet and decision, and `--eve FILE`, a line per alert. Thread rule: one thread at a time.
class Recorder {
 public:
  /// PermissionDenied or NotFound, with the name, if a file cannot be created.
  static Result<std::unique_ptr<Recorder>> open(RecorderOptions options);
  /// Writes the unit's lines; the unit then has none. DataLoss if a file cannot be written.
  Status write(Unit& unit);
  Status finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  explicit Recorder(RecorderOptions options) : options_(std::move(options)) {}
  Status write_records(Unit& unit);
  Status write_alerts(Unit& unit);

  RecorderOptions options_;
  File record_;
  File eve_;
};

}  // namespace catena::dataplane
