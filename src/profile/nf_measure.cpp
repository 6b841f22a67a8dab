// SPDX-License-Identifier: Apache-2.0
#include "profile/nf_measure.hpp"

#include "plan/cost_fit.hpp"
#include "profile/chain_meter.hpp"
#include "profile/median.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <utility>

namespace catena::profile {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kWarmUps = 2;
constexpr const char* kProcessesNone = "it processes no packet of this traffic";
constexpr std::uint32_t kLeastPoints = 3;  // of a line that means something
constexpr std::array<std::uint32_t, 4> kPartUnits{8, 16, 32, 64};

/// Parts of the device, the whole last, as null.
struct Parts {
  std::vector<std::unique_ptr<device::Partition>> all;
  std::string why_none;
};

Result<Parts> parts_of(device::Device& device) {
  Parts parts;
  for (const std::uint32_t units : kPartUnits) {
    if (units >= device.info().compute_units) {
      break;
    }
    auto divided = device.divide(std::array{units});
    if (absl::IsUnimplemented(divided.status())) {
      parts.why_none = std::string(divided.status().message());
      return parts;
    }
    CATENA_RETURN_IF_ERROR(divided.status());
    parts.all.push_back(std::move(divided->front()));
  }
  if (parts.all.empty()) {
    parts.why_none = concat("it has ", device.info().compute_units, " compute units, and parts are of ",
                            kPartUnits.front(), " and more");
  }
  return parts;
}

/// The measurement of a chain under way.
class NfBench {
 public:
  NfBench(device::Device& device, chain::ChainConfig const& config, nf::Registry const& registry,
          chain::SyncOptions const& sync, NfMeasureOptions const& options, MeasureObserver const& observer)
      : device_(&device),
        config_(&config),
        registry_(&registry),
        sync_(&sync),
        options_(&options),
        observer_(&observer) {}

  Result<NfMeasurements> run() {
    CATENA_ASSIGN_OR_RETURN(parts_, parts_of(*device_));
    results_.why_no_parts = parts_.why_none;
    total_ = static_cast<std::uint32_t>(options_->packet_bytes.size()) * steps();
    const Clock::time_point start = Clock::now();
    for (std::size_t i = 0; i < options_->packet_bytes.size(); ++i) {
      done_ = static_cast<std::uint32_t>(i) * steps();
      until_ = start + options_->limit * (i + 1) / options_->packet_bytes.size();
      CATENA_RETURN_IF_ERROR(measure(options_->packet_bytes[i]));
    }
    done_ = total_;
    say("done");
    return std::move(results_);
  }

 private:
  /// Of a packet size: numbers of packets, and building.
  std::uint32_t steps() const {
    return 2 + static_cast<std::uint32_t>(std::bit_width(options_->max_packets / kLeastBatch)) - 1;
  }
  void say(std::string what) {
    if (*observer_) {
      (*observer_)({std::move(what), done_, total_});
    }
  }
  Result<std::unique_ptr<ChainMeter>> make_meter(std::uint32_t bytes);
  Status measure(std::uint32_t bytes);
  void measure_on_cpu(ChainMeter& meter, std::uint32_t bytes);
  Status measure_apart(OnDevice on_device, std::uint32_t bytes, std::span<NfMeasurement> nfs,
                       std::span<CpuMeasurement> on_cpu);
  Status measure_point(ChainMeter& meter, std::uint32_t packets, std::span<NfMeasurement> nfs);
  Status measure_parts(ChainMeter& meter, std::size_t nf, std::uint32_t packets, NfTimes& times);

