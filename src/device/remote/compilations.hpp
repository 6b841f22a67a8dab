// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "device/device.hpp"

namespace catena::device::remote {

/// How the kernels of what a stranger sent are launched; an error says where it does what no kernel may. Any thread.
using SourceJudge = std::function<Result<LaunchForm>(ProgramSource const&)>;

/// What may be loaded for a stranger.
struct Compiled {
  std::shared_ptr<const Binary> binary;
  std::optional<LaunchForm> form;  ///< none: of no judge
};

/// Keeps what was compiled for strangers longer than a server lives. Any thread.
class BinaryStore {
 public:
  BinaryStore() = default;
  BinaryStore(BinaryStore const&) = delete;
  BinaryStore& operator=(BinaryStore const&) = delete;
  virtual ~BinaryStore() = default;
  /// What `source` was compiled to: it loads on the server's device. None where that is not known.
  virtual std::optional<Binary> find(ProgramSource const& source) = 0;
  virtual void keep(ProgramSource const& source, Binary const& binary) = 0;
};

/// What a server compiles for clients that it does not trust. A source is judged before a compiler sees it; what came
/// of it is kept, so that a process which is started again waits for no compiler. Any thread.
class Compilations {
 public:
  /// `judge` null: every source may be compiled; `store` null: all is forgotten at the end. Device and store outlive
  /// this.
  Compilations(Device& device, SourceJudge judge, BinaryStore* store)
      : device_(&device), judge_(std::move(judge)), store_(store) {}

  /// Errors: those of the judge; as Device::compile().
  Result<Compiled> compile(ProgramSource const& source);

 private:
  /// Together, of sources and binaries; the oldest are forgotten.
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  struct Known {
    std::string source;  ///< all of it: a hash could be forged
    Compiled compiled;
    std::size_t bytes() const { return source.size() + compiled.binary->size(); }
  };
  std::optional<Compiled> find(std::string const& source);
  Result<Binary> compile_now(ProgramSource const& source);
  void keep(std::string source, Compiled compiled);

  Device* device_;
  SourceJudge judge_;
  BinaryStore* store_;
  std::mutex mutex_;
  std::list<Known> known_;  ///< the one used last first
  std::size_t bytes_ = 0;
};

}  // namespace catena::device::remote
