// SPDX-License-Identifier: Apache-2.0
// What every backend owes its users. The suite does not know which backend it runs on.
#include "gpu/device/device.hpp"

#include <absl/strings/match.h>
#include <catena/core/text.hpp>

#include "gpu/device/backend.hpp"
#include "gpu/device/testing/faulty_device.hpp"
#include "gpu/device/testing/remote_device.hpp"
#include "gpu/device/testing/shared_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <thread>

namespace catena::device {
namespace {

using ::testing::AllOf;
using testing::Call;
using testing::FaultyDevice;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kLimit{60};

/// Both languages in one file, without the SDK of the layer above.
constexpr const char* kKernels = R"(
#if defined(__CUDACC_RTC__)
#define KERNEL extern "C" __global__
#define GLOBAL
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
#define U64 unsigned long long
#else
#define KERNEL __kernel
#define GLOBAL __global
#define INDEX ((unsigned)get_global_id(0))
#define U64 unsigned long
#endif
#include "shared.hpp"

KERNEL void add(GLOBAL unsigned* data, unsigned count, unsigned value) {
  if (INDEX < count) {
    data[INDEX] = sum(data[INDEX], value) + EXTRA;
  }
}

KERNEL void compute_unit(GLOBAL unsigned* seen) {
#ifdef __CUDA_ARCH__
  const long long begin = clock64();
  while (clock64() - begin < 20000) {  // so long that groups spread over all that there are
  }
  unsigned unit;
  asm("mov.u32 %0, %%smid;" : "=r"(unit));
  seen[blockIdx.x] = unit;
#endif
}

KERNEL void twice(GLOBAL unsigned* data, unsigned count) {
  if (INDEX < count) {
    data[INDEX] *= 2;
  }
}

struct Values {
  unsigned char first;
  unsigned short second;
  unsigned third;
  U64 fourth;
};

KERNEL void unpack(GLOBAL unsigned* out, Values values, GLOBAL unsigned* nothing) {
  if (INDEX == 0) {
    out[0] = values.first;
    out[1] = values.second;
    out[2] = values.third;
    out[3] = (unsigned)(values.fourth >> 32);
    out[4] = (unsigned)values.fourth;
    out[5] = nothing == 0 ? 1u : 0u;
  }
}

struct Sizes {
  U64 of[4];
};

KERNEL void many(GLOBAL unsigned* out, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f,
                 unsigned g, unsigned h, unsigned i, unsigned j, unsigned k, unsigned l, unsigned m, unsigned n,
                 unsigned o, unsigned p, unsigned q, unsigned r, unsigned s, unsigned t, unsigned u, unsigned v,
                 unsigned w, unsigned x) {
  if (INDEX == 0) {
    out[0] = a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p + q + r + s + t + u + v + w + x;
  }
}

KERNEL void sizes(GLOBAL U64* out, GLOBAL unsigned* nothing, unsigned value, GLOBAL unsigned* other, Sizes sizes) {
  if (INDEX < 4) {
    out[INDEX] += sizes.of[INDEX] + value;
  }
}
)";

struct Values {
  std::uint8_t first;
  std::uint16_t second;
  std::uint32_t third;
  std::uint64_t fourth;
};

ProgramSource test_program() {
  return {{{"test.kernel.cpp", kKernels},
           {"shared.hpp", "#pragma once\ninline unsigned sum(unsigned a, unsigned b) { return a + b; }\n"}},
          {"EXTRA=1000U"}};
}

std::span<const std::byte> bytes_of(auto const& value) { return std::as_bytes(std::span(&value, 1)); }

constexpr std::string_view kRemote = "remote_";

bool is_remote(std::string_view backend) { return absl::StartsWith({backend.data(), backend.size()}, "remote_"); }

/// As testing::shared_device(); "faulty": a FaultyDevice without faults around the OpenCL device; "remote_cuda": the
/// CUDA device of a device server.
Result<Device*> device_of(std::string_view backend) {
  if (is_remote(backend)) {
    static std::map<std::string, Result<std::unique_ptr<Device>>, std::less<>> opened;
    auto found = opened.find(backend);
    if (found == opened.end()) {
      found = opened.emplace(backend, testing::open_remote(backend.substr(kRemote.size()))).first;
    }
    CATENA_RETURN_IF_ERROR(found->second.status());
    return found->second->get();
  }
  if (backend != "faulty") {
    return testing::shared_device(backend);
  }
  CATENA_ASSIGN_OR_RETURN(Device * real, testing::shared_device("opencl"));
  static FaultyDevice faulty(*real);
  return &faulty;
}

/// The same device once more.
Result<std::unique_ptr<Device>> open_again(std::string_view backend) {
  return is_remote(backend) ? testing::open_remote(backend.substr(kRemote.size()))
                            : open(DevicePreference::of(backend == "faulty" ? "opencl" : backend));
}

class DeviceTest : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    const Result<Device*> device = device_of(GetParam());
    if (!device.ok()) {
      GTEST_SKIP() << GetParam() << ": " << device.status().message();
    }
    device_ = *device;
    stream_ = device_->create_stream().value();
  }

  Device& device() { return *device_; }
  Stream& stream() { return *stream_; }

  void finish(Stream& stream) { ASSERT_EQ(stream.record().value()->wait(kLimit, "test"), absl::OkStatus()); }
  void finish() { finish(stream()); }

  std::unique_ptr<Buffer> buffer_with(std::span<const std::byte> content) {
    std::unique_ptr<Buffer> buffer = device().allocate(content.size()).value();
    EXPECT_EQ(stream().copy_to_device(*buffer, 0, content), absl::OkStatus());
    finish();
    return buffer;
  }
  std::vector<std::byte> content_of(Buffer& buffer) {
    std::vector<std::byte> content(buffer.size());
    EXPECT_EQ(stream().copy_to_host(content, buffer, 0), absl::OkStatus());
    finish();
    return content;
  }
  Program& program() {
    if (program_ == nullptr) {
      program_ = device().load(device().compile(test_program()).value()).value();
    }
    return *program_;
  }
  Kernel& kernel(std::string_view name) { return *program().kernel(name).value(); }

 private:
  Device* device_ = nullptr;
  std::unique_ptr<Program> program_;
  std::unique_ptr<Stream> stream_;
};

/// Whole pages of the host that nothing else uses, shared as a packet pool's are.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : memory_(ipc::Mapping::create("catena_device", bytes).value()), bytes_(bytes) {
    start_ = memory_.bytes().data();
  }
  std::span<std::byte> bytes() { return {static_cast<std::byte*>(start_), bytes_}; }
  HostMemory memory() { return {bytes(), memory_.fd()}; }
  std::span<std::uint32_t> words() { return {static_cast<std::uint32_t*>(start_), bytes_ / sizeof(std::uint32_t)}; }

 private:
  ipc::Mapping memory_;
  void* start_;
  std::size_t bytes_;
};

std::vector<std::byte> random_bytes(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  std::ranges::generate(bytes, [&random] { return static_cast<std::byte>(random()); });
  return bytes;
}

TEST_P(DeviceTest, info_describes_the_device) {
  DeviceInfo const& info = device().info();
  EXPECT_EQ(info.backend, is_remote(GetParam()) ? GetParam().substr(kRemote.size()) : GetParam());
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.driver.empty());
  EXPECT_FALSE(info.target.empty());
  EXPECT_GT(info.compute_units, 0U);
  EXPECT_GT(info.memory_bytes, 0U);
  EXPECT_GT(info.local_memory_bytes, 0U);
  EXPECT_GE(info.max_group_size, 64U);
  EXPECT_EQ(device().failed(), absl::OkStatus());
}

