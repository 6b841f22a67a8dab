// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation.hpp"

#include "base/core/open_file.hpp"
#include "chain/instances.hpp"
#include "chain/named_files.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

Status at(chain::NfConfig const& config, Status const& status) {
  const bool has_choice = absl::IsUnavailable(status) && config.plugin.empty();
  return {status.code(),
          concat(config.position, ": NF '", config.name, "', isolation: process: ", std::string(status.message()),
                 has_choice ? "; `isolation: none` runs it with the rest of the chain, without a "
                              "sandbox"
                            : "")};
}

/// Those of `files` that the caller, whoever this thread acts for, may read. The process is somebody with fewer rights,
/// `nobody` where that is root, so it gets what is in them, unless that is too much to keep in memory: such a file
/// bubblewrap opens by its name, as the process's user. PermissionDenied for one that a user may not name.
Result<std::vector<nf_process::ShownFile>> readable(std::vector<std::string> files) {
  constexpr std::size_t kMaxCopied = 64;
  constexpr off_t kMaxCopiedBytes = off_t{64} << 20;
  std::vector<nf_process::ShownFile> shown;
  for (std::string& path : files) {
    CATENA_RETURN_IF_ERROR(check_name(path));
    Result<OpenedFile> file = open_named_file(path, O_RDONLY | O_NONBLOCK, kRegularFile);
    if (file.ok()) {
      const bool is_copied = file->status.st_size <= kMaxCopiedBytes && shown.size() < kMaxCopied;
      shown.push_back({std::move(path), is_copied ? std::move(file->fd) : FileDescriptor()});
    }
  }
  return shown;
}

/// Names what an NF writes to who collects that. False where that is not known: the NF would refuse its configuration,
/// and says that better.
bool name_outputs(chain::NfConfig const& config, nf::Registry const& registry) {
  for (nf::Config writes : config.writes) {
    const Status status = writes.has("file")     ? writes.output_path("file").status()
                          : writes.has("folder") ? writes.output_folder("folder", "").status()
                                                 : writes.receiver("receiver").status();
    if (!status.ok()) {
      return false;
    }
  }
  if (!config.plugin.empty()) {
    return true;  // of which nothing is believed
  }
  const Result<nf::Descriptor const*> descriptor = registry.find(config.type);
  nf::Config own = config.config;
  return descriptor.ok() && ((*descriptor)->name_outputs == nullptr || (*descriptor)->name_outputs(own).ok());
}

/// What an NF may have written, with whole paths: what its configuration says, of a plug-in what the chain file allows
/// it. Without making one.
std::vector<nf::NamedOutput> outputs_of(chain::NfConfig const& config, nf::Registry const& registry,
                                        nf::NamedFiles const& collector) {
  const auto before = static_cast<std::ptrdiff_t>(collector.outputs().size());
  if (!name_outputs(config, registry)) {
    return {};
  }
  std::vector<nf::NamedOutput> outputs(collector.outputs().begin() + before, collector.outputs().end());
  for (nf::NamedOutput& output : outputs) {
    if (output.kind != nf::NamedOutput::Kind::kReceiver) {
      std::error_code error;
      output.name = std::filesystem::absolute(output.name, error).lexically_normal().string();
    }
  }
  return outputs;
}

bool is_isolated(chain::NfConfig const& config) { return config.isolation == chain::Isolation::kProcess; }

static_assert(chain::kMaxGroupNfs == nf_process::kMaxNfs);

/// What the configurations of all NFs name, to be read or written, and their plug-ins.
std::vector<std::string> files_of(std::span<const chain::NfConfig> group) {
  std::vector<std::string> files;
  const auto add = [&files](std::string const& file) {
    if (std::ranges::find(files, file) == files.end()) {
      files.push_back(file);
    }
  };
  for (chain::NfConfig const& config : group) {
    for (auto const& [key, path] : config.config.files()) {
      add(path);
    }
  }
  return files;
}

