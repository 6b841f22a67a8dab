// SPDX-License-Identifier: Apache-2.0
#include "system/fault_nfs.hpp"

#include <array>
#include <atomic>

namespace catena::testing {
namespace {

constexpr char kMixKernel[] = R"(
#include <catena/kernel/context.hpp>
using namespace catena;
CATENA_KERNEL(mix) {
  auto packet = ctx.packet();
  if (!packet.valid()) return;
  const u32 salt = packet.aux<u32>();
  volatile u32 spin = salt;
  while (spin == 255u) {
  }
  auto payload = packet.payload();
  for (u32 i = 0; i < payload.length(); ++i) {
    payload.set(static_cast<i32>(i), static_cast<u8>(payload[static_cast<i32>(i)] * 5 + salt));
  }
  packet.set<packet::kIpv4Ttl>(static_cast<u8>(packet.get<packet::kIpv4Ttl>() * 3 + salt));
  packet.set<packet::kMetaPort>(static_cast<u16>(packet.get<packet::kMetaPort>() * 7 + salt));
}
)";
constexpr std::array<kernel::EmbeddedFile, 1> kMixSource{{{"mix.kernel.cpp", kMixKernel}}};

constexpr char kScanKernel[] = R"(
#include <catena/kernel/context.hpp>
using namespace catena;
CATENA_KERNEL(scan) {
  auto packet = ctx.packet();
  if (!packet.valid()) return;
  auto payload = packet.payload();
  u32 sum = 0;
  for (u32 i = 0; i < payload.length(); ++i) sum += payload[static_cast<i32>(i)];
  packet.set_result<u32>(sum);
}
)";
constexpr std::array<kernel::EmbeddedFile, 1> kScanSource{{{"scan.kernel.cpp", kScanKernel}}};

constexpr packet::FieldSet kMixed = packet::fields(packet::kIpv4Ttl, packet::kPayload, packet::kMetaPort);
constexpr packet::FieldSet kScanned = packet::fields(packet::kPayload);

class Mix final : public nf::Nf {
 public:
  explicit Mix(std::uint32_t salt) : salt_(salt) {}
  nf::Hints hints() const override { return {.cr = kMixed, .cw = kMixed, .gr = kMixed, .gw = kMixed}; }

  void prepare(packet::Batch const& batch, std::span<std::byte> aux, nf::Outcome& /*outcome*/) override {
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      nf::array_of<std::uint32_t>(aux)[i] = salt_;
    }
  }
  void compute(packet::Batch const& batch, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      const packet::Packet packet = batch[i];
      for (std::uint8_t& byte : packet.payload()) {
        byte = static_cast<std::uint8_t>(byte * 5U + salt_);
      }
      packet.l3()[8] = static_cast<std::uint8_t>(packet.l3()[8] * 3U + salt_);
      packet.set_port(static_cast<std::uint16_t>(packet.port() * 7U + salt_));
    }
  }
  Result<nf::KernelSide> kernel_side() const override {
    nf::KernelSide side;
    side.spec.source = kMixSource;
    side.spec.name = "mix";
    return side;
  }

 private:
  std::uint32_t salt_;
};

std::atomic<SpillRequests> next_requests{SpillRequests::kNone};
std::atomic<bool> has_requested{false};

class Scan final : public nf::Nf {
 public:
  nf::Hints hints() const override {
    return {.cr = kScanned, .gr = kScanned, .complete_writes = packet::fields(packet::kMetaVerdict)};
  }

  void compute(packet::Batch const& batch, std::span<const std::byte> /*aux*/, std::span<std::byte> results) override {
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      std::uint32_t sum = 0;
      for (const std::uint8_t byte : batch[i].payload()) {
        sum += byte;
      }
      nf::array_of<std::uint32_t>(results)[i] = sum;
    }
  }
  void complete(nf::Completion const& completion) override {
    packet::Batch const& batch = completion.batch();
    nf::Outcome& outcome = completion.outcome();
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      const std::uint32_t sum = completion.results<std::uint32_t>()[i];
      if (sum % 13 == 0) {
        outcome.drop(batch[i], 0);
      } else if (sum % 7 == 0) {
        outcome.alert(batch[i]);
      }
    }
  }
  Result<nf::KernelSide> kernel_side() const override {
    nf::KernelSide side;
    side.spec.source = kScanSource;
    side.spec.name = "scan";
    side.spec.spill_factor = 1;
    return side;
  }
  void spill_requests(std::span<const std::byte> results, std::vector<nf::SpillRequest>& requests) const override {
    if (results.empty() || next_requests.load() == SpillRequests::kNone) {
      return;
    }
    constexpr std::uint32_t kFar = 1U << 30U;
    switch (next_requests.exchange(SpillRequests::kNone)) {
      case SpillRequests::kNone:
        return;
      case SpillRequests::kRowThatIsNot:
        requests.push_back({kFar, 4});
        break;
      case SpillRequests::kTooManyBytes:
        requests.push_back({0, kFar});
        break;
      case SpillRequests::kOutOfOrder:
        requests.push_back({0, 0});
        requests.push_back({0, 0});
        break;
    }
    has_requested = true;
  }
};

Result<std::unique_ptr<nf::Nf>> create_mix(nf::Config& config) {
  constexpr std::int64_t kMost = 255;
  CATENA_ASSIGN_OR_RETURN(const std::int64_t salt, config.integer("salt", 1, kMost));
  CATENA_RETURN_IF_ERROR(config.finish());
  return std::make_unique<Mix>(static_cast<std::uint32_t>(salt));
}

Result<std::unique_ptr<nf::Nf>> create_scan(nf::Config& config) {
  CATENA_RETURN_IF_ERROR(config.finish());
  return std::make_unique<Scan>();
}

constexpr std::array<nf::DropReason, 1> kScanReasons{{{"thirteen", "13 divides the sum of the payload"}}};

nf::Descriptor mix_descriptor() {
  nf::Descriptor descriptor;
  descriptor.type = "mix";
  descriptor.help = "for tests";
  descriptor.aux_bytes = 4;
  descriptor.has_kernel = true;
  descriptor.create = create_mix;
  return descriptor;
}

nf::Descriptor scan_descriptor() {
  nf::Descriptor descriptor;
  descriptor.type = "scan";
  descriptor.help = "for tests";
  descriptor.drop_reasons = kScanReasons;
  descriptor.result_bytes = 4;
  descriptor.has_kernel = true;
  descriptor.create = create_scan;
  return descriptor;
}

}  // namespace

void set_spill_requests(SpillRequests requests) {
  has_requested = false;
  next_requests = requests;
}

bool spill_was_requested() { return has_requested; }

nf::Registry const& nfs_for_faults() {
  static const nf::Descriptor kMix = mix_descriptor();
  static const nf::Descriptor kScan = scan_descriptor();
  static const nf::Registry kRegistry = [] {
    nf::Registry registry = nf::builtin_nfs();
    for (nf::Descriptor const* descriptor : {&kMix, &kScan}) {
      registry.add(*descriptor).IgnoreError();  // their names are nobody else's
    }
    return registry;
  }();
  return kRegistry;
}

}  // namespace catena::testing
