// SPDX-License-Identifier: Apache-2.0
#include "bench/nca/run.hpp"

#include "nca/handles.hpp"

#include <catena/core/text.hpp>

#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>
#include <utility>

namespace catena::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTextBytes = 4096;
constexpr std::size_t kPacketsPerCall = 256;
constexpr std::uint64_t kLeastBuffers = 3;
constexpr std::uint64_t kSpareBuffers = 2;  // of a stream, beside those in its queues
constexpr std::chrono::seconds kStreamLimit{60};
constexpr std::chrono::microseconds kSleep{50};
constexpr int kPollMs = 10;
constexpr double kWarmUp = 0.25;
constexpr std::uint64_t kBytesEach = 640;  // of a buffer, for packets of variable size
constexpr std::uint32_t kPacketAlign = 16;
constexpr double kMaxLaunches = 4096;

std::int64_t to_ns(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

std::string text_of(nca_context const& context) {
  std::array<char, kTextBytes> text{};
  nca_context_error(&context, text.data(), text.size());
  return text.data();
}
std::string text_of(nca_stream const& stream) {
  std::array<char, kTextBytes> text{};
  nca_stream_error(&stream, text.data(), text.size());
  return text.data();
}

std::uint64_t buffer_bytes(NcaLoad const& load) {
  const std::uint64_t each =
      load.bytes == 0 ? kBytesEach : (load.bytes + kPacketAlign - 1) / kPacketAlign * kPacketAlign;
  return std::max<std::uint64_t>(each * load.buffer_packets, kMaxBytes + kPacketAlign);
}

/// One stream of an application with its threads.
class StreamRun {
 public:
  explicit StreamRun(NcaLoad const& load) : load_(load) {}
  ~StreamRun() {
    stop_adding();
    stop_reading();
    if (stream_ != nullptr) {
      nca_stream_abort(stream_, nullptr);
    }
  }
  StreamRun(StreamRun const&) = delete;
  StreamRun& operator=(StreamRun const&) = delete;

  Status open(nca_context& context, nca_function& function);
  void start(Clock::time_point warm_at);
  bool has_failed() const { return failed_; }
  std::uint64_t measured_buffers() const { return measured_buffers_; }
  void stop_adding();
  /// Waits for what is in flight, closes the stream, and adds its part to `speed`.
  Status finish(NcaSpeed& speed);
  /// `times`, `from_ns` and `to_ns` of this stream.
  void take_times(NcaSpeed& speed);

 private:
  void add_packets(std::size_t at);
  void read_results();
  Status check(nca_results const& results);
  Status compare(nca_results const& results) const;
  void fail(Status status);
  void stop_reading();

  NcaLoad const& load_;
  Clock::time_point warm_at_;
  nca_stream* stream_ = nullptr;
  std::vector<std::thread> adders_;
  std::thread reader_;
  std::atomic<bool> stop_adding_ = false;
  std::atomic<bool> stop_reading_ = false;
  std::atomic<std::uint32_t> released_ = 0;  ///< those who found no room wait for it to change
  std::atomic<bool> failed_ = false;
  std::atomic<std::uint64_t> measured_buffers_ = 0;
  std::mutex mutex_;
  Status status_;  ///< guarded by mutex_ while threads run
  // of the reader
  NcaSpeed sums_;
  std::uint64_t measured_bytes_ = 0;
  std::uint64_t measured_packets_ = 0;
  Clock::time_point first_;
  Clock::time_point last_;
};

void StreamRun::fail(Status status) {
  const std::lock_guard lock(mutex_);
  status_.Update(std::move(status));
  failed_ = true;
}

Status StreamRun::open(nca_context& context, nca_function& function) {
  nca_function* functions[] = {&function};
  nca_stream_config config{};
  config.size = sizeof config;
  config.functions = functions;
  config.function_count = 1;
  config.queues = load_.queues;
  config.buffer_packets = load_.buffer_packets;
  config.buffer_bytes = buffer_bytes(load_);
  config.packet_bytes = load_.bytes == 0 ? kMaxBytes : load_.bytes;
  config.flags = load_.times ? NCA_TIMES : 0;
  if (nca_traffic_stream_init(&context, &config, &stream_) != NCA_OK) {
    return absl::InternalError(text_of(context));
  }
  return absl::OkStatus();
}

void StreamRun::start(Clock::time_point warm_at) {
  warm_at_ = warm_at;
  reader_ = std::thread(&StreamRun::read_results, this);
  for (std::uint32_t i = 0; i < load_.threads; ++i) {
    adders_.emplace_back(&StreamRun::add_packets, this, load_.traffic->packets.size() / load_.threads * i);
  }
}

void StreamRun::add_packets(std::size_t at) {
  std::span<const nca_packet> packets = load_.traffic->packets;
  while (!stop_adding_) {
    const std::uint32_t seen = released_;
    std::size_t accepted = 0;
    const nca_status status =
        nca_add_packets(stream_, packets.data() + at, std::min(kPacketsPerCall, packets.size() - at), &accepted);
    at = (at + accepted) % packets.size();
    if (status == NCA_ERROR_FULL) {
      released_.wait(seen);
    } else if (status != NCA_OK) {
      fail(absl::InternalError(text_of(*stream_)));
      return;
    }
  }
}

void StreamRun::read_results() {
  nca_results results{};
  results.size = sizeof results;
  while (true) {
    const bool is_last_check = stop_reading_;
    pollfd descriptor{nca_stream_fd(stream_), POLLIN, 0};
    ::poll(&descriptor, 1, kPollMs);
    while (nca_read_results(stream_, &results) == NCA_OK) {
      if (Status status = check(results); !status.ok()) {
        fail(std::move(status));
      }
      nca_release_results(stream_, &results);
      ++released_;
      released_.notify_all();
    }
    if (is_last_check) {
      return;
    }
  }
}

Status StreamRun::check(nca_results const& results) {
  const Clock::time_point now = Clock::now();
  if (results.status != NCA_OK) {
    return absl::InternalError(concat("buffer ", results.buffer, ": ", text_of(*stream_)));
  }
  std::vector<std::uint32_t> const& first = load_.traffic->first;
  std::uint64_t expected = 0;
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < results.packet_count; ++i) {
    const std::uint64_t tag = results.tags[i];
    expected += first[tag + 1] - first[tag];
    bytes += load_.traffic->packets[tag].length;
  }
  nca_function_results const& found = *results.functions[0];
  sums_.buffers += 1;
  sums_.packets += results.packet_count;
  sums_.matches += found.count;
  if (load_.times) {
    sums_.times.push_back(results.times);
  }
  if (first_ != Clock::time_point() && !stop_adding_) {
    measured_bytes_ += bytes;
    measured_packets_ += results.packet_count;
    last_ = now;
    ++measured_buffers_;
  } else if (first_ == Clock::time_point() && now >= warm_at_) {
    first_ = now;
  }
  if (found.count != expected || found.out_of_bounds != 0) {
    return absl::DataLossError(concat("buffer ", results.buffer, " has ", found.count,
                                      " matches where Hyperscan finds ", expected, "; ", found.out_of_bounds,
                                      " packets were left out"));
  }
  return sums_.buffers == 1 ? compare(results) : absl::OkStatus();
}

