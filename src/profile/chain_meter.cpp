// SPDX-License-Identifier: Apache-2.0
#include "profile/chain_meter.hpp"

#include "chain/instances.hpp"
#include "io/source.hpp"
#include "nf/named_files.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/slot.hpp>

#include <algorithm>
#include <bit>
#include <thread>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace catena::profile {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kFlows = 1024;
constexpr std::uint32_t kLeastSlots = 512;        // of a packet pool, which has a power of two
constexpr std::uint64_t kNsBetweenPackets = 100;  // as the generator's

double ns_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count();
}

/// Frames come to an NF from whoever had them last, a NIC, the GPU or the core of the stage before it, and a chain
/// under load has more of them than caches hold. With frames in its own cache an NF with little work for a packet would
/// seem several times as fast as it is then: a router behind an NF on the GPU took 111 ns a packet on an H100's host,
/// 16 ns with warm frames. Only x86-64 is told to write its caches back; elsewhere frames stay where they are.
void evict(std::span<const packet::Batch> units) {
#if defined(__x86_64__)
  for (packet::Batch const& unit : units) {
    for (std::uint32_t i = 0; i < unit.size(); ++i) {
      const packet::Packet packet = unit[i];
      for (std::uint32_t at = 0; at < packet.length(); at += packet::kCacheLineBytes) {
        _mm_clflush(packet.frame() + at);
      }
    }
  }
  _mm_mfence();
#else
  static_cast<void>(units);
#endif
}

}  // namespace

Result<std::unique_ptr<ChainMeter>> ChainMeter::create(device::Device& device, chain::ChainConfig const& config,
                                                       nf::Registry const& registry, chain::SyncOptions const& sync,
                                                       std::uint32_t packet_bytes, std::uint32_t max_packets,
                                                       OnDevice on_device) {
  std::unique_ptr<ChainMeter> meter(new ChainMeter(device, on_device));
  CATENA_RETURN_IF_ERROR(meter->make_nfs(config, registry));
  CATENA_RETURN_IF_ERROR(meter->make_packets(packet_bytes, max_packets));
  CATENA_RETURN_IF_ERROR(meter->load(config, sync, packet_bytes));
  return meter;
}

Status ChainMeter::make_nfs(chain::ChainConfig const& config, nf::Registry const& registry) {
  for (chain::NfConfig const& entry : config.nfs) {
    if (!entry.plugin.empty()) {
      return absl::InvalidArgumentError(concat(entry.position, ": NF '", entry.name,
                                               "' is a plugin, which only its own process loads; measure the chain "
                                               "without it, or load the plugin yourself with --nf-path"));
    }
    const nf::NamedFiles files;
    CATENA_ASSIGN_OR_RETURN(auto instance, chain::make_instance(entry, registry, false, {}));
    const auto written = std::ranges::find_if(files.files(), &nf::NamedFile::is_written);
    if (written != files.files().end()) {
      return absl::InvalidArgumentError(concat(written->position, ": NF '", entry.name, "' writes ", written->path,
                                               "; measure the chain without it"));
    }
    CATENA_ASSIGN_OR_RETURN(chain::NfKey key, chain::key_of(entry, files.files()));
    choose_sides(entries_.emplace_back(entry), *instance);
    keys_.push_back(std::move(key));
    instances_.push_back(std::move(instance));
  }
  return absl::OkStatus();
}

/// What may be on the gpu is measured there too, and all in this process.
void ChainMeter::choose_sides(chain::NfConfig& entry, nf::Instance& instance) {
  entry.isolation = chain::Isolation::kNone;
  if (entry.is_auto) {
    const Status status = chain::can_run_on_gpu(entry, instance);
    entry.on = status.ok() ? plan::Processor::kGpu : plan::Processor::kCpu;
    if (!status.ok()) {
      notes_.push_back(concat(entry.name, " was measured on the CPU alone: ", std::string(status.message())));
    }
  }
  if (!may_be_on_device(instances_.size())) {
    entry.on = plan::Processor::kCpu;
  }
  if (entry.on == plan::Processor::kGpu) {
    measured_.push_back(instances_.size());
  }
}

bool ChainMeter::may_be_on_device(std::size_t nf) const {
  return on_device_ == OnDevice::kAll || (nf % 2 == 0) == (on_device_ == OnDevice::kEven);
}

