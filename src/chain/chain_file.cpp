// SPDX-License-Identifier: Apache-2.0
#include "chain/chain_file.hpp"

#include "dataplane/io/interface.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/batch.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>
#include <system_error>

namespace catena::chain {
namespace {

constexpr std::int64_t kMaxNfs = 64;
constexpr std::size_t kMaxNameLength = 64;
constexpr std::uint32_t kMaxLaunchPackets = 65'536;

Status check_name(nf::Config& config, std::string const& name) {
  const bool fine = name.size() <= kMaxNameLength && std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                    });
  return fine ? absl::OkStatus()
              : config.error("name", concat("'name' is '", name,
                                            "'; allowed: letters, digits, '-', '_' and '.', at most ", kMaxNameLength));
}

/// The keys that a generator and a replay have in common, and then no other. `most_flows`: allowed.
template <typename Traffic>
Status read_traffic(nf::Config& config, std::int64_t most_flows, Traffic& traffic) {
  CATENA_ASSIGN_OR_RETURN(const std::int64_t flows, config.integer_or("flows", traffic.flows, 1, most_flows));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t rate, config.integer_or("rate", 0, 0, 1'000'000'000));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t seed, config.integer_or("seed", 1, 0, INT64_MAX));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t count, config.integer_or("count", 0, 0, INT64_MAX));
  CATENA_RETURN_IF_ERROR(config.finish());
  traffic.flows = static_cast<std::uint32_t>(flows);
  traffic.packets_per_s = static_cast<std::uint64_t>(rate);
  traffic.seed = static_cast<std::uint64_t>(seed);
  traffic.count = static_cast<std::uint64_t>(count);
  return absl::OkStatus();
}

Result<dataplane::GeneratorConfig> read_generator(nf::Config& config) {
  dataplane::GeneratorConfig generator;
  CATENA_ASSIGN_OR_RETURN(const std::string size, config.string_or("packet", "64"));
  if (size == "imix") {
    generator.packet_bytes = 0;
  } else {
    CATENA_ASSIGN_OR_RETURN(const std::int64_t bytes, config.integer_or("packet", 64, 60, packet::kMaxFrameBytes));
    generator.packet_bytes = static_cast<std::uint32_t>(bytes);
  }
  CATENA_RETURN_IF_ERROR(read_traffic(config, dataplane::kMaxGeneratedFlows, generator));
  return generator;
}

/// `packet:` of a replay is one size, or a list of them.
Result<std::vector<std::uint32_t>> read_sizes(nf::Config& config) {
  if (!config.has("packet")) {
    return dataplane::ReplayConfig().packet_bytes;
  }
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> texts, config.strings("packet"));
  if (texts.empty() || texts.size() > dataplane::kMaxReplaySizes) {
    return config.error("packet",
                        concat("'packet' lists ", texts.size(), " sizes; allowed: 1 to ", dataplane::kMaxReplaySizes));
  }
  std::vector<std::uint32_t> sizes;
  for (std::string const& text : texts) {
    std::uint32_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (error != std::errc() || end != text.data() + text.size() || bytes < dataplane::kMinGeneratedBytes ||
        bytes > packet::kMaxFrameBytes) {
      return config.error(
          "packet", concat("'packet' is '", text, "'; allowed: a whole number from ", dataplane::kMinGeneratedBytes,
                           " to ", packet::kMaxFrameBytes, ", or a list of such"));
    }
    sizes.push_back(bytes);
  }
  return sizes;
}

Result<dataplane::ReplayConfig> read_replay(nf::Config& config) {
  dataplane::ReplayConfig replay;
  CATENA_ASSIGN_OR_RETURN(replay.packet_bytes, read_sizes(config));
  const auto most = static_cast<std::int64_t>(dataplane::kMaxReplayTemplates / replay.packet_bytes.size());
  CATENA_RETURN_IF_ERROR(read_traffic(config, most, replay));
  return replay;
}