TEST_P(DeviceTest, copies_land_at_their_offsets_and_nowhere_else) {
  std::vector<std::byte> expected = random_bytes(5000, 1);
  const std::unique_ptr<Buffer> buffer = buffer_with(expected);
  const std::vector<std::byte> patch = random_bytes(5000, 2);
  const std::size_t cuts[][2] = {{0, 1}, {1, 1}, {3, 5}, {63, 130}, {4095, 2}, {4999, 1}, {1000, 2000}, {5000, 0}};
  for (const auto& [offset, count] : cuts) {
    ASSERT_EQ(stream().copy_to_device(*buffer, offset, std::span(patch).subspan(offset, count)), absl::OkStatus());
    std::copy_n(patch.begin() + static_cast<std::ptrdiff_t>(offset), count,
                expected.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  EXPECT_EQ(content_of(*buffer), expected);

  for (const auto& [offset, count] : cuts) {
    std::vector<std::byte> part(count + 2, std::byte{0x5A});
    ASSERT_EQ(stream().copy_to_host(std::span(part).subspan(1, count), *buffer, offset), absl::OkStatus());
    finish();
    EXPECT_TRUE(std::equal(part.begin() + 1, part.end() - 1, expected.begin() + static_cast<std::ptrdiff_t>(offset)));
    EXPECT_EQ(part.front(), std::byte{0x5A});
    EXPECT_EQ(part.back(), std::byte{0x5A});
  }
}

TEST_P(DeviceTest, pinned_memory_holds_what_is_copied) {
  const std::vector<std::byte> content = random_bytes(1 << 20, 3);
  const std::unique_ptr<PinnedBuffer> from = device().allocate_pinned(content.size()).value();
  const std::unique_ptr<PinnedBuffer> to = device().allocate_pinned(content.size()).value();
  const std::unique_ptr<Buffer> buffer = device().allocate(content.size()).value();
  ASSERT_EQ(from->bytes().size(), content.size());
  std::ranges::copy(content, from->bytes().begin());
  std::ranges::fill(to->bytes(), std::byte{0});
  ASSERT_EQ(stream().copy_to_device(*buffer, 0, from->bytes()), absl::OkStatus());
  ASSERT_EQ(stream().copy_to_host(to->bytes(), *buffer, 0), absl::OkStatus());
  finish();
  EXPECT_TRUE(std::ranges::equal(to->bytes(), content));
}

/// A shape and where its first row begins on the device, in a buffer of `size` bytes.
struct RowCase {
  RowShape shape;
  std::size_t offset;
  std::size_t size;
  std::size_t reach() const { return (shape.rows - 1) * shape.stride + shape.row_bytes; }
};
constexpr RowCase kRowCases[] = {
    {{1, 1, 1}, 0, 1},                              // the least there is
    {{7, 7, 13}, 5, 100},                           // rows without gaps
    {{1, 2, 50}, 1, 100},                           // the last row flush with the end
    {{5, 13, 9}, 4, 113},                           // odd width, stride and offset; flush with the end
    {{5, 13, 9}, 100, 1000},                        // begins beyond its stride
    {{63, 64, 31}, 63, 4096},                       //
    {{1518, 2048, 64}, 128, 128 + 64 * 2048},       // frames in slots after their headroom
    {{1518, 2048, 64}, 530, std::size_t{1} << 17},  // the same, the last row flush with the end
    {{1000, 2048, 1}, 24, 1024},                    // one row, shorter than its stride, flush with the end
    {{3, 100000, 20}, 99999, 2000002},              // far apart
};

TEST_P(DeviceTest, rows_go_to_the_device_and_leave_the_gaps_alone) {
  for (auto const& [shape, offset, size] : kRowCases) {
    const std::size_t reach = RowCase{shape, offset, size}.reach();
    SCOPED_TRACE(concat(shape.rows, " x ", shape.row_bytes, " every ", shape.stride, " at ", offset, " of ", size));
    const std::vector<std::byte> source = random_bytes(reach, 11);
    const std::unique_ptr<Buffer> buffer = device().allocate(size).value();
    ASSERT_EQ(stream().fill(*buffer, 0, size, 0xDB), absl::OkStatus());
    ASSERT_EQ(stream().copy_rows_to_device(*buffer, offset, source, shape), absl::OkStatus());
    std::vector<std::byte> expected(size, std::byte{0xDB});
    for (std::size_t row = 0; row < shape.rows; ++row) {
      std::memcpy(&expected[offset + row * shape.stride], &source[row * shape.stride], shape.row_bytes);
    }
    EXPECT_TRUE(content_of(*buffer) == expected);
  }
}

TEST_P(DeviceTest, rows_come_to_the_host_and_leave_the_gaps_alone) {
  for (auto const& [shape, offset, size] : kRowCases) {
    const std::size_t reach = RowCase{shape, offset, size}.reach();
    SCOPED_TRACE(concat(shape.rows, " x ", shape.row_bytes, " every ", shape.stride, " at ", offset, " of ", size));
    const std::vector<std::byte> content = random_bytes(size, 12);
    const std::unique_ptr<Buffer> buffer = buffer_with(content);
    // one byte more on each side than the span that is handed over
    std::vector<std::byte> target(reach + 2, std::byte{0xDB});
    std::vector<std::byte> expected = target;
    for (std::size_t row = 0; row < shape.rows; ++row) {
      std::memcpy(&expected[1 + row * shape.stride], &content[offset + row * shape.stride], shape.row_bytes);
    }
    ASSERT_EQ(stream().copy_rows_to_host(std::span(target).subspan(1, reach), *buffer, offset, shape),
              absl::OkStatus());
    finish();
    EXPECT_TRUE(target == expected);
    EXPECT_TRUE(content_of(*buffer) == content);
  }
}

TEST_P(DeviceTest, a_span_may_reach_beyond_the_last_row) {
  const RowShape shape{4, 16, 3};
  const std::vector<std::byte> source(48, std::byte{0x77});
  const std::unique_ptr<Buffer> buffer = device().allocate(36).value();
  ASSERT_EQ(stream().copy_rows_to_device(*buffer, 0, source, shape), absl::OkStatus());
  std::vector<std::byte> target(48, std::byte{0});
  ASSERT_EQ(stream().copy_rows_to_host(target, *buffer, 0, shape), absl::OkStatus());
  finish();
  for (std::size_t at = 0; at < target.size(); ++at) {
    EXPECT_EQ(target[at], at % 16 < 4 ? std::byte{0x77} : std::byte{0}) << at;
  }
}

TEST_P(DeviceTest, no_rows_are_harmless) {
  const std::unique_ptr<Buffer> buffer = device().allocate(10).value();
  for (RowShape const& shape : {RowShape{}, RowShape{8, 4, 0}, RowShape{100, 100, 0}}) {
    EXPECT_EQ(stream().copy_rows_to_device(*buffer, 11, {}, shape), absl::OkStatus());
    EXPECT_EQ(stream().copy_rows_to_host({}, *buffer, 11, shape), absl::OkStatus());
  }
}

TEST_P(DeviceTest, rows_of_no_shape_or_out_of_range_are_refused) {
  const std::unique_ptr<Buffer> buffer = device().allocate(100).value();
  const std::size_t huge = SIZE_MAX;
  const struct {
    RowShape shape;
    std::size_t host_bytes;
    std::size_t offset;
    std::string_view why;
  } cases[] = {
      {{0, 10, 3}, 100, 0, "rows of 0 bytes"},
      {{0, 0, 3}, 100, 0, "rows of 0 bytes"},
      {{11, 10, 3}, 100, 0, "rows of 11 bytes, 10 bytes apart"},
      {{10, 10, 10}, 99, 0, "the host's memory has 99"},
      {{4, 16, 3}, 35, 0, "reach over 36 bytes"},
      {{4, 16, 3}, 0, 0, "the host's memory has 0"},
      {{10, 10, 10}, 200, 1, "100 bytes at offset 1 leave a buffer of 100 bytes"},
      {{10, 10, 11}, 200, 0, "110 bytes at offset 0"},
      {{4, 16, 3}, 200, 65, "36 bytes at offset 65"},
      {{1, 1, 1}, 200, 100, "offset 100"},
      {{1, 1, 1}, 200, huge, "bytes at offset"},
      {{1, huge, 3}, 200, 0, "more than an address can tell"},
      {{huge, huge, 2}, 200, 0, "more than an address can tell"},
      {{1, huge / 2 + 1, 3}, 200, 0, "more than an address can tell"},  // wraps round to 1 byte
      {{huge, huge, 1}, 200, 0, "the host's memory has 200"},
  };
  std::vector<std::byte> host(200);
  for (auto const& [shape, host_bytes, offset, why] : cases) {
    SCOPED_TRACE(concat(shape.rows, " x ", shape.row_bytes, " every ", shape.stride, " at ", offset));
    const std::span<std::byte> part = std::span(host).first(host_bytes);
    EXPECT_THAT(stream().copy_rows_to_device(*buffer, offset, part, shape).ToString(),
                AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(std::string(why))));
    EXPECT_THAT(stream().copy_rows_to_host(part, *buffer, offset, shape).ToString(),
                AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(std::string(why))));
  }
  EXPECT_EQ(device().failed(), absl::OkStatus());
}

