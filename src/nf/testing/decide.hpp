// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <vector>

#include "nf/instance.hpp"

namespace catena::nf::testing {

/// The packets of the store in units of the sizes in `options`.
std::vector<packet::Batch> cut(PacketStore& store, RunOptions const& options);

/// Processes the units with the instance, on the CPU (`device` null) or on the device. Does not call Nf::finish().
Status decide(Instance& instance, std::vector<packet::Batch> const& units, device::Device* device,
              RunOptions const& options);

}  // namespace catena::nf::testing
