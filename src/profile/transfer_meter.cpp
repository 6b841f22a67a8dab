// SPDX-License-Identifier: Apache-2.0
#include "profile/transfer_meter.hpp"

#include "gpu/copy/launch_plan.hpp"
#include "gpu/copy/methods.hpp"
#include "gpu/copy/staging_extent.hpp"
#include "gpu/copy/transfer_params.hpp"
#include "gpu/program/program.hpp"
#include "profile/median.hpp"

#include <catena/core/text.hpp>
#include <catena/kernel/shared_layout.hpp>
#include <catena/packet/layers.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

namespace catena::profile {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::align_val_t kPage{4096};
constexpr std::uint32_t kSlots = 2 * TransferMeter::kMaxPackets;
constexpr std::size_t kPoolBytes = std::size_t{kSlots} * packet::kSlotBytes;

constexpr std::uint32_t kLeastFrame = 60;  // where one field alone is moved, it is one of a frame like this

// the launch's own buffer
constexpr std::size_t kStagedBytes = 1520;  // kMaxBytes rounded up to what extents are aligned to
constexpr std::size_t kFlagsAt = kSlots * sizeof(std::uint32_t);
constexpr std::size_t kExtentsAt = kFlagsAt + kSlots;
constexpr std::size_t kFramesAt = kExtentsAt + TransferMeter::kMaxPackets * sizeof(copy::StagingExtent);
constexpr std::size_t kFramesBytes = TransferMeter::kMaxPackets * kStagedBytes;
constexpr std::size_t kHeadsAt = kFramesAt + kFramesBytes;  // one for every number of packets that a launch may have
constexpr std::size_t kBatchBytes = kHeadsAt + (TransferMeter::kMaxPackets + 1) * sizeof(kernel::LaunchHeader);
static_assert(kStagedBytes >= TransferMeter::kMaxBytes && kStagedBytes % 16 == 0 && kFramesAt % 64 == 0);
static_assert(kHeadsAt % alignof(kernel::LaunchHeader) == 0);

// Four at least, that one is under way while others wait; many where they are short, that starting and ending the
// sample hardly counts.
constexpr std::uint32_t kLeastLaunches = 4;
constexpr std::uint32_t kMaxLaunches = 1024;
constexpr double kSampleNs = 4e6;
constexpr int kSamples = 7;
constexpr double kSettled = 0.75;

constexpr std::chrono::seconds kLimit{30};
constexpr std::chrono::microseconds kSpin{50};
constexpr std::chrono::microseconds kSleep{20};

std::size_t index(Direction direction) { return static_cast<std::size_t>(direction); }

/// log2 of the transfer kernel's work-items per packet.
std::uint32_t lane_bits(TransferContent content) {
  return content == TransferContent::kField ? 0 : copy::kTransferLaneBits;
}

std::size_t frame_at(std::uint32_t slot) { return std::size_t{slot} * packet::kSlotBytes + packet::kSlotHeadroom; }

copy::LaunchPlan plan_moving(packet::FieldSet fields) {
  copy::LaunchPlan plan;
  plan.shared = copy::SharedStep{.to_device = fields,
                                 .to_host = fields,
                                 .columns_in = TransferMethod::kGather,
                                 .columns_out = TransferMethod::kGather,
                                 .body_in = TransferMethod::kGather,
                                 .body_out = TransferMethod::kGather};
  return plan;
}

}  // namespace

void TransferMeter::PoolDeleter::operator()(std::byte* memory) const {
  if (device->failed().ok()) {  // a lost device may still write to it
    ::operator delete(memory, kPage);
  }
}

Result<std::unique_ptr<TransferMeter>> TransferMeter::create(device::Device& device) {
  std::unique_ptr<TransferMeter> meter(new TransferMeter(device));
  CATENA_RETURN_IF_ERROR(meter->allocate());
  CATENA_RETURN_IF_ERROR(meter->build_programs());
  CATENA_RETURN_IF_ERROR(meter->warm_up());
  return meter;
}

