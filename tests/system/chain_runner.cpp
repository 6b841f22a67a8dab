// SPDX-License-Identifier: Apache-2.0
#include "system/chain_runner.hpp"

#include "chain/instances.hpp"
#include "gpu/device/testing/remote_device.hpp"
#include "nf/named_files.hpp"

#include <catena/core/testing/test_data.hpp>
#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <fmt/format.h>
#include <pcap/pcap.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <tuple>

namespace catena::testing {
namespace {

namespace fs = std::filesystem;

class ScratchFolder {
 public:
  ScratchFolder() : path_(fs::temp_directory_path() / concat("catena-system-test-", getpid())) {
    fs::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  ScratchFolder(ScratchFolder const&) = delete;
  ScratchFolder& operator=(ScratchFolder const&) = delete;
  fs::path const& path() const { return path_; }

 private:
  fs::path path_;
};

std::string flows_file(std::string const& output) { return output + ".flows"; }

/// Runs a chain from a generator or capture into `output`; the tests cannot go on if that fails.
void make_capture(std::string const& rx, std::string const& nfs, fs::path const& output) {
  const std::string text = concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: make}\nspec:\n  rx: ", rx,
                                  "\n  tx: {pcap: ", output.string(), "}\n  device: none\n  nfs: ", nfs, "\n");
  Result<chain::ChainConfig> config = chain::parse_chain(text, (scratch_folder() / "make.yaml").string());
  Status status = config.status();
  if (status.ok()) {
    auto chain = runtime::Session::create(*std::move(config), {}, nf::builtin_nfs());
    status = chain.ok() ? (*chain)->run() : chain.status();
  }
  if (!status.ok()) {
    throw std::runtime_error(status.ToString());
  }
}

std::string mixed_capture() {
  const std::string shared = shared_data();
  return shared.empty() ? (fs::path(CATENA_SOURCE_DIR) / "examples" / "branch-office.pcap").string()
                        : shared + "/traces/mixed.pcap";
}

/// Destination unreachable, host unreachable (RFC 792), from `sender`: quotes `datagram`, whose source it goes to, with
/// `quoted` bytes after its IPv4 header, or all there are.
packet::testing::Frame make_unreachable(std::uint32_t sender, packet::testing::Frame const& datagram,
                                        std::size_t quoted) {
  return packet::testing::make_icmp(3, 1, sender, packet::testing::source_of(datagram), 0,
                                    packet::testing::quote_of(datagram, quoted));
}

}  // namespace

fs::path const& scratch_folder() {
  static const ScratchFolder kFolder;
  return kFolder.path();
}

std::string data_file(std::string const& name) {
  return (fs::path(CATENA_SOURCE_DIR) / "tests" / "data" / name).string();
}

