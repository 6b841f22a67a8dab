// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/testing/harness.hpp>

#include <catena/core/text.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <pcap/pcap.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>

#include "nf/record.hpp"
#include "nf/testing/decide.hpp"

namespace catena::nf::testing {

std::uint64_t RunResult::dropped(std::string_view reason) const {
  const auto found =
      std::find_if(drops.begin(), drops.end(), [reason](auto const& entry) { return entry.first == reason; });
  return found == drops.end() ? 0 : found->second;
}

Result<std::unique_ptr<Nf>> make_nf(Descriptor const& descriptor, std::string_view yaml, std::string const& folder) {
  CATENA_ASSIGN_OR_RETURN(Config config, Config::parse(yaml, (std::filesystem::path(folder) / "test.yaml").string()));
  return descriptor.create(config);
}

std::string with_room(std::string_view yaml, std::string_view key) {
  return yaml.find(key) == std::string_view::npos ? concat(yaml, "\n", key, ": 20000\n") : std::string(yaml);
}

Result<RunResult> run(Descriptor const& descriptor, std::unique_ptr<Nf> nf, std::vector<Frame> const& frames,
                      device::Device* device, RunOptions const& options) {
  for (Frame const& frame : frames) {
    if (frame.size() > packet::kMaxFrameBytes) {
      return absl::InvalidArgumentError(concat("a frame of ", frame.size(), " bytes does not fit a slot"));
    }
  }
  PacketStore store(frames, options.arrivals_ns);
  const std::vector<packet::Batch> units = cut(store, options);
  for (std::uint32_t i = 0; options.dropped_before && i < store.size(); ++i) {
    if (options.dropped_before(i)) {
      store.all()[i].set_verdict(packet::Verdict::kDrop);
    }
  }

  Instance instance(std::string(descriptor.type), descriptor, std::move(nf),
                    options.on_unsupported.value_or(descriptor.on_unsupported_default), options.records,
                    options.link_local);
  CATENA_RETURN_IF_ERROR(decide(instance, units, device, options));
  CATENA_RETURN_IF_ERROR(instance.nf().finish());

  RunResult result;
  const packet::Batch all = store.all();
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const packet::Packet packet = all[i];
    result.packets.push_back(
        {Frame(packet.frame(), packet.frame() + packet.length()), packet.verdict(), packet.port()});
  }
  // prepare() writes its lines before those of complete(); the data path sorts them too
  std::stable_sort(instance.outcome().lines().begin(), instance.outcome().lines().end(),
                   [](RecordLine const& a, RecordLine const& b) { return a.packet < b.packet; });
  for (RecordLine const& line : instance.outcome().lines()) {
    result.records.push_back(format_record(instance, line));
  }
  for (auto const& [name, count] : instance.drops()) {
    result.drops.emplace_back(name, count);
  }
  Counters const& counters = instance.counters();
  result.counters = {counters.in,
                     counters.processed,
                     counters.unsupported,
                     counters.link_local,
                     counters.kernel_faults,
                     counters.device_packets,
                     counters.transfers.bytes_to_device};
  result.alerts = instance.outcome().alerts();
  result.statistics = instance.nf().statistics();
  return result;
}

CpuNf::CpuNf(Descriptor const& descriptor, std::unique_ptr<Nf> nf, bool records)
    : instance_(std::make_unique<Instance>(std::string(descriptor.type), descriptor, std::move(nf),
                                           descriptor.on_unsupported_default, records)) {}
CpuNf::~CpuNf() = default;
void CpuNf::process(packet::Batch const& unit) { instance_->process(unit); }
std::uint64_t CpuNf::drops() const {
  const auto drops = instance_->outcome().drops();
  return std::accumulate(drops.begin(), drops.end(), std::uint64_t{0});
}
std::uint64_t CpuNf::dropped(std::string_view reason) const {
  for (auto const& [name, count] : instance_->drops()) {
    if (name == reason) {
      return count;
    }
  }
  return 0;
}
std::uint64_t CpuNf::alerts() const { return instance_->outcome().alerts(); }
Nf& CpuNf::nf() { return instance_->nf(); }

std::string name_of(device::Device const* device) { return device == nullptr ? "CPU" : device->info().name; }

std::vector<device::Device*> const& devices() {
  static const auto kOpened = [] {
    std::vector<std::unique_ptr<device::Device>> opened;
    for (device::Backend const& backend : device::backends()) {
      if (auto device = device::open(device::DevicePreference::of(backend.name)); device.ok()) {
        opened.push_back(std::move(device).value());
      } else {
        spdlog::warn("tests run without one kind of device: {}", device.status().ToString());
      }
    }
    std::ranges::reverse(opened);  // the last backend first: OpenCL, which most machines have
    return opened;
  }();
  static const auto kPointers = [] {
    std::vector<device::Device*> pointers;
    for (auto const& device : kOpened) {
      pointers.push_back(device.get());
    }
    return pointers;
  }();
  return kPointers;
}

Result<std::vector<Frame>> read_capture(std::string const& path, std::uint32_t limit) {
  char error[PCAP_ERRBUF_SIZE];
  pcap_t* capture = pcap_open_offline(path.c_str(), error);
  if (capture == nullptr) {
    return absl::NotFoundError(error);
  }
  std::vector<Frame> frames;
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  while (pcap_next_ex(capture, &header, &bytes) == 1) {
    if (header->caplen <= limit) {
      frames.emplace_back(bytes, bytes + header->caplen);
    }
  }
  pcap_close(capture);
  return frames;
}

}  // namespace catena::nf::testing
