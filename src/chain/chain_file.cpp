// SPDX-License-Identifier: Apache-2.0
#include "chain/chain_file.hpp"

#include "chain/diagnostics.hpp"
#include "chain/flow_keys.hpp"
#include "chain/graph_keys.hpp"
#include "chain/isolation_keys.hpp"
#include "chain/keys.hpp"
#include "chain/shared_ports.hpp"
#include "io/interface.hpp"
#include "io/output_file.hpp"

#include <catena/core/text.hpp>

#include <optional>
#include <set>

namespace catena::chain {
namespace {

/// The keys that a generator and a replay have in common.
template <typename Traffic>
Status read_traffic(FileSection& section, Traffic& traffic) {
  CATENA_ASSIGN_OR_RETURN(const std::int64_t flows, section.integer("flows"));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t rate, section.integer("rate"));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t seed, section.integer("seed"));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t count, section.integer("count"));
  traffic.flows = static_cast<std::uint32_t>(flows);
  traffic.packets_per_s = static_cast<std::uint64_t>(rate);
  traffic.seed = static_cast<std::uint64_t>(seed);
  traffic.count = static_cast<std::uint64_t>(count);
  return absl::OkStatus();
}

Result<io::GeneratorConfig> read_generator(FileSection section) {
  io::GeneratorConfig generator;
  generator.packet_bytes = 0;
  CATENA_ASSIGN_OR_RETURN(const std::string size, section.text("packet"));
  if (size != "imix") {
    CATENA_ASSIGN_OR_RETURN(const std::int64_t bytes, section.integer("packet"));
    generator.packet_bytes = static_cast<std::uint32_t>(bytes);
  }
  CATENA_RETURN_IF_ERROR(read_traffic(section, generator));
  return generator;
}

Result<io::ReplayConfig> read_replay(FileSection section) {
  io::ReplayConfig replay;
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::int64_t> sizes, section.integers("packet"));
  replay.packet_bytes.assign(sizes.begin(), sizes.end());
  CATENA_RETURN_IF_ERROR(read_traffic(section, replay));
  const auto most = static_cast<std::int64_t>(io::kMaxReplayTemplates / sizes.size());
  CATENA_RETURN_IF_ERROR(section.config().integer_or("flows", 1, 1, most).status());
  return replay;
}

/// Names of interfaces have neither; a device string would end or go on there.
bool is_interface_name(std::string_view name) {
  constexpr std::size_t kMaxName = 15;
  return !name.empty() && name.size() <= kMaxName && name.find_first_of(" ,/") == std::string_view::npos;
}

/// `dpdk:` is one device, or a list of them; `dev:` the same of interfaces of the kernel.
Status read_devices(FileSection& section, PortConfig& port) {
  port.kind = PortKind::kDpdk;
  if (section.has("dpdk")) {
    CATENA_ASSIGN_OR_RETURN(port.devices, section.texts("dpdk"));
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> interfaces, section.texts("dev"));
  for (std::string const& interface : interfaces) {
    if (!is_interface_name(interface)) {
      return section.config().error(
          "dev", concat("'dev' is '", interface, "'; write the name of an interface, as `ip link` lists them"));
    }
    port.devices.push_back(io::interface_device(interface));
  }
  return absl::OkStatus();
}

/// `pcap:` of rx, which must be there, or of tx.
Status read_capture_name(FileSection& section, bool is_rx, PortConfig& port) {
  nf::Config& config = section.config();
  port.kind = PortKind::kPcap;
  port.position = config.position("pcap");
  CATENA_ASSIGN_OR_RETURN(port.target, config.string("pcap"));
  if (port.target != io::kStandardStream) {
    CATENA_ASSIGN_OR_RETURN(port.target, is_rx ? config.path("pcap") : config.output_path("pcap"));
  }
  return absl::OkStatus();
}

