// SPDX-License-Identifier: Apache-2.0
// Sizes, counts and handles that no caller should pass.
#include <nca/nca.h>

#include "nca/testing/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

namespace catena::nca::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kHuge = std::numeric_limits<std::size_t>::max();

nca_pattern pattern_of(std::string_view text) { return {text.data(), static_cast<std::uint32_t>(text.size()), 0}; }

class Abi : public ::testing::Test {
 protected:
  nca_status try_to_add(nca_kind kind, const void* config) {
    nca_function* function = nullptr;
    const nca_status status = nca_add_network_function(context_.get(), kind, config, &function);
    EXPECT_EQ(function == nullptr, status != NCA_OK);
    return status;
  }
  nca_function* add_word() {
    const nca_pattern word = pattern_of("word");
    const nca_match_config config{sizeof config, &word, 1, nullptr, nullptr, 0};
    return add(*context_, NCA_MATCH, &config);
  }

  const Context context_ = open("cpu");
};

TEST_F(Abi, a_size_that_nobody_set_is_not_believed) {
  const nca_pattern word = pattern_of("word");
  for (const std::size_t size : {std::size_t{0}, std::size_t{8}, std::size_t{1} << 40, kHuge}) {
    SCOPED_TRACE(size);
    const nca_match_config match{size, &word, 1, nullptr, nullptr, 0};
    EXPECT_EQ(try_to_add(NCA_MATCH, &match), NCA_ERROR_ARGUMENT);
    EXPECT_THAT(text_of(*context_), HasSubstr("size"));
  }
  nca_function* function = add_word();
  nca_stream_config config = small_buffers({function});
  config.size = kHuge;
  nca_stream* stream = nullptr;
  EXPECT_EQ(nca_traffic_stream_init(context_.get(), &config, &stream), NCA_ERROR_ARGUMENT);
}

TEST_F(Abi, counts_beyond_what_there_may_be_are_refused_before_anything_is_read) {
  const nca_pattern word = pattern_of("word");
  const nca_rule rule{};
  const nca_prefix prefix{};
  for (const std::size_t count : {std::size_t{NCA_MAX_PATTERNS} + 1, std::size_t{1} << 40, kHuge}) {
    SCOPED_TRACE(count);
    const nca_match_config match{sizeof match, &word, count, nullptr, nullptr, 0};
    EXPECT_EQ(try_to_add(NCA_MATCH, &match), NCA_ERROR_ARGUMENT);
    const nca_classify_config classify{sizeof classify, &rule, count, nullptr};
    EXPECT_EQ(try_to_add(NCA_CLASSIFY, &classify), NCA_ERROR_ARGUMENT);
  }
  for (const std::size_t count : {(std::size_t{1} << 25) + 1, kHuge}) {
    const nca_route_config route{sizeof route, &prefix, count, nullptr};
    EXPECT_EQ(try_to_add(NCA_ROUTE, &route), NCA_ERROR_ARGUMENT);
  }
  nca_kernel_config kernel{};
  kernel.size = sizeof kernel;
  kernel.source = "x";
  kernel.name = "x";
  kernel.state = &word;
  kernel.state_bytes = kHuge;
  kernel.result_bytes = 4;
  EXPECT_EQ(try_to_add(NCA_KERNEL, &kernel), NCA_ERROR_MEMORY);
}

TEST_F(Abi, a_stream_has_no_more_functions_than_its_context) {
  nca_function* functions[] = {add_word()};
  nca_stream_config config = small_buffers({});
  config.functions = functions;
  nca_stream* stream = nullptr;
  for (const std::size_t count : {std::size_t{2}, std::size_t{1} << 40, kHuge}) {
    config.function_count = count;
    EXPECT_EQ(nca_traffic_stream_init(context_.get(), &config, &stream), NCA_ERROR_ARGUMENT) << count;
  }
}

/// A sanitizer sees it where the function is read.
TEST_F(Abi, a_stream_does_not_take_a_function_that_was_removed) {
  nca_function* functions[] = {add_word()};
  ASSERT_NE(add_word(), nullptr);
  ASSERT_EQ(nca_remove_network_function(functions[0]), NCA_OK);
  nca_stream_config config = small_buffers({});
  config.functions = functions;
  config.function_count = 1;
  nca_stream* stream = nullptr;
  EXPECT_EQ(nca_traffic_stream_init(context_.get(), &config, &stream), NCA_ERROR_ARGUMENT);
  EXPECT_EQ(stream, nullptr);
}

TEST_F(Abi, results_are_read_and_released_as_far_as_the_caller_has_room) {
  const std::vector<nca_function*> functions{add_word()};
  const Stream stream = make_stream(*context_, small_buffers(functions));
  const nca_packet packet{"a word", 7, 6, 0};
  ASSERT_EQ(nca_add_packets(stream.get(), &packet, 1, nullptr), NCA_OK);
  ASSERT_EQ(nca_flush(stream.get(), -1), NCA_OK);
  // a caller who knows the number of the buffer alone
  alignas(nca_results) std::array<unsigned char, sizeof(nca_results)> bytes{};
  bytes.fill(0xEE);
  const std::size_t known = offsetof(nca_results, packet_count);
  std::memcpy(bytes.data(), &known, sizeof known);
  auto* results = reinterpret_cast<nca_results*>(bytes.data());
  ASSERT_EQ(nca_read_results(stream.get(), results), NCA_OK);
  EXPECT_EQ(results->buffer, 0U);
  for (std::size_t i = known; i < bytes.size(); ++i) {
    ASSERT_EQ(bytes[i], 0xEE) << i;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{8}, known - 1}) {
    std::memcpy(bytes.data(), &size, sizeof size);
    EXPECT_EQ(nca_release_results(stream.get(), results), NCA_ERROR_ARGUMENT) << size;
    EXPECT_EQ(nca_read_results(stream.get(), results), NCA_ERROR_ARGUMENT) << size;
  }
  std::memcpy(bytes.data(), &known, sizeof known);
  EXPECT_EQ(nca_release_results(stream.get(), results), NCA_OK);
  EXPECT_EQ(nca_release_results(stream.get(), results), NCA_ERROR_ARGUMENT) << "released already";
}

}  // namespace
}  // namespace catena::nca::testing
