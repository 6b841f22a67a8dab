// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/remote/compilations.hpp"
#include "device/remote/message.hpp"
#include "device/remote/protocol.hpp"
#include "device/remote/server.hpp"
#include "device/remote/socket.hpp"
#include "device/turns.hpp"

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

/// What the server has of one client. Everything that it sends may be made up. One thread.
class Session {
 public:
  /// `compilations`: where what the client may run comes from; null: it is trusted, and brings what it likes. `turns`:
  /// in which its launches take theirs; null: they do not wait for those of others.
  Session(Device& device, Fd socket, ServerLimits const& limits, BlackBox::Client& box, Compilations* compilations,
          Turns* turns);
  ~Session();
  Session(Session const&) = delete;
  Session& operator=(Session const&) = delete;

  /// Serves until the client is gone, or says what no client says; returns why. An error of the device that is for good
  /// shows in Device::failed().
  Status run();

 private:
  /// Bytes of a client's share, which it has back once nothing has them any more.
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
  struct Region {
    Mapping mapping;
    Counted counted;
  };
  struct Memory {
    std::shared_ptr<Region> region;  ///< that it is a window on, which ends after it; null: device memory
    std::unique_ptr<Buffer> buffer;
    Counted counted;  ///< of the client's device memory
  };
  /// What something works on, and so ends after it.
  using Uses = std::vector<std::shared_ptr<const void>>;
  struct Recording {
    Uses uses;
    std::size_t launches = 0;
    std::unique_ptr<CommandBuffer> commands;
    std::vector<std::pair<Event*, std::uint32_t>> times;  ///< with their time slots
    std::string kernels;                                  ///< their names
  };
  struct Loaded {
    std::unique_ptr<Program> program;
    std::optional<LaunchForm> form;  ///< of its kernels; none: the client is trusted
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
    std::vector<KernelArgument> arguments;  ///< those by value point into the body that it was read from
    Uses uses;
  };
  /// An event that the client waits for, or the session itself.
  struct Pending {
    std::uint64_t sequence;  ///< 0: the session's
    std::shared_ptr<Event> event;
    std::uint32_t time_slot;
    std::vector<std::uint32_t> recordings;  ///< with timestamps, that ran before it
  };
  /// A launch that waits for those of others.
  struct Turn {
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
  };
  struct ServedStream {
    std::unique_ptr<Stream> stream;
    Mapping memory;
    StreamPage* page;
    std::uint64_t head = 0;
    std::uint64_t last_sequence = 0;
    std::deque<Pending> pending;
    std::deque<Turn> turns;          ///< that have not ended, the oldest first
    std::vector<std::uint32_t> ran;  ///< recordings with timestamps since the last event
    bool has_work = false;           ///< behind the last event
    bool needs_flush = false;        ///< the last event is a timestamp, which does not hand anything to the device
    bool is_broken = false;
    bool is_held = false;    ///< its next command is a launch, and the client has enough of them
    bool is_ending = false;  ///< the client freed it: it ends with its work
    /// Or since it was last told that something is done. 0: it is not busy, or waits for launches of others.
    std::int64_t working_since = 0;
    std::string kernels;                ///< names of those launched last, up to an event
    bool kernels_are_complete = false;  ///< there was that event
    bool has_news = false;              ///< `kernels` is not in the black box yet

    void note(std::string_view launched);
    bool is_busy() const { return has_work || !pending.empty() || !turns.empty(); }
    bool takes_commands() const { return !is_broken && !is_ending; }
  };
  /// What was freed while work went on that may use it.
  struct Grave {
    std::shared_ptr<void> content;
    std::vector<std::unique_ptr<Event>> until;
  };
  template <typename T>
  using Table = std::map<std::uint32_t, T>;

