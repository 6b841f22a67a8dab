// SPDX-License-Identifier: Apache-2.0
// The API by itself: wrong arguments, limits, threads, and devices that fail in the middle of a stream.
#include <nca/nca.h>

#include "gpu/device/testing/faulty_device.hpp"
#include "nca/handles.hpp"
#include "nca/testing/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <thread>

namespace catena::nca::testing {
namespace {

using device::testing::Call;
using device::testing::FaultyDevice;
using ::testing::HasSubstr;

constexpr std::int64_t kLimitNs = 60'000'000'000;

nca_function* add_word(nca_context& context, std::string_view word = "word") {
  const nca_pattern pattern{word.data(), static_cast<std::uint32_t>(word.size()), 0};
  nca_match_config config{};
  config.size = sizeof config;
  config.patterns = &pattern;
  config.pattern_count = 1;
  return add(context, NCA_MATCH, &config);
}

Packet packet_of(std::string_view text) { return {text.begin(), text.end()}; }

nca_packet view(Packet const& packet, std::uint64_t tag = 0) {
  return {packet.data(), tag, static_cast<std::uint32_t>(packet.size()), 0};
}

/// Sends `count` packets "a word" one by one; returns how many were accepted before the first that was not.
std::uint64_t fill(nca_stream& stream, std::uint64_t count, nca_status& status) {
  static const Packet kPacket = packet_of("a word");
  for (std::uint64_t i = 0; i < count; ++i) {
    const nca_packet packet = view(kPacket, i);
    status = nca_add_packets(&stream, &packet, 1, nullptr);
    if (status != NCA_OK) {
      return i;
    }
  }
  return count;
}

/// Tests that run on every device.
class Everywhere : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    context_ = open(GetParam());
    if (context_ == nullptr) {
      GTEST_SKIP() << "no " << GetParam() << " here";
    }
    functions_ = {add_word(*context_)};
    ASSERT_NE(functions_[0], nullptr);
  }
  Stream stream_with(std::uint32_t buffers, std::uint32_t packets) {
    nca_stream_config config = small_buffers(functions_);
    config.buffers = buffers;
    config.buffer_packets = packets;
    return make_stream(*context_, config);
  }

