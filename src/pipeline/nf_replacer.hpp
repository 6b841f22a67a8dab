// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "chain/named_files.hpp"
#include "nf/registry.hpp"
#include "pipeline/device_manager.hpp"
#include "pipeline/new_nfs.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/run_options.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/persistent.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace catena::runtime {

/// Replaces NFs of a running chain by NFs with another configuration. Stages take them at the first unit of their
/// version (see PendingReplacement). The chain, the entries of its NFs and the bindings of its stages are read and
/// changed with lock() held.
class NfReplacer {
 public:
  /// All outlive this.
  NfReplacer(chain::ChainConfig& chain, RunOptions const& options, Pipeline& pipeline, DeviceManager& devices)
      : chain_(chain), options_(options), pipeline_(pipeline), devices_(devices) {}
  NfReplacer(NfReplacer const&) = delete;
  NfReplacer& operator=(NfReplacer const&) = delete;

  /// Of the NFs, for the units that rx receives. Any thread.
  std::atomic<std::uint32_t> const& version() const { return version_; }
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  /// The same for a device that is bound again; no lock if another thread has it, or if replacements are pending.
  std::unique_lock<std::mutex> admit_recovery();

  // With lock().
  /// As Session::change(). `next`: as read from its file.
  Result<std::vector<std::string>> change(chain::ChainConfig next, nf::Registry const& registry,
                                          std::set<std::uint32_t> const& new_keys, std::stop_token const& give_up);
  /// As Session::preview_change(); likewise.
  Result<std::vector<std::string>> preview(chain::ChainConfig next, nf::Registry const& registry,
                                           std::set<std::uint32_t> const& new_keys,
                                           std::stop_token const& give_up) const;
  /// Number of pending changes, of the stage with the largest number.
  std::size_t waiting() const;

 private:
  Result<std::vector<NewNfs>> make(chain::ChainConfig& next, nf::Registry const& registry,
                                   std::stop_token const& give_up) const;
  std::vector<chain::KeysOfNf> keys_with(std::span<const NewNfs> all, chain::ChainConfig const& next) const;
  Result<std::vector<NewNfs>> make_checked(chain::ChainConfig& next, nf::Registry const& registry,
                                           std::stop_token const& give_up) const;
  Status can_change() const;
  Status check(NewNfs const& made) const;
  Status prepare_migration(NewNfs& made, nf::RunContext const& context) const;
  Status attach(NewNfs& made) const;
  Status start(NewNfs& made, chain::ChainConfig const& next, nf::RunContext const& context) const;
  void publish(std::vector<NewNfs> all, chain::ChainConfig const& next);
  void reclaim();
  bool is_describing(nf::Descriptor const& descriptor) const;

  chain::ChainConfig& chain_;
  RunOptions const& options_;
  Pipeline& pipeline_;
  DeviceManager& devices_;
  std::mutex mutex_;
  std::atomic<std::uint32_t> version_{0};
  std::vector<std::unique_ptr<nf::Instance>> kept_;  ///< replaced, but their descriptors are still in use
};

}  // namespace catena::runtime