std::string read_file(fs::path const& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string first_difference(std::string const& actual, std::string const& expected) {
  std::istringstream left(actual);
  std::istringstream right(expected);
  std::string left_line;
  std::string right_line;
  for (std::size_t line = 1;; ++line) {
    const bool more_left = static_cast<bool>(std::getline(left, left_line));
    const bool more_right = static_cast<bool>(std::getline(right, right_line));
    if (!more_left && !more_right) {
      return {};
    }
    if (more_left != more_right || left_line != right_line) {
      return concat("line ", line, ": ", more_left ? left_line : "(end)", " instead of ",
                    more_right ? right_line : "(end)");
    }
  }
}

std::string with_keys(std::string associations, unsigned number) {
  constexpr std::string_view kSalt = "salt: \"";
  for (std::size_t at = associations.find(kSalt); number != 0 && at != std::string::npos;
       at = associations.find(kSalt, at + 1)) {
    associations.replace(at + kSalt.size(), 2, fmt::format("{:02x}", number));
  }
  return associations;
}

std::string sa_file(std::string const& name, unsigned number) {
  const std::string original = data_file(concat("chain/", name));
  if (number == 0) {
    return original;
  }
  const fs::path path = scratch_folder() / concat(number, "-", name);
  std::ofstream(path) << with_keys(read_file(original), number);
  return path.string();
}

std::string chain_text(ChainRun const& run, std::string const& output) {
  std::string text =
      concat("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: test}\nspec:\n  rx: {pcap: ", run.capture,
             "}\n  tx: {pcap: ", output, "}\n  device: ", run.device, "\n", run.spec_extra, "  nfs:\n");
  for (std::size_t i = 0; i < run.nfs.size(); ++i) {
    text += concat("    - {name: ", run.nfs[i].name, ", type: ", run.nfs[i].type, ", on: ",
                   run.is_auto                     ? "auto"
                   : (run.gpu_mask >> i & 1U) != 0 ? "gpu"
                                                   : "cpu",
                   !run.processes     ? ""
                   : run.is_one_group ? ", isolation: {group: all}"
                                      : ", isolation: process",
                   ", config: {", run.nfs[i].config, "}}\n");
  }
  if (const std::size_t at = text.find(kFlowsFile); at != std::string::npos) {
    text.replace(at, kFlowsFile.size(), flows_file(output));
  }
  return text;
}

Result<std::vector<chain::MeasuredNf>> costs_of_nfs(chain::ChainConfig const& config, nf::Registry const& registry) {
  std::vector<chain::MeasuredNf> costs;
  for (chain::NfConfig const& entry : config.nfs) {
    const nf::NamedFiles files;
    CATENA_RETURN_IF_ERROR(chain::make_instance(entry, registry, false, {}).status());
    chain::MeasuredNf& nf = costs.emplace_back();
    CATENA_ASSIGN_OR_RETURN(nf.nf, chain::key_of(entry, files.files()));
    nf.packet_bytes = packet::kMaxFrameBytes;
    const auto weight = static_cast<double>(costs.size());
    nf.cost = {.kernel = {5000, 20 * weight}, .transfer = {3000, weight}, .overhead_ns = 2000};
  }
  return costs;
}

Result<chain::CostProfile> costs_that_place(std::uint32_t gpu_mask, chain::ChainConfig const& config,
                                            nf::Registry const& registry) {
  constexpr double kMuch = 1e8;
  chain::CostProfile profile = chain::CostProfile::built_in();
  CATENA_ASSIGN_OR_RETURN(profile.nfs, costs_of_nfs(config, registry));
  for (std::size_t i = 0; i < profile.nfs.size(); ++i) {
    chain::MeasuredNf& nf = profile.nfs[i];
    const bool is_on_gpu = (gpu_mask >> i & 1U) != 0;
    profile.nfs_on_cpu.push_back({nf.nf, nf.packet_bytes, nf.measured, is_on_gpu ? kMuch : 1, 0});
    nf.cost.overhead_ns = is_on_gpu ? 0 : kMuch;
  }
  return profile;
}

Result<ChainOutput> run_chain(ChainRun const& run) {
  static std::atomic<unsigned> number{0};
  const fs::path stem = scratch_folder() / concat("run", number++);
  const std::string capture = stem.string() + ".pcap";
  const std::string records = stem.string() + ".jsonl";
  CATENA_ASSIGN_OR_RETURN(chain::ChainConfig config,
                          chain::parse_chain(chain_text(run, capture), data_file("chain/test.yaml")));
  runtime::RunOptions options;
  if (run.records) {
    options.record_path = records;
  }
  options.workers = run.workers;
  if (run.device_server) {
    options.open_device = [](device::DevicePreference const& preference, std::string*) {
      return device::testing::open_remote(preference.backend);
    };
  }
  if (run.processes) {
    options.processes.program = nf_program();
    options.processes.connect_device = [](std::string const& nf, std::string const& preference, std::string* why) {
      return device::testing::connect_remote(preference, concat("test/", nf), why);
    };
  }
  options.sync = run.sync;
  options.sharing = run.sharing;
  if (run.is_auto) {
    CATENA_ASSIGN_OR_RETURN(options.sync.profile, costs_that_place(run.gpu_mask, config, *run.registry));
  }
  if (run.sharing && run.sync.profile.nfs.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.sync.profile.nfs, costs_of_nfs(config, *run.registry));
  }
  ChainOutput output;
  {
    CATENA_ASSIGN_OR_RETURN(const auto chain, runtime::Session::create(std::move(config), options, *run.registry));
    CATENA_RETURN_IF_ERROR(chain->run());
    output.report = chain->report();
    output.plan = chain->plan();
  }
  output.capture = read_file(capture);
  output.records = run.records ? read_file(records) : std::string();
  output.flows = read_file(flows_file(capture));
  std::error_code error;
  fs::remove(capture, error);
  fs::remove(records, error);
  fs::remove(flows_file(capture), error);
  return output;
}