Status TransferMeter::allocate() {
  pool_.reset(static_cast<std::byte*>(::operator new(kPoolBytes, kPage, std::nothrow)));
  if (!pool_) {
    return absl::ResourceExhaustedError(concat("no host memory for ", kPoolBytes, " bytes of packets"));
  }
  std::memset(pool_.get(), 1, kPoolBytes);
  CATENA_ASSIGN_OR_RETURN(shared_, copy::SharedBuffer::create(*device_, std::span(pool_.get(), kPoolBytes)));
  CATENA_ASSIGN_OR_RETURN(batch_, device_->allocate(kBatchBytes));
  for (std::size_t side = 0; side < 2; ++side) {
    CATENA_ASSIGN_OR_RETURN(staged_[side], device_->allocate(kFramesBytes));
    CATENA_ASSIGN_OR_RETURN(staging_[side], device_->allocate_pinned(kFramesBytes));
    CATENA_ASSIGN_OR_RETURN(streams_[side], device_->create_stream());
    std::memset(staging_[side]->bytes().data(), 1, kFramesBytes);
  }
  next_slot_[index(Direction::kToHost)] = kSlots / 2;  // the two directions work on different packets

  std::vector<std::uint32_t> rows(kSlots);
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    rows[slot] = slot;
  }
  std::vector<copy::StagingExtent> extents(kMaxPackets);
  for (std::uint32_t row = 0; row < kMaxPackets; ++row) {
    extents[row] = {static_cast<u32>(row * kStagedBytes), packet::kSlotHeadroom, kMaxBytes};
  }
  std::vector<kernel::LaunchHeader> heads;
  for (std::uint32_t packets = 0; packets <= kMaxPackets; ++packets) {
    heads.push_back({packets, packets, 0, 0});
  }
  device::Stream& stream = *streams_[0];
  CATENA_RETURN_IF_ERROR(stream.fill(*batch_, 0, kBatchBytes, 0));
  for (auto const& staged : staged_) {
    CATENA_RETURN_IF_ERROR(stream.fill(*staged, 0, kFramesBytes, 0));
  }
  CATENA_RETURN_IF_ERROR(drain(stream));
  CATENA_RETURN_IF_ERROR(upload(*batch_, 0, std::as_bytes(std::span(rows))));
  CATENA_RETURN_IF_ERROR(upload(*batch_, kExtentsAt, std::as_bytes(std::span(extents))));
  CATENA_RETURN_IF_ERROR(upload(*batch_, kHeadsAt, std::as_bytes(std::span(heads))));
  return set_frame_bytes(kMaxBytes);
}

Status TransferMeter::upload(device::Buffer& target, std::size_t at, std::span<const std::byte> bytes) {
  const std::span<std::byte> staged = staging().first(bytes.size());  // outlives what a device that hangs still reads
  std::ranges::copy(bytes, staged.begin());
  CATENA_RETURN_IF_ERROR(streams_[0]->copy_to_device(target, at, staged));
  return drain(*streams_[0]);
}

Status TransferMeter::build_programs() {
  const auto build = [this](packet::FieldSet fields, Direction direction, Programs& result) -> Status {
    const bool in = direction == Direction::kToDevice;
    CATENA_ASSIGN_OR_RETURN(result.program, program::build(*device_, copy::transfer_source(plan_moving(fields), in),
                                                           "the transfer kernel"));
    CATENA_ASSIGN_OR_RETURN(result.kernel, result.program->kernel(in ? copy::kMoveIn : copy::kMoveOut));
    return absl::OkStatus();
  };
  for (const Direction direction : {Direction::kToDevice, Direction::kToHost}) {
    CATENA_RETURN_IF_ERROR(build(packet::kFrameFields, direction, frames_[index(direction)]));
    CATENA_RETURN_IF_ERROR(build(packet::fields(packet::kIpv4Dst), direction, field_[index(direction)]));
  }
  return absl::OkStatus();
}

Status TransferMeter::warm_up() {
  // drivers finish a kernel when it is first launched, and PoCL anew for more work-items than ever before, which must
  // not happen while the kernel runs: the largest launch of each comes first, alone, without packets
  for (const Direction direction : {Direction::kToDevice, Direction::kToHost}) {
    for (const TransferContent content : {TransferContent::kFrames, TransferContent::kField}) {
      const Transfer nothing{TransferMethod::kGather, direction, content, 0, 0};
      CATENA_RETURN_IF_ERROR(
          enqueue_kernel(nothing, 0, kMaxPackets << copy::kTransferLaneBits, *streams_[index(direction)]));
      CATENA_RETURN_IF_ERROR(drain(*streams_[index(direction)]));
    }
  }
  return absl::OkStatus();
}

Status TransferMeter::drain(device::Stream& stream) {
  CATENA_ASSIGN_OR_RETURN(const auto done, stream.record());
  return done->wait(kLimit, concat("measuring on ", device_->info().name));
}