TEST_P(DeviceTest, several_devices_map_the_same_memory) {
  Pages pages(std::size_t{1} << 16);
  const std::span<std::uint32_t> words = pages.words();
  std::ranges::fill(words, 1U);
  const auto count = static_cast<std::uint32_t>(words.size());
  const std::uint32_t value = 5;
  const auto add = [&](Device& device, Buffer& memory) {
    const std::unique_ptr<Program> program = device.load(device.compile(test_program()).value()).value();
    const std::unique_ptr<Stream> stream = device.create_stream().value();
    const std::array<KernelArgument, 3> arguments{&memory, bytes_of(count), bytes_of(value)};
    ASSERT_EQ(stream->launch(*program->kernel("add").value(), {count / 64, 64, 0}, arguments), absl::OkStatus());
    finish(*stream);
  };
  const std::unique_ptr<Buffer> mapped = device().map_host(pages.memory()).value();
  {
    const auto second = open_again(GetParam()).value();
    const Result<std::unique_ptr<Buffer>> again = second->map_host(pages.memory());
    ASSERT_TRUE(again.ok()) << again.status();
    add(*second, **again);
    add(device(), *mapped);
    EXPECT_THAT(words, ::testing::Each(1 + 2 * 1005U));
  }
  add(device(), *mapped);
  EXPECT_THAT(words, ::testing::Each(1 + 3 * 1005U)) << "what is left of two still has it";
}

TEST_P(DeviceTest, kernels_and_the_host_work_on_the_same_mapped_memory) {
  Pages pages(std::size_t{1} << 20);
  const std::span<std::uint32_t> words = pages.words();
  std::ranges::fill(words, 1U);
  const Result<std::unique_ptr<Buffer>> mapped = device().map_host(pages.memory());
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_EQ((*mapped)->size(), pages.bytes().size());
  EXPECT_THAT(words, ::testing::Each(1U)) << "mapping must not change what is there";
  const auto count = static_cast<std::uint32_t>(words.size());
  const std::uint32_t value = 5;
  const std::array<KernelArgument, 3> arguments{mapped->get(), bytes_of(count), bytes_of(value)};
  // The host writes before the first launch and between two; a device that keeps a copy misses that, or writes it back.
  for (std::uint32_t round = 0; round < 20; ++round) {
    for (std::uint32_t i = 0; i < count; ++i) {
      words[i] = i * 2654435761U + round;
    }
    ASSERT_EQ(stream().launch(kernel("add"), {count / 64, 64, 0}, arguments), absl::OkStatus());
    finish();
    std::uint32_t wrong = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      wrong += words[i] == i * 2654435761U + round + 1005 ? 0U : 1U;
    }
    ASSERT_EQ(wrong, 0U) << round;
  }
}

TEST_P(DeviceTest, kernel_touches_only_the_words_of_mapped_memory_that_it_writes) {
  Pages pages(8192);
  std::ranges::fill(pages.words(), 3U);
  const Result<std::unique_ptr<Buffer>> mapped = device().map_host(pages.memory());
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  const std::uint32_t count = 100;
  const std::uint32_t value = 5;
  const std::array<KernelArgument, 3> arguments{mapped->get(), bytes_of(count), bytes_of(value)};
  ASSERT_EQ(stream().launch(kernel("add"), {2, 64, 0}, arguments), absl::OkStatus());
  finish();
  EXPECT_THAT(pages.words().first(count), ::testing::Each(1008U));
  EXPECT_THAT(pages.words().subspan(count), ::testing::Each(3U));
}

TEST_P(DeviceTest, copies_from_and_to_mapped_memory_work) {
  Pages pages(std::size_t{1} << 17);
  const std::vector<std::byte> content = random_bytes(pages.bytes().size(), 13);
  std::ranges::copy(content, pages.bytes().begin());
  const Result<std::unique_ptr<Buffer>> mapped = device().map_host(pages.memory());
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  const std::unique_ptr<Buffer> buffer = device().allocate(content.size()).value();
  ASSERT_EQ(stream().copy_to_device(*buffer, 0, pages.bytes()), absl::OkStatus());
  EXPECT_TRUE(content_of(*buffer) == content);

  // the slots' fronts back over poison, the last one flush with the end of a page
  std::ranges::fill(pages.bytes(), std::byte{0xDB});
  const RowShape shape{64, 2048, 64};
  ASSERT_EQ(stream().copy_rows_to_host(pages.bytes().subspan(2048 - 64), *buffer, 2048 - 64, shape), absl::OkStatus());
  finish();
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < content.size(); ++at) {
    wrong += pages.bytes()[at] == (at % 2048 < 2048 - 64 ? std::byte{0xDB} : content[at]) ? 0U : 1U;
  }
  EXPECT_EQ(wrong, 0U);
  ASSERT_EQ(stream().fill(*buffer, 0, buffer->size(), 0), absl::OkStatus());
  ASSERT_EQ(stream().copy_rows_to_device(*buffer, 2048 - 64, pages.bytes().subspan(2048 - 64), shape),
            absl::OkStatus());
  const std::vector<std::byte> result = content_of(*buffer);
  wrong = 0;
  for (std::size_t at = 0; at < content.size(); ++at) {
    wrong += result[at] == (at % 2048 < 2048 - 64 ? std::byte{0} : content[at]) ? 0U : 1U;
  }
  EXPECT_EQ(wrong, 0U);
}

TEST_P(DeviceTest, host_memory_is_free_again_once_its_buffer_is_gone) {
  Pages pages(8192);
  const std::vector<std::byte> content = random_bytes(pages.bytes().size(), 14);
  std::ranges::copy(content, pages.bytes().begin());
  for (int round = 0; round < 3; ++round) {
    const Result<std::unique_ptr<Buffer>> mapped = device().map_host(pages.memory());
    ASSERT_TRUE(mapped.ok()) << round << ": " << mapped.status();
  }
  EXPECT_TRUE(std::ranges::equal(pages.bytes(), content));
}

TEST_P(DeviceTest, host_memory_that_cannot_be_mapped_is_refused_with_the_reason) {
  Pages pages(8192);
  EXPECT_THAT(device().map_host(std::span<std::byte>()).status().ToString(),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("no bytes")));
  EXPECT_THAT(device().map_host(pages.bytes().first(0)).status().ToString(), HasSubstr("INVALID_ARGUMENT"));
  EXPECT_THAT(device().map_host(pages.bytes().subspan(64)).status().ToString(),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("64 bytes into a page")));
  const std::span<std::byte> too_much(pages.bytes().data(), std::size_t{1} << 50);
  EXPECT_THAT(device().map_host({too_much, pages.memory().fd}).status().ToString(),
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("1125899906842624 bytes")));
  EXPECT_EQ(device().failed(), absl::OkStatus()) << "refused memory must not take the device out of use";
}

TEST_P(DeviceTest, fill_writes_its_range_and_nothing_else) {
  std::vector<std::byte> expected = random_bytes(1000, 4);
  const std::unique_ptr<Buffer> buffer = buffer_with(expected);
  ASSERT_EQ(stream().fill(*buffer, 7, 501, 0xA5), absl::OkStatus());
  std::fill_n(expected.begin() + 7, 501, std::byte{0xA5});
  ASSERT_EQ(stream().fill(*buffer, 999, 1, 0x11), absl::OkStatus());
  expected[999] = std::byte{0x11};
  EXPECT_EQ(content_of(*buffer), expected);
}