/// Names of interfaces have neither; a device string would end or go on there.
bool is_interface_name(std::string_view name) {
  constexpr std::size_t kMaxName = 15;
  return !name.empty() && name.size() <= kMaxName && name.find_first_of(" ,/") == std::string_view::npos;
}

/// `dpdk:` is one device, or a list of them; `dev:` the same of interfaces of the kernel.
Result<std::vector<std::string>> read_devices(nf::Config& config) {
  constexpr std::size_t kMaxDevices = 32;
  const std::string key = config.has("dev") ? "dev" : "dpdk";
  CATENA_ASSIGN_OR_RETURN(std::vector<std::string> devices, config.strings(key));
  if (devices.empty() || devices.size() > kMaxDevices) {
    return config.error(key, concat("'", key, "' lists ", devices.size(), " devices; allowed: 1 to ", kMaxDevices));
  }
  std::set<std::string> seen;
  for (std::string& device : devices) {
    if (!seen.insert(device).second) {
      return config.error(key, concat("'", key, "' lists '", device, "' twice"));
    }
    if (key == "dev" && !is_interface_name(device)) {
      return config.error(key,
                          concat("'dev' is '", device, "'; write the name of an interface, as `ip link` lists them"));
    }
    device = key == "dev" ? dataplane::interface_device(device) : device;
  }
  return devices;
}

Result<PortConfig> read_rx(nf::Config spec) {
  CATENA_ASSIGN_OR_RETURN(nf::Config config, spec.section("rx"));
  PortConfig port;
  int kinds = 0;
  for (const char* kind : {"pcap", "dpdk", "dev", "generator", "replay"}) {
    kinds += config.has(kind) ? 1 : 0;
  }
  if (kinds != 1) {
    return spec.error(
        "rx", "'rx' takes exactly one of pcap: FILE, dpdk: DEVICE, dev: INTERFACE, generator: {...}, replay: {...}");
  }
  if (config.has("pcap")) {
    port.kind = PortKind::kPcap;
    CATENA_ASSIGN_OR_RETURN(port.target, config.path("pcap"));
    CATENA_ASSIGN_OR_RETURN(const std::int64_t loops, config.integer_or("loops", 1, 1, INT64_MAX));
    port.loops = static_cast<std::uint64_t>(loops);
  } else if (config.has("dpdk") || config.has("dev")) {
    port.kind = PortKind::kDpdk;
    CATENA_ASSIGN_OR_RETURN(port.devices, read_devices(config));
  } else if (config.has("replay")) {
    port.kind = PortKind::kReplay;
    CATENA_ASSIGN_OR_RETURN(nf::Config replay, config.section("replay"));
    CATENA_ASSIGN_OR_RETURN(port.replay, read_replay(replay));
  } else {
    port.kind = PortKind::kGenerator;
    CATENA_ASSIGN_OR_RETURN(nf::Config generator, config.section("generator"));
    CATENA_ASSIGN_OR_RETURN(port.generator, read_generator(generator));
  }
  CATENA_RETURN_IF_ERROR(config.finish());
  return port;
}

Result<PortConfig> read_tx(nf::Config spec) {
  PortConfig port;
  if (spec.is_null("tx")) {
    return port;
  }
  CATENA_ASSIGN_OR_RETURN(nf::Config config, spec.section("tx"));
  const int kinds = (config.has("pcap") ? 1 : 0) + (config.has("dpdk") ? 1 : 0) + (config.has("dev") ? 1 : 0);
  if (kinds != 1) {
    return spec.error("tx", "'tx' is null, or takes exactly one of pcap: FILE, dpdk: DEVICE, dev: INTERFACE");
  }
  if (config.has("pcap")) {
    port.kind = PortKind::kPcap;
    CATENA_ASSIGN_OR_RETURN(port.target, config.output_path("pcap"));
  } else {
    port.kind = PortKind::kDpdk;
    CATENA_ASSIGN_OR_RETURN(port.devices, read_devices(config));
  }
  CATENA_RETURN_IF_ERROR(config.finish());
  return port;
}