std::string nf_program() { return CATENA_NF_PROGRAM; }

chain::CostProfile costs_for(TransferMethod method) {
  chain::CostProfile profile = chain::CostProfile::built_in();
  plan::CostModel& costs = profile.costs;
  costs.available = plan::method_bit(method);
  if (method != TransferMethod::kStaged) {
    // staging is always there: make it dear
    costs.host_copy_ns_per_byte *= 1000;
    costs.host_touch_ns *= 1000;
  }
  return profile;
}

Status write_capture(std::string const& path, std::vector<packet::testing::Frame> const& frames,
                     std::vector<std::uint64_t> const& stamps_ns) {
  constexpr int kSnapBytes = 65535;
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> dead(
      pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kSnapBytes, PCAP_TSTAMP_PRECISION_NANO), pcap_close);
  const std::unique_ptr<pcap_dumper_t, decltype(&pcap_dump_close)> dump(pcap_dump_open(dead.get(), path.c_str()),
                                                                        pcap_dump_close);
  if (!dump) {
    return absl::NotFoundError(pcap_geterr(dead.get()));
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::uint64_t stamp_ns = stamps_ns.empty() ? 0 : stamps_ns[i];
    pcap_pkthdr header{};
    header.ts.tv_sec = static_cast<time_t>(stamp_ns / kSecond);
    header.ts.tv_usec = static_cast<suseconds_t>(stamp_ns % kSecond);  // of nanoseconds, in this precision
    header.caplen = static_cast<bpf_u_int32>(frames[i].size());
    header.len = header.caplen;
    pcap_dump(reinterpret_cast<u_char*>(dump.get()), &header, frames[i].data());
  }
  return absl::OkStatus();
}

std::vector<Traffic> const& clear_traffic() {
  static const std::vector<Traffic> kTraffic = [] {
    std::vector<Traffic> traffic{{"mixed", mixed_capture()}};
    // frame sizes without the 4-byte FCS
    for (auto const& [name, packet] :
         {std::pair("imix", "imix"), std::pair("64", "60"), std::pair("512", "508"), std::pair("1518", "1514")}) {
      const fs::path path = scratch_folder() / concat(name, ".pcap");
      make_capture(concat("{generator: {packet: ", packet, ", flows: 100, seed: 5, count: 3000}}"), "[]", path);
      traffic.push_back({name, path.string()});
    }
    return traffic;
  }();
  return kTraffic;
}

std::vector<Traffic> const& esp_traffic() {
  static const std::vector<Traffic> kTraffic = [] {
    std::vector<Traffic> traffic;
    for (Traffic const& clear : clear_traffic()) {
      const fs::path path = scratch_folder() / concat(clear.name, "-esp.pcap");
      make_capture(concat("{pcap: ", clear.capture, "}"),
                   concat("[{name: vpn, type: ipsec, config: {direction: encrypt, mtu: 2034, sa: ",
                          data_file("chain/sa.yaml"), "}}]"),
                   path);
      traffic.push_back({clear.name, path.string()});
    }
    return traffic;
  }();
  return kTraffic;
}