Status TransferMeter::set_frame_bytes(std::uint32_t bytes) {
  if (bytes == frame_bytes_) {
    return absl::OkStatus();
  }
  constexpr std::uint16_t kHeaderBytes = 42;
  constexpr std::uint16_t kEthernetBytes = 14;
  const auto length = static_cast<std::uint16_t>(bytes);
  const std::vector<std::uint16_t> offsets(kSlots, packet::kSlotHeadroom);
  const std::vector<std::uint16_t> lengths(kSlots, length);
  const packet::Layers udp{kEthernetBytes,
                           34,
                           kHeaderBytes,
                           packet::AddressFamily::kIpv4,
                           packet::kIpv4 | packet::kUdp | packet::kPorts,
                           static_cast<std::uint16_t>(length - kHeaderBytes)};
  const std::vector<packet::Layers> layers(kSlots, udp);
  const auto upload_meta = [this](packet::Field field, std::span<const std::byte> values) {
    return upload(shared_->buffer(), std::size_t{kSlots} * kernel::shared_meta_prefix(field), values);
  };
  CATENA_RETURN_IF_ERROR(upload_meta(packet::kMetaOffset, std::as_bytes(std::span(offsets))));
  CATENA_RETURN_IF_ERROR(upload_meta(packet::kMetaLength, std::as_bytes(std::span(lengths))));
  CATENA_RETURN_IF_ERROR(upload_meta(packet::kMetaLayers, std::as_bytes(std::span(layers))));
  frame_bytes_ = bytes;
  return absl::OkStatus();
}

Status TransferMeter::enqueue_kernel(Transfer const& transfer, std::uint32_t first_slot, std::uint32_t work_items,
                                     device::Stream& stream) {
  copy::TransferParams params{};
  params.head_offset = kHeadsAt + transfer.packets * sizeof(kernel::LaunchHeader);
  params.slots = kSlots;
  params.slots_offset = first_slot * sizeof(std::uint32_t);
  params.extents_offset = kExtentsAt;
  params.frames_offset = kFramesAt;
  params.frames_bytes = kFramesBytes;
  params.flags_offset = kFlagsAt;
  params.body = transfer.content == TransferContent::kField    ? KernelPath::kNone
                : transfer.content == TransferContent::kWithin ? KernelPath::kStaging
                                                               : KernelPath::kPool;
  params.lane_bits = lane_bits(transfer.content);
  const std::array<device::KernelArgument, 6> arguments{
      batch_.get(),         batch_.get(), &shared_->buffer(), shared_->mapped(), std::as_bytes(std::span(&params, 1)),
      device::BufferSizes{}};
  const std::size_t side = index(transfer.direction);
  device::Kernel& kernel = transfer.content == TransferContent::kField ? *field_[side].kernel : *frames_[side].kernel;
  return stream.launch(
      kernel, {(work_items + copy::kTransferGroup - 1) / copy::kTransferGroup, copy::kTransferGroup, 0}, arguments);
}

Status TransferMeter::enqueue(Transfer const& transfer, std::uint32_t first_slot, device::Stream& stream) {
  if (needs_mapped_pool(transfer.method) || transfer.content == TransferContent::kWithin) {
    return enqueue_kernel(transfer, first_slot, transfer.packets << lane_bits(transfer.content), stream);
  }
  if (!uses_staging(transfer.method)) {
    return copy::mover_of(transfer.method)
        .enqueue(stream, transfer.direction, std::span(pool_.get(), kPoolBytes), shared_->buffer(),
                 {{first_slot, transfer.packets}, packet::kSlotHeadroom, packet::kSlotHeadroom + transfer.bytes});
  }
  const bool in = transfer.direction == Direction::kToDevice;
  const std::size_t side = index(transfer.direction);
  const std::span<std::byte> host = staging_[side]->bytes().first(std::size_t{transfer.packets} * transfer.bytes);
  return in ? stream.copy_to_device(*staged_[side], 0, host) : stream.copy_to_host(host, *staged_[side], 0);
}

Result<std::vector<double>> TransferMeter::run(std::span<const Transfer> transfers,
                                               std::span<const std::uint32_t> launches) {
  const std::uint32_t most = *std::ranges::max_element(launches);
  const auto start = Clock::now();
  for (std::uint64_t turn = 0; turn < most; ++turn) {
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      if (turn * launches[i] / most == (turn + 1) * launches[i] / most) {
        continue;  // fewer of these: spread over the turns
      }
      const std::size_t side = index(transfers[i].direction);
      device::Stream& stream = *streams_[side];
      if (next_slot_[side] + transfers[i].packets > kSlots) {
        next_slot_[side] = 0;
      }
      CATENA_RETURN_IF_ERROR(enqueue(transfers[i], next_slot_[side], stream));
      CATENA_RETURN_IF_ERROR(stream.flush());
      next_slot_[side] += transfers[i].packets;
    }
  }
  std::vector<std::unique_ptr<device::Event>> ends;
  for (Transfer const& transfer : transfers) {
    CATENA_ASSIGN_OR_RETURN(auto end, streams_[index(transfer.direction)]->record());
    ends.push_back(std::move(end));
  }
  std::vector<double> each(transfers.size(), 0);
  const auto enqueued = Clock::now();
  for (std::size_t pending = transfers.size(); pending > 0;) {
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      if (!ends[i]) {
        continue;
      }
      CATENA_ASSIGN_OR_RETURN(const bool done, ends[i]->ready());
      if (done) {
        each[i] = std::chrono::duration<double, std::nano>(Clock::now() - start).count() / launches[i];
        ends[i].reset();
        --pending;
      }
    }
    const auto waited = Clock::now() - enqueued;
    if (waited > kLimit) {
      return absl::DeadlineExceededError(
          concat("measuring on ", device_->info().name, ": the device did not finish within ", kLimit.count(), " s"));
    }
    // the device may be this very processor
    waited < kSpin ? std::this_thread::yield() : std::this_thread::sleep_for(kSleep);
  }
  return each;
}