TEST_P(DeviceTest, things_of_size_zero_are_harmless) {
  const std::unique_ptr<Buffer> empty = device().allocate(0).value();
  const std::unique_ptr<PinnedBuffer> pinned = device().allocate_pinned(0).value();
  EXPECT_EQ(empty->size(), 0U);
  EXPECT_TRUE(pinned->bytes().empty());
  EXPECT_EQ(stream().copy_to_device(*empty, 0, pinned->bytes()), absl::OkStatus());
  EXPECT_EQ(stream().copy_to_host({}, *empty, 0), absl::OkStatus());
  EXPECT_EQ(stream().fill(*empty, 0, 0, 1), absl::OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument(stream().fill(*empty, 0, 1, 1)));
  // a kernel gets an address for it, so that null keeps its meaning
  const std::unique_ptr<Buffer> out = device().allocate(6 * sizeof(std::uint32_t)).value();
  const Values values{};
  const std::array<KernelArgument, 3> arguments{out.get(), bytes_of(values), empty.get()};
  ASSERT_EQ(stream().launch(kernel("unpack"), {1, 1, 0}, arguments), absl::OkStatus());
  EXPECT_EQ(content_of(*out)[5 * sizeof(std::uint32_t)], std::byte{0});
}

TEST_P(DeviceTest, ranges_outside_a_buffer_are_refused) {
  const std::unique_ptr<Buffer> buffer = device().allocate(100).value();
  std::vector<std::byte> host(101);
  const std::size_t huge = SIZE_MAX;
  const struct {
    std::size_t offset;
    std::size_t bytes;
  } outside[] = {{0, 101}, {1, 100}, {100, 1}, {101, 0}, {huge, 1}, {huge, 2}, {50, 51}};
  for (const auto& [offset, bytes] : outside) {
    SCOPED_TRACE(concat(bytes, " at ", offset));
    const std::span<std::byte> part = std::span(host).first(bytes);
    EXPECT_THAT(stream().copy_to_device(*buffer, offset, part).ToString(),
                AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(concat("offset ", offset)), HasSubstr("100 bytes")));
    EXPECT_TRUE(absl::IsInvalidArgument(stream().copy_to_host(part, *buffer, offset)));
    EXPECT_TRUE(absl::IsInvalidArgument(stream().fill(*buffer, offset, bytes, 0)));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(stream().fill(*buffer, 1, huge, 0)));
}

TEST_P(DeviceTest, more_memory_than_there_is_is_resource_exhausted) {
  const Status status = device().allocate(std::size_t{1} << 50).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("1125899906842624 bytes"));
  EXPECT_EQ(device().failed(), absl::OkStatus()) << "a refused allocation must not take the device out of use";
}

TEST_P(DeviceTest, kernel_sees_its_buffer_values_and_defines) {
  std::vector<std::uint32_t> data(1000);
  std::iota(data.begin(), data.end(), 5U);
  const std::unique_ptr<Buffer> buffer = buffer_with(std::as_bytes(std::span(data)));
  const std::uint32_t count = 990;
  const std::uint32_t value = 7;
  const std::array<KernelArgument, 3> arguments{buffer.get(), bytes_of(count), bytes_of(value)};
  ASSERT_EQ(stream().launch(kernel("add"), {16, 64, 0}, arguments), absl::OkStatus());
  for (std::uint32_t i = 0; i < count; ++i) {
    data[i] += 1007;
  }
  const auto expected = std::as_bytes(std::span(data));
  EXPECT_EQ(content_of(*buffer), std::vector<std::byte>(expected.begin(), expected.end()));
}

TEST_P(DeviceTest, a_kernel_is_told_the_sizes_of_its_buffers_as_the_device_knows_them) {
  const std::unique_ptr<Buffer> out = buffer_with(std::vector<std::byte>(4 * sizeof(std::uint64_t)));
  const std::unique_ptr<Buffer> other = device().allocate(77).value();
  const std::uint32_t value = 1000;
  const std::array<KernelArgument, 5> arguments{out.get(), static_cast<Buffer*>(nullptr), bytes_of(value), other.get(),
                                                BufferSizes{}};
  ASSERT_EQ(stream().launch(kernel("sizes"), {1, 4, 0}, arguments), absl::OkStatus());
  const std::unique_ptr<CommandBuffer> commands = device().create_command_buffer().value();
  ASSERT_EQ(commands->launch(kernel("sizes"), {1, 4, 0}, arguments), absl::OkStatus());
  ASSERT_EQ(stream().enqueue(*commands), absl::OkStatus());
  std::array<std::uint64_t, 4> seen{};
  ASSERT_EQ(stream().copy_to_host(std::as_writable_bytes(std::span(seen)), *out, 0), absl::OkStatus());
  finish();
  EXPECT_THAT(seen, ::testing::ElementsAre(2 * 1032, 2 * 1000, 2 * 1077, 2 * 1000));
}

TEST_P(DeviceTest, structs_pass_by_value_and_null_is_null) {
  const std::unique_ptr<Buffer> out = device().allocate(6 * sizeof(std::uint32_t)).value();
  const Values values{0xFE, 0xFEDC, 0xFEDCBA98U, 0xFEDCBA9876543210ULL};
  const std::array<KernelArgument, 3> arguments{out.get(), bytes_of(values), static_cast<Buffer*>(nullptr)};
  ASSERT_EQ(stream().launch(kernel("unpack"), {1, 1, 0}, arguments), absl::OkStatus());
  std::array<std::uint32_t, 6> seen{};
  ASSERT_EQ(stream().copy_to_host(std::as_writable_bytes(std::span(seen)), *out, 0), absl::OkStatus());
  finish();
  EXPECT_THAT(seen, ::testing::ElementsAre(0xFE, 0xFEDC, 0xFEDCBA98U, 0xFEDCBA98U, 0x76543210U, 1));
}

TEST_P(DeviceTest, a_launch_has_as_many_arguments_as_its_kernel) {
  const std::unique_ptr<Buffer> out = device().allocate(sizeof(std::uint32_t)).value();
  std::array<std::uint32_t, 24> values{};
  std::iota(values.begin(), values.end(), 1U);
  std::vector<KernelArgument> arguments{out.get()};
  for (std::uint32_t const& value : values) {
    arguments.emplace_back(bytes_of(value));
  }
  ASSERT_EQ(stream().launch(kernel("many"), {1, 1, 0}, arguments), absl::OkStatus());
  std::uint32_t sum = 0;
  ASSERT_EQ(stream().copy_to_host(std::as_writable_bytes(std::span(&sum, 1)), *out, 0), absl::OkStatus());
  finish();
  EXPECT_EQ(sum, 24U * 25 / 2);
}

TEST_P(DeviceTest, launches_that_cannot_run_are_refused_with_the_reason) {
  const std::unique_ptr<Buffer> buffer = device().allocate(64).value();
  const std::uint32_t one = 1;
  const std::array<KernelArgument, 3> arguments{buffer.get(), bytes_of(one), bytes_of(one)};
  Kernel& add = kernel("add");
  const std::uint32_t too_many = device().info().max_group_size + 1;
  const std::uint32_t too_much = device().info().local_memory_bytes + 1;
  EXPECT_TRUE(absl::IsInvalidArgument(stream().launch(add, {0, 64, 0}, arguments)));
  EXPECT_TRUE(absl::IsInvalidArgument(stream().launch(add, {1, 0, 0}, arguments)));
  EXPECT_THAT(stream().launch(add, {1, too_many, 0}, arguments).ToString(),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(concat(too_many)), HasSubstr(concat(too_many - 1))));
  EXPECT_THAT(stream().launch(add, {1, 1, too_much}, arguments).ToString(),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(concat(too_much))));
  EXPECT_EQ(device().failed(), absl::OkStatus());
}

TEST_P(DeviceTest, wrong_number_or_size_of_arguments_is_refused) {
  const std::unique_ptr<Buffer> buffer = device().allocate(64).value();
  const std::uint32_t one = 1;
  const std::uint64_t wide = 1;
  const std::array<KernelArgument, 4> arguments{buffer.get(), bytes_of(one), bytes_of(one), bytes_of(one)};
  EXPECT_TRUE(absl::IsInvalidArgument(stream().launch(kernel("add"), {1, 1, 0}, std::span(arguments).first(1))));
  EXPECT_TRUE(absl::IsInvalidArgument(stream().launch(kernel("add"), {1, 1, 0}, arguments)));
  const std::array<KernelArgument, 3> wrong{buffer.get(), bytes_of(wide), bytes_of(one)};
  const Status status = stream().launch(kernel("add"), {1, 1, 0}, wrong);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(device().failed(), absl::OkStatus());
}

