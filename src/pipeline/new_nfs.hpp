// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "nf/instance.hpp"
#include "nf/named_files.hpp"
#include "pipeline/device_stage.hpp"
#include "pipeline/nf_builder.hpp"
#include "pipeline/nf_making.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace catena::runtime {

/// NFs made beside a running chain, to replace its NF at one position, or its NFs in one process.
struct NewNfs {
  std::size_t first = 0;  ///< position of the first NF
  /// For each NF, for each of its shards.
  std::vector<std::vector<std::unique_ptr<nf::Instance>>> instances = {};
  std::vector<std::unique_ptr<DeviceStage::DeviceBinding>> bindings = {};  ///< for each shard, of one NF on a device
  std::vector<std::vector<nf::NamedFile>> files = {};                      ///< for each NF
  std::vector<std::vector<nf::NamedKey>> keys = {};                        ///< for each NF
  std::vector<std::optional<Content>> contents = {};  ///< for each NF, from before it read its files
  bool is_isolated = false;
  bool has_started = false;  ///< the process has made them

  /// Makes the NFs of `group` in `shards` shards, with their files and keys. Errors: as NfBuilder::make() and
  /// replicate().
  Status make(NfBuilder const& builder, std::span<const chain::NfConfig> group, std::uint32_t shards,
              nf::NamedFiles const& collector);
  /// A line for each NF, with its start report.
  std::vector<std::string> describe() const;
};

}  // namespace catena::runtime