Status StreamRun::compare(nca_results const& results) const {
  nca_function_results const& found = *results.functions[0];
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < results.packet_count; ++i) {
    const std::uint64_t tag = results.tags[i];
    for (std::uint32_t j = load_.traffic->first[tag]; j < load_.traffic->first[tag + 1]; ++j, ++next) {
      nca_match const& expected = load_.traffic->matches[j];
      nca_match const& match = found.matches[next];
      if (match.packet != i || match.end != expected.end || match.pattern != expected.pattern) {
        return absl::DataLossError(concat("buffer ", results.buffer, " has (", match.packet, ", ", match.end, ", ",
                                          match.pattern, ") where Hyperscan finds (", i, ", ", expected.end, ", ",
                                          expected.pattern, ")"));
      }
    }
  }
  return absl::OkStatus();
}

void StreamRun::stop_adding() {
  stop_adding_ = true;
  ++released_;
  released_.notify_all();
  for (std::thread& adder : adders_) {
    adder.join();
  }
  adders_.clear();
}

void StreamRun::stop_reading() {
  stop_reading_ = true;
  if (reader_.joinable()) {
    reader_.join();
  }
}

Status StreamRun::finish(NcaSpeed& speed) {
  stop_adding();
  if (nca_flush(stream_, std::chrono::nanoseconds(kStreamLimit).count()) != NCA_OK) {
    return absl::InternalError(text_of(*stream_));
  }
  stop_reading();
  nca_statistics statistics{};
  statistics.size = sizeof statistics;
  nca_stream_statistics(stream_, &statistics);
  CATENA_RETURN_IF_ERROR(status_);
  if (statistics.packets_accepted != sums_.packets) {
    return absl::DataLossError(
        concat(statistics.packets_accepted, " packets were accepted, and ", sums_.packets, " came back"));
  }
  if (nca_stream_close(stream_) != NCA_OK) {
    return absl::InternalError(text_of(*stream_));
  }
  stream_ = nullptr;
  const double seconds = seconds_between(first_, last_);
  speed.bytes_per_s += static_cast<double>(measured_bytes_) / seconds;
  speed.packets_per_s += static_cast<double>(measured_packets_) / seconds;
  speed.buffers += sums_.buffers;
  speed.packets += sums_.packets;
  speed.matches += sums_.matches;
  return absl::OkStatus();
}