TEST_P(DeviceTest, a_list_runs_its_launches_in_order_as_often_as_it_is_asked_to) {
  std::vector<std::uint32_t> data(1000);
  std::iota(data.begin(), data.end(), 0U);
  const std::unique_ptr<Buffer> buffer = buffer_with(std::as_bytes(std::span(data)));
  const std::unique_ptr<CommandBuffer> commands = device().create_command_buffer().value();
  {
    std::uint32_t count = 990;
    std::uint32_t value = 7;
    const std::array<KernelArgument, 3> of_add{buffer.get(), bytes_of(count), bytes_of(value)};
    const std::array<KernelArgument, 2> of_twice{buffer.get(), bytes_of(count)};
    ASSERT_EQ(commands->launch(kernel("add"), {16, 64, 0}, of_add), absl::OkStatus());
    ASSERT_EQ(commands->launch(kernel("twice"), {16, 64, 0}, of_twice), absl::OkStatus());
    count = value = 0;  // the command buffer has copies
  }
  ASSERT_EQ(stream().finalize(*commands), absl::OkStatus());
  for (int run = 0; run < 3; ++run) {
    ASSERT_EQ(stream().enqueue(*commands), absl::OkStatus());
    for (std::uint32_t i = 0; i < 990; ++i) {
      data[i] = (data[i] + 1007) * 2;
    }
  }
  const auto expected = std::as_bytes(std::span(data));
  EXPECT_EQ(content_of(*buffer), std::vector<std::byte>(expected.begin(), expected.end()));
}

TEST_P(DeviceTest, what_a_list_cannot_run_is_refused_when_it_is_added) {
  const std::unique_ptr<Buffer> buffer = device().allocate(64).value();
  const std::uint32_t one = 1;
  const std::array<KernelArgument, 3> arguments{buffer.get(), bytes_of(one), bytes_of(one)};
  const std::unique_ptr<CommandBuffer> commands = device().create_command_buffer().value();
  EXPECT_TRUE(absl::IsInvalidArgument(commands->launch(kernel("add"), {0, 64, 0}, arguments)));
  EXPECT_TRUE(absl::IsInvalidArgument(commands->launch(kernel("add"), {1, 1, 0}, std::span(arguments).first(1))));
  ASSERT_EQ(stream().enqueue(*commands), absl::OkStatus()) << "of no launches";
  EXPECT_TRUE(absl::IsFailedPrecondition(commands->launch(kernel("add"), {1, 1, 0}, arguments)));
  const std::unique_ptr<CommandBuffer> finalized = device().create_command_buffer().value();
  ASSERT_EQ(stream().finalize(*finalized), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(finalized->launch(kernel("add"), {1, 1, 0}, arguments)));
  EXPECT_EQ(device().failed(), absl::OkStatus());
}

TEST_P(DeviceTest, timestamps_of_a_recording_tell_of_its_last_run) {
  std::vector<std::uint32_t> data(100'000);
  const std::unique_ptr<Buffer> buffer = buffer_with(std::as_bytes(std::span(data)));
  const std::uint32_t count = 100'000;
  const std::array<KernelArgument, 2> arguments{buffer.get(), bytes_of(count)};
  const std::unique_ptr<CommandBuffer> commands = device().create_command_buffer().value();
  Event& begin = *commands->record_timestamp().value();
  ASSERT_EQ(commands->launch(kernel("twice"), {1600, 64, 0}, arguments), absl::OkStatus());
  Event& end = *commands->record_timestamp().value();
  EXPECT_TRUE(absl::IsFailedPrecondition(end.since(begin).status())) << "it never ran";
  ASSERT_EQ(stream().finalize(*commands), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(commands->record_timestamp().status()));
  for (int run = 0; run < 3; ++run) {
    const std::unique_ptr<Event> before = stream().record_timestamp().value();
    ASSERT_EQ(stream().enqueue(*commands), absl::OkStatus());
    const std::unique_ptr<Event> after = stream().record_timestamp().value();
    finish();
    EXPECT_TRUE(begin.ready().value());
    EXPECT_GE(begin.since(*before).value().count(), 0) << "run " << run;
    EXPECT_GT(end.since(begin).value().count(), 0) << "run " << run;
    EXPECT_GE(after->since(end).value().count(), 0) << "run " << run;
  }
  EXPECT_EQ(device().failed(), absl::OkStatus());
}

/// The compute units that a recording ran on, as its work-groups saw them.
std::set<std::uint32_t> units_of(CommandBuffer& commands, Stream& stream, Buffer& seen) {
  std::vector<std::uint32_t> units(seen.size() / sizeof(std::uint32_t));
  EXPECT_EQ(stream.enqueue(commands), absl::OkStatus());
  EXPECT_EQ(stream.copy_to_host(std::as_writable_bytes(std::span(units)), seen, 0), absl::OkStatus());
  EXPECT_EQ(stream.record().value()->wait(kLimit, "test"), absl::OkStatus());
  return {units.begin(), units.end()};
}

TEST_P(DeviceTest, recordings_keep_to_their_parts_of_a_device) {
  const std::array<std::uint32_t, 2> wanted{12, 40};
  auto parts = device().divide(wanted);
  if (device().info().backend != "cuda") {
    EXPECT_TRUE(absl::IsUnimplemented(parts.status())) << parts.status();
    return;
  }
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 2U);
  constexpr std::uint32_t kGroups = 4096;
  const std::unique_ptr<Buffer> seen = device().allocate(kGroups * sizeof(std::uint32_t)).value();
  const std::array<KernelArgument, 1> arguments{seen.get()};
  const auto record = [&](Partition* part) {
    std::unique_ptr<CommandBuffer> commands = device().create_command_buffer(part).value();
    EXPECT_EQ(commands->launch(kernel("compute_unit"), {kGroups, 32, 0}, arguments), absl::OkStatus());
    EXPECT_TRUE(commands->record_timestamp().ok());
    EXPECT_EQ(commands->launch(kernel("compute_unit"), {kGroups, 32, 0}, arguments), absl::OkStatus());
    return commands;
  };
  const auto whole = record(nullptr);
  const auto first = record((*parts)[0].get());
  const auto second = record((*parts)[1].get());
  const std::unique_ptr<Stream> other = device().create_stream().value();
  for (Stream* stream : {&this->stream(), other.get()}) {
    const std::set<std::uint32_t> of_first = units_of(*first, *stream, *seen);
    const std::set<std::uint32_t> of_second = units_of(*second, *stream, *seen);
    EXPECT_EQ(of_first.size(), (*parts)[0]->compute_units());
    EXPECT_EQ(of_second.size(), (*parts)[1]->compute_units());
    EXPECT_GE(of_first.size(), 12U);
    EXPECT_GE(of_second.size(), 40U);
    for (const std::uint32_t unit : of_first) {
      EXPECT_EQ(of_second.count(unit), 0U) << "unit " << unit;
    }
    EXPECT_EQ(units_of(*whole, *stream, *seen).size(), device().info().compute_units);
  }
  const std::array<std::uint32_t, 2> too_many{64, device().info().compute_units};
  EXPECT_TRUE(absl::IsInvalidArgument(device().divide(too_many).status()));
  const std::array<std::uint32_t, 1> none{0};
  EXPECT_TRUE(absl::IsInvalidArgument(device().divide(none).status()));
}

TEST_P(DeviceTest, urgent_streams_work_as_others_do) {
  const std::unique_ptr<Stream> urgent = device().create_stream({.is_urgent = true}).value();
  std::vector<std::uint32_t> data(1000, 21);
  const std::unique_ptr<Buffer> buffer = buffer_with(std::as_bytes(std::span(data)));
  const std::uint32_t count = 1000;
  const std::array<KernelArgument, 2> arguments{buffer.get(), bytes_of(count)};
  ASSERT_EQ(urgent->launch(kernel("twice"), {16, 64, 0}, arguments), absl::OkStatus());
  std::vector<std::uint32_t> result(data.size());
  ASSERT_EQ(urgent->copy_to_host(std::as_writable_bytes(std::span(result)), *buffer, 0), absl::OkStatus());
  finish(*urgent);
  EXPECT_THAT(result, ::testing::Each(42U));
}

