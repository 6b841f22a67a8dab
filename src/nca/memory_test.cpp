// SPDX-License-Identifier: Apache-2.0
// Memory that ends at any place: a session in which one allocation fails, for each allocation of it. No exception
// leaves the library or ends its thread, and what was accepted comes back. A program of its own: it replaces operator
// new.
#include <nca/nca.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string_view>
#include <vector>

namespace {

/// Allocations until one fails, on any thread; below 0: none does.
std::atomic<long> left{-1};

void* take(std::size_t bytes, std::size_t alignment) {
  if (left.load(std::memory_order_relaxed) >= 0 && left.fetch_sub(1) == 0) {
    return nullptr;
  }
  return alignment <= alignof(std::max_align_t)
             ? std::malloc(bytes)
             : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void* take_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* memory = take(bytes, alignment)) {
    return memory;
  }
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return take_or_throw(bytes, 1); }
void* operator new[](std::size_t bytes) { return take_or_throw(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept { return take(bytes, 1); }
void* operator new[](std::size_t bytes, std::nothrow_t const&) noexcept { return take(bytes, 1); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::nothrow_t const&) noexcept { std::free(memory); }

namespace catena::nca::testing {
namespace {

constexpr std::uint64_t kPackets = 40;

/// Whether it went well; any failure must be that of memory.
bool well(nca_status status, const char* call) {
  EXPECT_TRUE(status == NCA_OK || status == NCA_ERROR_MEMORY) << call << ": " << nca_error_text(status);
  return status == NCA_OK;
}

class Session {
 public:
  ~Session() {
    left = -1;
    if (stream_ != nullptr) {
      EXPECT_EQ(nca_stream_abort(stream_, nullptr), NCA_OK);
    }
    if (context_ != nullptr) {
      EXPECT_EQ(nca_close(context_), NCA_OK);
    }
  }

  bool open() { return well(nca_open("cpu", nullptr, 0, &context_), "open"); }

  bool add_functions() {
    const nca_pattern patterns[] = {{"word", 4, 0}, {"WORDS", 5, NCA_NOCASE}};
    const nca_match_config match{sizeof match, patterns, 2, nullptr, nullptr, 0};
    const nca_rule rules[] = {{0x0A000000, 0, 8, 0, 6, 0xFF, 0, 65535, 80, 80}, {}};
    const nca_classify_config classify{sizeof classify, rules, 2, nullptr};
    const nca_prefix prefixes[] = {{0x0A000000, 5, 8, 0}, {0x0A000000, 6, 25, 0}};
    const nca_route_config route{sizeof route, prefixes, 2, nullptr};
    nca_cipher_config cipher{};
    cipher.size = sizeof cipher;
    cipher.direction = NCA_ENCRYPT;
    cipher.text_offset = 8;
    return add(NCA_MATCH, &match) && add(NCA_CLASSIFY, &classify) && add(NCA_ROUTE, &route) && add(NCA_CIPHER, &cipher);
  }

  bool make_stream() {
    nca_stream_config config{};
    config.size = sizeof config;
    config.functions = functions_.data();
    config.function_count = functions_.size();
    config.buffers = 3;
    config.buffer_packets = 7;
    return well(nca_traffic_stream_init(context_, &config, &stream_), "make a stream");
  }

  /// Sends kPackets packets, one of them wrong, as often as it takes. All that were accepted must come back.
  void send() {
    std::uint64_t sent = 0;
    bool was_refused = false;
    while (sent < kPackets) {
      const std::string_view text = text_of(sent);
      const nca_packet packets[] = {{text.data(), sent, static_cast<std::uint32_t>(text.size()), 0},
                                    {text.data(), 0, 0, 0}};
      std::size_t accepted = 0;
      const nca_status status = nca_add_packets(stream_, packets, was_refused ? 1 : 2, &accepted);
      sent += accepted;
      was_refused = was_refused || status == NCA_ERROR_PACKET;
      if (status == NCA_ERROR_FULL) {
        flush();
        read();
      } else if (status != NCA_ERROR_PACKET) {
        well(status, "add");
      }
    }
    flush();
    read();
    EXPECT_EQ(read_, sent);
  }

 private:
  bool add(nca_kind kind, const void* config) {
    nca_function* function = nullptr;
    if (!well(nca_add_network_function(context_, kind, config, &function), "add a function")) {
      EXPECT_EQ(function, nullptr);
      return false;
    }
    // what the session notes is not the library's allocation
    const long before = left.exchange(-1);
    functions_.push_back(function);
    left = before;
    return true;
  }

  void flush() {
    while (!well(nca_flush(stream_, -1), "flush")) {
    }
  }
  void read() {
    nca_results results{};
    results.size = sizeof results;
    for (nca_status status = NCA_OK; status != NCA_ERROR_EMPTY;) {
      status = nca_read_results(stream_, &results);
      if (status == NCA_ERROR_EMPTY || !well(status, "read")) {
        continue;
      }
      std::uint64_t matches = 0;
      for (std::uint32_t i = 0; i < results.packet_count; ++i) {
        EXPECT_EQ(results.tags[i], read_);
        matches += matches_of(read_++);
      }
      if (well(results.status, "results")) {
        EXPECT_EQ(results.functions[0]->count, matches);
      }
      EXPECT_EQ(nca_release_results(stream_, &results), NCA_OK);
    }
  }

  /// The packet of that tag, and its matches.
  static std::string_view text_of(std::uint64_t tag) {
    return tag % 3 == 0 ? "words of a packet, and another word, and so on until there is enough" : "one more word";
  }
  static std::uint64_t matches_of(std::uint64_t tag) { return tag % 3 == 0 ? 3 : 1; }

  nca_context* context_ = nullptr;
  nca_stream* stream_ = nullptr;
  std::vector<nca_function*> functions_;
  std::uint64_t read_ = 0;
};

TEST(Memory, may_end_anywhere) {
  long failures = 0;
  for (bool any_failed = true; any_failed; ++failures) {
    SCOPED_TRACE(failures);
    Session session;
    left = failures;
    if (session.open() && session.add_functions() && session.make_stream()) {
      session.send();
    }
    any_failed = left < 0;
    left = -1;
    if (HasFailure()) {
      break;
    }
  }
  EXPECT_GT(failures, 100);
}

}  // namespace
}  // namespace catena::nca::testing