void StreamRun::take_times(NcaSpeed& speed) {
  speed.times = std::move(sums_.times);
  speed.from_ns = to_ns(first_);
  speed.to_ns = to_ns(last_);
}

Result<bool> poll_until_done(kernel::PackedLaunch& launch) {
  const Clock::time_point limit = Clock::now() + kStreamLimit;
  while (true) {
    CATENA_ASSIGN_OR_RETURN(const bool done, launch.poll());
    if (done) {
      return true;
    }
    if (Clock::now() > limit) {
      return absl::DeadlineExceededError("the kernel by itself does not come to an end");
    }
    std::this_thread::sleep_for(kSleep);
  }
}

/// Seconds that the kernels take `launches` times.
Result<double> recompute(kernel::PackedLaunch& launch, std::uint32_t launches) {
  const Clock::time_point begin = Clock::now();
  CATENA_RETURN_IF_ERROR(launch.recompute(launches));
  CATENA_RETURN_IF_ERROR(poll_until_done(launch).status());
  return seconds_between(begin, Clock::now());
}

}  // namespace

Result<NcaContext> open_nca(std::string const& device, std::string& text) {
  std::array<char, kTextBytes> told{};
  nca_context* context = nullptr;
  const nca_status status = nca_open(device.c_str(), told.data(), told.size(), &context);
  text = told.data();
  if (status == NCA_ERROR_ARGUMENT) {
    return absl::InvalidArgumentError(text);
  }
  if (status != NCA_OK) {
    return absl::UnavailableError(text);
  }
  return NcaContext(context);
}

Result<nca_function*> add_strings(nca_context& context, std::span<const std::string> strings) {
  std::vector<nca_pattern> patterns;
  for (std::string const& string : strings) {
    patterns.push_back({string.data(), static_cast<std::uint32_t>(string.size()), 0});
  }
  nca_match_config config{};
  config.size = sizeof config;
  config.patterns = patterns.data();
  config.pattern_count = patterns.size();
  nca_function* function = nullptr;
  if (nca_add_network_function(&context, NCA_MATCH, &config, &function) != NCA_OK) {
    return absl::InternalError(text_of(context));
  }
  return function;
}