  Context context_;
  std::vector<nca_function*> functions_;
};
std::vector<std::string> every_device() {
  std::vector<std::string> names{"cpu"};
  for (const std::string_view backend : device::backend_names()) {
    names.emplace_back(backend);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(devices, Everywhere, ::testing::ValuesIn(every_device()),
                         [](auto const& name) { return name.param; });

TEST(LastError, keeps_the_status_where_memory_lacks_for_the_text) {
  LastError error;
  const std::string_view endless("x", std::numeric_limits<std::ptrdiff_t>::max());  // refused before it is read
  EXPECT_EQ(error.set(NCA_ERROR_INTERNAL, endless), NCA_ERROR_INTERNAL);
  char text[32] = "";
  EXPECT_EQ(error.copy(text, sizeof text), std::strlen("out of memory"));
  EXPECT_STREQ(text, "out of memory");
}

TEST(Api, every_call_refuses_a_null_handle) {
  EXPECT_EQ(nca_close(nullptr), NCA_ERROR_ARGUMENT);
  EXPECT_STREQ(nca_device_name(nullptr), "");
  EXPECT_EQ(nca_context_error(nullptr, nullptr, 0), 0U);
  nca_function* function = nullptr;
  nca_match_config match{};
  EXPECT_EQ(nca_add_network_function(nullptr, NCA_MATCH, &match, &function), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(nca_remove_network_function(nullptr), NCA_ERROR_ARGUMENT);
  nca_pattern_info info{};
  EXPECT_EQ(nca_function_pattern(nullptr, 0, &info), NCA_ERROR_ARGUMENT);
  nca_refusal_info refusal{};
  EXPECT_EQ(nca_function_refusal(nullptr, 0, &refusal), NCA_ERROR_ARGUMENT);
  nca_stream* stream = nullptr;
  nca_stream_config config{};
  EXPECT_EQ(nca_traffic_stream_init(nullptr, &config, &stream), NCA_ERROR_ARGUMENT);
  std::size_t accepted = 5;
  EXPECT_EQ(nca_add_packets(nullptr, nullptr, 0, &accepted), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(accepted, 0U);
  EXPECT_EQ(nca_buffer_ready(nullptr), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(nca_flush(nullptr, 0), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(nca_stream_fd(nullptr), -1);
  nca_results results{};
  EXPECT_EQ(nca_read_results(nullptr, &results), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(nca_release_results(nullptr, &results), NCA_ERROR_ARGUMENT);
  nca_statistics statistics{};
  EXPECT_EQ(nca_stream_statistics(nullptr, &statistics), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(nca_stream_error(nullptr, nullptr, 0), 0U);
  EXPECT_EQ(nca_stream_close(nullptr), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(nca_stream_abort(nullptr, nullptr), NCA_ERROR_ARGUMENT);
}

TEST(Api, every_code_has_a_text_of_its_own) {
  std::set<std::string> texts;
  for (int code = NCA_ERROR_INTERNAL; code <= NCA_OK; ++code) {
    texts.insert(nca_error_text(code));
  }
  EXPECT_EQ(texts.size(), 15U);
  EXPECT_STREQ(nca_error_text(-99), "an unknown code");
  EXPECT_STREQ(nca_version(), CATENA_VERSION);
}

TEST(Api, opening_says_what_is_wrong) {
  std::array<char, 200> text{};
  nca_context* context = nullptr;
  EXPECT_EQ(nca_open(nullptr, text.data(), text.size(), &context), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(nca_open("cpu", text.data(), text.size(), nullptr), NCA_ERROR_ARGUMENT);
  for (const char* name : {"", "gpu", "cuda:", "opencl:x", "cpu:0", "cuda:-1", "opencl:99999999999"}) {
    EXPECT_EQ(nca_open(name, text.data(), text.size(), &context), NCA_ERROR_ARGUMENT) << name;
    EXPECT_THAT(text.data(), HasSubstr("is no device")) << name;
    EXPECT_EQ(context, nullptr);
  }
  EXPECT_EQ(nca_open("opencl:999", text.data(), text.size(), &context), NCA_ERROR_NO_DEVICE);
  EXPECT_NE(text[0], '\0');
  std::array<char, 8> little{};
  EXPECT_EQ(nca_open("gpu", little.data(), little.size(), &context), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(std::strlen(little.data()), little.size() - 1);
}

TEST(Api, auto_opens_a_device_and_says_what_does_not_serve) {
  std::array<char, 4000> text{};
  nca_context* opened = nullptr;
  ASSERT_EQ(nca_open("auto", text.data(), text.size(), &opened), NCA_OK);
  const Context context(opened);
  const std::string name = nca_device_name(context.get());
  const bool has_cuda = open("cuda") != nullptr;
  EXPECT_EQ(name.starts_with("cuda: "), has_cuda) << name;
  EXPECT_EQ(name.find("pthread-"), std::string::npos) << "PoCL's CPU is for who asks for it";
  EXPECT_EQ(std::string(text.data()).empty(), has_cuda) << text.data();
}

TEST_P(Everywhere, a_function_needs_a_configuration_that_makes_sense) {
  nca_function* function = functions_[0];
  const nca_pattern good{"word", 4, 0};
  nca_match_config config{};
  const auto refused = [&](std::string_view why) {
    EXPECT_EQ(nca_add_network_function(context_.get(), NCA_MATCH, &config, &function), NCA_ERROR_ARGUMENT) << why;
    EXPECT_EQ(function, nullptr);
    EXPECT_FALSE(text_of(*context_).empty());
  };
  config.patterns = &good;
  config.pattern_count = 1;
  refused("no size");
  config.size = sizeof config;
  EXPECT_EQ(nca_add_network_function(context_.get(), NCA_MATCH, &config, nullptr), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(nca_add_network_function(context_.get(), NCA_MATCH, nullptr, &function), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(nca_add_network_function(context_.get(), 77, &config, &function), NCA_ERROR_ARGUMENT);
  config.strings_file = "/dev/null";
  refused("two sources");
  config = {sizeof config, nullptr, 0, nullptr, nullptr, 0};
  refused("no source");
  config = {sizeof config, &good, 0, nullptr, nullptr, 0};
  refused("no patterns");
  config = {sizeof config, &good, 1, nullptr, nullptr, NCA_NOCASE};
  refused("a flag that goes with a file");
  const std::string long_word(NCA_MAX_PATTERN_BYTES + 1, 'x');
  for (nca_pattern const& wrong : {nca_pattern{"word", 0, 0}, nca_pattern{nullptr, 4, 0}, nca_pattern{"word", 4, 8},
                                   nca_pattern{long_word.data(), NCA_MAX_PATTERN_BYTES + 1, 0}}) {
    config = {sizeof config, &wrong, 1, nullptr, nullptr, 0};
    refused("a wrong pattern");
    EXPECT_THAT(text_of(*context_), HasSubstr("pattern 0: "));
  }
  config = {sizeof config, nullptr, 0, "/nowhere", nullptr, 0};
  EXPECT_EQ(nca_add_network_function(context_.get(), NCA_MATCH, &config, &function), NCA_ERROR_FILE);
  EXPECT_THAT(text_of(*context_), HasSubstr("/nowhere"));
  const std::string path = ::testing::TempDir() + "nca_test.txt";
  std::ofstream(path) << "word\n\nword\n";
  config.strings_file = path.c_str();
  refused("an empty line");
  EXPECT_THAT(text_of(*context_), HasSubstr(path + ":2:1: "));
}

TEST_P(Everywhere, a_configuration_of_another_version_works_as_far_as_both_know_it) {
  struct Newer {
    nca_match_config known;
    std::uint64_t added;
  };
  const nca_pattern pattern{"word", 4, 0};
  Newer newer{{sizeof(Newer), &pattern, 1, nullptr, nullptr, 0}, 0};
  nca_function* function = nullptr;
  EXPECT_EQ(nca_add_network_function(context_.get(), NCA_MATCH, &newer, &function), NCA_OK);
  newer.added = 1;
  EXPECT_EQ(nca_add_network_function(context_.get(), NCA_MATCH, &newer, &function), NCA_ERROR_ARGUMENT);
  newer = {{offsetof(nca_match_config, strings_file), &pattern, 1, "/nowhere", nullptr, 77}, 0};
  EXPECT_EQ(nca_add_network_function(context_.get(), NCA_MATCH, &newer, &function), NCA_OK) << text_of(*context_);
}

TEST_P(Everywhere, a_stream_needs_a_configuration_that_makes_sense) {
  nca_stream* stream = nullptr;
  const nca_stream_config good = small_buffers(functions_);
  const auto refused = [&](auto const& change) {
    nca_stream_config config = good;
    change(config);
    EXPECT_EQ(nca_traffic_stream_init(context_.get(), &config, &stream), NCA_ERROR_ARGUMENT);
    EXPECT_EQ(stream, nullptr);
    EXPECT_FALSE(text_of(*context_).empty());
  };
  const Context other = open(GetParam());
  nca_function* foreign = add_word(*other);
  nca_function* twice[] = {functions_[0], functions_[0]};
  nca_function* null = nullptr;
  refused([](auto& config) { config.size = 0; });
  refused([](auto& config) { config.functions = nullptr; });
  refused([](auto& config) { config.function_count = 0; });
  refused([&](auto& config) { config.functions = &foreign; });
  refused([&](auto& config) { config.functions = &null; });
  refused([&](auto& config) {
    config.functions = twice;
    config.function_count = 2;
  });
  refused([](auto& config) { config.buffers = 65; });
  refused([](auto& config) { config.queues = 63; });  // and two buffers beside them
  refused([](auto& config) { config.queues = 0xFFFFFFFFU; });
  refused([](auto& config) {
    config.queues = 3;
    config.buffers = 2;
  });
  refused([](auto& config) { config.buffer_packets = (1U << 20) + 1; });
  refused([](auto& config) { config.packet_bytes = 65536; });
  refused([](auto& config) { config.buffer_bytes = 65535; });
  refused([](auto& config) { config.buffer_bytes = std::uint64_t{1} << 32; });
  refused([](auto& config) { config.link = 5; });
  refused([](auto& config) { config.flags = 2; });
  EXPECT_EQ(nca_traffic_stream_init(context_.get(), nullptr, &stream), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(nca_traffic_stream_init(context_.get(), &good, nullptr), NCA_ERROR_ARGUMENT);
}

TEST_P(Everywhere, a_packet_without_bytes_or_too_long_is_refused_alone) {
  nca_stream_config config = small_buffers(functions_);
  config.packet_bytes = 100;
  const Stream stream = make_stream(*context_, config);
  const Packet longest(100, 'x');
  const Packet too_long(101, 'x');
  const Packet word = packet_of("word");
  for (nca_packet const& wrong : {nca_packet{word.data(), 0, 0, 0}, nca_packet{nullptr, 0, 4, 0}, view(too_long)}) {
    const std::vector<nca_packet> packets{view(longest, 1), view(word, 2), wrong, view(word, 3)};
    std::size_t accepted = 0;
    EXPECT_EQ(nca_add_packets(stream.get(), packets.data(), packets.size(), &accepted), NCA_ERROR_PACKET);
    EXPECT_EQ(accepted, 2U);
    EXPECT_THAT(text_of(*stream), HasSubstr("packet 2 has "));
  }
  EXPECT_EQ(nca_add_packets(stream.get(), nullptr, 1, nullptr), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(nca_add_packets(stream.get(), nullptr, 0, nullptr), NCA_OK);
  ASSERT_EQ(nca_flush(stream.get(), kLimitNs), NCA_OK);
  std::vector<std::uint64_t> tags;
  drain(*stream, [&](nca_results const& results) {
    tags.assign(results.tags, results.tags + results.packet_count);
    EXPECT_EQ(results.functions[0]->count, 3U);
  });
  EXPECT_THAT(tags, ::testing::ElementsAre(1, 2, 1, 2, 1, 2));
  nca_statistics statistics{};
  statistics.size = sizeof statistics;
  ASSERT_EQ(nca_stream_statistics(stream.get(), &statistics), NCA_OK);
  EXPECT_EQ(statistics.packets_accepted, 6U);
  EXPECT_EQ(statistics.bytes_accepted, 312U);
  EXPECT_EQ(statistics.packets_refused, 3U);
  EXPECT_EQ(statistics.packets_completed, 6U);
  EXPECT_EQ(statistics.buffers_handed_over, 1U);
  EXPECT_EQ(statistics.buffers_completed, 1U);
}

TEST_P(Everywhere, results_that_nobody_reads_bound_what_is_accepted) {
  Stream stream = stream_with(2, 10);
  nca_status status = NCA_OK;
  EXPECT_EQ(fill(*stream, 100, status), 20U);
  EXPECT_EQ(status, NCA_ERROR_FULL);
  ASSERT_TRUE(wait_for_results(*stream));
  nca_results results{};
  results.size = sizeof results;
  ASSERT_EQ(nca_read_results(stream.get(), &results), NCA_OK);
  EXPECT_EQ(fill(*stream, 1, status), 0U) << "results that are not released hold their buffer";
  ASSERT_EQ(nca_release_results(stream.get(), &results), NCA_OK);
  EXPECT_EQ(fill(*stream, 100, status), 10U);
  ASSERT_EQ(nca_flush(stream.get(), kLimitNs), NCA_OK);
  std::uint64_t packets = results.packet_count;
  drain(*stream, [&](nca_results const& more) { packets += more.packet_count; });
  EXPECT_EQ(packets, 30U);
  nca_statistics statistics{};
  statistics.size = sizeof statistics;
  ASSERT_EQ(nca_stream_statistics(stream.get(), &statistics), NCA_OK);
  EXPECT_EQ(statistics.packets_full, 3U);
  EXPECT_EQ(nca_stream_close(stream.release()), NCA_OK);
}

TEST_P(Everywhere, a_buffer_that_is_full_of_bytes_is_handed_over) {
  nca_stream_config config = small_buffers(functions_);
  config.packet_bytes = 1000;
  config.buffer_bytes = 1008 * 3;
  const Stream stream = make_stream(*context_, config);
  std::vector<std::uint32_t> sizes;
  run(*stream, std::vector<Packet>(8, Packet(1000, 'x')),
      [&](nca_results const& results, std::uint64_t) { sizes.push_back(results.packet_count); });
  EXPECT_THAT(sizes, ::testing::ElementsAre(3, 3, 2));
}

TEST_P(Everywhere, a_stream_closes_only_when_nothing_is_left_in_it) {
  Stream stream = stream_with(3, 10);
  nca_status status = NCA_OK;
  fill(*stream, 3, status);
  EXPECT_EQ(nca_stream_close(stream.get()), NCA_ERROR_BUSY) << "packets in the open buffer";
  EXPECT_EQ(nca_close(context_.get()), NCA_ERROR_BUSY);
  EXPECT_EQ(nca_remove_network_function(functions_[0]), NCA_ERROR_BUSY);
  EXPECT_EQ(nca_buffer_ready(stream.get()), NCA_OK);
  EXPECT_EQ(nca_stream_close(stream.get()), NCA_ERROR_BUSY) << "packets on their way";
  ASSERT_EQ(nca_flush(stream.get(), kLimitNs), NCA_OK);
  EXPECT_EQ(nca_stream_close(stream.get()), NCA_ERROR_BUSY) << "results not read";
  nca_results results{};
  results.size = sizeof results;
  ASSERT_EQ(nca_read_results(stream.get(), &results), NCA_OK);
  EXPECT_EQ(nca_stream_close(stream.get()), NCA_ERROR_BUSY) << "results not released";
  ASSERT_EQ(nca_release_results(stream.get(), &results), NCA_OK);
  EXPECT_EQ(nca_stream_close(stream.release()), NCA_OK);
  EXPECT_EQ(nca_remove_network_function(functions_[0]), NCA_OK);
}

TEST_P(Everywhere, abort_tells_what_it_throws_away) {
  Stream stream = stream_with(3, 10);
  nca_status status = NCA_OK;
  fill(*stream, 15, status);
  std::uint64_t discarded = 0;
  EXPECT_EQ(nca_stream_abort(stream.release(), &discarded), NCA_OK);
  EXPECT_EQ(discarded, 15U);
}

TEST_P(Everywhere, results_are_given_out_once_and_taken_back_once) {
  const Stream stream = stream_with(3, 10);
  nca_results results{};
  EXPECT_EQ(nca_read_results(stream.get(), &results), NCA_ERROR_ARGUMENT) << "no size";
  results.size = sizeof results;
  EXPECT_EQ(nca_read_results(stream.get(), nullptr), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(nca_release_results(stream.get(), nullptr), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(nca_read_results(stream.get(), &results), NCA_ERROR_EMPTY);
  EXPECT_EQ(nca_release_results(stream.get(), &results), NCA_ERROR_ARGUMENT) << "never read";
  pollfd descriptor{nca_stream_fd(stream.get()), POLLIN, 0};
  EXPECT_EQ(::poll(&descriptor, 1, 0), 0);
  EXPECT_EQ(nca_buffer_ready(stream.get()), NCA_OK) << "an empty buffer is not handed over";
  nca_status status = NCA_OK;
  fill(*stream, 25, status);
  ASSERT_EQ(nca_flush(stream.get(), kLimitNs), NCA_OK);
  for (std::uint64_t number = 0; number < 3; ++number) {
    EXPECT_EQ(::poll(&descriptor, 1, 0), 1);
    ASSERT_EQ(nca_read_results(stream.get(), &results), NCA_OK);
    EXPECT_EQ(results.buffer, number);
    EXPECT_EQ(results.packet_count, number < 2 ? 10U : 5U);
    EXPECT_EQ(results.functions[0]->count, results.packet_count);
    EXPECT_EQ(nca_release_results(stream.get(), &results), NCA_OK);
    EXPECT_EQ(nca_release_results(stream.get(), &results), NCA_ERROR_ARGUMENT);
  }
  EXPECT_EQ(::poll(&descriptor, 1, 0), 0);
  EXPECT_EQ(nca_read_results(stream.get(), &results), NCA_ERROR_EMPTY);
}

TEST_P(Everywhere, a_caller_with_shorter_structs_gets_what_it_knows) {
  const Stream stream = stream_with(3, 10);
  nca_status status = NCA_OK;
  fill(*stream, 1, status);
  ASSERT_EQ(nca_flush(stream.get(), kLimitNs), NCA_OK);
  nca_results results{};
  results.size = offsetof(nca_results, status);
  results.function_count = 77;
  ASSERT_EQ(nca_read_results(stream.get(), &results), NCA_OK);
  EXPECT_EQ(results.size, offsetof(nca_results, status));
  EXPECT_EQ(results.packet_count, 1U);
  EXPECT_EQ(results.function_count, 77U);
  nca_statistics statistics{};
  EXPECT_EQ(nca_stream_statistics(stream.get(), &statistics), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(nca_stream_statistics(stream.get(), nullptr), NCA_ERROR_ARGUMENT);
}

struct Noted {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> packets{0};
  std::array<std::atomic<int>, 3> codes{};
};

TEST_P(Everywhere, the_callback_may_read_but_not_wait) {
  Noted noted;
  nca_stream_config config = small_buffers(functions_);
  config.buffer_packets = 10;
  config.user = &noted;
  config.notify = [](nca_stream* stream, void* user) {
    Noted& out = *static_cast<Noted*>(user);
    ++out.calls;
    out.codes[0] = nca_flush(stream, -1);
    out.codes[1] = nca_stream_close(stream);
    out.codes[2] = nca_stream_abort(stream, nullptr);
    nca_results results{};
    results.size = sizeof results;
    if (nca_read_results(stream, &results) == NCA_OK) {
      out.packets += results.packet_count;
      nca_release_results(stream, &results);
    }
  };
  Stream stream = make_stream(*context_, config);
  for (std::uint64_t sent = 0; sent < 105;) {
    nca_status status = NCA_OK;
    sent += fill(*stream, 105 - sent, status);
    std::this_thread::yield();
  }
  ASSERT_EQ(nca_flush(stream.get(), kLimitNs), NCA_OK);
  stream.reset();  // waits for the callback that runs
  EXPECT_EQ(noted.calls, 11U);
  EXPECT_EQ(noted.packets, 105U);
  for (auto const& code : noted.codes) {
    EXPECT_EQ(code, NCA_ERROR_CALLBACK);
  }
}

TEST_P(Everywhere, several_threads_share_a_stream) {
  constexpr std::uint64_t kThreads = 3;
  constexpr std::uint64_t kEach = 4000;
  const Stream stream = stream_with(3, 64);
  std::atomic<std::uint64_t> adding{kThreads};
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      // packet i of a thread holds the word where i is divisible by 3
      const Packet with = packet_of("has the word");
      const Packet without(40 + thread, 'x');
      for (std::uint64_t i = 0; i < kEach;) {
        std::vector<nca_packet> some;
        for (std::uint64_t at = i; at < std::min(i + 7, kEach); ++at) {
          some.push_back(view(at % 3 == 0 ? with : without, thread << 32 | at));
        }
        std::size_t accepted = 0;
        nca_add_packets(stream.get(), some.data(), some.size(), &accepted);
        i += accepted;
        if (accepted == 0) {
          std::this_thread::yield();
        }
      }
      nca_buffer_ready(stream.get());
      --adding;
    });
  }
  std::map<std::uint64_t, std::uint64_t> next;
  std::uint64_t read = 0;
  const auto take = [&](nca_results const& results) {
    std::set<std::uint32_t> with_word;
    for (std::size_t i = 0; i < results.functions[0]->count; ++i) {
      with_word.insert(results.functions[0]->matches[i].packet);
    }
    for (std::uint32_t i = 0; i < results.packet_count; ++i) {
      const std::uint64_t thread = results.tags[i] >> 32;
      const std::uint64_t number = results.tags[i] & 0xFFFFFFFFU;
      ASSERT_EQ(number, next[thread]++) << "of thread " << thread;
      ASSERT_EQ(with_word.contains(i), number % 3 == 0);
    }
    read += results.packet_count;
  };
  while (adding > 0) {
    drain(*stream, take);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  ASSERT_EQ(nca_flush(stream.get(), kLimitNs), NCA_OK);
  drain(*stream, take);
  EXPECT_EQ(read, kThreads * kEach);
}

/// Streams share a function's kernel; drivers may make it anew for larger launches.
/// CLOCK_MONOTONIC, as the API gives times.
std::int64_t monotonic_ns() {
  timespec now{};
  EXPECT_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

/// Sends three buffers through one by one, and gives their times.
std::vector<nca_times> times_of_three(nca_stream& stream) {
  std::vector<nca_times> times;
  for (int i = 0; i < 3; ++i) {
    nca_status status = NCA_OK;
    EXPECT_EQ(fill(stream, 5, status), 5U);
    EXPECT_EQ(nca_flush(&stream, kLimitNs), NCA_OK);
    drain(stream, [&](nca_results const& results) { times.push_back(results.times); });
  }
  EXPECT_EQ(times.size(), 3U);
  return times;
}

TEST_P(Everywhere, times_are_those_of_the_host_s_clock_and_in_order) {
  nca_stream_config config = small_buffers(functions_);
  config.flags = NCA_TIMES;
  const Stream stream = make_stream(*context_, config);
  // the device's clock is seen a little late when it is set; a clock of another epoch would be off by far more
  constexpr std::int64_t kSlackNs = 100'000'000;
  std::int64_t before = monotonic_ns() - kSlackNs;
  for (nca_times const& times : times_of_three(*stream)) {
    EXPECT_GE(times.begin_ns, before);
    EXPECT_GE(times.moved_in_ns, times.begin_ns);
    EXPECT_GT(times.computed_ns, times.moved_in_ns);
    EXPECT_GE(times.moved_back_ns, times.computed_ns);
    EXPECT_LE(times.moved_back_ns, monotonic_ns() + kSlackNs);
    if (GetParam() == "cpu") {
      EXPECT_EQ(times.moved_in_ns, times.begin_ns);
      EXPECT_EQ(times.moved_back_ns, times.computed_ns);
    } else {
      EXPECT_GT(times.moved_in_ns, times.begin_ns);
      EXPECT_GT(times.moved_back_ns, times.computed_ns);
    }
    before = times.moved_back_ns;
  }
}

TEST_P(Everywhere, times_are_0_unless_asked_for) {
  const Stream stream = make_stream(*context_, small_buffers(functions_));
  for (nca_times const& times : times_of_three(*stream)) {
    EXPECT_EQ(times.begin_ns, 0);
    EXPECT_EQ(times.moved_in_ns, 0);
    EXPECT_EQ(times.computed_ns, 0);
    EXPECT_EQ(times.moved_back_ns, 0);
  }
}

TEST_P(Everywhere, a_larger_stream_is_made_while_another_one_works) {
  std::atomic<bool> done{false};
  std::thread worker([&] {
    const Stream stream = stream_with(3, 100);
    while (!done) {
      nca_status status = NCA_OK;
      fill(*stream, 50, status);
      drain(*stream, [](nca_results const& results) { EXPECT_EQ(results.functions[0]->count, results.packet_count); });
    }
  });
  for (std::uint32_t packets = 200; packets < 20'000; packets *= 3) {
    const Stream stream = stream_with(2, packets);
    std::size_t found = 0;
    run(*stream, std::vector<Packet>(packets, packet_of("a word")),
        [&](nca_results const& results, std::uint64_t) { found += results.functions[0]->count; });
    EXPECT_EQ(found, packets);
  }
  done = true;
  worker.join();
}

TEST_P(Everywhere, packets_cross_the_bus_once_for_all_functions) {
  const auto bytes_to_device = [&](std::vector<nca_function*> const& functions) {
    const Stream stream = make_stream(*context_, small_buffers(functions));
    std::vector<std::size_t> found(functions.size());
    run(*stream, std::vector<Packet>(1200, packet_of("one word or two words")),
        [&](nca_results const& results, std::uint64_t) {
          for (std::size_t i = 0; i < results.function_count; ++i) {
            found[i] += results.functions[i]->count;
          }
        });
    EXPECT_EQ(found[0], 2400U);
    EXPECT_EQ(found.back(), functions.size() == 1 ? 2400U : 1200U);
    nca_statistics statistics{};
    statistics.size = sizeof statistics;
    EXPECT_EQ(nca_stream_statistics(stream.get(), &statistics), NCA_OK);
    return statistics.bytes_to_device;
  };
  const std::uint64_t alone = bytes_to_device(functions_);
  EXPECT_EQ(alone > 0, GetParam() != "cpu");
  EXPECT_EQ(bytes_to_device({functions_[0], add_word(*context_, "words")}), alone);
}

/// A real device that fails when told to.
class FailingDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    auto real = device::open(device::DevicePreference::of("opencl"));
    if (!real.ok()) {
      GTEST_SKIP() << real.status();
    }
    real_ = std::move(real).value();
    faulty_ = std::make_unique<FaultyDevice>(*real_);
    context_.reset(open_on(faulty_.get(), "faulty"));
    functions_ = {add_word(*context_)};
    ASSERT_NE(functions_[0], nullptr);
  }

  std::unique_ptr<device::Device> real_;
  std::unique_ptr<FaultyDevice> faulty_;
  Context context_;
  std::vector<nca_function*> functions_;
};

TEST_F(FailingDevice, what_was_accepted_comes_back_when_the_device_is_lost) {
  for (const Call call : {Call::kCopyToDevice, Call::kFill, Call::kLaunch, Call::kCopyToHost, Call::kRecord,
                          Call::kFlush, Call::kReady}) {
    SCOPED_TRACE(static_cast<int>(call));
    TearDown();
    context_.reset();
    SetUp();
    nca_stream_config config = small_buffers(functions_);
    config.buffer_packets = 10;
    Stream stream = make_stream(*context_, config);
    nca_status status = NCA_OK;
    ASSERT_EQ(fill(*stream, 10, status), 10U);
    ASSERT_EQ(nca_flush(stream.get(), kLimitNs), NCA_OK);
    faulty_->lose(call, 1, absl::UnavailableError("pulled out"));
    const std::uint64_t accepted = 10 + fill(*stream, 15, status);
    ASSERT_EQ(nca_flush(stream.get(), kLimitNs), NCA_OK);
    std::uint64_t good = 0;
    std::uint64_t bad = 0;
    drain(*stream, [&](nca_results const& results) {
      (results.status == NCA_OK ? good : bad) += results.packet_count;
      if (results.status != NCA_OK) {
        EXPECT_EQ(results.status, NCA_ERROR_DEVICE);
        EXPECT_EQ(results.function_count, 0U);
      }
      for (std::uint32_t i = 0; i < results.packet_count; ++i) {
        EXPECT_EQ(std::string_view(static_cast<const char*>(results.packets[i].data), results.packets[i].length),
                  "a word");
      }
    });
    EXPECT_EQ(good, 10U);
    EXPECT_EQ(good + bad, accepted);
    EXPECT_GE(bad, 10U);
    EXPECT_EQ(fill(*stream, 1, status), 0U);
    EXPECT_EQ(status, NCA_ERROR_DEVICE);
    EXPECT_THAT(text_of(*stream), HasSubstr("pulled out"));
    EXPECT_EQ(nca_stream_close(stream.release()), NCA_OK);
  }
}

TEST_F(FailingDevice, a_flush_ends_when_its_time_is_over) {
  const Stream stream = make_stream(*context_, small_buffers(functions_));
  nca_status status = NCA_OK;
  fill(*stream, 10, status);
  faulty_->hold_events(true);
  EXPECT_EQ(nca_flush(stream.get(), 1'000'000), NCA_ERROR_TIMEOUT);
  EXPECT_EQ(nca_stream_close(stream.get()), NCA_ERROR_BUSY);
  faulty_->hold_events(false);
  EXPECT_EQ(nca_flush(stream.get(), -1), NCA_OK);
  fill(*stream, 10, status);
  EXPECT_EQ(nca_flush(stream.get(), std::numeric_limits<std::int64_t>::max()), NCA_OK);
  std::uint64_t read = 0;
  drain(*stream, [&](nca_results const& results) { read += results.packet_count; });
  EXPECT_EQ(read, 20U);
}

TEST_F(FailingDevice, a_stream_that_gets_no_memory_is_not_made) {
  const nca_stream_config config = small_buffers(functions_);
  for (const Call call : {Call::kAllocate, Call::kAllocatePinned, Call::kCreateStream}) {
    for (std::uint64_t nth = 1; nth <= 3; ++nth) {
      faulty_->fail(call, nth, absl::ResourceExhaustedError("no room"));
      nca_stream* stream = nullptr;
      EXPECT_EQ(nca_traffic_stream_init(context_.get(), &config, &stream), NCA_ERROR_MEMORY);
      EXPECT_EQ(stream, nullptr);
      EXPECT_EQ(text_of(*context_), "no room");
    }
  }
  faulty_->lose(Call::kAllocate, 1, absl::UnavailableError("pulled out"));
  nca_stream* stream = nullptr;
  EXPECT_EQ(nca_traffic_stream_init(context_.get(), &config, &stream), NCA_ERROR_DEVICE);
  nca_function* function = nullptr;
  const nca_pattern pattern{"x", 1, 0};
  const nca_match_config match{sizeof match, &pattern, 1, nullptr, nullptr, 0};
  EXPECT_EQ(nca_add_network_function(context_.get(), NCA_MATCH, &match, &function), NCA_ERROR_DEVICE);
}

}  // namespace
}  // namespace catena::nca::testing
