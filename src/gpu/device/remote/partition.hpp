// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/remote/device.hpp"

namespace catena::device::remote {

class RemotePartition final : public Partition {
 public:
  RemotePartition(std::shared_ptr<Connection> connection, std::uint32_t number, std::uint32_t compute_units)
      : connection_(std::move(connection)), number_(number), compute_units_(compute_units) {}
  ~RemotePartition() override { connection_->free(Kind::kPartition, number_); }
  std::uint32_t compute_units() const override { return compute_units_; }
  std::uint32_t number() const { return number_; }

 private:
  std::shared_ptr<Connection> connection_;
  std::uint32_t number_;
  std::uint32_t compute_units_;
};

}  // namespace catena::device::remote
