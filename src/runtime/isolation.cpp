// SPDX-License-Identifier: Apache-2.0
#include "runtime/isolation.hpp"

#include "chain/instances.hpp"
#include "chain/named_files.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
/// `nobody` where that is root, so it gets what is in them, unless that is too much to keep in memory.
std::vector<nf_process::ShownFile> readable(std::vector<std::string> files) {
  constexpr std::size_t kMaxCopied = 64;
  constexpr off_t kMaxCopiedBytes = off_t{64} << 20;
  std::vector<nf_process::ShownFile> shown;
  for (std::string& path : files) {
    device::remote::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode)) {
      const bool is_copied = status.st_size <= kMaxCopiedBytes && shown.size() < kMaxCopied;
      shown.push_back({std::move(path), is_copied ? std::move(file) : device::remote::Fd()});
    }
  }
  return shown;
}

/// What the configuration of an NF says that it writes, with whole paths, without making one. Nothing where the NF
/// would refuse its configuration, or is known to its process alone.
std::vector<nf::NamedOutput> outputs_of(chain::NfConfig const& config, nf::Registry const& registry,
                                        nf::NamedFiles const& collector) {
  const Result<nf::Descriptor const*> descriptor = registry.find(config.type);
  if (!config.plugin.empty() || !descriptor.ok() || (*descriptor)->name_outputs == nullptr) {
    return {};
  }
  const auto before = static_cast<std::ptrdiff_t>(collector.outputs().size());
  nf::Config own = config.config;
  if (!(*descriptor)->name_outputs(own).ok()) {
    return {};  // the NF says it better
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

}  // namespace

namespace {

Result<std::unique_ptr<nf_process::IsolatedNf>> start_process(chain::NfConfig const& config,
                                                              chain::NfProcesses const& processes,
                                                              std::string const& origin,
                                                              std::vector<nf::NamedOutput> outputs, bool is_trial) {
  nf_process::ProcessOptions process;
  process.program = processes.program;
  process.name = config.name;
  process.position = config.position;
  process.wanted = {config.type, config.plugin.empty() ? origin : config.plugin};
  std::vector<std::string> files;
  for (auto const& [key, path] : config.config.files()) {
    files.push_back(path);
  }
  process.is_trial = is_trial;
  process.memory_bytes = std::uint64_t{config.memory_mb} << 20U;
  process.cpus = config.cpus;
  process.container = config.container;
  if (!process.wanted.plugin.empty() && !config.has_plugin_inside) {
    files.push_back(process.wanted.plugin);
  }
  std::erase_if(files, [&outputs](std::string const& file) {
    return std::ranges::find(outputs, file, &nf::NamedOutput::name) != outputs.end();
  });
  process.files = readable(std::move(files));
  process.outputs = std::move(outputs);
  process.uid = processes.uid;
  process.gid = processes.gid;
  if (processes.connect_device) {
    process.connect_device = [connect = processes.connect_device, nf = config.name](std::string const& preference,
                                                                                    std::string* why) {
      return connect(nf, preference, why);
    };
  }
  Result<std::unique_ptr<nf_process::IsolatedNf>> nf = nf_process::IsolatedNf::create(std::move(process));
  if (!nf.ok()) {
    return absl::IsNotFound(nf.status())
               ? Status(nf.status().code(), concat(config.position, ": ", std::string(nf.status().message())))
               : at(config, nf.status());
  }
  if (config.on == plan::Processor::kGpu && !(*nf)->descriptor().has_kernel) {
    chain::NfConfig named = config;
    named.type = (*nf)->descriptor().type;
    return chain::no_kernel(named);
  }
  return nf;
}

Status try_out(chain::NfConfig const& config, chain::ChainConfig const& chain, chain::NfProcesses const& processes) {
  CATENA_ASSIGN_OR_RETURN(const auto nf, start_process(config, processes, "", {}, true));
  nf_process::Setup setup = setup_of(config, chain);
  setup.on_gpu = false;
  if (setup.unit_packets == chain::kAutoUnitPackets) {
    setup.unit_packets = memory::kDefaultUnitPackets;
    setup.slots = nf_process::ChannelShape::of(setup.unit_packets).slots();
  }
  nf->prepare(setup);
  return nf->start(nf::RunContext{});
}

}  // namespace

Status allow_processes(chain::ChainConfig const& chain, chain::RunOptions& options) {
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

Result<std::unique_ptr<nf::Instance>> make_isolated(chain::NfConfig const& config, chain::RunOptions const& options,
                                                    nf::Registry const& registry, nf::NamedFiles const& collector) {
  if (options.processes.program.empty()) {
    return at(config, absl::UnavailableError("nobody here starts processes of NFs"));
  }
  const std::size_t files = collector.files().size();
  std::vector<nf::NamedOutput> outputs = outputs_of(config, registry, collector);
  CATENA_RETURN_IF_ERROR(chain::check_written_for_process(std::span(collector.files()).subspan(files)));
  std::error_code error;
  std::string origin = registry.origin(config.type);
  origin = origin.empty() ? origin : std::filesystem::canonical(origin, error).string();
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<nf_process::IsolatedNf> nf,
                          start_process(config, options.processes, origin, std::move(outputs), false));
  nf::Descriptor const& descriptor = nf->descriptor();
  return std::make_unique<nf::Instance>(config.name, descriptor, std::move(nf), nf::OnUnsupported::kPass,
                                        !options.record_path.empty());
}

nf_process::Setup setup_of(chain::NfConfig const& config, chain::ChainConfig const& chain) {
  nf_process::Setup setup;
  std::error_code error;
  setup.file = std::filesystem::absolute(chain.file, error).lexically_normal().string();
  setup.text = chain.text;
  setup.name = config.name;
  setup.on_gpu = config.on == plan::Processor::kGpu;
  setup.device = device::to_string(chain.devices.front());
  setup.ends = chain::ends_of(chain.rx, chain.tx);
  setup.unit_packets = chain.tuning.unit_packets;
  setup.slots = nf_process::ChannelShape::of(setup.unit_packets).slots();
  setup.units_per_launch = chain.tuning.units_per_launch;
  setup.launches_in_flight = chain.tuning.launches_in_flight;
  setup.device_limit_ms = chain.tuning.device_limit_ms;
  setup.max_batch_delay_us = chain.tuning.max_batch_delay_us;
  return setup;
}

}  // namespace catena::runtime