Result<NcaSpeed> run_nca(nca_context& context, nca_function& function, NcaLoad const& load) {
  std::vector<std::unique_ptr<StreamRun>> streams;
  for (std::uint32_t i = 0; i < load.streams; ++i) {
    streams.push_back(std::make_unique<StreamRun>(load));
    CATENA_RETURN_IF_ERROR(streams.back()->open(context, function));
  }
  const Clock::time_point start = Clock::now();
  const auto after = [start](double seconds) {
    return start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  for (auto const& stream : streams) {
    stream->start(after(kWarmUp * load.seconds));
  }
  // what was under way when measuring began may have been copied before
  const std::uint64_t least = kLeastBuffers + (load.times ? load.queues + kSpareBuffers : 0);
  const auto is_over = [least](auto const& stream) {
    return stream->has_failed() || stream->measured_buffers() >= least;
  };
  while (Clock::now() < after(load.seconds) || !std::all_of(streams.begin(), streams.end(), is_over)) {
    if (Clock::now() > start + kStreamLimit + std::chrono::duration<double>(load.seconds)) {
      return absl::DeadlineExceededError(concat("a stream did not complete ", least, " buffers in time"));
    }
    if (std::any_of(streams.begin(), streams.end(), [](auto const& stream) { return stream->has_failed(); })) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  NcaSpeed speed;
  for (auto const& stream : streams) {
    stream->stop_adding();
  }
  for (auto const& stream : streams) {
    CATENA_RETURN_IF_ERROR(stream->finish(speed));
  }
  streams.front()->take_times(speed);
  return speed;
}

Result<double> plain_kernel_bytes_per_s(nca_function& function, NcaLoad const& load) {
  if (function.device_nf == nullptr) {
    return absl::FailedPreconditionError("the function runs on the host, without a kernel");
  }
  const kernel::DeviceNf* const device_nfs[] = {function.device_nf.get()};
  CATENA_ASSIGN_OR_RETURN(const auto format,
                          kernel::PackedFormat::create(device_nfs, load.buffer_packets, buffer_bytes(load)));
  const kernel::PackedLaunch::Nf nfs[] = {{function.device_nf.get(), function.returns_spill}};
  CATENA_ASSIGN_OR_RETURN(const auto launch, kernel::PackedLaunch::create(function.device_nf->device(), nfs, format));
  Traffic const& traffic = *load.traffic;
  kernel::PackedPackets& packets = launch->packets();
  std::uint64_t bytes = 0;
  for (nca_packet const& packet : std::span(traffic.packets).first(load.buffer_packets)) {
    const std::uint32_t space = kernel::PackedPackets::space_of(packet.length);
    const auto room = packets.reserve(std::span(&space, 1));
    if (room.packets == 0) {
      break;
    }
    packets.write(room.first_row, room.begin, {static_cast<const std::uint8_t*>(packet.data), packet.length}, {});
    bytes += packet.length;
  }
  kernel::PackedPackets::finish_writes();
  CATENA_RETURN_IF_ERROR(launch->submit());
  CATENA_RETURN_IF_ERROR(poll_until_done(*launch).status());
  nca::FunctionResults results;
  CATENA_RETURN_IF_ERROR(function.what->collect(*launch, 0, results));
  if (results.matches.size() != traffic.first[packets.count()]) {
    return absl::DataLossError(
        concat("the kernel by itself finds ", results.matches.size(), " matches of ", traffic.first[packets.count()]));
  }
  CATENA_ASSIGN_OR_RETURN(const double once, recompute(*launch, 1));
  const auto launches = static_cast<std::uint32_t>(std::clamp(std::ceil(load.seconds / once), 1.0, kMaxLaunches));
  CATENA_ASSIGN_OR_RETURN(const double seconds, recompute(*launch, launches));
  return static_cast<double>(bytes) * launches / seconds;
}

}  // namespace catena::bench
