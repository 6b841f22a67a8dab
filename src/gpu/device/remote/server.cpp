// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/remote/server.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/remote/client_session.hpp"

#include <array>
#include <exception>
#include <list>
#include <mutex>
#include <thread>

#include <poll.h>

namespace catena::device::remote {
namespace {

using Clock = std::chrono::steady_clock;

class Server {
 public:
  Server(Device& device, FileDescriptor control, ServerLimits const& limits, BlackBox& box, void (*end_process)(int),
         SourceJudge judge, BinaryStore& store)
      : device_(&device),
        control_(std::move(control)),
        limits_(limits),
        box_(&box),
        end_(end_process),
        compilations_(device, std::move(judge), &store) {}

  [[noreturn]] void run() {
    box_->has_device.store(1);
    for (;;) {
      std::array<pollfd, 1> fds{{{control_.get(), POLLIN, 0}}};
      const int period_ms = static_cast<int>(std::clamp<std::int64_t>(limits_.launch.count() / 8, 1, 50));
      if (poll(fds.data(), fds.size(), period_ms) > 0) {
        take_client();
      }
      serve_clients();
    }
  }

 private:
  struct Client {
    std::thread thread;
    std::atomic<bool> is_gone{false};
    BlackBox::Client* box = nullptr;
  };

  void end(int code, std::string_view why) {
    const std::scoped_lock lock(ending_);
    box_->reason.set(why);
    box_->has_reason.store(1, std::memory_order_release);
    end_(code);
  }

  void take_client() {
    Result<ipc::Frame> frame = ipc::receive_frame(control_.get(), kMaxFrameBytes);
    if (!frame.ok()) {
      end(kExitSupervisorGone, "the supervisor is gone");
    }
    ipc::Reader body(frame->body);
    const auto number = body.take<std::uint32_t>();
    const bool is_trusted = body.take<Trust>() == Trust::kOwn;
    BlackBox::Client* box = nullptr;
    for (BlackBox::Client& free : box_->clients) {
      if (free.number.load() == 0) {
        box = &free;
        break;
      }
    }
    if (box == nullptr || !frame->fd) {
      return;  // the socket closes: its client learns that there is no room
    }
    box->working_since.store(0);
    box->number.store(number);
    Client& client = clients_.emplace_back();
    client.box = box;
    client.thread = std::thread([this, &client, is_trusted, socket = std::move(frame->fd)]() mutable {
      serve_client(std::move(socket), is_trusted, *client.box);
      if (const Status status = device_->failed(); !status.ok()) {
        end(kExitDeviceFailed, std::string(status.message()));
      }
      client.is_gone.store(true, std::memory_order_release);
    });
  }

  /// How it ends is the client's matter.
  void serve_client(FileDescriptor socket, bool is_trusted, BlackBox::Client& box) {
    try {
      ClientSession session(*device_, std::move(socket), limits_, box, is_trusted ? nullptr : &compilations_,
                            limits_.one_at_a_time ? &serializer_ : nullptr);
      static_cast<void>(session.run());
    } catch (std::exception const&) {  // out of memory or threads: no reason to end for the others
    }
  }

  void serve_clients() {
    for (auto client = clients_.begin(); client != clients_.end();) {
      if (client->is_gone.load(std::memory_order_acquire)) {
        client->thread.join();
        client->box->working_since.store(0);
        client->box->number.store(0);
        client = clients_.erase(client);
        continue;
      }
      const std::int64_t since = client->box->working_since.load(std::memory_order_acquire);
      const std::chrono::nanoseconds took(Clock::now().time_since_epoch().count() - since);
      if (since != 0 && took > limits_.launch) {
        end(kExitEndless, concat("work on the device has not ended within ", limits_.launch.count(), " ms"));
      }
      ++client;
    }
    if (const Status status = device_->failed(); !status.ok()) {
      end(kExitDeviceFailed, std::string(status.message()));
    }
  }

  Device* device_;
  FileDescriptor control_;
  ServerLimits limits_;
  BlackBox* box_;
  void (*end_)(int);
  Compilations compilations_;
  StreamSerializer serializer_;
  std::mutex ending_;
  std::list<Client> clients_;
};

}  // namespace

void serve(Device& device, FileDescriptor control, ServerLimits const& limits, BlackBox& box, void (*end_process)(int),
           SourceJudge judge, BinaryStore& store) {
  Server(device, std::move(control), limits, box, end_process, std::move(judge), store).run();
}

}  // namespace catena::device::remote
