// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>

namespace catena::hostcopy {

/// The NUMA node of each CPU of a machine. A value: any thread.
class NodeTable {
 public:
  /// Reads a folder as Linux makes it: for each CPU N a folder `cpuN` with an entry `nodeM`. A folder that cannot be
  /// read is a machine without nodes.
  static NodeTable read(std::filesystem::path const& folder = "/sys/devices/system/cpu");
  /// -1: the CPU is at no node, or is unknown.
  int node_of(int cpu) const;

 private:
  std::map<int, int> nodes_;  ///< by CPU
};

}  // namespace catena::hostcopy
