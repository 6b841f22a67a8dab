// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "device/device.hpp"

namespace catena::device::remote {

/// Whether what a stranger sent may be compiled: an error says where it does what no kernel may. Any thread.
using SourceJudge = std::function<Status(ProgramSource const&)>;

/// What a server compiles for clients that it does not trust. A source is judged before a compiler sees it; what came
/// of it is kept, so that a process which is started again waits for no compiler. Any thread.
class Compilations {
 public:
  /// Null: every source may be compiled. Both outlive this.
  Compilations(Device& device, SourceJudge judge) : device_(&device), judge_(std::move(judge)) {}

  /// Errors: those of the judge; as Device::compile().
  Result<std::shared_ptr<const Binary>> compile(ProgramSource const& source);

 private:
  /// Together, of sources and binaries; the oldest are forgotten.
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  struct Known {
    std::string source;  ///< all of it: a hash could be forged
    std::shared_ptr<const Binary> binary;
    std::size_t bytes() const { return source.size() + binary->size(); }
  };
  std::shared_ptr<const Binary> find(std::string const& source);
  void keep(std::string source, std::shared_ptr<const Binary> binary);

  Device* device_;
  SourceJudge judge_;
  std::mutex mutex_;
  std::list<Known> known_;  ///< the one used last first
  std::size_t bytes_ = 0;
};

}  // namespace catena::device::remote