/// What becomes of packets that NFs do not inspect, as `spec` or an NF says it; where neither says, nothing and pass.
struct Unseen {
  std::optional<nf::OnUnsupported> unsupported;
  nf::LinkLocal link_local = nf::LinkLocal::kPass;
};

/// Reads `on_unsupported` and `link_local`, which stand at `spec` and at each NF.
Result<Unseen> read_unseen(nf::Config& config, Unseen unseen) {
  const std::vector<std::string> words{"pass", "drop"};
  if (config.has("on_unsupported")) {
    CATENA_ASSIGN_OR_RETURN(const std::string word, config.one_of("on_unsupported", words));
    unseen.unsupported = word == "pass" ? nf::OnUnsupported::kPass : nf::OnUnsupported::kDrop;
  }
  if (config.has("link_local")) {
    CATENA_ASSIGN_OR_RETURN(const std::string word, config.one_of("link_local", words));
    unseen.link_local = word == "pass" ? nf::LinkLocal::kPass : nf::LinkLocal::kDrop;
  }
  return unseen;
}

Result<NfConfig> read_nf(nf::Config entry, Unseen const& of_chain) {
  CATENA_ASSIGN_OR_RETURN(const std::string name, entry.string("name"));
  CATENA_RETURN_IF_ERROR(check_name(entry, name));
  CATENA_ASSIGN_OR_RETURN(const std::string type, entry.string("type"));
  CATENA_ASSIGN_OR_RETURN(const std::string on, entry.one_of("on", {"cpu", "gpu"}, "cpu"));
  CATENA_ASSIGN_OR_RETURN(const Unseen unseen, read_unseen(entry, of_chain));
  CATENA_ASSIGN_OR_RETURN(nf::Config config, entry.section_or_empty("config"));
  CATENA_RETURN_IF_ERROR(entry.finish());
  return NfConfig{name,
                  type,
                  on == "gpu" ? Placement::kGpu : Placement::kCpu,
                  unseen.unsupported,
                  unseen.link_local,
                  config,
                  entry.position("type")};
}

