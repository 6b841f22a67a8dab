// SPDX-License-Identifier: Apache-2.0
#include "profile/host_meter.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/fields.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

namespace catena::profile {
namespace {

constexpr std::size_t kHostPoolBytes = std::size_t{256} << 20;
constexpr std::uint32_t kHostSlots = kHostPoolBytes / packet::kSlotBytes;
constexpr std::uint32_t kHostBatches = kHostSlots / HostMeter::kBatch;
constexpr int kHostSamples = 9;
constexpr std::align_val_t kHostPage{4096};

constexpr std::array<packet::Field, HostMeter::kMaxFields> kFields{
    packet::kIpv4Dst,      packet::kIpv4Src, packet::kL4Sport, packet::kL4Dport,
    packet::kIpv4Protocol, packet::kIpv4Ttl, packet::kIpv4Id,  packet::kIpv4Length};

}  // namespace

void HostMeter::Deleter::operator()(std::byte* memory) const { ::operator delete(memory, kHostPage); }

Result<std::unique_ptr<HostMeter>> HostMeter::create(std::span<std::byte> staging) {
  std::unique_ptr<HostMeter> meter(new HostMeter());
  meter->staging_ = staging;
  meter->slots_.reset(static_cast<std::byte*>(::operator new(kHostPoolBytes, kHostPage, std::nothrow)));
  if (!meter->slots_) {
    return absl::ResourceExhaustedError(concat("no host memory for ", kHostPoolBytes, " bytes of packets"));
  }
  std::memset(meter->slots_.get(), 1, kHostPoolBytes);  // brings every page in
  std::memset(staging.data(), 1, staging.size());
  constexpr packet::Layers kUdpFrame{
      14, 34, 42, packet::AddressFamily::kIpv4, packet::kIpv4 | packet::kUdp | packet::kPorts, 22};
  meter->layers_.assign(kHostSlots, kUdpFrame);
  return meter;
}

std::byte* HostMeter::frame(std::uint32_t slot) const {
  return slots_.get() + std::size_t{slot} * packet::kSlotBytes + packet::kSlotHeadroom;
}

template <typename Work>
double HostMeter::median_ns(Work const& work) {
  using Clock = std::chrono::steady_clock;
  std::array<double, kHostSamples> samples{};
  for (double& sample : samples) {
    const std::uint32_t first = batch_ * kBatch;
    batch_ = (batch_ + 1) % kHostBatches;
    const auto start = Clock::now();
    work(first);
    sample = std::chrono::duration<double, std::nano>(Clock::now() - start).count() / kBatch;
  }
  std::ranges::nth_element(samples, samples.begin() + kHostSamples / 2);
  return samples[kHostSamples / 2];
}

double HostMeter::copy_frames(std::uint32_t bytes, bool in) {
  return median_ns([&](std::uint32_t first) {
    std::byte* staged = staging_.data();
    for (std::uint32_t slot = first; slot < first + kBatch; ++slot) {
      std::memcpy(in ? staged : frame(slot), in ? frame(slot) : staged, bytes);
      staged += bytes;
    }
  });
}

double HostMeter::copy_fields(std::uint32_t fields, bool in) {
  return median_ns([&](std::uint32_t first) {
    std::byte* column = staging_.data();
    // column by column, as launches fill them
    for (const packet::Field field : std::span(kFields).first(fields)) {
      const std::uint32_t size = packet::field_size(field);
      for (std::uint32_t slot = first; slot < first + kBatch; ++slot) {
        packet::Layers const& layers = layers_[slot];
        if (packet::has_field(field, layers.flags)) {
          std::byte* place = frame(slot) + packet::field_offset(field, layers);
          std::memcpy(in ? column : place, in ? place : column, size);
        }
        column += size;
      }
    }
  });
}

}  // namespace catena::profile
