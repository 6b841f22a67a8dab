// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/unit.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/instance.hpp>

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace catena::dataplane {

/// Moves the lines of `instance` that are about the packets of `unit` into the unit.
void take_records(nf::Instance& instance, std::uint32_t position, Unit& unit);

/// Writes `--record FILE.jsonl`: one line per packet and NF decision, in packet order, within a packet in chain order.
/// Thread rule: one thread at a time.
class Recorder {
 public:
  /// `nfs`: the chain's instances, by position. PermissionDenied or NotFound if the file cannot be created.
  static Result<std::unique_ptr<Recorder>> open(std::string const& path, std::vector<nf::Instance const*> nfs);
  /// Writes the unit's lines; the unit then has none. DataLoss if the file cannot be written.
  Status write(Unit& unit);
  Status finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Recorder() = default;
  std::string path_;
  std::vector<nf::Instance const*> nfs_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace catena::dataplane