Result<Tuning> read_tuning(nf::Config config) {
  Tuning tuning;
  struct Number {
    const char* key;
    std::uint32_t* value;
    std::int64_t minimum;
    std::int64_t maximum;
  };
  for (Number const& number : {Number{"pool_slots", &tuning.pool_slots, 2048, 1 << 20},
                               Number{"unit_packets", &tuning.unit_packets, 4, dataplane::kMaxUnitPackets},
                               Number{"units_per_launch", &tuning.units_per_launch, 1, 1024},
                               Number{"launches_in_flight", &tuning.launches_in_flight, 1, 16},
                               Number{"device_limit_ms", &tuning.device_limit_ms, 10, 600'000},
                               Number{"max_batch_delay_us", &tuning.max_batch_delay_us, 0, 1'000'000}}) {
    CATENA_ASSIGN_OR_RETURN(const std::int64_t value,
                            config.integer_or(number.key, *number.value, number.minimum, number.maximum));
    *number.value = static_cast<std::uint32_t>(value);
  }
  if ((tuning.pool_slots & (tuning.pool_slots - 1)) != 0) {
    return config.error(
        "pool_slots", concat("'pool_slots' is ", tuning.pool_slots, "; allowed: a power of two from 2048 to 1048576"));
  }
  if (const std::uint32_t packets = tuning.units_per_launch * tuning.unit_packets; packets > kMaxLaunchPackets) {
    return config.error("units_per_launch",
                        concat("'units_per_launch' is ", tuning.units_per_launch, ", with ", tuning.unit_packets,
                               " packets a unit ", packets, " packets; a launch takes at most ", kMaxLaunchPackets));
  }
  CATENA_RETURN_IF_ERROR(config.finish());
  return tuning;
}

Result<ChainConfig> read_chain(nf::Config root) {
  ChainConfig chain;
  chain.file = root.file();
  CATENA_RETURN_IF_ERROR(root.one_of("apiVersion", {"catena/v1"}).status());
  CATENA_RETURN_IF_ERROR(root.one_of("kind", {"Chain"}).status());
  CATENA_ASSIGN_OR_RETURN(nf::Config metadata, root.section("metadata"));
  CATENA_ASSIGN_OR_RETURN(chain.name, metadata.string("name"));
  CATENA_RETURN_IF_ERROR(check_name(metadata, chain.name));
  CATENA_RETURN_IF_ERROR(metadata.finish());
  CATENA_ASSIGN_OR_RETURN(nf::Config spec, root.section("spec"));
  CATENA_RETURN_IF_ERROR(root.finish());

  CATENA_ASSIGN_OR_RETURN(chain.rx, read_rx(spec));
  CATENA_ASSIGN_OR_RETURN(chain.tx, read_tx(spec));
  CATENA_ASSIGN_OR_RETURN(const std::string device, spec.one_of("device", {"auto", "cuda", "opencl", "none"}, "auto"));
  CATENA_ASSIGN_OR_RETURN(chain.device, device::parse_choice(device));
  CATENA_ASSIGN_OR_RETURN(const Unseen unseen, read_unseen(spec, {}));
  CATENA_ASSIGN_OR_RETURN(nf::Config tuning, spec.section_or_empty("tuning"));
  CATENA_ASSIGN_OR_RETURN(chain.tuning, read_tuning(tuning));
  CATENA_ASSIGN_OR_RETURN(const std::vector<nf::Config> entries, spec.sections("nfs"));
  CATENA_RETURN_IF_ERROR(spec.finish());
  if (entries.size() > kMaxNfs) {
    return spec.error("nfs", concat("'nfs' has ", entries.size(), " entries; allowed: at most ", kMaxNfs));
  }
  std::set<std::string> names;
  for (nf::Config const& entry : entries) {
    CATENA_ASSIGN_OR_RETURN(NfConfig config, read_nf(entry, unseen));
    if (!names.insert(config.name).second) {
      return entry.error("name", concat("two NFs are named '", config.name, "'; names must differ"));
    }
    chain.nfs.push_back(std::move(config));
  }
  return chain;
}

/// What "pcap:FILE" and "dpdk:DEVICE" mean for rx and tx alike; nothing for any other text.
std::optional<PortConfig> file_or_device(std::string_view text) {
  PortConfig port;
  if (text.starts_with("pcap:")) {
    port.kind = PortKind::kPcap;
    port.target = text.substr(5);
  } else if (text.starts_with("dpdk:")) {
    port.kind = PortKind::kDpdk;
    port.devices = {std::string(text.substr(5))};
  } else if (text.starts_with("dev:") && is_interface_name(text.substr(4))) {
    port.kind = PortKind::kDpdk;
    port.devices = {dataplane::interface_device(text.substr(4))};
  } else {
    return std::nullopt;
  }
  return port;
}

}  // namespace

Result<ChainConfig> load_chain(std::string const& path) {
  CATENA_ASSIGN_OR_RETURN(nf::Config root, nf::Config::load(path));
  return read_chain(root);
}

Result<ChainConfig> parse_chain(std::string_view text, std::string const& file) {
  CATENA_ASSIGN_OR_RETURN(nf::Config root, nf::Config::parse(text, file));
  return read_chain(root);
}

Result<PortConfig> parse_rx_option(std::string_view text) {
  if (std::optional<PortConfig> port = file_or_device(text)) {
    return *std::move(port);
  }
  if (text != "generator") {
    return absl::InvalidArgumentError(
        concat("--rx '", text, "'; allowed: pcap:FILE, dpdk:DEVICE, dev:INTERFACE, generator"));
  }
  PortConfig port;
  port.kind = PortKind::kGenerator;
  return port;
}

Result<PortConfig> parse_tx_option(std::string_view text) {
  if (std::optional<PortConfig> port = file_or_device(text)) {
    return *std::move(port);
  }
  if (text != "null") {
    return absl::InvalidArgumentError(
        concat("--tx '", text, "'; allowed: pcap:FILE, dpdk:DEVICE, dev:INTERFACE, null"));
  }
  return PortConfig();
}

}  // namespace catena::chain