Result<PortConfig> read_rx(FileSection& spec) {
  CATENA_ASSIGN_OR_RETURN(FileSection section, spec.section("rx"));
  PortConfig port;
  if (section.has("pcap")) {
    CATENA_RETURN_IF_ERROR(read_capture_name(section, true, port));
    CATENA_ASSIGN_OR_RETURN(const std::int64_t loops, section.integer("loops"));
    port.loops = static_cast<std::uint64_t>(loops);
    if (loops != 1 && io::is_stream(port.target)) {
      return section.config().error("loops", concat("'loops' is ", loops, ", but ", port.target,
                                                    " is no regular file and can be read only once"));
    }
  } else if (section.has("loops")) {
    return section.config().error("loops", "'loops' goes with 'pcap' only; write `count` for artificial traffic");
  } else if (section.has("dpdk") || section.has("dev")) {
    CATENA_RETURN_IF_ERROR(read_devices(section, port));
  } else if (section.has("replay")) {
    port.kind = PortKind::kReplay;
    CATENA_ASSIGN_OR_RETURN(FileSection replay, section.section("replay"));
    CATENA_ASSIGN_OR_RETURN(port.replay, read_replay(std::move(replay)));
  } else {
    port.kind = PortKind::kGenerator;
    CATENA_ASSIGN_OR_RETURN(FileSection generator, section.section("generator"));
    CATENA_ASSIGN_OR_RETURN(port.generator, read_generator(std::move(generator)));
  }
  CATENA_RETURN_IF_ERROR(read_sharing(section, port));
  CATENA_RETURN_IF_ERROR(read_matches(section, port));
  return port;
}

Result<PortConfig> read_tx(FileSection& spec) {
  PortConfig port;
  if (spec.config().is_null("tx")) {
    return port;
  }
  CATENA_ASSIGN_OR_RETURN(FileSection section, spec.section("tx"));
  if (section.has("pcap")) {
    CATENA_RETURN_IF_ERROR(read_capture_name(section, false, port));
  } else {
    CATENA_RETURN_IF_ERROR(read_devices(section, port));
  }
  CATENA_RETURN_IF_ERROR(read_sharing(section, port));
  return port;
}

/// What becomes of packets that NFs do not inspect, as `spec` or an NF says it; where neither says, nothing and pass.
struct Unseen {
  std::optional<nf::OnUnsupported> unsupported;
  nf::LinkLocal link_local = nf::LinkLocal::kPass;
};

/// Reads `on_unsupported` and `link_local`, which are at `spec` and at each NF.
Result<Unseen> read_unseen(FileSection& section, Unseen unseen) {
  if (section.has("on_unsupported")) {
    CATENA_ASSIGN_OR_RETURN(const std::string word, section.text("on_unsupported"));
    unseen.unsupported = word == "pass" ? nf::OnUnsupported::kPass : nf::OnUnsupported::kDrop;
  }
  if (section.has("link_local")) {
    CATENA_ASSIGN_OR_RETURN(const std::string word, section.text("link_local"));
    unseen.link_local = word == "pass" ? nf::LinkLocal::kPass : nf::LinkLocal::kDrop;
  }
  return unseen;
}

/// But for where it runs, which a process of an NF need not know: it does not see all that other entries name.
Result<NfConfig> read_nf(FileSection entry, Unseen const& of_chain) {
  CATENA_ASSIGN_OR_RETURN(const std::string name, entry.text("name"));
  const bool is_plugin = entry.has("plugin");
  std::string type;
  if (!is_plugin || entry.has("type")) {
    CATENA_ASSIGN_OR_RETURN(type, entry.config().string("type"));
  }
  CATENA_ASSIGN_OR_RETURN(const std::string on, entry.text("on"));
  CATENA_ASSIGN_OR_RETURN(const Unseen unseen, read_unseen(entry, of_chain));
  CATENA_ASSIGN_OR_RETURN(nf::Config config, entry.config().section_or_empty("config"));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t latency_limit_us, entry.integer("latency_limit_us"));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t batch_size, entry.integer("batch_size"));
  std::optional<double> qt;
  if (entry.has("qt")) {
    CATENA_ASSIGN_OR_RETURN(qt, entry.number("qt"));
  }
  return NfConfig{.name = name,
                  .type = type,
                  .on = on == "gpu" ? plan::Processor::kGpu : plan::Processor::kCpu,
                  .on_unsupported = unseen.unsupported,
                  .link_local = unseen.link_local,
                  .config = std::move(config),
                  .position = entry.config().position(is_plugin ? "plugin" : "type"),
                  .isolation = Isolation::kOfRun,
                  .latency_limit_us = static_cast<std::uint32_t>(latency_limit_us),
                  .is_auto = on == "auto",
                  .batch_size = static_cast<std::uint32_t>(batch_size),
                  .qt = qt};
}