TEST_P(DeviceTest, unknown_kernel_is_not_found_and_named) {
  const Status status = program().kernel("no_such_kernel").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'no_such_kernel'"));
  EXPECT_EQ(program().kernel("add").value(), program().kernel("add").value());
}

TEST_P(DeviceTest, compile_error_names_file_line_and_fault) {
  ProgramSource source = test_program();
  source.files[1].text = "#pragma once\n\nunsigned sum(unsigned a, unsigned b) { return undeclared_thing; }\n";
  const Status status = device().compile(source).status();
  ASSERT_TRUE(absl::IsInvalidArgument(status)) << status;
  const std::string text(status.message());
  EXPECT_THAT(text, HasSubstr("shared.hpp"));
  EXPECT_THAT(text, ::testing::ContainsRegex("shared.hpp[:(]3"));
  EXPECT_THAT(text, HasSubstr("undeclared_thing"));
  EXPECT_EQ(device().failed(), absl::OkStatus());
  EXPECT_TRUE(device().compile(test_program()).ok()) << "a wrong source must not spoil the compiler";
}

TEST_P(DeviceTest, sources_that_leave_their_folder_are_refused) {
  for (const char* name : {"", "/etc/passwd", "../up.hpp", "a/../../up.hpp", "folder/"}) {
    ProgramSource source = test_program();
    source.files[1].name = name;
    EXPECT_TRUE(absl::IsInvalidArgument(device().compile(source).status())) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(device().compile({}).status()));
}

TEST_P(DeviceTest, damaged_binaries_do_not_load) {
  const Binary whole = device().compile(test_program()).value();
  EXPECT_TRUE(device().load(whole).ok());
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{31}, std::size_t{32}, whole.size() / 2, whole.size() - 1}) {
    const Status status = device().load(std::span(whole).first(length)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << length << ": " << status;
  }
  for (std::size_t at = 0; at < whole.size(); at += 1 + at / 8) {
    Binary damaged = whole;
    damaged[at] ^= std::byte{0x10};
    // bytes 12 to 15 of the envelope carry nothing
    EXPECT_EQ(device().load(damaged).ok(), at >= 12 && at < 16) << at;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(device().load(random_bytes(500, 9)).status()));
  EXPECT_EQ(device().failed(), absl::OkStatus());
}

TEST_P(DeviceTest, event_of_an_idle_stream_becomes_ready) {
  const std::unique_ptr<Event> event = stream().record().value();
  EXPECT_EQ(event->wait(kLimit, "test"), absl::OkStatus());
  EXPECT_TRUE(event->ready().value());
  EXPECT_EQ(stream().flush(), absl::OkStatus());
}

TEST_P(DeviceTest, event_is_ready_only_after_the_work_before_it) {
  // A stream's work shows in host memory once its event is ready; many rounds, so that an event that is early shows.
  const std::unique_ptr<Buffer> buffer = device().allocate(1 << 20).value();
  const std::unique_ptr<PinnedBuffer> host = device().allocate_pinned(1 << 20).value();
  for (int round = 1; round <= 30; ++round) {
    ASSERT_EQ(stream().fill(*buffer, 0, buffer->size(), static_cast<std::uint8_t>(round)), absl::OkStatus());
    ASSERT_EQ(stream().copy_to_host(host->bytes(), *buffer, 0), absl::OkStatus());
    const std::unique_ptr<Event> event = stream().record().value();
    while (!event->ready().value()) {
    }
    ASSERT_TRUE(std::ranges::all_of(host->bytes(), [round](std::byte b) { return b == static_cast<std::byte>(round); }))
        << round;
  }
}

TEST_P(DeviceTest, marks_keep_the_order_of_work_and_how_long_it_took) {
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  const std::unique_ptr<Buffer> buffer = device().allocate(kBytes).value();
  const std::unique_ptr<PinnedBuffer> host = device().allocate_pinned(kBytes).value();
  const auto before = std::chrono::steady_clock::now();
  const std::unique_ptr<Event> first = stream().record_timestamp().value();
  ASSERT_EQ(stream().copy_to_device(*buffer, 0, host->bytes()), absl::OkStatus());
  const std::unique_ptr<Event> second = stream().record_timestamp().value();
  ASSERT_EQ(stream().copy_to_host(host->bytes(), *buffer, 0), absl::OkStatus());
  const std::unique_ptr<Event> third = stream().record_timestamp().value();
  finish();
  const auto passed = std::chrono::steady_clock::now() - before;
  const auto copies = third->since(*first).value();
  EXPECT_GT(second->since(*first).value().count(), 0);
  EXPECT_GT(third->since(*second).value().count(), 0);
  EXPECT_LT(first->since(*second).value().count(), 0);
  EXPECT_EQ(first->since(*first).value().count(), 0);
  // one clock throughout, in the host's unit: no time on the device is longer than what the host saw pass around it
  EXPECT_NEAR(static_cast<double>(copies.count()),
              static_cast<double>((second->since(*first).value() + third->since(*second).value()).count()), 2000.0);
  EXPECT_LT(copies, 2 * passed);
}

TEST_P(DeviceTest, marks_of_two_streams_are_on_one_clock) {
  const std::unique_ptr<Stream> other = device().create_stream().value();
  const std::unique_ptr<Event> first = stream().record_timestamp().value();
  finish();
  const std::unique_ptr<Event> second = other->record_timestamp().value();
  finish(*other);
  EXPECT_GE(second->since(*first).value().count(), 0);
}

TEST_P(DeviceTest, a_stream_waits_for_an_event_of_another) {
  // each fill waits for the one before, in turn on two streams: the last one counts, and none is half done
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  const std::unique_ptr<Stream> other = device().create_stream().value();
  const std::unique_ptr<Buffer> buffer = device().allocate(kBytes).value();
  std::unique_ptr<Event> last = stream().record().value();
  if (absl::IsUnimplemented(other->wait_for(*last))) {
    GTEST_SKIP() << "a device of another process";
  }
  for (std::uint8_t value = 1; value <= 8; ++value) {
    Stream& next = value % 2 == 0 ? stream() : *other;
    ASSERT_EQ(next.wait_for(*last), absl::OkStatus());
    ASSERT_EQ(next.fill(*buffer, 0, kBytes, value), absl::OkStatus());
    last = next.record().value();
  }
  const std::unique_ptr<PinnedBuffer> host = device().allocate_pinned(kBytes).value();
  ASSERT_EQ(other->wait_for(*last), absl::OkStatus());
  ASSERT_EQ(other->copy_to_host(host->bytes(), *buffer, 0), absl::OkStatus());
  finish(*other);
  EXPECT_EQ(static_cast<std::size_t>(std::count(host->bytes().begin(), host->bytes().end(), std::byte{8})), kBytes);
}

