// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file_descriptor.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

namespace catena::service {

/// Notices that clients close Unix connections on which requests wait. One that only ends its own direction
/// (shutdown(2)) still wants the answer. Any thread.
class HangUpWatch {
 public:
  /// A connection that is watched, as long as this lives.
  class Watched {
   public:
    ~Watched();
    Watched(Watched const&) = delete;
    Watched& operator=(Watched const&) = delete;

    /// Asked to stop when the client has closed the connection.
    std::stop_token gone() const { return gone_.get_token(); }

   private:
    friend class HangUpWatch;
    Watched(HangUpWatch& watch, int socket);

    HangUpWatch& watch_;
    int socket_;
    std::uint64_t number_ = 0;
    std::stop_source gone_;
  };

  /// ResourceExhausted where there is no thread or descriptor for it.
  static Result<std::unique_ptr<HangUpWatch>> start();
  ~HangUpWatch();
  HangUpWatch(HangUpWatch const&) = delete;
  HangUpWatch& operator=(HangUpWatch const&) = delete;

  /// `socket` stays open as long as the result lives, and nothing else watches it.
  Watched watch(int socket) { return {*this, socket}; }

 private:
  struct Entry {
    int socket;
    std::stop_source gone;
  };

  HangUpWatch() = default;
  void run();

  FileDescriptor epoll_;
  FileDescriptor end_;  ///< readable when the thread is to end
  std::mutex mutex_;    ///< of what follows
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Entry> watched_;  ///< by number; a number of the system may be another connection's later
  std::thread thread_;
};

}  // namespace catena::service