Result<Tuning> read_tuning(FileSection section) {
  Tuning tuning;
  struct Number {
    const char* key;
    std::uint32_t* value;
  };
  for (Number const& number :
       {Number{"pool_slots", &tuning.pool_slots}, Number{"units_per_launch", &tuning.units_per_launch},
        Number{"launches_in_flight", &tuning.launches_in_flight}, Number{"device_limit_ms", &tuning.device_limit_ms},
        Number{"max_batch_delay_us", &tuning.max_batch_delay_us}}) {
    CATENA_ASSIGN_OR_RETURN(const std::int64_t value, section.integer(number.key));
    *number.value = static_cast<std::uint32_t>(value);
  }
  CATENA_ASSIGN_OR_RETURN(const std::string unit_packets, section.text("unit_packets"));
  if (unit_packets == "auto") {
    tuning.unit_packets = kAutoUnitPackets;
  } else {
    CATENA_ASSIGN_OR_RETURN(const std::int64_t value, section.integer("unit_packets"));
    tuning.unit_packets = static_cast<std::uint32_t>(value);
  }
  nf::Config& config = section.config();
  if ((tuning.pool_slots & (tuning.pool_slots - 1)) != 0) {
    return config.error(
        "pool_slots", concat("'pool_slots' is ", tuning.pool_slots, "; allowed: a power of two from 2048 to 1048576"));
  }
  if (const std::uint32_t packets = tuning.units_per_launch * tuning.unit_packets; packets > kMaxLaunchPackets) {
    return config.error("units_per_launch",
                        concat("'units_per_launch' is ", tuning.units_per_launch, ", with ", tuning.unit_packets,
                               " packets per unit ", packets, " packets; a launch takes at most ", kMaxLaunchPackets));
  }
  return tuning;
}

Result<std::uint32_t> read_shards(FileSection& spec, ChainConfig const& chain) {
  const bool is_given = spec.has("shards");
  CATENA_ASSIGN_OR_RETURN(const std::string text, spec.text("shards"));
  if (text == "auto" || (!is_given && chain.rx.kind == PortKind::kDpdk)) {
    return kAutoShards;
  }
  CATENA_ASSIGN_OR_RETURN(const std::int64_t number, is_given ? spec.integer("shards") : std::int64_t{1});
  const auto shards = static_cast<std::uint32_t>(number);
  if (shards < chain.devices.size()) {
    return spec.config().error(
        "shards", concat("'shards' is ", shards, ", and each of the ", chain.devices.size(),
                         " devices has one at least; write `shards: auto`, or ", chain.devices.size(), " or more"));
  }
  if (const std::size_t queues = shards * queues_of(chain); queues > memory::kMaxQueues) {
    return spec.config().error(
        "shards", concat("'shards' is ", shards, ", which with ", chain.nfs.size(), " NFs may need ", queues,
                         " queues; the maximum is ", memory::kMaxQueues, "; write ",
                         memory::kMaxQueues / queues_of(chain), " or less"));
  }
  return shards;
}

/// What the table cannot say, of a chain whose keys are fine one by one.
Status read_spec(FileSection& spec, ChainConfig& chain) {
  Diagnostics diagnostics;
  chain.rx = diagnostics.take(read_rx(spec));
  chain.tx = diagnostics.take(read_tx(spec));
  diagnostics.add(check_sharing(spec, chain.rx, chain.tx));
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> devices, spec.texts("device"));
  chain.devices = diagnostics.take(device::parse_preferences(devices));
  CATENA_ASSIGN_OR_RETURN(const Unseen unseen, read_unseen(spec, {}));
  CATENA_ASSIGN_OR_RETURN(FileSection tuning, spec.section("tuning"));
  const bool says_slots = tuning.has("pool_slots");
  chain.tuning = diagnostics.take(read_tuning(std::move(tuning)));
  chain.tuning.says_pool_slots = says_slots;
  CATENA_ASSIGN_OR_RETURN(std::vector<FileSection> entries, spec.sections("nfs"));
  std::set<std::string> names;
  for (FileSection& entry : entries) {
    CATENA_ASSIGN_OR_RETURN(NfConfig nf, read_nf(entry, unseen));
    CATENA_RETURN_IF_ERROR(read_isolation(entry, chain.nfs, nf));
    CATENA_RETURN_IF_ERROR(read_plugin(entry, nf));
    if (!names.insert(nf.name).second) {
      diagnostics.add(entry.config().error("name", concat("two NFs are named '", nf.name, "'; names must differ")));
    }
    chain.nfs.push_back(std::move(nf));
  }
  diagnostics.add(read_graph(spec, chain));
  chain.flow = diagnostics.take(read_flow(spec));
  chain.shards = diagnostics.take(read_shards(spec, chain));
  if (diagnostics.empty()) {
    resolve_slots(
        chain, chain.tuning.unit_packets == kAutoUnitPackets ? memory::kDefaultUnitPackets : chain.tuning.unit_packets);
  }
  return diagnostics.status();
}

