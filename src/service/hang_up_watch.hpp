// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

namespace catena::service {

/// Detects the closing of Unix connections with pending requests by their clients. A client that only ends its own
/// direction (shutdown(2)) still wants the response. Any thread.
class HangUpWatch {
 public:
  /// A watched connection, for the lifetime of this object.
  class Watched {
   public:
    ~Watched();
    Watched(Watched const&) = delete;
    Watched& operator=(Watched const&) = delete;

    /// Stop is requested when the client has closed the connection.
    std::stop_token gone() const { return gone_.get_token(); }

   private:
    friend class HangUpWatch;
    Watched(HangUpWatch& watch, int socket);

    HangUpWatch& watch_;
    int socket_;
    std::uint64_t number_ = 0;
    std::stop_source gone_;
  };

  /// ResourceExhausted without a thread or descriptor for it.
  static Result<std::unique_ptr<HangUpWatch>> start();
  ~HangUpWatch();
  HangUpWatch(HangUpWatch const&) = delete;
  HangUpWatch& operator=(HangUpWatch const&) = delete;

  /// `socket` must stay open for the lifetime of the result, and have no other watch.
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
  std::mutex mutex_;    ///< guards the following members
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Entry> watched_;  ///< by number; a descriptor may be reused for another connection
  std::thread thread_;
};

}  // namespace catena::service
