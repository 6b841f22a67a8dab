// SPDX-License-Identifier: Apache-2.0
// What a step on the shared buffer costs the CPU for each packet, by the way that packets take to the device. A launch
// of the firewall's kernel, after which nothing comes back:
//   to_device_ns  from units to a launch that the device has: choosing packets, slot numbers, columns, ways, commands
//   back_ns       from its results to decided packets
// "commands dropped" is a device that takes commands and does nothing: what is left is Catena's own part. With
// CATENA_BENCH_DEVICE=cuda|opencl also on that device, where the driver's part of the commands is in it.
#include <catena/core/text.hpp>
#include <catena/nf/testing/bench.hpp>
#include <catena/nf/testing/harness.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <iostream>

#include "base/core/transfer_methods.hpp"
#include "bench/common/forwarding_device.hpp"
#include "bench/micro/open_device.hpp"
#include "nf/instance.hpp"
#include "nf/registry.hpp"
#include "packet/memory/packet_pool.hpp"

namespace catena {
namespace {

using nf::testing::thread_seconds;

constexpr int kRepeats = 7;
constexpr std::uint32_t kSlots = 65536;
constexpr std::uint32_t kBytes = 60;

/// Takes every command and does none.
class DroppingStream final : public device::Stream {
 public:
  Status copy_to_device(device::Buffer&, std::size_t, std::span<const std::byte>) override { return absl::OkStatus(); }
  Status copy_to_host(std::span<std::byte>, device::Buffer&, std::size_t) override { return absl::OkStatus(); }
  Status copy_rows_to_device(device::Buffer&, std::size_t, std::span<const std::byte>,
                             device::RowShape const&) override {
    return absl::OkStatus();
  }
  Status copy_rows_to_host(std::span<std::byte>, device::Buffer&, std::size_t, device::RowShape const&) override {
    return absl::OkStatus();
  }
  Status fill(device::Buffer&, std::size_t, std::size_t, std::uint8_t) override { return absl::OkStatus(); }
  Status launch(device::Kernel&, device::LaunchShape const&, std::span<const device::KernelArgument>) override {
    return absl::OkStatus();
  }
  Status enqueue(device::CommandBuffer&) override { return absl::OkStatus(); }
  Status finalize(device::CommandBuffer&) override { return absl::OkStatus(); }
  Result<std::unique_ptr<device::Event>> record() override { return std::make_unique<Done>(); }
  Result<std::unique_ptr<device::Event>> record_timestamp() override { return std::make_unique<Done>(); }
  Status flush() override { return absl::OkStatus(); }