/// The generator's packets, kept as they arrive.
Status ChainMeter::make_packets(std::uint32_t packet_bytes, std::uint32_t max_packets) {
  io::GeneratorConfig generator;
  generator.packet_bytes = packet_bytes;
  generator.flows = kFlows;
  CATENA_ASSIGN_OR_RETURN(const auto source, io::make_generator(generator));
  traffic_ = source->describe();
  frame_bytes_ = packet_bytes;
  CATENA_ASSIGN_OR_RETURN(pool_, memory::PacketPool::create(std::max(kLeastSlots, std::bit_ceil(max_packets))));
  std::uint64_t next_index = 0;
  while (slots_.size() < max_packets) {
    memory::Unit* unit = pool_->acquire_unit();
    bool starved = false;
    if (unit != nullptr) {
      CATENA_RETURN_IF_ERROR(source->receive(*pool_, *unit, next_index, starved));
    }
    if (unit == nullptr || unit->count == 0) {
      return absl::ResourceExhaustedError(concat("the packet pool has no room for ", max_packets, " packets"));
    }
    const auto used = unit->used_slots();
    slots_.insert(slots_.end(), used.begin(), used.end());
  }
  slots_.resize(max_packets);
  for (const std::uint32_t slot : slots_) {
    const std::uint8_t* frame = pool_->slot(slot) + packet::kSlotHeadroom;
    arrived_.insert(arrived_.end(), frame, frame + frame_bytes_);
  }
  return absl::OkStatus();
}

Status ChainMeter::load(chain::ChainConfig const& config, chain::SyncOptions const& sync, std::uint32_t packet_bytes) {
  CATENA_ASSIGN_OR_RETURN(plan::PlanInput input, chain::plan_input(config, sync));
  input.profile = plan::PacketProfile::fixed(packet_bytes);
  memory::Arena const& arena = pool_->arena();
  CATENA_ASSIGN_OR_RETURN(shared_, copy::SharedBuffer::create(*device_, {arena.slot_bytes(), arena.fd()}, pool_,
                                                              input.costs.has_pool_methods()));
  if (shared_->mapped() == nullptr) {
    input.costs.remove_pool_methods();
  }
  std::vector<std::optional<nf::KernelSide>> sides;
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    CATENA_ASSIGN_OR_RETURN(auto side, chain::add_nf(entries_[i], *instances_[i], input));
    sides.push_back(std::move(side));
  }
  CATENA_ASSIGN_OR_RETURN(const plan::Plan plan, plan::make_plan(input));
  kernels_.resize(instances_.size());
  batches_.resize(instances_.size());
  for (const std::size_t i : measured_) {
    const std::optional<copy::SharedStep> step = chain::shared_step(*plan.nfs[i].step);
    CATENA_ASSIGN_OR_RETURN(
        kernels_[i], kernel::DeviceNf::create(*device_, std::move(sides[i]->spec), instances_[i]->launch_plan(step),
                                              sides[i]->state, shared_.get()));
    CATENA_ASSIGN_OR_RETURN(batches_[i], nf::DeviceBatch::create(*instances_[i], *kernels_[i],
                                                                 {static_cast<std::uint32_t>(slots_.size())}, mover_));
    CATENA_RETURN_IF_ERROR(batches_[i]->start_trace());
  }
  return absl::OkStatus();
}

/// What NFs did to the packets is gone.
void ChainMeter::arrive(std::uint32_t packets) {
  for (std::uint32_t i = 0; i < packets; ++i) {
    const std::uint32_t slot = slots_[i];
    std::copy_n(arrived_.begin() + std::ptrdiff_t{i} * frame_bytes_, frame_bytes_,
                pool_->slot(slot) + packet::kSlotHeadroom);
    pool_->set_arrived(slot, frame_bytes_, i, i * kNsBetweenPackets);
  }
}

std::vector<packet::Batch> ChainMeter::units(std::uint32_t packets) const {
  std::vector<packet::Batch> units;
  for (std::uint32_t first = 0; first < packets; first += pool_->unit_packets()) {
    const std::uint32_t count = std::min(pool_->unit_packets(), packets - first);
    units.emplace_back(pool_->slot(0), pool_->meta(), std::span(slots_).subspan(first, count));
  }
  return units;
}

