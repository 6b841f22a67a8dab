// SPDX-License-Identifier: Apache-2.0
#include "nca/testing/session.hpp"

#include "gpu/device/device.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>

namespace catena::nca::testing {
namespace {

constexpr int kLimitMs = 60'000;
constexpr std::int64_t kSessionLimitNs = std::int64_t{kLimitMs} * 1'000'000;

}  // namespace

void CloseContext::operator()(nca_context* context) const { EXPECT_EQ(nca_close(context), NCA_OK); }
void AbortStream::operator()(nca_stream* stream) const { EXPECT_EQ(nca_stream_abort(stream, nullptr), NCA_OK); }

Context open(std::string const& device) {
  nca_context* context = nullptr;
  nca_open(device.c_str(), nullptr, 0, &context);
  return Context(context);
}

std::vector<std::string> const& device_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names{"cpu"};
    for (const std::string_view backend : device::backend_names()) {
      if (open(std::string(backend)) != nullptr) {
        names.emplace_back(backend);
      }
    }
    return names;
  }();
  return kNames;
}

std::string text_of(nca_context const& context) {
  std::array<char, 4096> text{};
  nca_context_error(&context, text.data(), text.size());
  return text.data();
}

std::string text_of(nca_stream const& stream) {
  std::array<char, 4096> text{};
  nca_stream_error(&stream, text.data(), text.size());
  return text.data();
}

nca_function* add(nca_context& context, nca_kind kind, const void* config) {
  nca_function* function = nullptr;
  EXPECT_EQ(nca_add_network_function(&context, kind, config, &function), NCA_OK) << text_of(context);
  return function;
}

nca_stream_config small_buffers(std::vector<nca_function*> const& functions) {
  nca_stream_config config{};
  config.size = sizeof config;
  config.functions = functions.data();
  config.function_count = functions.size();
  config.buffer_packets = 500;
  config.packet_bytes = 0xFFFF;
  return config;
}

Stream make_stream(nca_context& context, nca_stream_config const& config) {
  nca_stream* stream = nullptr;
  EXPECT_EQ(nca_traffic_stream_init(&context, &config, &stream), NCA_OK) << text_of(context);
  return Stream(stream);
}

std::vector<nca_packet> views(std::vector<Packet> const& packets, std::uint64_t first_tag) {
  std::vector<nca_packet> views;
  for (Packet const& packet : packets) {
    views.push_back({packet.data(), first_tag + views.size(), static_cast<std::uint32_t>(packet.size()), 0});
  }
  return views;
}

bool wait_for_results(nca_stream& stream) {
  pollfd descriptor{nca_stream_fd(&stream), POLLIN, 0};
  return ::poll(&descriptor, 1, kLimitMs) == 1;
}

void drain(nca_stream& stream, std::function<void(nca_results const&)> const& on_results) {
  nca_results results{};
  results.size = sizeof results;
  while (nca_read_results(&stream, &results) == NCA_OK) {
    on_results(results);
    EXPECT_EQ(nca_release_results(&stream, &results), NCA_OK);
  }
}

void run(nca_stream& stream, std::vector<Packet> const& packets,
         std::function<void(nca_results const& results, std::uint64_t first_packet)> const& on_results) {
  constexpr std::uint64_t kFirstTag = std::uint64_t{7} << 40;
  const std::vector<nca_packet> all = views(packets, kFirstTag);
  std::uint64_t read = 0;
  const auto take = [&](nca_results const& results) {
    ASSERT_EQ(results.status, NCA_OK) << text_of(stream);
    ASSERT_LE(read + results.packet_count, packets.size());
    for (std::uint32_t i = 0; i < results.packet_count; ++i) {
      ASSERT_EQ(results.tags[i], kFirstTag + read + i);
      nca_packet const& packet = results.packets[i];
      Packet const& sent = packets[read + i];
      ASSERT_EQ(packet.tag, kFirstTag + read + i);
      ASSERT_TRUE(std::equal(sent.begin(), sent.end(), static_cast<const std::uint8_t*>(packet.data),
                             static_cast<const std::uint8_t*>(packet.data) + packet.length));
    }
    on_results(results, read);
    read += results.packet_count;
  };
  for (std::size_t sent = 0; sent < all.size();) {
    std::size_t accepted = 0;
    const nca_status status =
        nca_add_packets(&stream, all.data() + sent, std::min<std::size_t>(177, all.size() - sent), &accepted);
    sent += accepted;
    if (status == NCA_ERROR_FULL) {
      ASSERT_TRUE(wait_for_results(stream));
      drain(stream, take);
    } else {
      ASSERT_EQ(status, NCA_OK) << text_of(stream);
    }
  }
  ASSERT_EQ(nca_flush(&stream, kSessionLimitNs), NCA_OK) << text_of(stream);
  drain(stream, take);
  EXPECT_EQ(read, packets.size());
}

}  // namespace catena::nca::testing
