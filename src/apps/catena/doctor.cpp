// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/commands.hpp"
#include "apps/catena/style.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "base/core/processor.hpp"
#include "base/sandbox/own_groups.hpp"
#include "gpu/device/device.hpp"
#include "gpu/program/program_cache.hpp"
#include "io/eal/eal.hpp"
#include "io/interface.hpp"
#include "stack/copy/engine_table.hpp"

namespace catena::cli {
namespace {

enum class Level { kOk, kNote, kProblem };

/// One thing that doctor inspected. `fix` is what to type, empty if there is nothing to fix.
struct Finding {
  Level level;
  std::string subject;
  std::string text;
  std::string fix;
};

std::string_view to_string(Level level) {
  return level == Level::kOk ? "ok" : level == Level::kNote ? "note" : "PROBLEM";
}

std::uint64_t meminfo_kib(std::string_view key) {
  std::ifstream info("/proc/meminfo");
  for (std::string word; info >> word;) {
    std::uint64_t value = 0;
    if (word == key && info >> value) {
      return value;
    }
  }
  return 0;
}

Finding check_cpu() {
  std::string vector = "no AVX2: Hyperscan and intel-ipsec-mb will be slow";
  Level level = Level::kProblem;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) {
    vector = "AVX-512";
    level = Level::kOk;
  } else if (__builtin_cpu_supports("avx2") != 0) {
    vector = "AVX2, no AVX-512";
    level = Level::kOk;
  }
#else
  vector = "not x86-64";
  level = Level::kNote;
#endif
  return {level, "processor",
          fmt::format("{}, {} cores, {}", processor_model(), std::thread::hardware_concurrency(), vector), ""};
}

Finding check_memory() {
  constexpr std::uint64_t kNeededKib = std::uint64_t{2} << 20;
  const std::uint64_t free_kib = meminfo_kib("MemAvailable:");
  const bool enough = free_kib >= kNeededKib;
  return {enough ? Level::kOk : Level::kProblem, "memory",
          fmt::format("{} MiB available; a chain with a full Internet route table takes about 1 GiB", free_kib / 1024),
          enough ? "" : "free memory, or lower spec.tuning.pool_slots and leave the route table smaller"};
}

Finding check_hugepages() {
  const std::uint64_t total = meminfo_kib("HugePages_Total:");
  return {Level::kNote, "hugepages",
          fmt::format("{} reserved; only physical NICs need them, pcap files and virtual devices do not", total),
          total > 0 ? "" : "for a NIC: echo 1024 | sudo tee /proc/sys/vm/nr_hugepages"};
}

Finding check_eal() {
  const Status status = eal::start();
  return {status.ok() ? Level::kOk : Level::kProblem, "DPDK",
          status.ok() ? "starts without hugepages and without privileges" : std::string(status.message()),
          status.ok() ? "" : "sudo apt-get install --reinstall libdpdk-dev"};
}

/// Interfaces of the kernel, which `dev:` opens; a note, as capture files need none.
void check_network(std::vector<Finding>& diagnostics) {
  if (const Status status = io::may_open_interfaces(); !status.ok()) {
    const std::string text(status.message());
    const std::size_t fix = text.find("sudo setcap");
    diagnostics.push_back({Level::kNote, "interfaces", text.substr(0, text.find(':')) + "; pcap files do not",
                           fix == std::string::npos ? "run it as root" : text.substr(fix)});
  } else {
    diagnostics.push_back({Level::kOk, "interfaces", "may be opened (dev:, dpdk:)", ""});
  }
  for (std::string const& interface : io::interfaces()) {
    for (io::InterfaceHint const& hint : io::check_interface(interface)) {
      diagnostics.push_back({Level::kNote, "interfaces", hint.text, hint.fix});
    }
  }
}

/// What limits NFs in processes of their own, where this command's own control group is that of what starts them.
Finding check_groups() {
  const Result<sandbox::GroupPlaces> places = sandbox::find_group_places();
  if (!places.ok()) {
    return {Level::kNote, "control groups",
            concat("processes of NFs have resource limits alone: ", std::string(places.status().message())),
            fmt::format("let systemd start it: sudo systemctl start catena, or systemd-run {}--scope -p Delegate=yes "
                        "catena run FILE",
                        ::geteuid() == 0 ? "" : "--user ")};
  }
  return {Level::kOk, "control groups",
          fmt::format("limit memory{} of processes of NFs, below {} (v{})", places->pids ? " and threads" : "",
                      places->memory.string(), places->is_v2 ? 2 : 1),
          ""};
}

Finding check_cache() {
  const std::filesystem::path folder = program::ProgramCache::from_environment().folder();
  if (folder.empty()) {
    return {Level::kNote, "kernel cache", "not available without HOME: kernels are compiled at each start",
            "export CATENA_CACHE_DIR=FOLDER_YOU_CAN_WRITE"};
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const bool writable = !error && access(folder.c_str(), W_OK) == 0;
  return {writable ? Level::kOk : Level::kNote, "kernel cache",
          concat(folder.string(), writable ? "" : " cannot be written: kernels are compiled at each start"),
          writable ? "" : "export CATENA_CACHE_DIR=FOLDER_YOU_CAN_WRITE"};
}

void check_devices(std::vector<Finding>& diagnostics) {
  bool any_gpu = false;
  for (device::Probe const& probe : device::probe()) {
    const std::string subject(probe.backend);
    for (device::DeviceInfo const& info : probe.devices) {
      any_gpu = any_gpu || !info.is_cpu;
      diagnostics.push_back({Level::kOk, subject,
                             fmt::format("{} ({}){}", info.name, info.driver,
                                         info.is_cpu ? ": this machine's CPU, for tests with `--device opencl`" : ""),
                             ""});
    }
    if (probe.devices.empty()) {
      diagnostics.push_back({Level::kNote, subject, std::string(probe.status.message()), ""});
    }
  }
  if (!any_gpu) {
    diagnostics.push_back({Level::kNote, "devices", "no GPU: NFs placed `on: gpu` run on the CPU", ""});
  }
}

/// The engines that copy within host memory.
void check_copy_engines(std::vector<Finding>& diagnostics) {
  for (hostcopy::EngineKind const& kind : stack::engine_table()) {
    const Status found = kind.probe();
    diagnostics.push_back(
        {found.ok() ? Level::kOk : Level::kNote, concat("copies: ", kind.name),
         found.ok() ? concat(kind.describe, kind.is_for_tests ? ", for tests" : "") : std::string(found.message()),
         ""});
  }
}

}  // namespace

int doctor(bool json) {
  std::vector<Finding> diagnostics{check_cpu(), check_memory(), check_hugepages(), check_eal()};
  check_network(diagnostics);
  diagnostics.push_back(check_groups());
  diagnostics.push_back(check_cache());
  check_devices(diagnostics);
  check_copy_engines(diagnostics);
  bool problems = false;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (Finding const& finding : diagnostics) {
    problems = problems || finding.level == Level::kProblem;
    if (json) {
      list.push_back({{"level", std::string(to_string(finding.level))},
                      {"subject", finding.subject},
                      {"text", finding.text},
                      {"fix", finding.fix}});
    } else {
      std::cout << fmt::format("{:<8} {:<24} {}\n", to_string(finding.level), finding.subject, finding.text);
      if (!finding.fix.empty()) {
        std::cout << fmt::format("{:<8} {:<24} fix: {}\n", "", "", finding.fix);
      }
    }
  }
  if (json) {
    print_json(std::cout, list);
  }
  return problems ? kExitFailed : kExitOk;
}

}  // namespace catena::cli
