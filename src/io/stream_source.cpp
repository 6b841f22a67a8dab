// SPDX-License-Identifier: Apache-2.0
#include "io/capture.hpp"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <catena/core/counter.hpp>
#include <catena/core/text.hpp>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace catena::io {
namespace {

/// The reader waits for the chain when it is so many bytes ahead.
constexpr std::size_t kAheadBytes = 4 << 20;

/// A descriptor that can be read without waiting for ever: a read ends when somebody asks for it.
class Input {
 public:
  explicit Input(int descriptor) : descriptor_(descriptor), stop_(::eventfd(0, EFD_CLOEXEC)) {}
  ~Input() {
    ::close(descriptor_);
    ::close(stop_);
  }
  Input(Input const&) = delete;
  Input& operator=(Input const&) = delete;

  /// Any thread. Reads end as at the end of the file, now and later.
  void stop() {
    const std::uint64_t one = 1;
    static_cast<void>(::write(stop_, &one, sizeof one));
  }
  /// Whether there are bytes, or will never be any.
  bool is_ready() const {
    pollfd what{descriptor_, POLLIN, 0};
    return ::poll(&what, 1, 0) > 0;
  }
  /// As read(2).
  ssize_t read(char* to, std::size_t bytes) {
    for (;;) {
      pollfd what[2] = {{descriptor_, POLLIN, 0}, {stop_, POLLIN, 0}};
      if (::poll(what, 2, -1) < 0 && errno != EINTR) {
        return -1;
      }
      if (what[1].revents != 0) {
        return 0;
      }
      if (what[0].revents == 0) {
        continue;
      }
      const ssize_t got = ::read(descriptor_, to, bytes);
      if (got >= 0 || (errno != EINTR && errno != EAGAIN)) {
        return got;
      }
    }
  }

 private:
  int descriptor_;
  int stop_;
};

/// Frames one after another.
struct Frames {
  struct Entry {
    std::uint64_t stamp_ns;
    std::uint32_t bytes;  ///< as captured; those of a frame that is too long are not kept
    std::uint32_t missing;
  };
  std::vector<std::uint8_t> bytes;
  std::vector<Entry> entries;

  void add(CapturedFrame const& frame) {
    entries.push_back({frame.stamp_ns, static_cast<std::uint32_t>(frame.bytes.size()), frame.missing});
    if (frame.bytes.size() <= packet::kMaxFrameBytes) {
      bytes.insert(bytes.end(), frame.bytes.begin(), frame.bytes.end());
    }
  }
  bool is_full() const { return bytes.size() + entries.size() * sizeof(Entry) >= kAheadBytes; }
  void clear() {
    bytes.clear();
    entries.clear();
  }
};

class StreamSource final : public Source {
 public:
  StreamSource(std::string name, std::unique_ptr<Input> input, std::unique_ptr<CaptureReader> capture)
      : name_(std::move(name)), input_(std::move(input)), capture_(std::move(capture)), reader_([this] { read(); }) {}
  ~StreamSource() override {
    input_->stop();
    {
      const std::scoped_lock lock(mutex_);
      is_stopping_ = true;
    }
    has_room_.notify_one();
    reader_.join();
  }
  StreamSource(StreamSource const&) = delete;
  StreamSource& operator=(StreamSource const&) = delete;

  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    if (next_ == taken_.entries.size() && !take()) {
      return failure_;
    }
    const std::uint32_t room = pool.unit_packets();
    if (!pool.acquire_slots(unit, room)) {
      starved = true;
      return absl::OkStatus();
    }
    std::uint32_t filled = 0;
    for (; next_ < taken_.entries.size() && filled < room; ++next_) {
      const Frames::Entry entry = taken_.entries[next_];
      const std::uint64_t index = next_index++;
      ++seen_;
      if (entry.bytes > packet::kMaxFrameBytes) {
        ++too_long_;
        continue;
      }
      const std::uint32_t slot = unit.slots()[filled++];
      std::memcpy(pool.slot(slot) + packet::kSlotHeadroom, taken_.bytes.data() + next_byte_, entry.bytes);
      next_byte_ += entry.bytes;
      pool.set_arrived(slot, entry.bytes, index, entry.stamp_ns);
      pool.set_missing(slot, entry.missing);
    }
    if (filled < room) {
      pool.release_slots(unit, filled, room - filled);
    }
    unit.count = filled;
    return absl::OkStatus();
  }

  bool finished() const override { return ended_ && failure_.ok(); }
  SourceCounts counts() const override { return {seen_, {{"too_long", too_long_}}}; }
  std::string describe() const override { return concat("pcap ", name_); }

 private:
  /// The reader's thread.
  void read() {
    for (;;) {
      const Result<std::optional<CapturedFrame>> frame = capture_->next();
      std::unique_lock lock(mutex_);
      if (!frame.ok() || !frame->has_value()) {
        if (!is_stopping_) {
          read_failure_ = frame.status();
        }
        has_read_all_ = true;
        return;
      }
      has_room_.wait(lock, [this] { return !read_.is_full() || is_stopping_; });
      if (is_stopping_) {
        return;
      }
      read_.add(**frame);
    }
  }

  /// Gets what was read meanwhile. False if that is nothing.
  bool take() {
    taken_.clear();
    next_ = 0;
    next_byte_ = 0;
    {
      const std::scoped_lock lock(mutex_);
      std::swap(taken_, read_);
      if (taken_.entries.empty() && has_read_all_) {
        ended_ = true;
        failure_ = read_failure_;
      }
    }
    has_room_.notify_one();
    return !taken_.entries.empty();
  }

  std::string name_;
  std::unique_ptr<Input> input_;
  std::unique_ptr<CaptureReader> capture_;  ///< the reader's; reads from input_
  std::mutex mutex_;
  std::condition_variable has_room_;
  Frames read_;  ///< guarded by mutex_, as the next three
  bool has_read_all_ = false;
  bool is_stopping_ = false;
  Status read_failure_;
  Frames taken_;  ///< receive()'s, as all that follow
  std::size_t next_ = 0;
  std::size_t next_byte_ = 0;
  Counter seen_;
  Counter too_long_;
  bool ended_ = false;
  Status failure_;
  std::thread reader_;  ///< last: it uses the others
};

}  // namespace

Result<std::unique_ptr<Source>> open_stream_source(FileDescriptor descriptor, std::string const& name,
                                                   std::stop_token const& give_up) {
  auto input = std::make_unique<Input>(descriptor.release());
  if (!input->is_ready()) {
    spdlog::info("rx: waiting for a capture to be written to {}", name);
  }
  const std::stop_callback stop(give_up, [&input] { input->stop(); });
  Result<std::unique_ptr<CaptureReader>> capture = CaptureReader::open(
      [from = input.get()](void* to, std::size_t bytes) { return from->read(static_cast<char*>(to), bytes); }, name);
  if (give_up.stop_requested()) {
    return absl::CancelledError(concat(name, ": no capture was written to it"));
  }
  CATENA_RETURN_IF_ERROR(capture.status());
  try {
    return std::make_unique<StreamSource>(name, std::move(input), *std::move(capture));
  } catch (std::system_error const& error) {
    return absl::ResourceExhaustedError(concat(name, ": no thread to read it: ", error.what()));
  }
}

}  // namespace catena::io