TEST_P(DeviceTest, events_without_a_time_are_refused) {
  const std::unique_ptr<Event> event = stream().record().value();
  const std::unique_ptr<Event> timestamp = stream().record_timestamp().value();
  finish();
  EXPECT_TRUE(absl::IsInvalidArgument(event->since(*timestamp).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(timestamp->since(*event).status()));
  EXPECT_EQ(device().failed(), absl::OkStatus());
}

TEST_P(DeviceTest, a_timestamp_that_is_not_reached_has_no_time) {
  // copies until a timestamp after them is still ahead of the device when it is asked
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const std::unique_ptr<Buffer> buffer = device().allocate(kBytes).value();
  const std::unique_ptr<PinnedBuffer> host = device().allocate_pinned(kBytes).value();
  const std::unique_ptr<Event> first = stream().record_timestamp().value();
  bool was_early = false;
  for (int round = 0; round < 20 && !was_early; ++round) {
    for (int copies = 0; copies < 4; ++copies) {
      ASSERT_EQ(stream().copy_to_device(*buffer, 0, host->bytes()), absl::OkStatus());
    }
    const std::unique_ptr<Event> second = stream().record_timestamp().value();
    ASSERT_EQ(stream().flush(), absl::OkStatus());
    const Result<std::chrono::nanoseconds> since = second->since(*first);
    was_early = absl::IsFailedPrecondition(since.status());
    EXPECT_TRUE(was_early || since.ok()) << since.status();
    finish();
    EXPECT_TRUE(second->since(*first).ok());
  }
  EXPECT_TRUE(was_early);
  EXPECT_EQ(device().failed(), absl::OkStatus());
}

TEST_P(DeviceTest, streams_work_side_by_side_without_mixing) {
  constexpr std::size_t kCount = 4096;
  constexpr std::uint32_t kRounds = 20;
  struct Lane {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Buffer> buffer;
    std::vector<std::uint32_t> data;
  };
  std::vector<Lane> lanes(3);
  for (Lane& lane : lanes) {
    lane = {device().create_stream().value(), device().allocate(kCount * sizeof(std::uint32_t)).value(),
            std::vector<std::uint32_t>(kCount, 0)};
    ASSERT_EQ(lane.stream->copy_to_device(*lane.buffer, 0, std::as_bytes(std::span(lane.data))), absl::OkStatus());
  }
  const std::uint32_t count = kCount;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    for (std::uint32_t i = 0; i < lanes.size(); ++i) {
      const std::array<KernelArgument, 3> arguments{lanes[i].buffer.get(), bytes_of(count), bytes_of(i)};
      ASSERT_EQ(lanes[i].stream->launch(kernel("add"), {kCount / 64, 64, 0}, arguments), absl::OkStatus());
    }
  }
  for (std::uint32_t i = 0; i < lanes.size(); ++i) {
    Lane& lane = lanes[i];
    ASSERT_EQ(lane.stream->copy_to_host(std::as_writable_bytes(std::span(lane.data)), *lane.buffer, 0),
              absl::OkStatus());
    finish(*lane.stream);
    EXPECT_THAT(lane.data, ::testing::Each(kRounds * (1000 + i)));
  }
}

TEST_P(DeviceTest, threads_may_launch_the_same_kernel_on_streams_of_their_own) {
  constexpr std::size_t kCount = 256;
  constexpr std::uint32_t kRounds = 200;
  Kernel& add = kernel("add");
  std::array<std::vector<std::uint32_t>, 2> results;
  std::array<Status, 2> statuses;
  const auto work = [&](std::uint32_t number) -> Status {
    CATENA_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device().create_stream());
    CATENA_ASSIGN_OR_RETURN(const std::unique_ptr<Buffer> buffer, device().allocate(kCount * sizeof(std::uint32_t)));
    CATENA_RETURN_IF_ERROR(stream->fill(*buffer, 0, buffer->size(), 0));
    const std::uint32_t count = kCount;
    const std::array<KernelArgument, 3> arguments{buffer.get(), bytes_of(count), bytes_of(number)};
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      CATENA_RETURN_IF_ERROR(stream->launch(add, {kCount / 64, 64, 0}, arguments));
    }
    results[number].resize(kCount);
    CATENA_RETURN_IF_ERROR(stream->copy_to_host(std::as_writable_bytes(std::span(results[number])), *buffer, 0));
    CATENA_ASSIGN_OR_RETURN(const std::unique_ptr<Event> done, stream->record());
    return done->wait(kLimit, "test");
  };
  {
    std::jthread other([&] { statuses[1] = work(1); });
    statuses[0] = work(0);
  }
  for (std::uint32_t number = 0; number < 2; ++number) {
    ASSERT_EQ(statuses[number], absl::OkStatus());
    EXPECT_THAT(results[number], ::testing::Each(kRounds * (1000 + number)));
  }
}

/// All that device_of() opens.
std::vector<std::string_view> tested_devices() {
  static const std::vector<std::string> kServed = [] {
    std::vector<std::string> names;
    for (const std::string_view backend : backend_names()) {
      names.push_back(concat(kRemote, backend));
    }
    return names;
  }();
  std::vector<std::string_view> names = backend_names();
  names.emplace_back("faulty");
  names.insert(names.end(), kServed.begin(), kServed.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(backends, DeviceTest, ::testing::ValuesIn(tested_devices()),
                         [](auto const& param_info) { return std::string(param_info.param); });

/// Never ready, and counts how often it was asked.
class NeverReady final : public Event {
 public:
  Result<bool> ready() override {
    ++asked;
    return false;
  }
  int asked = 0;
};

TEST(Event, wait_that_runs_out_names_what_was_waited_for) {
  NeverReady event;
  const Status status = event.wait(std::chrono::milliseconds(20), "ids on NVIDIA H200");
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(status.message(), "ids on NVIDIA H200: the device did not finish within 20 ms");
  EXPECT_GT(event.asked, 1);
}

TEST(Event, wait_without_time_still_asks_once) {
  NeverReady event;
  EXPECT_TRUE(absl::IsDeadlineExceeded(event.wait(std::chrono::nanoseconds(0), "x")));
  EXPECT_EQ(event.asked, 1);
}

TEST(DevicePreference, names_are_parsed_and_others_are_answered_with_the_list) {
  EXPECT_EQ(parse_preference("auto").value(), DevicePreference());
  EXPECT_EQ(parse_preference("none").value(), DevicePreference::none());
  EXPECT_EQ(parse_preference("cuda").value(), DevicePreference::of("cuda"));
  EXPECT_EQ(parse_preference("opencl:0").value(), DevicePreference::of("opencl"));
  EXPECT_EQ(parse_preference("cuda:12").value(), DevicePreference::of("cuda", 12));
  for (const char* wrong : {"", "CUDA", "gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:99999999999", "auto:1",
                            "none:0", ":1", "cuda:1:2"}) {
    EXPECT_THAT(parse_preference(wrong).status().ToString(),
                AllOf(HasSubstr(concat("'", wrong, "'")), HasSubstr("auto, cuda, opencl, none"), HasSubstr("cuda:1")));
  }
}

TEST(DevicePreference, of_a_list_each_names_another_device) {
  const auto parsed = [](std::vector<std::string> const& texts) { return parse_preferences(texts); };
  EXPECT_THAT(parsed({"auto"}).value(), ::testing::ElementsAre(DevicePreference()));
  EXPECT_THAT(parsed({"cuda:1", "cuda:0"}).value(),
              ::testing::ElementsAre(DevicePreference::of("cuda", 1), DevicePreference::of("cuda")));
  EXPECT_THAT(parsed({"cuda", "cuda:0"}).status().ToString(), HasSubstr("is listed twice"));
  EXPECT_THAT(parsed({"cuda", "auto"}).status().ToString(), HasSubstr("write each by its name"));
  EXPECT_THAT(parsed({"none", "cuda"}).status().ToString(), HasSubstr("write each by its name"));
  EXPECT_THAT(parsed({"cuda", "vulkan"}).status().ToString(), HasSubstr("device 'vulkan' is not known"));
}

TEST(DevicePreference, text_is_what_was_parsed) {
  for (const char* text : {"auto", "none", "cuda", "opencl", "cuda:1", "opencl:7"}) {
    EXPECT_EQ(to_string(parse_preference(text).value()), text);
  }
}

TEST(Backends, have_names_that_devices_carry_and_preferences_take) {
  for (Backend const& backend : backends()) {
    EXPECT_TRUE(parse_preference(backend.name).ok()) << backend.name;
    const Probe found = backend.probe();
    EXPECT_EQ(found.backend, backend.name);
    for (DeviceInfo const& info : found.devices) {
      EXPECT_EQ(info.backend, backend.name);
    }
  }
}

/// A sandbox cannot show a path that is not there, and then does not start.
TEST(Backends, need_devices_and_files_of_this_machine_alone) {
  for (Backend const& backend : backends()) {
    SCOPED_TRACE(backend.name);
    const ProcessNeeds needs = backend.needs();
    for (std::filesystem::path const& device : needs.devices) {
      EXPECT_TRUE(device.is_absolute() && std::filesystem::is_character_file(device)) << device;
    }
    for (ProcessNeeds::File const& file : needs.files) {
      EXPECT_TRUE(file.source.is_absolute() && std::filesystem::exists(file.source)) << file.source;
    }
    EXPECT_GT(needs.scratch_bytes, 0U) << "of the driver's cache";
    EXPECT_GT(needs.threads, 0U);
  }
}

TEST(Open, none_is_no_device_and_no_error) {
  const Result<std::unique_ptr<Device>> device = open(DevicePreference::none());
  ASSERT_TRUE(device.ok());
  EXPECT_EQ(*device, nullptr);
}

TEST(Open, every_backend_is_probed_and_says_why_it_has_no_device) {
  const std::vector<Probe> found = probe();
  ASSERT_EQ(found.size(), backends().size());
  for (Probe const& probe : found) {
    EXPECT_EQ(probe.status.ok(), !probe.devices.empty());
    EXPECT_TRUE(probe.status.ok() || absl::IsUnavailable(probe.status)) << probe.status;
    EXPECT_TRUE(probe.status.ok() || !probe.status.message().empty());
  }
}

TEST(Open, automatic_choice_passes_over_cpus_that_pose_as_devices) {
  DeviceInfo cpu;
  cpu.is_cpu = true;
  const DeviceInfo gpu;
  EXPECT_EQ(first_accelerator({}), std::nullopt);
  EXPECT_EQ(first_accelerator(std::vector{cpu, cpu}), std::nullopt);
  EXPECT_EQ(first_accelerator(std::vector{cpu, gpu, gpu}), 1);
  const Result<std::unique_ptr<Device>> opencl = open(DevicePreference::of("opencl"));
  const Result<std::unique_ptr<Device>> automatic = open(DevicePreference());
  ASSERT_TRUE(automatic.ok()) << automatic.status();
  EXPECT_TRUE(*automatic == nullptr || !(*automatic)->info().is_cpu) << (*automatic)->info().name;
  if (opencl.ok() && absl::StrContains((*opencl)->info().driver, "PoCL")) {
    EXPECT_TRUE((*opencl)->info().is_cpu) << "PoCL's devices here are CPUs";
  }
}

TEST(Open, automatic_choice_tells_what_it_tried_before) {
  std::string why = "stale";
  const Result<std::unique_ptr<Device>> device = open(DevicePreference(), &why);
  ASSERT_TRUE(device.ok()) << device.status();
  const bool first_choice = *device != nullptr && (*device)->info().backend == "cuda";
  EXPECT_EQ(why.empty(), first_choice) << why;
  if (!first_choice) {
    EXPECT_THAT(why, ::testing::StartsWith("cuda: "));
  }
}

TEST(Open, missing_cuda_driver_is_named_with_what_helps) {
  const Status status = open(DevicePreference::of("cuda")).status();
  if (status.ok()) {
    GTEST_SKIP() << "this machine has a CUDA device";
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::AnyOf(AllOf(HasSubstr("libcuda.so.1"), HasSubstr("apt-get install")), HasSubstr("nvidia-smi"),
                               HasSubstr("make deps-cuda")));
}

TEST(Open, device_number_that_is_not_there_is_unavailable) {
  for (Backend const& backend : backends()) {
    EXPECT_TRUE(absl::IsUnavailable(open(DevicePreference::of(backend.name, 1000)).status())) << backend.name;
    EXPECT_TRUE(absl::IsUnavailable(backend.open(-1).status())) << backend.name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(open(DevicePreference::of("abacus")).status()));
}

class FaultyDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<Device*> real = device_of("opencl");
    if (!real.ok()) {
      GTEST_SKIP() << real.status().message();
    }
    device_ = std::make_unique<FaultyDevice>(**real);
  }
  FaultyDevice& device() { return *device_; }

 private:
  std::unique_ptr<FaultyDevice> device_;
};