Result<std::vector<double>> TransferMeter::time(std::span<const Transfer> transfers) {
  CATENA_RETURN_IF_ERROR(set_frame_bytes(std::max(transfers.front().bytes, kLeastFrame)));
  std::vector<std::uint32_t> launches;
  for (Transfer const& transfer : transfers) {
    // Alone, also where two will run at once: then each of them is busy for as long as the other. More and more of
    // them, until one takes no less: the time of a few is that of noticing their end, on a busy machine by far.
    CATENA_RETURN_IF_ERROR(run(std::span(&transfer, 1), std::array{kLeastLaunches}).status());
    double least = 2 * kSampleNs;
    for (std::uint32_t count = kLeastLaunches; count <= kMaxLaunches; count *= 4) {
      CATENA_ASSIGN_OR_RETURN(const std::vector<double> each, run(std::span(&transfer, 1), std::array{count}));
      const bool settled = each.front() > kSettled * least;
      least = std::min(least, each.front());
      if (settled || count * least > 2 * kSampleNs) {
        break;
      }
    }
    const auto count =
        static_cast<std::uint32_t>(std::clamp(kSampleNs / least, double{kLeastLaunches}, double{kMaxLaunches}));
    launches.push_back(count);
  }
  std::vector<std::vector<double>> samples(transfers.size());
  for (int sample = 0; sample < kSamples; ++sample) {
    CATENA_ASSIGN_OR_RETURN(const std::vector<double> each, run(transfers, launches));
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      samples[i].push_back(each[i]);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& of_transfer : samples) {
    medians.push_back(median(std::move(of_transfer)));
  }
  return medians;
}

Status TransferMeter::check_bytes() {
  constexpr std::uint32_t kPackets = 256;
  constexpr std::uint32_t kBytes = 333;
  CATENA_RETURN_IF_ERROR(set_frame_bytes(kBytes));
  for (const TransferMethod method : kTransferMethods) {
    if (!can_time(method)) {
      continue;
    }
    const bool staged = uses_staging(method);
    const auto pattern = [method](std::uint32_t packet, std::uint32_t at) {
      return static_cast<std::byte>(packet * 7 + at + 31 * static_cast<std::uint32_t>(method));
    };
    const auto host = [&](Direction direction, std::uint32_t packet) {
      return staged ? staging_[index(direction)]->bytes().data() + std::size_t{packet} * kBytes
                    : pool_.get() + frame_at(packet);
    };
    const auto fill = [&](Direction direction, bool with_pattern) {
      for (std::uint32_t packet = 0; packet < kPackets; ++packet) {
        for (std::uint32_t at = 0; at < kBytes; ++at) {
          host(direction, packet)[at] = with_pattern ? pattern(packet, at) : std::byte{0};
        }
      }
    };
    fill(Direction::kToDevice, true);
    device::Stream& stream = *streams_[0];
    CATENA_RETURN_IF_ERROR(
        enqueue({method, Direction::kToDevice, TransferContent::kFrames, kPackets, kBytes}, 0, stream));
    CATENA_RETURN_IF_ERROR(drain(stream));
    fill(Direction::kToHost, false);
    if (staged) {
      std::swap(staged_[0], staged_[1]);
    }
    CATENA_RETURN_IF_ERROR(
        enqueue({method, Direction::kToHost, TransferContent::kFrames, kPackets, kBytes}, 0, stream));
    CATENA_RETURN_IF_ERROR(drain(stream));
    for (std::uint32_t packet = 0; packet < kPackets; ++packet) {
      for (std::uint32_t at = 0; at < kBytes; ++at) {
        if (host(Direction::kToHost, packet)[at] != pattern(packet, at)) {
          return absl::InternalError(concat(device_->info().name, ": byte ", at, " of frame ", packet, ", sent by ",
                                            to_string(method), ", did not come back"));
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace catena::profile
