// SPDX-License-Identifier: Apache-2.0
#include <catena/kernel/launch.hpp>

#include <catena/kernel/launch_params.hpp>

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace catena::kernel {
namespace {

constexpr std::size_t kRegionAlign = 64;
constexpr std::uint32_t kRowAlign = 16;
constexpr std::uint32_t kFrameAlign = 16;
constexpr std::size_t kSpillChunkBytes = std::size_t{64} << 10;
constexpr std::chrono::seconds kSetUpLimit{30};
constexpr std::uint8_t kPoison = 0xA5;  // device memory starts with this, so that bytes nobody wrote are seen

constexpr std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

/// Whether the packet has the header that `field` is part of.
bool has_field(std::uint32_t field, std::uint8_t flags) {
  if (field <= packet::kEthType) {
    return true;
  }
  if (field <= packet::kIpv4Options) {
    return (flags & packet::kIpv4) != 0;
  }
  switch (field) {
    case packet::kL4Sport:
    case packet::kL4Dport:
      return (flags & packet::kPorts) != 0;
    case packet::kUdpLength:
      return (flags & packet::kUdp) != 0;
    case packet::kL4Checksum:
      return (flags & (packet::kTcp | packet::kUdp | packet::kIcmp)) != 0;
    case packet::kIcmpHeader:
      return (flags & packet::kIcmp) != 0;
    default:
      return (flags & packet::kTcp) != 0;
  }
}

std::uint32_t offset_of(std::uint32_t field, packet::Layers const& layers) {
  if (field == packet::kL4Checksum) {
    const std::uint32_t at = (layers.flags & packet::kTcp) != 0 ? 16U : (layers.flags & packet::kUdp) != 0 ? 6U : 2U;
    return layers.l4 + at;
  }
  return packet::field_offset(field, layers.l3, layers.l4);
}

/// `size` bytes of a field between a packet and a column. ICMP's stand around its checksum, which is a field by itself.
void copy_field(std::uint32_t field, std::uint32_t size, std::byte* to, const std::uint8_t* packet) {
  if (field == packet::kIcmpHeader) {
    std::memcpy(to, packet, 2);
    std::memcpy(to + 2, packet + 4, 4);
  } else {
    std::memcpy(to, packet, size);
  }
}
void copy_field(std::uint32_t field, std::uint32_t size, std::uint8_t* packet, const std::byte* from) {
  if (field == packet::kIcmpHeader) {
    std::memcpy(packet, from, 2);
    std::memcpy(packet + 4, from + 2, 4);
  } else {
    std::memcpy(packet, from, size);
  }
}

/// The metadata array behind a metadata field.
std::byte* meta_array(std::uint32_t field, packet::MetaColumns const& meta) {
  switch (field) {
    case packet::kMetaVerdict:
      return reinterpret_cast<std::byte*>(meta.verdict);
    case packet::kMetaPort:
      return reinterpret_cast<std::byte*>(meta.port);
    case packet::kMetaLength:
      return reinterpret_cast<std::byte*>(meta.length);
    case packet::kMetaOffset:
      return reinterpret_cast<std::byte*>(meta.offset);
    default:
      return reinterpret_cast<std::byte*>(meta.layers);
  }
}

}  // namespace

Result<std::unique_ptr<DeviceNf>> DeviceNf::create(device::Device& device, ProgramSpec spec,
                                                   std::span<const std::byte> state) {
  std::unique_ptr<DeviceNf> nf(new DeviceNf());
  nf->device_ = &device;
  nf->spec_ = std::move(spec);
  CATENA_ASSIGN_OR_RETURN(nf->program_, build(device, nf->spec_));
  CATENA_ASSIGN_OR_RETURN(nf->kernel_, nf->program_->kernel(nf->spec_.kernel));
  if (!state.empty()) {
    CATENA_ASSIGN_OR_RETURN(nf->state_, device.allocate(state.size()));
    CATENA_ASSIGN_OR_RETURN(const auto stream, device.create_stream());
    CATENA_RETURN_IF_ERROR(stream->copy_to_device(*nf->state_, 0, state));
    CATENA_ASSIGN_OR_RETURN(const auto done, stream->record());
    CATENA_RETURN_IF_ERROR(stream->flush());
    CATENA_RETURN_IF_ERROR(
        done->wait(kSetUpLimit, concat("copying the state of ", nf->spec_.kernel, " to ", device.info().name)));
  }
  return nf;
}

Launch::Layout Launch::layout_for(std::uint32_t count, std::size_t frame_bytes) const {
  ProgramSpec const& spec = nf_->spec();
  Layout layout;
  layout.padded = static_cast<std::uint32_t>(round_up(count, kRowAlign));
  layout.aux = std::size_t{layout.padded} * packet::columns_size(in_);
  layout.extents = layout.aux + std::size_t{layout.padded} * spec.aux_bytes;
  layout.frames = round_up(
      layout.extents + (frames_ == Frames::kNone ? 0 : std::size_t{layout.padded} * sizeof(Extent)), kRegionAlign);
  layout.out = round_up(layout.frames + frame_bytes, kRegionAlign);
  layout.out_columns = layout.out + sizeof(FaultReport) + layout.padded;
  layout.results = layout.out_columns + std::size_t{layout.padded} * packet::columns_size(out_);
  layout.end = layout.results + std::size_t{layout.padded} * spec.result_bytes;
  return layout;
}

Result<std::unique_ptr<Launch>> Launch::create(DeviceNf& nf, std::uint32_t max_packets,
                                               std::uint32_t max_frame_bytes_each) {
  std::unique_ptr<Launch> launch(new Launch());
  ProgramSpec const& spec = nf.spec();
  launch->nf_ = &nf;
  launch->frames_ = frames_of(spec.reads | spec.writes);
  launch->in_ = in_columns(spec);
  launch->out_ = out_columns(spec);
  launch->frames_written_ = frames_of(spec.writes) != Frames::kNone;
  launch->max_packets_ = max_packets;

  const std::size_t each =
      round_up(std::size_t{spec.headroom} + kFrameShift + max_frame_bytes_each + spec.tailroom, kFrameAlign);
  const std::size_t frame_bytes = launch->frames_ == Frames::kNone ? 0 : max_packets * each;
  const Layout most = launch->layout_for(max_packets, frame_bytes);
  device::Device& device = nf.device();
  CATENA_ASSIGN_OR_RETURN(launch->batch_, device.allocate(most.end));
  if (spec.policy.spill_factor > 0) {
    CATENA_ASSIGN_OR_RETURN(launch->spill_,
                            device.allocate(std::max<std::size_t>(1, frame_bytes * spec.policy.spill_factor)));
  }
  CATENA_ASSIGN_OR_RETURN(launch->staging_, device.allocate_pinned(most.out_columns));
  CATENA_ASSIGN_OR_RETURN(launch->staging_out_,
                          device.allocate_pinned(most.end - (launch->frames_written_ ? most.frames : most.out)));
  CATENA_ASSIGN_OR_RETURN(launch->stream_, device.create_stream());
  CATENA_RETURN_IF_ERROR(launch->stream_->fill(*launch->batch_, 0, most.end, kPoison));
  std::memset(launch->staging_out_->bytes().data(), 0, launch->staging_out_->bytes().size());
  launch->extents_.reserve(max_packets);
  CATENA_RETURN_IF_ERROR(launch->warm_up());
  return launch;
}

Status Launch::warm_up() {
  // drivers finish compiling a kernel when it is first launched (PoCL takes a second): not while packets wait for it
  layout_ = layout_for(0, 0);
  CATENA_RETURN_IF_ERROR(enqueue_kernel());
  return wait(kSetUpLimit, concat("the first launch of ", nf_->spec().kernel));
}

void Launch::begin() {
  staged_.clear();
  extents_.clear();
  spilled_.clear();
  if (!spill_staging_.empty()) {
    spill_staging_.resize(1);
  }
  spill_staging_used_ = 0;
  event_.reset();
  count_ = 0;
}

void Launch::add(packet::Batch const& batch, std::span<const std::byte> aux) {
  staged_.push_back({batch, aux, count_});
  count_ += batch.size();
}

void Launch::gather_column(std::uint32_t field, std::byte* column) const {
  const std::uint32_t size = packet::field_size(field);
  for (Staged const& staged : staged_) {
    packet::MetaColumns const& meta = staged.batch.meta();
    const auto slots = staged.batch.slots();
    std::byte* to = column + std::size_t{staged.first_row} * size;
    if (field >= packet::kMetaVerdict) {
      const std::byte* from = meta_array(field, meta);
      for (const std::uint32_t slot : slots) {
        std::memcpy(to, from + std::size_t{slot} * size, size);
        to += size;
      }
      continue;
    }
    for (const std::uint32_t slot : slots) {
      packet::Layers const& layers = meta.layers[slot];
      if (has_field(field, layers.flags)) {
        copy_field(field, size, to,
                   staged.batch.region() + std::size_t{slot} * packet::kSlotBytes + meta.offset[slot] +
                       offset_of(field, layers));
      } else {
        std::memset(to, 0, size);
      }
      to += size;
    }
  }
}

void Launch::gather() {
  std::byte* host = staging_->bytes().data();
  ProgramSpec const& spec = nf_->spec();
  extents_.clear();
  std::size_t frame_bytes = 0;
  if (frames_ != Frames::kNone) {
    const std::size_t shift = frames_ == Frames::kFrame ? kFrameShift : 0;
    for (Staged const& staged : staged_) {
      packet::MetaColumns const& meta = staged.batch.meta();
      for (const std::uint32_t slot : staged.batch.slots()) {
        const std::uint16_t length = frames_ == Frames::kFrame ? meta.length[slot] : meta.layers[slot].payload_length;
        extents_.push_back({static_cast<u32>(frame_bytes + spec.headroom + shift), length, 0});
        frame_bytes += round_up(spec.headroom + shift + length + spec.tailroom, kFrameAlign);
      }
    }
  }
  layout_ = layout_for(count_, frame_bytes);

  for (std::uint32_t field = 0; field < packet::kFieldCount; ++field) {
    if (const std::uint32_t prefix = packet::column_prefix(in_, field); prefix != packet::kNoColumn) {
      gather_column(field, host + std::size_t{layout_.padded} * prefix);
    }
  }
  for (Staged const& staged : staged_) {
    if (!staged.aux.empty()) {
      std::memcpy(host + layout_.aux + std::size_t{staged.first_row} * spec.aux_bytes, staged.aux.data(),
                  staged.aux.size());
    }
  }
  if (frames_ != Frames::kNone) {
    std::memcpy(host + layout_.extents, extents_.data(), extents_.size() * sizeof(Extent));
    for (Staged const& staged : staged_) {
      packet::MetaColumns const& meta = staged.batch.meta();
      std::uint32_t row = staged.first_row;
      for (const std::uint32_t slot : staged.batch.slots()) {
        const std::uint32_t skip = frames_ == Frames::kFrame ? 0U : meta.layers[slot].payload;
        const std::uint8_t* from =
            staged.batch.region() + std::size_t{slot} * packet::kSlotBytes + meta.offset[slot] + skip;
        std::memcpy(host + layout_.frames + extents_[row].begin, from, extents_[row].length);
        ++row;
      }
    }
  }
  std::memset(host + layout_.out, 0, layout_.out_columns - layout_.out);
}

Status Launch::enqueue_kernel() {
  ProgramSpec const& spec = nf_->spec();
  LaunchParams params{};
  params.count = count_;
  params.padded = layout_.padded;
  params.frames_offset = layout_.frames;
  params.frames_bytes = layout_.out - layout_.frames;
  params.out_offset = layout_.out;
  params.batch_bytes = layout_.end;
  params.state_bytes = nf_->state_ ? nf_->state_->size() : 0;
  params.spill_bytes = spill_ ? spill_->size() : 0;
  params.local_bytes = spec.policy.local_bytes;
  const std::array<device::KernelArgument, 4> arguments{batch_.get(), nf_->state_.get(), spill_.get(),
                                                        std::as_bytes(std::span(&params, 1))};
  const std::uint64_t work_items = std::uint64_t{count_} * spec.policy.lanes;
  const device::LaunchShape shape{
      std::max(1U, static_cast<std::uint32_t>((work_items + spec.policy.group_size - 1) / spec.policy.group_size)),
      spec.policy.group_size, spec.policy.local_bytes};
  event_.reset();
  return stream_->launch(*nf_->kernel_, shape, arguments);
}

Status Launch::submit() {
  gather();
  const std::span<const std::byte> in = staging_->bytes().first(layout_.out_columns);
  const std::size_t back_from = frames_written_ ? layout_.frames : layout_.out;
  CATENA_RETURN_IF_ERROR(stream_->copy_to_device(*batch_, 0, in));
  CATENA_RETURN_IF_ERROR(enqueue_kernel());
  CATENA_RETURN_IF_ERROR(
      stream_->copy_to_host(staging_out_->bytes().first(layout_.end - back_from), *batch_, back_from));
  CATENA_ASSIGN_OR_RETURN(event_, stream_->record());
  transfers_.packets += count_;
  transfers_.bytes_to_device += in.size();
  transfers_.bytes_to_host += layout_.end - back_from;
  return stream_->flush();
}

Result<bool> Launch::poll() {
  if (!event_) {
    CATENA_ASSIGN_OR_RETURN(event_, stream_->record());
    CATENA_RETURN_IF_ERROR(stream_->flush());
  }
  return event_->ready();
}

Status Launch::wait(std::chrono::nanoseconds limit, std::string_view what) {
  CATENA_ASSIGN_OR_RETURN(const bool done, poll());
  return done ? absl::OkStatus() : event_->wait(limit, concat(what, " on ", nf_->device().info().name));
}

Result<std::span<std::byte>> Launch::spill_room(std::size_t bytes) {
  if (spill_staging_.empty() || spill_staging_.back()->bytes().size() - spill_staging_used_ < bytes) {
    CATENA_ASSIGN_OR_RETURN(auto chunk, nf_->device().allocate_pinned(std::max(bytes, kSpillChunkBytes)));
    spill_staging_.push_back(std::move(chunk));
    spill_staging_used_ = 0;
  }
  const auto room = spill_staging_.back()->bytes().subspan(spill_staging_used_, bytes);
  spill_staging_used_ += round_up(bytes, kRowAlign);
  spill_staging_used_ = std::min(spill_staging_used_, spill_staging_.back()->bytes().size());
  return room;
}

Status Launch::fetch_spill(std::uint32_t row, std::uint32_t bytes) {
  const std::uint64_t factor = nf_->spec().policy.spill_factor;
  const bool in_order = spilled_.empty() || spilled_.back().row < row;
  if (row >= count_ || !in_order || frames_ == Frames::kNone || bytes > extents_[row].length * factor) {
    return absl::InvalidArgumentError(
        concat("row ", row, " of ", count_, " has no ", bytes, " bytes of spill area, or was asked for out of order"));
  }
  CATENA_ASSIGN_OR_RETURN(const std::span<std::byte> room, spill_room(bytes));
  CATENA_RETURN_IF_ERROR(stream_->copy_to_host(room, *spill_, extents_[row].begin * factor));
  spilled_.push_back({row, room});
  transfers_.bytes_to_host += bytes;
  event_.reset();
  return absl::OkStatus();
}

std::span<const std::byte> Launch::spill(std::uint32_t row) const {
  const auto found = std::lower_bound(spilled_.begin(), spilled_.end(), row,
                                      [](Spilled const& entry, std::uint32_t wanted) { return entry.row < wanted; });
  return found == spilled_.end() || found->row != row ? std::span<const std::byte>() : found->bytes;
}

std::byte* Launch::out(std::size_t region_offset) const {
  return staging_out_->bytes().data() + (region_offset - (frames_written_ ? layout_.frames : layout_.out));
}

FaultReport const& Launch::faults() const { return *reinterpret_cast<FaultReport const*>(out(layout_.out)); }

bool Launch::faulted(std::uint32_t row) const { return out(layout_.out + sizeof(FaultReport))[row] != std::byte{0}; }

void Launch::scatter_column(std::uint32_t field, packet::Batch const& batch, std::uint32_t first_row) const {
  const std::uint32_t size = packet::field_size(field);
  packet::MetaColumns const& meta = batch.meta();
  const std::byte* from = out(layout_.out_columns + std::size_t{layout_.padded} * packet::column_prefix(out_, field)) +
                          std::size_t{first_row} * size;
  std::uint32_t row = first_row;
  for (const std::uint32_t slot : batch.slots()) {
    if (faulted(row)) {
      // what a strayed kernel says about a packet is not believed
    } else if (field >= packet::kMetaVerdict) {
      std::memcpy(meta_array(field, meta) + std::size_t{slot} * size, from, size);
    } else if (has_field(field, meta.layers[slot].flags)) {
      copy_field(field, size,
                 batch.region() + std::size_t{slot} * packet::kSlotBytes + meta.offset[slot] +
                     offset_of(field, meta.layers[slot]),
                 from);
    }
    from += size;
    ++row;
  }
}

void Launch::scatter_bytes(packet::Batch const& batch, std::uint32_t first_row) {
  ProgramSpec const& spec = nf_->spec();
  packet::MetaColumns const& meta = batch.meta();
  const bool whole = frames_ == Frames::kFrame;
  const auto* lengths = reinterpret_cast<const std::uint16_t*>(
      whole ? out(layout_.out_columns + std::size_t{layout_.padded} * packet::column_prefix(out_, packet::kMetaLength))
            : nullptr);
  const auto* offsets = reinterpret_cast<const std::uint16_t*>(
      whole ? out(layout_.out_columns + std::size_t{layout_.padded} * packet::column_prefix(out_, packet::kMetaOffset))
            : nullptr);
  std::uint32_t row = first_row;
  for (const std::uint32_t slot : batch.slots()) {
    Extent const& extent = extents_[row];
    std::uint8_t* slot_bytes = batch.region() + std::size_t{slot} * packet::kSlotBytes;
    if (faulted(row)) {
      ++row;
      continue;
    }
    if (!whole) {
      std::memcpy(slot_bytes + meta.offset[slot] + meta.layers[slot].payload, out(layout_.frames + extent.begin),
                  extent.length);
      ++row;
      continue;
    }
    const std::uint32_t offset = offsets[row];
    const std::uint32_t end = offset + lengths[row];
    const std::uint32_t old_offset = meta.offset[slot];
    const bool inside = offset + spec.headroom >= old_offset && end >= offset &&
                        end <= old_offset + extent.length + spec.tailroom && end <= packet::kSlotBytes &&
                        lengths[row] >= packet::kEthernetBytes;
    if (inside) {
      std::memcpy(slot_bytes + offset, out(layout_.frames + extent.begin + offset - old_offset), end - offset);
      batch[row - first_row].set_extent(offset, lengths[row]);
    } else {
      auto* report = reinterpret_cast<FaultReport*>(out(layout_.out));
      if (report->count++ == 0) {
        *report = {1, row, kRegionFrames, 0, offset, packet::kSlotBytes};
      }
      out(layout_.out + sizeof(FaultReport))[row] = std::byte{1};
    }
    ++row;
  }
}

void Launch::apply(packet::Batch const& batch, std::uint32_t first_row) {
  for (std::uint32_t field = 0; field < packet::kFieldCount; ++field) {
    const bool extent =
        frames_written_ && frames_ == Frames::kFrame && (field == packet::kMetaLength || field == packet::kMetaOffset);
    if (packet::column_prefix(out_, field) != packet::kNoColumn && !extent) {
      scatter_column(field, batch, first_row);
    }
  }
  if (frames_written_) {
    scatter_bytes(batch, first_row);
  }
}

std::span<const std::byte> Launch::results() const {
  return {out(layout_.results), std::size_t{count_} * nf_->spec().result_bytes};
}

TransferCounts Launch::take_transfers() { return std::exchange(transfers_, {}); }

}  // namespace catena::kernel