  device::Device* device_;
  chain::ChainConfig const* config_;
  nf::Registry const* registry_;
  chain::SyncOptions const* sync_;
  NfMeasureOptions const* options_;
  MeasureObserver const* observer_;
  Parts parts_;
  Clock::time_point until_;
  NfMeasurements results_;
  std::uint32_t most_ = 0;  ///< packets of a launch, of this packet size
  std::uint32_t done_ = 0;
  std::uint32_t total_ = 0;
};

/// With half the packets where there is no memory for all.
Result<std::unique_ptr<ChainMeter>> NfBench::make_meter(std::uint32_t bytes) {
  for (most_ = options_->max_packets;; most_ /= 2) {
    auto meter = ChainMeter::create(*device_, *config_, *registry_, *sync_, bytes, most_);
    if (!absl::IsResourceExhausted(meter.status()) || most_ < 2 * kLeastBatch) {
      return meter;
    }
    results_.notes.push_back(concat(bytes, " bytes: launches of ", most_,
                                    " packets were not measured: ", std::string(meter.status().message())));
  }
}

Status NfBench::measure(std::uint32_t bytes) {
  say(concat("packets of ", bytes, " bytes: building"));
  CATENA_ASSIGN_OR_RETURN(const auto meter, make_meter(bytes));
  results_.traffic = meter->traffic();
  if (results_.on_cpu.empty()) {
    results_.notes.insert(results_.notes.end(), meter->notes().begin(), meter->notes().end());
  }
  measure_on_cpu(*meter, bytes);
  std::vector<NfMeasurement> nfs;
  for (const std::size_t nf : meter->measured()) {
    NfMeasurement& entry = nfs.emplace_back();
    entry.name = meter->name(nf);
    entry.key = meter->key(nf);
    entry.packet_bytes = bytes;
    entry.times.sms = device_->info().compute_units;
  }
  std::uint32_t points = 0;
  for (std::uint32_t packets = kLeastBatch; packets <= most_ && !nfs.empty(); packets *= 2) {
    if (points >= kLeastPoints && Clock::now() > until_) {
      results_.notes.push_back(
          concat(bytes, " bytes: launches of ", packets, " packets and more were not measured: the time was over"));
      break;
    }
    ++done_;
    say(concat("packets of ", bytes, " bytes, ", packets, " in a launch"));
    CATENA_RETURN_IF_ERROR(measure_point(*meter, packets, nfs));
    ++points;
  }
  const auto on_cpu = std::span(results_.on_cpu).last(meter->size());
  for (const OnDevice on_device : {OnDevice::kEven, OnDevice::kOdd}) {
    CATENA_RETURN_IF_ERROR(measure_apart(on_device, bytes, nfs, on_cpu));
  }
  CATENA_ASSIGN_OR_RETURN(const EndTimes ends, measure_ends(bytes));
  results_.ends.push_back({bytes, ends});
  for (NfMeasurement& entry : nfs) {
    if (entry.times.launches.empty()) {
      entry.why_not = kProcessesNone;
    }
    results_.nfs.push_back(std::move(entry));
  }
  return absl::OkStatus();
}

void NfBench::measure_on_cpu(ChainMeter& meter, std::uint32_t bytes) {
  say(concat("packets of ", bytes, " bytes on the CPU"));
  std::vector<std::vector<double>> all(meter.size());
  for (std::uint32_t repeat = 0; repeat < kWarmUps + kNfRepeats; ++repeat) {
    const std::vector<CpuSample> samples = meter.pass_on_cpu(std::min(most_, kCpuPassPackets));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (repeat >= kWarmUps && samples[i].packets > 0) {
        all[i].push_back(samples[i].ns / samples[i].packets);
      }
    }
  }
  constexpr double kWhole = 100;
  for (std::size_t i = 0; i < all.size(); ++i) {
    CpuMeasurement& entry = results_.on_cpu.emplace_back();
    entry.name = meter.name(i);
    entry.key = meter.key(i);
    entry.packet_bytes = bytes;
    if (all[i].empty()) {
      entry.why_not = kProcessesNone;
      continue;
    }
    const auto [least, most] = std::ranges::minmax(all[i]);
    entry.ns_per_packet = median(std::move(all[i]));
    entry.spread_percent = entry.ns_per_packet > 0 ? (most - least) / entry.ns_per_packet * kWhole : 0;
  }
}

/// What NFs take where those beside them are on the other side.
Status NfBench::measure_apart(OnDevice on_device, std::uint32_t bytes, std::span<NfMeasurement> nfs,
                              std::span<CpuMeasurement> on_cpu) {
  say(concat("packets of ", bytes, " bytes, by turns on the CPU and on the device"));
  const std::uint32_t most = std::min(most_, kCpuPassPackets);
  const auto made = ChainMeter::create(*device_, *config_, *registry_, *sync_, bytes, most, on_device);
  if (absl::IsResourceExhausted(made.status())) {
    results_.notes.push_back(concat(bytes, " bytes: NFs by turns on the CPU and on the device were not measured: ",
                                    std::string(made.status().message())));
    return absl::OkStatus();
  }
  CATENA_RETURN_IF_ERROR(made.status());
  ChainMeter* const meter = made->get();
  if (meter->measured().empty()) {
    return absl::OkStatus();
  }
  std::vector<std::vector<plan::Point>> host(meter->size());
  std::vector<std::vector<double>> after_gpu(meter->size());
  for (const std::uint32_t packets : {most / 4, most / 2, most}) {
    std::vector<std::vector<double>> cpu(meter->size());
    std::vector<std::uint32_t> decided(meter->size());
    for (std::uint32_t repeat = 0; repeat < kWarmUps + kNfRepeats; ++repeat) {
      CATENA_ASSIGN_OR_RETURN(const ApartSamples samples, meter->pass_apart(packets));
      if (repeat < kWarmUps) {
        continue;
      }
      for (LaunchSample const& sample : samples.launches) {
        cpu[sample.nf].push_back(sample.cpu_ns);
        decided[sample.nf] = sample.packets;
      }
      for (std::size_t i = 0; i < samples.after_gpu.size() && packets == most; ++i) {
        if (samples.after_gpu[i].packets > 0) {
          after_gpu[i].push_back(samples.after_gpu[i].ns / samples.after_gpu[i].packets);
        }
      }
    }
    for (std::size_t i = 0; i < cpu.size(); ++i) {
      if (decided[i] > 0) {
        host[i].push_back({static_cast<double>(decided[i]), median(std::move(cpu[i]))});
      }
    }
  }
  for (std::size_t i = 0; i < meter->size(); ++i) {
    on_cpu[i].after_gpu_ns = after_gpu[i].empty() ? on_cpu[i].after_gpu_ns : median(std::move(after_gpu[i]));
    const auto entry = std::ranges::find(nfs, meter->name(i), &NfMeasurement::name);
    if (entry != nfs.end() && host[i].size() >= 2) {
      entry->host_alone_ns = plan::fit_line(host[i]).slope;
    }
  }
  return absl::OkStatus();
}