/// A process that has no NF yet. `plugins` and `outputs`: of each NF of the group.
Result<std::shared_ptr<nf_process::NfProcess>> start_process(std::span<const chain::NfConfig> group,
                                                             NfProcesses const& processes,
                                                             std::span<const std::string> plugins,
                                                             std::span<const std::vector<nf::NamedOutput>> outputs,
                                                             std::vector<std::string> label, bool is_trial) {
  chain::NfConfig const& first = group.front();
  nf_process::ProcessOptions process;
  process.program = processes.program;
  process.group = first.group;
  process.name = first.group.empty() ? first.name : concat("group ", first.group);
  process.position = first.position;
  process.label = std::move(label);
  process.is_trial = is_trial;
  process.memory_bytes = std::uint64_t{first.memory_mb} << 20U;
  process.cpus = first.cpus;
  process.container = first.container;
  std::vector<std::string> files = files_of(group);
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (!plugins[i].empty() && !group[i].has_plugin_inside && std::ranges::find(files, plugins[i]) == files.end()) {
      files.push_back(plugins[i]);
    }
    std::erase_if(files, [&written = outputs[i]](std::string const& file) {
      return std::ranges::find(written, file, &nf::NamedOutput::name) != written.end();
    });
  }
  Result<std::vector<nf_process::ShownFile>> shown = readable(std::move(files));
  if (!shown.ok()) {
    return at(first, shown.status());
  }
  process.files = *std::move(shown);
  process.uid = processes.uid;
  process.gid = processes.gid;
  process.give_up = processes.give_up;
  if (processes.connect_device) {
    process.connect_device = [connect = processes.connect_device, nf = first.name](std::string const& preference,
                                                                                   std::string* why) {
      return connect(nf, preference, why);
    };
  }
  Result<std::unique_ptr<nf_process::NfProcess>> started = nf_process::NfProcess::create(std::move(process));
  return started.ok() ? Result<std::shared_ptr<nf_process::NfProcess>>(*std::move(started))
                      : at(first, started.status());
}

/// Number `number` of the process, made from `plugin` where it is not built in.
Result<std::unique_ptr<nf_process::IsolatedNf>> add_nf(std::shared_ptr<nf_process::NfProcess> process,
                                                       std::size_t number, chain::NfConfig const& config,
                                                       std::string const& plugin,
                                                       std::vector<nf::NamedOutput> outputs) {
  Result<nf_process::NfInfo> described = process->add({config.type, plugin}, std::move(outputs));
  if (!described.ok()) {
    return absl::IsNotFound(described.status())
               ? Status(described.status().code(),
                        concat(config.position, ": ", std::string(described.status().message())))
               : at(config, chain::as_refusal(described.status()));
  }
  if (config.on == plan::Processor::kGpu && !described->has_kernel) {
    chain::NfConfig named = config;
    named.type = described->type;
    return chain::no_kernel(named);
  }
  return std::make_unique<nf_process::IsolatedNf>(std::move(process), number, *described);
}

/// How the packets of NFs of one process may be divided: all in the same way.
nf::Sharding strictest(std::span<const std::unique_ptr<nf_process::IsolatedNf>> nfs) {
  const auto has = [nfs](nf::Sharding sharding) {
    return std::ranges::any_of(nfs, [sharding](auto const& nf) { return nf->descriptor().sharding == sharding; });
  };
  return has(nf::Sharding::kNone)   ? nf::Sharding::kNone
         : has(nf::Sharding::kFlow) ? nf::Sharding::kFlow
                                    : nf::Sharding::kPacket;
}

/// A plug-in alone, whatever its group: what it writes and where it finds its files is the same.
Status try_out(chain::NfConfig config, chain::ChainConfig const& chain, NfProcesses const& processes) {
  config.group.clear();
  config.on = plan::Processor::kCpu;
  const std::span<const chain::NfConfig> alone(&config, 1);
  name_outputs(config, nf::Registry());  // to who collects what the chain's NFs name
  const nf::NamedFiles collector;
  const std::vector<nf::NamedOutput> outputs = outputs_of(config, nf::Registry(), collector);
  CATENA_RETURN_IF_ERROR(chain::check_written_for_process(collector.files()));
  CATENA_ASSIGN_OR_RETURN(auto process,
                          start_process(alone, processes, {&config.plugin, 1}, {&outputs, 1}, {"trial"}, true));
  CATENA_ASSIGN_OR_RETURN(const auto nf, add_nf(std::move(process), 0, config, config.plugin, outputs));
  nf->prepare(setup_of(alone, chain));
  return nf->start(nf::RunContext{});
}

}  // namespace

Status allow_processes(chain::ChainConfig const& chain, RunOptions& options) {
  if (std::any_of(chain.nfs.begin(), chain.nfs.end(), is_isolated)) {
    CATENA_ASSIGN_OR_RETURN(options.processes.program, nf_process::find_nf_program());
    options.processes.try_out = [processes = options.processes](chain::NfConfig const& config,
                                                                chain::ChainConfig const& in) {
      return try_out(config, in, processes);
    };
  }
  return absl::OkStatus();
}

