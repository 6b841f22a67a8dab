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

#include "gpu/device/device.hpp"

namespace catena::device::remote {

/// Judges the source of an untrusted client. Returns the launch form of its kernels, or an error with the position of a
/// forbidden construct. Any thread.
using SourceJudge = std::function<Result<LaunchForm>(ProgramSource const&)>;

/// A program that an untrusted client may load.
struct Compiled {
  std::shared_ptr<const Binary> binary;
  std::optional<LaunchForm> form;  ///< nullopt: compiled without a judge
};

/// Keeps programs compiled for untrusted clients longer than the lifetime of a server. Any thread.
class BinaryStore {
 public:
  BinaryStore() = default;
  BinaryStore(BinaryStore const&) = delete;
  BinaryStore& operator=(BinaryStore const&) = delete;
  virtual ~BinaryStore() = default;
  /// The binary compiled from `source`, loadable on the server's device; nullopt if not known.
  virtual std::optional<Binary> find(ProgramSource const& source) = 0;
  virtual void keep(ProgramSource const& source, Binary const& binary) = 0;
};

/// Compiles programs for untrusted clients. A source is judged before a compiler sees it. Programs are kept, so that a
/// restarted process does not wait for the compiler. Any thread.
class Compilations {
 public:
  /// `judge` null: every source may be compiled. `store` null: programs are not kept beyond this object. Device and
  /// store must outlive this.
  Compilations(Device& device, SourceJudge judge, BinaryStore* store)
      : device_(&device), judge_(std::move(judge)), store_(store) {}

  /// Errors: the judge's; as Device::compile().
  Result<Compiled> compile(ProgramSource const& source);

 private:
  /// Limit of all sources and binaries together; the oldest are removed.
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  struct Known {
    std::string source;  ///< full text: a hash could be forged
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
  std::list<Known> known_;  ///< most recently used first
  std::size_t bytes_ = 0;
};

}  // namespace catena::device::remote
