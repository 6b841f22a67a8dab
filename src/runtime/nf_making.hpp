// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/nf_costs.hpp"
#include "chain/run_options.hpp"
#include "nf/instance.hpp"

#include <catena/nf/alert.hpp>

#include <optional>
#include <span>

/// What a session does with each NF that it makes, at its start and later.
namespace catena::runtime {

inline bool wants_records(chain::RunOptions const& options) {
  return options.with_records || !options.record_path.empty();
}

inline void keep_alerts(nf::Instance& instance) {
  if (auto* alerting = dynamic_cast<nf::Alerting*>(&instance.nf()); alerting != nullptr) {
    alerting->keep_alerts();
  }
}

/// What tells whether an NF would be made of the same again: its configuration, and what is in the files that it reads.
/// `files`: that it named when it was made. None: one cannot be read.
inline std::optional<chain::NfKey> content_of(chain::NfConfig const& config, std::span<const nf::NamedFile> files) {
  Result<chain::NfKey> key = chain::key_of_unmade(config, files);
  return key.ok() ? std::optional(*std::move(key)) : std::nullopt;
}

}  // namespace catena::runtime