  // calls
  Status greet();
  Status take_frame();
  Status send_answer(std::uint32_t call, Result<Writer> const& answer, int fd);
  Result<Writer> answer(Call call, Reader& body, Fd fd, Fd& answer_fd);
  Result<Writer> allocate(Reader& body);
  Result<Writer> allocate_pinned(Reader& body, Fd& answer_fd);
  Result<Writer> map_host(Reader& body, Fd fd);
  Result<Writer> create_stream(Reader& body, Fd& answer_fd);
  Result<Writer> create_command_buffer(Reader& body);
  Result<Writer> record_launch(Reader& body);
  Result<Writer> record_timestamp(Reader& body);
  Result<Writer> divide(Reader& body);
  Status start_compiling(Frame frame);
  Status start_loading(Frame frame);
  Writer remember(Compiled compiled);
  Result<std::optional<LaunchForm>> form_of(std::span<const std::byte> binary) const;
  Status finish_slow_call();
  Result<Writer> find_kernel(Reader& body);
  Status free(Reader& body);
  Status clear(Buffer& buffer);

  Status serve();
  void finish_work();
  // commands
  Result<bool> take_commands(ServedStream& stream);
  Status do_command(ServedStream& stream, Command command, Reader& body);
  Status copy(ServedStream& stream, CopyCommand const& command);
  Result<ReadyLaunch> read_launch(Reader& body);
  Status in_turn(ServedStream& stream, std::function<Status()> const& launch);
  bool has_enough_turns() const;
  Status enqueue(ServedStream& stream, EnqueueCommand const& command, bool is_run);
  Status record(ServedStream& stream, RecordCommand const& command);
  void finish(ServedStream& stream, Status const& status, std::uint32_t reply_number);

  // what the device has done
  Result<bool> look_at(ServedStream& stream);
  Result<bool> look_at_streams();
  Result<bool> poll_events(ServedStream& stream);
  static Result<bool> poll_turns(ServedStream& stream);
  void write_times(Pending const& pending);
  /// Returns the time, which is the reference's where the event has none.
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
  /// Null: the client has no such thing.
  template <typename T>
  static T* find(Table<T>& table, std::uint32_t number) {
    const auto found = table.find(number);
    return found == table.end() ? nullptr : &found->second;
  }
  static Status unknown(std::string_view kind, std::uint32_t number);
  template <typename T>
  static Status check_room(Table<T> const& table, std::string_view what, std::size_t max = kMaxObjects);

  /// A call that takes long, in a thread of its own, so that the client's streams do not wait: it gives what there is
  /// to do, in this one, for the answer.
  struct SlowCall {
    std::uint32_t call;
    std::future<std::function<Result<Writer>()>> work;
  };

  Device* device_;
  Fd socket_;
  ServerLimits limits_;
  BlackBox::Client* box_;
  Compilations* compilations_;
  Turns* turns_;
  std::deque<Compiled> compiled_;  ///< for this client, which may load them
  FrameReader reader_;
  Mapping page_;
  Fd bell_;
  Fd bell_edges_;  ///< an epoll that tells of each ring of the bell, which belongs to the client too, and is never read
  std::uint32_t last_number_ = 0;
  std::uint64_t device_bytes_ = 0;
  std::uint64_t host_bytes_ = 0;
  std::unique_ptr<Stream> own_stream_;
  std::shared_ptr<Event> reference_;  ///< a timestamp, and its time
  std::int64_t reference_time_ = 0;
  // destroyed from the last to the first: streams end before what they work on
  Table<std::shared_ptr<Region>> regions_;
  Table<std::shared_ptr<Memory>> buffers_;
  Table<std::shared_ptr<Partition>> partitions_;
  Table<std::shared_ptr<Loaded>> programs_;
  Table<KnownKernel> kernels_;
  Table<std::shared_ptr<Recording>> recordings_;
  std::vector<Grave> graves_;
  Table<ServedStream> streams_;
  std::optional<SlowCall> slow_call_;
  ServedStream const* noted_ = nullptr;  ///< that the black box is about
};

}  // namespace catena::device::remote