Status NfBench::measure_point(ChainMeter& meter, std::uint32_t packets, std::span<NfMeasurement> nfs) {
  struct Samples {
    std::uint32_t packets = 0;
    std::vector<double> kernel;
    std::vector<double> transfer;
    std::vector<double> round_trip;
    std::vector<double> cpu;
  };
  std::vector<Samples> all(nfs.size());
  for (std::uint32_t repeat = 0; repeat < kWarmUps + kNfRepeats; ++repeat) {
    CATENA_ASSIGN_OR_RETURN(const std::vector<LaunchSample> launches, meter.pass(packets));
    for (std::size_t i = 0; i < launches.size() && repeat >= kWarmUps; ++i) {
      all[i].packets = launches[i].packets;
      all[i].kernel.push_back(launches[i].kernel_ns);
      all[i].transfer.push_back(launches[i].transfer_ns);
      all[i].round_trip.push_back(launches[i].round_trip_ns);
      all[i].cpu.push_back(launches[i].cpu_ns);
    }
  }
  for (std::size_t i = 0; i < nfs.size(); ++i) {
    if (all[i].packets == 0) {
      continue;
    }
    NfTimes& times = nfs[i].times;
    times.launches.push_back({all[i].packets, median(all[i].kernel), median(all[i].transfer), median(all[i].round_trip),
                              median(all[i].cpu)});
    CATENA_RETURN_IF_ERROR(measure_parts(meter, meter.measured()[i], all[i].packets, times));
  }
  return absl::OkStatus();
}

Status NfBench::measure_parts(ChainMeter& meter, std::size_t nf, std::uint32_t packets, NfTimes& times) {
  if (parts_.all.empty()) {
    return absl::OkStatus();
  }
  const auto add = [&](device::Partition* part, std::uint32_t units) -> Status {
    CATENA_ASSIGN_OR_RETURN(std::vector<double> ns, meter.time_kernel(nf, part, kWarmUps + kNfRepeats));
    ns.erase(ns.begin(), ns.begin() + kWarmUps);
    times.kernels.push_back({units, packets, median(std::move(ns))});
    return absl::OkStatus();
  };
  for (auto const& part : parts_.all) {
    CATENA_RETURN_IF_ERROR(add(part.get(), part->compute_units()));
  }
  return add(nullptr, times.sms);
}

}  // namespace

Result<NfMeasurements> measure_nfs(device::Device& device, chain::ChainConfig const& config,
                                   nf::Registry const& registry, chain::SyncOptions const& sync,
                                   NfMeasureOptions const& options, MeasureObserver const& observer) {
  return NfBench(device, config, registry, sync, options, observer).run();
}

void keep(NfMeasurements const& results, chain::CostProfile& profile) {
  const std::string now = chain::now_as_text();
  for (NfMeasurement const& nf : results.nfs) {
    if (nf.why_not.empty()) {
      const NfModel model = model_of(nf.times);
      chain::keep(profile.nfs, {nf.key, nf.packet_bytes, now, model.cost, std::max(0.0, model.kernel.fit.r_squared),
                                std::max(0.0, model.transfer.fit.r_squared), nf.host_alone_ns.value_or(0)});
    }
  }
  for (CpuMeasurement const& nf : results.on_cpu) {
    if (nf.why_not.empty()) {
      chain::keep(profile.nfs_on_cpu,
                  {nf.key, nf.packet_bytes, now, nf.ns_per_packet, nf.spread_percent, nf.after_gpu_ns});
    }
  }
  for (EndsMeasurement const& ends : results.ends) {
    chain::keep(profile.ends, {ends.packet_bytes, now, ends.times.rx_ns, ends.times.tx_ns});
  }
}

}  // namespace catena::profile