 private:
  class Done final : public device::Event {
   public:
    Result<bool> ready() override { return true; }
  };
};

/// A real device's memory and programs, after streams that drop every command.
class DroppingDevice final : public bench::ForwardingDevice {
 public:
  explicit DroppingDevice(device::Device& real) : ForwardingDevice(real) { info_.name = "commands dropped"; }
  Result<std::unique_ptr<device::Stream>> create_stream(device::StreamOptions const& /*options*/) override {
    return std::make_unique<DroppingStream>();
  }
  Status failed() const override { return absl::OkStatus(); }
  void abandon(Status const& /*reason*/) override {}
};

/// A pool full of packets in units, as rx would have left them.
struct Traffic {
  std::unique_ptr<memory::PacketPool> pool;
  std::vector<memory::Unit*> units;
  ~Traffic() {
    for (memory::Unit* unit : units) {
      pool->release_slots(*unit, 0, unit->count);
      pool->release_unit(unit);
    }
  }
};

Result<std::unique_ptr<Traffic>> make_traffic(std::uint32_t packets, std::uint32_t unit_packets) {
  auto traffic = std::make_unique<Traffic>();
  CATENA_ASSIGN_OR_RETURN(traffic->pool, memory::PacketPool::create(kSlots, unit_packets));
  memory::PacketPool& pool = *traffic->pool;
  for (std::uint32_t first = 0; first < packets; first += pool.unit_packets()) {
    memory::Unit* unit = pool.acquire_unit();
    if (unit == nullptr || !pool.acquire_slots(*unit, pool.unit_packets())) {
      return absl::ResourceExhaustedError("the pool is too small for the launches");
    }
    traffic->units.push_back(unit);
    for (; unit->count < pool.unit_packets(); ++unit->count) {
      const std::uint32_t number = first + unit->count;
      const packet::testing::Frame frame = packet::testing::make_frame(
          packet::kProtocolUdp, 0x0A000000 + number, 0x0A000000 + number * 2654435761U % 0x1000000,
          static_cast<std::uint16_t>(1024 + number % 5000), static_cast<std::uint16_t>(number % 3000),
          std::string(kBytes - 42, 'a'));
      const std::uint32_t slot = unit->slots()[unit->count];
      std::ranges::copy(frame, pool.slot(slot) + packet::kSlotHeadroom);
      pool.set_arrived(slot, static_cast<std::uint32_t>(frame.size()), number, 0);
    }
  }
  return traffic;
}

struct Way {
  std::string name;
  packet::FieldSet fields;
  TransferMethod route;
};

Status measure(benchmark::State& state, device::Device& device, Way const& way) {
  const auto packets = static_cast<std::uint32_t>(state.range(0));
  CATENA_ASSIGN_OR_RETURN(const auto traffic, make_traffic(kSlots / 2, static_cast<std::uint32_t>(state.range(1))));
  const auto descriptor = nf::builtin_nfs().find("firewall");
  CATENA_ASSIGN_OR_RETURN(
      auto nf, nf::testing::make_nf(**descriptor,
                                    "{rules: " CATENA_SOURCE_DIR "/examples/branch-office/fw.rules, default: allow}"));
  CATENA_ASSIGN_OR_RETURN(nf::KernelSide side, nf->kernel_side());
  nf::Instance instance("fw", **descriptor, std::move(nf), nf::OnUnsupported::kPass, false);
  const copy::SharedStep step{
      .to_device = way.fields | packet::fields(packet::kMetaOffset, packet::kMetaLength, packet::kMetaLayers),
      .to_host = 0,
      .columns_in = kernel_path(way.route) == KernelPath::kNone ? TransferMethod::kStaged : way.route,
      .body_in = way.route};
  const std::size_t slots_bytes = std::size_t{traffic->pool->slots()} * packet::kSlotBytes;
  CATENA_ASSIGN_OR_RETURN(
      const auto shared,
      copy::SharedBuffer::create(device, std::as_writable_bytes(std::span(traffic->pool->slot(0), slots_bytes))));
  CATENA_ASSIGN_OR_RETURN(
      const auto device_nf,
      kernel::DeviceNf::create(device, std::move(side.spec), instance.launch_plan(step), side.state, shared.get()));
  hostcopy::HostMover mover;
  CATENA_ASSIGN_OR_RETURN(const auto batch, nf::DeviceBatch::create(instance, *device_nf, {packets}, mover));
  std::size_t next = 0;
  double to_device = 0;
  double back = 0;
  for (auto _ : state) {
    const double begin = thread_seconds();
    for (std::uint32_t added = 0; added < packets; added += traffic->pool->unit_packets()) {
      batch->add(traffic->pool->batch(*traffic->units[next]));
      next = (next + 1) % traffic->units.size();
    }
    CATENA_RETURN_IF_ERROR(batch->submit());
    const double submitted = thread_seconds();
    to_device += submitted - begin;
    double asked = submitted;
    while (true) {
      CATENA_ASSIGN_OR_RETURN(const bool done, batch->poll());
      if (done) {
        break;
      }
      asked = thread_seconds();  // waiting is no work
    }
    const double completed = thread_seconds();
    back += completed - asked;
    state.SetIterationTime(completed - asked + submitted - begin);
  }
  const double all = static_cast<double>(state.iterations()) * packets;
  state.counters["to_device_ns"] = to_device * 1e9 / all;
  state.counters["back_ns"] = back * 1e9 / all;
  return absl::OkStatus();
}

void register_ways(device::Device& device) {
  constexpr packet::FieldSet kFiveTuple =
      packet::fields(packet::kIpv4Src, packet::kIpv4Dst, packet::kIpv4Protocol, packet::kL4Sport, packet::kL4Dport);
  std::vector<Way> ways;
  for (const TransferMethod method : kTransferMethods) {
    if (kernel_path(method) != KernelPath::kNone) {  // else for whole frames only
      ways.push_back({concat("five_tuple/", to_string(method)), kFiveTuple, method});
    }
    ways.push_back({concat("frame/", to_string(method)), packet::kFrameFields, method});
  }
  for (Way const& way : ways) {
    benchmark::RegisterBenchmark(concat(device.info().name, "/", way.name).c_str(),
                                 [&device, way](benchmark::State& state) {
                                   if (const Status status = measure(state, device, way); !status.ok()) {
                                     state.SkipWithError(status.ToString().c_str());
                                   }
                                 })
        ->ArgNames({"packets", "unit"})
        ->Args({256, 256})
        ->ArgsProduct({{4096}, {16, 256}})
        ->Repetitions(kRepeats)
        ->ReportAggregatesOnly()
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace
}  // namespace catena

int main(int argc, char** argv) {
  using namespace catena;
  const Result<std::unique_ptr<device::Device>> device = open_device();
  if (!device.ok()) {
    std::cerr << device.status() << '\n';
    return 1;
  }
  benchmark::AddCustomContext("device", (*device)->info().name);
  DroppingDevice dropping(**device);
  register_ways(dropping);
  if (wanted_device() != nullptr) {
    register_ways(**device);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
