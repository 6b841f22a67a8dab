// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "base/ipc/frames.hpp"
#include "base/ipc/mapping.hpp"
#include "base/ipc/message.hpp"
#include "gpu/device/remote/compilations.hpp"
#include "gpu/device/remote/protocol.hpp"
#include "gpu/device/remote/server.hpp"
#include "gpu/device/stream_serializer.hpp"

#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace catena::device::remote {

/// The server's state of one client. All input of the client is untrusted. One thread.
class ClientSession {
 public:
  /// `compilations`: source of the client's programs; null: the client is trusted and brings its own programs.
  /// `serializer`: serializes its launches with the launches of other clients; null: not serialized.
  ClientSession(Device& device, FileDescriptor socket, ServerLimits const& limits, BlackBox::Client& box,
                Compilations* compilations, StreamSerializer* serializer);
  ~ClientSession();
  ClientSession(ClientSession const&) = delete;
  ClientSession& operator=(ClientSession const&) = delete;

  /// Serves until the client is gone or violates the protocol; returns the reason. A permanent error of the device is
  /// reported by Device::failed().
  Status run();

 private:
  /// Bytes charged to a client's limit, released when no longer used.
  class Counted {
   public:
    Counted() = default;
    Counted(std::uint64_t& total, std::uint64_t bytes) : total_(&total), bytes_(bytes) { total += bytes; }
    Counted(Counted&& other) noexcept : total_(std::exchange(other.total_, nullptr)), bytes_(other.bytes_) {}
    Counted& operator=(Counted&& other) noexcept {
      std::swap(total_, other.total_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Counted() {
      if (total_ != nullptr) {
        *total_ -= bytes_;
      }
    }

   private:
    std::uint64_t* total_ = nullptr;
    std::uint64_t bytes_ = 0;
  };
  struct MemoryRange {
    ipc::Mapping mapping;
    Counted counted;
  };
  struct Memory {
    std::shared_ptr<MemoryRange>
        memory_range;  ///< the mapping under this window, destroyed after it; null: device memory
    std::unique_ptr<Buffer> buffer;
    Counted counted;  ///< charged to the client's device memory
  };
  /// Objects used by another one, and so destroyed after it.
  using Uses = std::vector<std::shared_ptr<const void>>;
  struct Recording {
    Uses uses;
    std::size_t launches = 0;
    std::unique_ptr<CommandBuffer> commands;
    std::vector<std::pair<Event*, std::uint32_t>> times;  ///< with their time slots
    std::string kernels;                                  ///< names
  };
  struct Loaded {
    std::unique_ptr<Program> program;
    std::optional<LaunchForm> form;  ///< of its kernels; nullopt: the client is trusted
    std::map<std::string, std::uint32_t, std::less<>> kernels;
  };
  struct KnownKernel {
    Kernel* kernel;
    std::uint32_t program;
    std::string name;
  };
  struct ReadyLaunch {
    KnownKernel const* kernel;
    LaunchShape shape;
    std::vector<KernelArgument> arguments;  ///< arguments by value point into the body of the command
    Uses uses;
  };
  /// An event awaited by the client, or by the session itself.
  struct Pending {
    std::uint64_t sequence;  ///< 0: awaited by the session
    std::shared_ptr<Event> event;
    std::uint32_t time_slot;
    std::vector<std::uint32_t> recordings;  ///< recordings with timestamps that ran before it
  };
  /// A launch serialized with launches of other clients.
  struct Turn {
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
  };
  struct ServedStream {
    std::unique_ptr<Stream> stream;
    ipc::Mapping memory;
    StreamPage* page;
    std::uint64_t head = 0;
    std::uint64_t last_sequence = 0;
    std::deque<Pending> pending;
    std::deque<Turn> serializer;     ///< unfinished, the oldest first
    std::vector<std::uint32_t> ran;  ///< recordings with timestamps since the last event
    bool has_work = false;           ///< after the last event
    bool needs_flush = false;        ///< the last event is a timestamp, which submits nothing to the device
    bool is_broken = false;
    bool is_held = false;    ///< its next command is a launch, and enough launches of the client are pending
    bool is_ending = false;  ///< freed by the client: ends with its work
    /// Start of work, or time of the last progress. 0: not busy, or waits for launches of others.
    std::int64_t working_since = 0;
    std::string kernels;                ///< names of the kernels launched last, up to an event
    bool kernels_are_complete = false;  ///< that event was recorded
    bool has_news = false;              ///< `kernels` is not in the black box yet

    void note(std::string_view launched);
    bool is_busy() const { return has_work || !pending.empty() || !serializer.empty(); }
    bool takes_commands() const { return !is_broken && !is_ending; }
  };
  /// An object freed while running work may use it.
  struct Grave {
    std::shared_ptr<void> content;
    std::vector<std::unique_ptr<Event>> until;
  };
  template <typename T>
  using Table = std::map<std::uint32_t, T>;

  // calls
  Status greet();
  Status take_frame();
  Status send_answer(std::uint32_t call, Result<ipc::Writer> const& answer, int fd);
  Result<ipc::Writer> answer(Call call, ipc::Reader& body, FileDescriptor fd, FileDescriptor& answer_fd);
  Result<ipc::Writer> allocate(ipc::Reader& body);
  Result<ipc::Writer> allocate_pinned(ipc::Reader& body, FileDescriptor& answer_fd);
  Result<ipc::Writer> map_host(ipc::Reader& body, FileDescriptor fd);
  Result<ipc::Writer> create_stream(ipc::Reader& body, FileDescriptor& answer_fd);
  Result<ipc::Writer> create_command_buffer(ipc::Reader& body);
  Result<ipc::Writer> record_launch(ipc::Reader& body);
  Result<ipc::Writer> record_timestamp(ipc::Reader& body);
  Result<ipc::Writer> divide(ipc::Reader& body);
  Status start_compiling(ipc::Frame frame);
  Status start_loading(ipc::Frame frame);
  ipc::Writer remember(Compiled compiled);
  Result<std::optional<LaunchForm>> form_of(std::span<const std::byte> binary) const;
  Status finish_slow_call();
  Result<ipc::Writer> find_kernel(ipc::Reader& body);
  Status free(ipc::Reader& body);
  Status clear(Buffer& buffer);

  Status serve();
  void finish_work();
  // commands
  Result<bool> take_commands(ServedStream& stream);
  Status do_command(ServedStream& stream, Command command, ipc::Reader& body);
  Status copy(ServedStream& stream, CopyCommand const& command);
  Result<ReadyLaunch> read_launch(ipc::Reader& body);
  Status in_turn(ServedStream& stream, std::function<Status()> const& launch);
  bool has_enough_turns() const;
  Status enqueue(ServedStream& stream, EnqueueCommand const& command, bool is_run);
  Status record(ServedStream& stream, RecordCommand const& command);
  void finish(ServedStream& stream, Status const& status, std::uint32_t reply_number);

  // progress of the device
  Result<bool> check(ServedStream& stream);
  Result<bool> check_streams();
  Result<bool> poll_events(ServedStream& stream);
  static Result<bool> poll_turns(ServedStream& stream);
  void write_times(Pending const& pending);
  /// Returns the time, or the reference's time if the event has no time.
  std::int64_t write_time(Event& event, std::uint32_t slot);
  Status mark_end(ServedStream& stream);
  Status end_stream(ServedStream& stream);
  void note_work();
  void note_start(ServedStream& stream);
  Status bury(std::shared_ptr<void> content);
  Status sweep();
  bool is_busy() const;
  Status pause(bool was_busy);
  bool has_commands() const;

  std::uint32_t next_number() { return ++last_number_; }
  /// Null if the client has no such object.
  template <typename T>
  static T* find(Table<T>& table, std::uint32_t number) {
    const auto found = table.find(number);
    return found == table.end() ? nullptr : &found->second;
  }
  static Status unknown(std::string_view kind, std::uint32_t number);
  template <typename T>
  static Status check_room(Table<T> const& table, std::string_view what, std::size_t max = kMaxObjects);

  /// A slow call, run in a thread of its own so that the client's streams do not wait. It returns the remaining work,
  /// which this thread runs to get the reply.
  struct SlowCall {
    std::uint32_t call;
    std::future<std::function<Result<ipc::Writer>()>> work;
  };

  Device* device_;
  FileDescriptor socket_;
  ServerLimits limits_;
  BlackBox::Client* box_;
  Compilations* compilations_;
  StreamSerializer* serializer_;
  std::deque<Compiled> compiled_;  ///< compiled for this client, which may load them
  ipc::FrameReader reader_;
  ipc::Mapping page_;
  FileDescriptor notifier_;
  FileDescriptor
      notifier_edges_;  ///< an edge-triggered epoll of notifier_, which the client shares and which is never read
  std::uint32_t last_number_ = 0;
  std::uint64_t device_bytes_ = 0;
  std::uint64_t host_bytes_ = 0;
  std::unique_ptr<Stream> own_stream_;
  std::shared_ptr<Event> reference_;  ///< a timestamp whose time is known
  std::int64_t reference_time_ = 0;
  // destroyed in reverse order: streams end before the objects used by them
  Table<std::shared_ptr<MemoryRange>> memory_ranges_;
  Table<std::shared_ptr<Memory>> buffers_;
  Table<std::shared_ptr<Partition>> partitions_;
  Table<std::shared_ptr<Loaded>> programs_;
  Table<KnownKernel> kernels_;
  Table<std::shared_ptr<Recording>> recordings_;
  std::vector<Grave> graves_;
  Table<ServedStream> streams_;
  std::optional<SlowCall> slow_call_;
  ServedStream const* noted_ = nullptr;  ///< stream shown in the black box
};

}  // namespace catena::device::remote
