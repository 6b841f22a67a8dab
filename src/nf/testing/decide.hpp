// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <vector>

#include "nf/instance.hpp"

namespace catena::nf::testing {

/// The packets of the store in units as `options` wants them.
std::vector<packet::Batch> cut(PacketStore& store, RunOptions const& options);

/// Has the instance decide the units, on the CPU (`device` null) or on the device. It is not finished after that.
Status decide(Instance& instance, std::vector<packet::Batch> const& units, device::Device* device,
              RunOptions const& options);

}  // namespace catena::nf::testing