Result<ChainConfig> read_chain(nf::Config root) {
  ChainConfig chain;
  chain.file = root.file();
  chain.text = root.text();
  CATENA_RETURN_IF_ERROR(check_keys(root, chain_keys()));
  FileSection file(std::move(root), chain_keys());
  CATENA_ASSIGN_OR_RETURN(FileSection metadata, file.section("metadata"));
  CATENA_ASSIGN_OR_RETURN(chain.name, metadata.text("name"));
  CATENA_ASSIGN_OR_RETURN(FileSection spec, file.section("spec"));
  chain.tenant = chain.name;
  if (spec.has("tenant")) {
    CATENA_ASSIGN_OR_RETURN(chain.tenant, spec.text("tenant"));
  }
  CATENA_RETURN_IF_ERROR(read_spec(spec, chain));
  return chain;
}

/// What "pcap:FILE" and "dpdk:DEVICE" mean for rx and tx alike; nothing for any other text.
std::optional<PortConfig> file_or_device(std::string_view text) {
  PortConfig port;
  if (text.ends_with(':')) {
    return std::nullopt;  // no name
  }
  if (text.starts_with("pcap:")) {
    port.kind = PortKind::kPcap;
    port.target = text.substr(5);
  } else if (text.starts_with("dpdk:")) {
    port.kind = PortKind::kDpdk;
    port.devices = {std::string(text.substr(5))};
  } else if (text.starts_with("dev:") && is_interface_name(text.substr(4))) {
    port.kind = PortKind::kDpdk;
    port.devices = {io::interface_device(text.substr(4))};
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

void set_default_isolation(ChainConfig& config, Isolation isolation) {
  for (NfConfig& nf : config.nfs) {
    nf.isolation = nf.isolation == Isolation::kOfRun ? isolation : nf.isolation;
  }
}

NfGroup group_of(ChainConfig const& config, std::size_t nf) {
  NfGroup group{nf, nf + 1};
  std::string const& name = config.nfs[nf].group;
  const auto is_in_it = [&](std::size_t other) {
    return !name.empty() && config.nfs[nf].isolation == Isolation::kProcess && config.nfs[other].group == name;
  };
  while (group.first > 0 && is_in_it(group.first - 1)) {
    --group.first;
  }
  while (group.end < config.nfs.size() && is_in_it(group.end)) {
    ++group.end;
  }
  return group;
}

Result<NfConfig> parse_nf(std::string_view text, std::string const& file, std::string_view name) {
  CATENA_ASSIGN_OR_RETURN(nf::Config root, nf::Config::parse(text, file));
  CATENA_RETURN_IF_ERROR(check_keys(root, chain_keys()));
  FileSection whole(std::move(root), chain_keys());
  CATENA_ASSIGN_OR_RETURN(FileSection spec, whole.section("spec"));
  CATENA_ASSIGN_OR_RETURN(const Unseen unseen, read_unseen(spec, {}));
  CATENA_ASSIGN_OR_RETURN(std::vector<FileSection> entries, spec.sections("nfs"));
  for (FileSection& entry : entries) {
    CATENA_ASSIGN_OR_RETURN(const std::string own, entry.text("name"));
    if (own == name) {
      return read_nf(entry, unseen);
    }
  }
  return absl::NotFoundError(concat(file, ": no NF is named '", name, "'"));
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