CombinedTraffic const& combined_traffic() {
  static const CombinedTraffic kTraffic = [] {
    constexpr std::uint32_t kHosts = 40;
    constexpr std::size_t kMixedPackets = 3000;
    constexpr std::uint32_t kExternal = 0xCB007101;  // 203.0.113.1
    constexpr std::uint32_t kRouter = 0xC0000221;    // 192.0.2.33
    std::vector<packet::testing::Frame> frames;
    std::vector<packet::testing::Frame> errors;
    for (std::uint32_t i = 0; i < kHosts; ++i) {
      const std::uint32_t host = 0x64400001 + i;    // 100.64.0.1
      const std::uint32_t server = 0xC6336401 + i;  // 198.51.100.1
      const auto port = static_cast<std::uint16_t>(20000 + i);
      const std::uint8_t protocol = i % 2 == 0 ? packet::kProtocolUdp : packet::kProtocolTcp;
      const std::string text(20 + 13 * i, static_cast<char>('a' + i % 26));
      frames.push_back(packet::testing::make_frame(protocol, host, server, port, 9000, text));
      const std::size_t quoted = i % 4 < 2 ? 8 : 60 + 10 * i;
      errors.push_back(make_unreachable(
          kRouter, packet::testing::make_frame(protocol, kExternal, server, port, 9000, text), quoted));
      errors.push_back(
          make_unreachable(host, packet::testing::make_frame(protocol, server, host, 9000, port, text), quoted));
    }
    const Result<std::vector<packet::testing::Frame>> mixed = nf::testing::read_capture(mixed_capture());
    if (!mixed.ok()) {
      throw std::runtime_error(mixed.status().ToString());
    }
    const std::size_t step = std::max<std::size_t>(1, mixed->size() / kMixedPackets);
    const std::size_t between = mixed->size() / step / errors.size();
    std::size_t taken = 0;
    auto next = errors.begin();
    for (std::size_t i = 0; i < mixed->size(); i += step) {
      frames.push_back((*mixed)[i]);
      if (++taken % between == 0 && next != errors.end()) {
        frames.push_back(*next++);
      }
    }
    frames.insert(frames.end(), next, errors.end());

    CombinedTraffic traffic{(scratch_folder() / "combined.pcap").string(),
                            (scratch_folder() / "combined-esp.pcap").string(), errors.size()};
    if (const Status status = write_capture(traffic.clear, frames); !status.ok()) {
      throw std::runtime_error(status.ToString());
    }
    make_capture(concat("{pcap: ", traffic.clear, "}"),
                 concat("[{name: vpn, type: ipsec, config: {direction: encrypt, mtu: 2034, sa: ",
                        data_file("chain/sa-all.yaml"), "}}]"),
                 traffic.esp);
    return traffic;
  }();
  return kTraffic;
}

std::string lb_config_for(std::string const& capture) {
  constexpr std::size_t kServices = 4;
  constexpr std::array<std::uint8_t, 2> kProtocols{packet::kProtocolTcp, packet::kProtocolUdp};
  using Endpoint = std::tuple<std::uint32_t, std::uint16_t, std::uint8_t>;
  std::map<Endpoint, std::size_t> packets;
  const Result<std::vector<packet::testing::Frame>> frames = nf::testing::read_capture(capture);
  for (packet::testing::Frame const& frame : frames.ok() ? *frames : std::vector<packet::testing::Frame>()) {
    const packet::Layers layers = packet::parse(frame.data(), static_cast<std::uint32_t>(frame.size()));
    if ((layers.flags & packet::kPorts) != 0) {
      ++packets[{packet::load_be32(&frame[layers.l3 + 16U]), packet::load_be16(&frame[layers.l4 + 2U]),
                 kProtocols[(layers.flags & packet::kTcp) != 0 ? 0 : 1]}];
    }
  }
  std::vector<std::pair<std::size_t, Endpoint>> most;
  for (auto const& [endpoint, count] : packets) {
    most.emplace_back(count, endpoint);
  }
  std::sort(most.rbegin(), most.rend());
  most.resize(std::min(most.size(), kServices));
  std::string text = "services: [";
  for (auto const& [count, endpoint] : most) {
    auto const& [address, port, protocol] = endpoint;
    text +=
        fmt::format("{{address: {}.{}.{}.{}, port: {}, protocol: {}, backends: [", address >> 24, address >> 16 & 0xFFU,
                    address >> 8 & 0xFFU, address & 0xFFU, port, protocol == packet::kProtocolTcp ? "tcp" : "udp");
    text += "{name: a, address: 10.200.0.1, port: 8080}, {name: b, address: 10.200.0.2, port: 8080, weight: 3}]}, ";
  }
  return text + "]";
}

std::vector<std::string> const& device_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (device::Probe const& probe : device::probe()) {
      if (!probe.devices.empty()) {
        names.emplace_back(probe.backend);
      } else {
        spdlog::warn("system tests run without {}: {}", probe.backend, std::string(probe.status.message()));
      }
    }
    return names;
  }();
  return kNames;
}

}  // namespace catena::testing