Result<std::vector<LaunchSample>> ChainMeter::pass(std::uint32_t packets) {
  arrive(packets);
  const std::vector<packet::Batch> all = units(packets);
  std::vector<LaunchSample> samples;
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    if (batches_[i] != nullptr) {
      CATENA_ASSIGN_OR_RETURN(const LaunchSample sample, launch(i, all));
      samples.push_back(sample);
      continue;
    }
    for (packet::Batch const& unit : all) {
      instances_[i]->process(unit);
    }
  }
  return samples;
}

std::vector<CpuSample> ChainMeter::pass_on_cpu(std::uint32_t packets) {
  arrive(packets);
  const std::vector<packet::Batch> all = units(packets);
  std::vector<CpuSample> samples;
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    evict(all);
    samples.push_back(run_on_cpu(i, all));
  }
  return samples;
}

CpuSample ChainMeter::run_on_cpu(std::size_t nf, std::span<const packet::Batch> units) {
  nf::Instance& instance = *instances_[nf];
  std::vector<std::uint32_t> slots;
  std::vector<std::byte> aux;
  CpuSample sample;
  for (packet::Batch const& unit : units) {
    const Clock::time_point start = Clock::now();
    slots.clear();
    instance.select(unit, slots);
    instance.prepare(unit, slots, aux);
    if (!slots.empty()) {
      instance.compute(unit.subset(slots), aux);
    }
    sample.ns += ns_between(start, Clock::now());
    sample.packets += static_cast<std::uint32_t>(slots.size());
  }
  return sample;
}

Result<ApartSamples> ChainMeter::pass_apart(std::uint32_t packets) {
  arrive(packets);
  const std::vector<packet::Batch> all = units(packets);
  ApartSamples samples;
  samples.after_gpu.resize(instances_.size());
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    if (batches_[i] != nullptr) {
      evict(all);
      CATENA_ASSIGN_OR_RETURN(const LaunchSample sample, launch(i, all));
      samples.launches.push_back(sample);
      continue;
    }
    const CpuSample sample = run_on_cpu(i, all);
    if (i > 0 && batches_[i - 1] != nullptr) {
      samples.after_gpu[i] = sample;
    }
  }
  return samples;
}

Result<LaunchSample> ChainMeter::launch(std::size_t nf, std::span<const packet::Batch> units) {
  nf::Instance& instance = *instances_[nf];
  nf::DeviceBatch& batch = *batches_[nf];
  const std::uint64_t before = instance.counters().device_packets;
  const Clock::time_point began = Clock::now();
  for (packet::Batch const& unit : units) {
    batch.add(unit);
  }
  const Clock::time_point submitted = Clock::now();
  CATENA_RETURN_IF_ERROR(batch.submit());
  double cpu_ns = ns_between(began, Clock::now());
  for (;;) {
    const Clock::time_point polled = Clock::now();
    CATENA_ASSIGN_OR_RETURN(const bool is_done, batch.poll());
    cpu_ns += is_done ? ns_between(polled, Clock::now()) : 0;
    if (is_done) {
      break;
    }
    if (Clock::now() - submitted > kLimit) {
      Status status = absl::DeadlineExceededError(
          concat("NF '", instance.name(), "': a launch takes longer than ", kLimit.count(), " seconds"));
      device_->abandon(status);
      return status;
    }
    std::this_thread::yield();
  }
  LaunchSample sample{.nf = nf, .round_trip_ns = ns_between(submitted, Clock::now()), .cpu_ns = cpu_ns};
  if (instance.counters().kernel_faults > 0) {
    return absl::DataLossError(concat("NF '", instance.name(), "': its kernel read or wrote out of bounds"));
  }
  sample.packets = static_cast<std::uint32_t>(instance.counters().device_packets - before);
  CATENA_ASSIGN_OR_RETURN(const auto times, batch.times());
  if (sample.packets > 0 && times) {
    sample.kernel_ns = static_cast<double>(times->computed_ns - times->moved_in_ns);
    sample.transfer_ns =
        static_cast<double>(times->moved_in_ns - times->begin_ns + times->moved_back_ns - times->computed_ns);
  }
  return sample;
}

Result<std::vector<double>> ChainMeter::time_kernel(std::size_t nf, device::Partition* partition, std::uint32_t runs) {
  return batches_[nf]->time_kernel(partition, runs, kLimit);
}

}  // namespace catena::profile