TEST_F(FaultyDeviceTest, fails_the_chosen_call_once) {
  const Status wrong = absl::ResourceExhaustedError("planned");
  device().fail(Call::kAllocate, 2, wrong);
  EXPECT_TRUE(device().allocate(8).ok());
  EXPECT_EQ(device().allocate(8).status(), wrong);
  EXPECT_TRUE(device().allocate(8).ok());
  EXPECT_EQ(device().calls(Call::kAllocate), 3U);
  EXPECT_EQ(device().failed(), absl::OkStatus());
}

TEST_F(FaultyDeviceTest, row_copies_and_mapped_memory_fail_when_told_to_and_pass_through_else) {
  const Status wrong = absl::ResourceExhaustedError("planned");
  Pages pages(4096);
  device().fail(Call::kMapHost, 1, wrong);
  EXPECT_EQ(device().map_host(pages.memory()).status(), wrong);
  EXPECT_TRUE(device().map_host(pages.memory()).ok());
  EXPECT_EQ(device().calls(Call::kMapHost), 2U);

  const std::unique_ptr<Stream> stream = device().create_stream({}).value();
  const std::unique_ptr<Buffer> buffer = device().allocate(8).value();
  const RowShape shape{1, 2, 4};
  std::array<std::byte, 8> ones;
  ones.fill(std::byte{1});
  std::array<std::byte, 8> seen{};
  ASSERT_EQ(stream->fill(*buffer, 0, 8, 9), absl::OkStatus());
  device().fail(Call::kCopyRowsToDevice, 1, wrong);
  EXPECT_EQ(stream->copy_rows_to_device(*buffer, 0, ones, shape), wrong);
  ASSERT_EQ(stream->copy_to_host(seen, *buffer, 0), absl::OkStatus());
  ASSERT_EQ(stream->record().value()->wait(kLimit, "test"), absl::OkStatus());
  EXPECT_THAT(seen, ::testing::Each(std::byte{9})) << "a failed copy is not made";
  EXPECT_EQ(stream->copy_rows_to_device(*buffer, 0, ones, shape), absl::OkStatus());
  EXPECT_EQ(device().calls(Call::kCopyRowsToDevice), 2U);

  seen.fill(std::byte{0});
  device().fail(Call::kCopyRowsToHost, 1, wrong);
  EXPECT_EQ(stream->copy_rows_to_host(seen, *buffer, 0, shape), wrong);
  ASSERT_EQ(stream->record().value()->wait(kLimit, "test"), absl::OkStatus());
  EXPECT_THAT(seen, ::testing::Each(std::byte{0}));
  EXPECT_EQ(stream->copy_rows_to_host(seen, *buffer, 0, shape), absl::OkStatus());
  EXPECT_EQ(device().calls(Call::kCopyRowsToHost), 2U);
  ASSERT_EQ(stream->record().value()->wait(kLimit, "test"), absl::OkStatus());
  for (std::size_t at = 0; at < seen.size(); ++at) {
    EXPECT_EQ(seen[at], at % 2 == 0 ? std::byte{1} : std::byte{0}) << at;
  }
}

TEST_F(FaultyDeviceTest, a_lost_device_fails_everything_from_then_on) {
  const Status lost = absl::UnavailableError("planned loss");
  const std::unique_ptr<Buffer> buffer = device().allocate(8).value();
  const std::unique_ptr<Stream> stream = device().create_stream({}).value();
  device().lose(Call::kFill, 1, lost);
  EXPECT_EQ(device().failed(), absl::OkStatus());
  EXPECT_EQ(stream->fill(*buffer, 0, 8, 1), lost);
  EXPECT_EQ(device().failed(), lost);
  EXPECT_EQ(stream->record().status(), lost);
  EXPECT_EQ(device().allocate(8).status(), lost);
  Pages pages(4096);
  EXPECT_EQ(device().map_host(pages.memory()).status(), lost);
  EXPECT_EQ(stream->copy_rows_to_device(*buffer, 0, pages.bytes(), {1, 2, 4}), lost);
  EXPECT_EQ(stream->copy_rows_to_host(pages.bytes(), *buffer, 0, {1, 2, 4}), lost);
}

TEST_F(FaultyDeviceTest, held_events_run_into_the_limit_and_finish_when_let_go) {
  const std::unique_ptr<Stream> stream = device().create_stream({}).value();
  device().hold_events(true);
  const std::unique_ptr<Event> event = stream->record().value();
  EXPECT_TRUE(absl::IsDeadlineExceeded(event->wait(std::chrono::milliseconds(5), "test")));
  device().hold_events(false);
  EXPECT_EQ(event->wait(kLimit, "test"), absl::OkStatus());
}

}  // namespace
}  // namespace catena::device
