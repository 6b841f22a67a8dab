// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/instance.hpp"
#include "packet/memory/packet_pool.hpp"
#include "pipeline/classifier_stage.hpp"
#include "pipeline/device_recovery.hpp"
#include "pipeline/flow_control.hpp"
#include "pipeline/host_stages.hpp"
#include "pipeline/isolation/isolated_nf.hpp"
#include "pipeline/stage.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace catena::runtime {

/// An NF in one shard.
struct CountedNf {
  std::size_t shard = 0;
  nf::Instance* instance = nullptr;
  nf_process::IsolatedNf const* isolated = nullptr;  ///< as in NfEntry
  PacketStage const* stage = nullptr;                ///< null: an earlier NF in the same process has the stage
  bool is_kept = false;  ///< it still processes packets of the chain before, and cannot be asked
};

/// A branch of a graph in one shard.
struct CountedBranch {
  std::size_t shard = 0;
  ClassifierStage const* stage = nullptr;
};

/// The counting parts of a chain.
struct CountedParts {
  std::vector<RxStage const*> rx = {};
  std::vector<TxStage const*> tx = {};  ///< as many
  std::vector<memory::PacketPool const*> pools = {};
  std::vector<CountedNf> nfs = {};
  std::vector<CountedBranch> branches = {};  ///< of a graph
  std::vector<std::string> names = {};       ///< of the NFs, by their numbers in the tables of `branches`
  std::vector<ReshardStage const*> reshards = {};
  FlowControl const* flow = nullptr;
  DeviceRecovery const* recovery = nullptr;  ///< null: a lost device stays lost
};

}  // namespace catena::runtime