bool needs_servers(chain::ChainConfig const& chain) {
  return std::any_of(chain.nfs.begin(), chain.nfs.end(), [](chain::NfConfig const& config) {
    return is_isolated(config) && (config.is_auto || config.on == plan::Processor::kGpu);
  });
}

Result<std::vector<MadeNf>> make_isolated(std::span<const chain::NfConfig> group, std::vector<std::string> label,
                                          RunOptions const& options, nf::Registry const& registry,
                                          nf::NamedFiles const& collector) {
  if (options.processes.program.empty()) {
    return at(group.front(), absl::UnavailableError("this program does not start processes of NFs"));
  }
  std::vector<MadeNf> all;
  std::vector<std::string> plugins;
  std::vector<std::vector<nf::NamedOutput>> outputs;
  for (chain::NfConfig const& config : group) {
    const auto files = static_cast<std::ptrdiff_t>(collector.files().size());
    const auto keys = static_cast<std::ptrdiff_t>(collector.keys().size());
    outputs.push_back(outputs_of(config, registry, collector));
    all.push_back({nullptr,
                   nullptr,
                   {collector.files().begin() + files, collector.files().end()},
                   {collector.keys().begin() + keys, collector.keys().end()}});
    CATENA_RETURN_IF_ERROR(chain::check_written_for_process(all.back().files));
    const std::string origin = config.plugin.empty() ? registry.origin(config.type) : std::string();
    std::error_code error;
    plugins.push_back(origin.empty() ? config.plugin : std::filesystem::canonical(origin, error).string());
  }
  CATENA_ASSIGN_OR_RETURN(const auto process,
                          start_process(group, options.processes, plugins, outputs, std::move(label), false));
  // what one process writes no second one writes beside it, and the part of a GPU that an NF is given is not divided
  const bool is_one = std::ranges::any_of(outputs, [](auto const& of_nf) { return !of_nf.empty(); }) ||
                      (options.sharing && std::ranges::any_of(group, [](chain::NfConfig const& config) {
                         return config.on == plan::Processor::kGpu;
                       }));
  std::vector<std::unique_ptr<nf_process::IsolatedNf>> nfs;
  for (std::size_t i = 0; i < group.size(); ++i) {
    CATENA_ASSIGN_OR_RETURN(nfs.emplace_back(), add_nf(process, i, group[i], plugins[i], std::move(outputs[i])));
  }
  const nf::Sharding sharding = is_one ? nf::Sharding::kNone : strictest(nfs);
  for (std::size_t i = 0; i < group.size(); ++i) {
    nfs[i]->set_sharding(sharding);
    nf::Descriptor const& descriptor = nfs[i]->descriptor();
    all[i].isolated = nfs[i].get();
    all[i].instance = std::make_unique<nf::Instance>(group[i].name, descriptor, std::move(nfs[i]),
                                                     nf::OnUnsupported::kPass, !options.record_path.empty());
  }
  return all;
}

bool is_on_own_gpu(chain::NfConfig const& config) { return is_isolated(config) && config.on == plan::Processor::kGpu; }

bool are_alike(nf::Descriptor const& one, nf::Descriptor const& other) {
  return one.type == other.type && one.has_kernel == other.has_kernel &&
         std::ranges::equal(one.drop_reasons, other.drop_reasons, {}, &nf::DropReason::name, &nf::DropReason::name);
}

nf_process::Setup setup_of(std::span<const chain::NfConfig> group, chain::ChainConfig const& chain) {
  nf_process::Setup setup;
  std::error_code error;
  setup.file = std::filesystem::absolute(chain.source.file, error).lexically_normal().string();
  setup.text = chain.source.text;
  for (chain::IncludedFile const& each : chain.source.included) {
    setup.included.emplace_back(each.file, each.text);
  }
  setup.environment = chain.source.environment;
  for (chain::NfConfig const& config : group) {
    setup.nfs.push_back({config.name, config.on == plan::Processor::kGpu});
  }
  setup.device = device::to_string(chain.devices.front());
  setup.ends = chain::ends_of(chain.rx, chain.tx);
  setup.unit_packets = chain::unit_packets_of(chain.tuning);
  setup.slots = nf_process::ChannelShape::of(setup.unit_packets).slots();
  setup.units_per_launch = chain.tuning.units_per_launch;
  setup.launches_in_flight = chain.tuning.launches_in_flight;
  setup.device_limit_ms = chain.tuning.device_limit_ms;
  setup.max_batch_delay_us = chain.tuning.max_batch_delay_us;
  return setup;
}

}  // namespace catena::runtime
