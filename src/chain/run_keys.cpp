// SPDX-License-Identifier: Apache-2.0
#include "chain/run_keys.hpp"

#include "base/core/transfer_methods.hpp"
#include "chain/key_fields.hpp"
#include "chain/workers.hpp"
#include "io/output_file.hpp"

#include <catena/core/text.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace catena::chain {
namespace {

using std::string_view;
using enum KeyKind;

/// A file that the run writes; "-" is standard output.
template <auto Field>
Status read_output(FileSection& section, Key const& key, OutputsConfig& outputs) {
  FileName& file = outputs.*Field;
  file.position = section.config().position(key.name);
  CATENA_ASSIGN_OR_RETURN(file.path, section.text(key.name));
  if (file.path != io::kStandardStream) {
    CATENA_ASSIGN_OR_RETURN(file.path, section.config().output_path(key.name));
  }
  return absl::OkStatus();
}

Status read_profile(FileSection& section, Key const& key, TransfersConfig& transfers) {
  transfers.profile.position = section.config().position(key.name);
  CATENA_ASSIGN_OR_RETURN(transfers.profile.path, section.config().path(key.name));
  return absl::OkStatus();
}

Status read_allowed_methods(FileSection& section, Key const& key, TransfersConfig& transfers) {
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> names, section.texts(key.name));
  plan::MethodSet set = 0;
  for (const TransferMethod method : kTransferMethods) {
    const bool is_allowed = std::ranges::find(names, to_string(method)) != names.end();
    set = static_cast<plan::MethodSet>(set | (is_allowed ? plan::method_bit(method) : 0));
  }
  transfers.methods = set;
  return absl::OkStatus();
}

Status read_sharing(FileSection& section, Key const& key, RunConfig& run) {
  run.sharing.position = section.config().position(key.name);
  CATENA_ASSIGN_OR_RETURN(FileSection inner, section.section(key.name));
  return inner.read_into(run.sharing);
}

Status read_cores(FileSection& section, Key const& key, RunConfig& run) {
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> texts, section.texts(key.name));
  Result<std::vector<std::uint32_t>> cores = parse_cores(fmt::format("{}", fmt::join(texts, ",")));
  if (!cores.ok()) {
    return section.config().error(key.name, concat("'", key.name, "' is ", std::string(cores.status().message())));
  }
  run.cores = *std::move(cores);
  return absl::OkStatus();
}

constexpr std::array<string_view, 1> kAutoWorkers{"auto"};
constexpr std::array<string_view, 1> kAllUnits{"all"};
constexpr std::array<string_view, 2> kOnOrOff{"on", "off"};
constexpr std::array<string_view, 3> kTransferModes{"adaptive", "shared", "copy"};
constexpr std::array<string_view, 4> kSharingModes{"scheduled", "fair", "uncoordinated", "temporal"};
constexpr std::array<string_view, 4> kServersFor{"none", "device", "tenant", "process"};
constexpr std::array<string_view, 3> kPartKinds{"green", "blocks", "none"};
constexpr auto kMethodNames = [] {
  std::array<string_view, kTransferMethods.size()> names;
  std::ranges::transform(kTransferMethods, names.begin(), [](TransferMethod method) { return to_string(method); });
  return names;
}();
constexpr std::int64_t kMaxWorkers = 256;
constexpr std::int64_t kMaxCores = 1024;
constexpr std::int64_t kMaxComputeUnits = 65'536;

constexpr std::array kOutputs{
    Key{.name = "record",
        .kind = kFile,
        .help = "write one JSON line per packet and NF decision to this file",
        .into = kReadBy<read_output<&OutputsConfig::record>>},
    Key{.name = "eve",
        .kind = kFile,
        .help = "write alerts to this file, as JSON lines in the form of Suricata's EVE",
        .into = kReadBy<read_output<&OutputsConfig::eve>>},
    Key{.name = "trace",
        .kind = kFile,
        .help = "write a time line of the launches on the device to this file, for chrome://tracing or Perfetto",
        .into = kReadBy<read_output<&OutputsConfig::trace>>},
};

constexpr std::array kTransfers{
    Key{.name = "mode",
        .kind = kWord,
        .help = "transfers between host and device: adaptive (default), shared or copy",
        .fallback = "adaptive",
        .words = kTransferModes,
        .into = into_word<&TransfersConfig::mode, plan::Mode::kAdaptive, plan::Mode::kShared, plan::Mode::kCopy>},
    Key{.name = "pushdown",
        .kind = kWord,
        .help = "whether adaptive transfers may move packets ahead of need: on (default), off",
        .fallback = "on",
        .words = kOnOrOff,
        .into = into_word<&TransfersConfig::pushdown, true, false>},
    Key{.name = "methods",
        .kind = kTexts,
        .help = "transfer methods allowed in plans, besides staged; default: all",
        .minimum = 1,
        .maximum = kMethodNames.size(),
        .words = kMethodNames,
        .into = kReadBy<read_allowed_methods>},
    Key{.name = "profile",
        .kind = kFile,
        .help = "cost profile (file of `catena profile`) instead of the device's",
        .into = kReadBy<read_profile>},
};

constexpr std::array kSharing{
    Key{.name = "mode",
        .kind = kWord,
        .help = "how NFs on the gpu share it: scheduled, fair, uncoordinated or temporal; without it each takes all",
        .words = kSharingModes,
        .into = into_word<&SharingConfig::mode, share::Mode::kScheduled, share::Mode::kFair,
                          share::Mode::kUncoordinated, share::Mode::kTemporal>},
    Key{.name = "parts",
        .kind = kWord,
        .help = "kind of SM partition of a shared gpu: green (contexts), blocks or none",
        .words = kPartKinds,
        .into = into_word<&SharingConfig::parts, share::Parts::kGreen, share::Parts::kBlocks, share::Parts::kNone>},
    Key{.name = "compute_units",
        .kind = kInteger,
        .help = "number of compute units of a shared gpu to use",
        .fallback = "all",
        .minimum = 1,
        .maximum = kMaxComputeUnits,
        .words = kAllUnits,
        .into = into<&SharingConfig::compute_units>},
};

constexpr std::array kRun{
    Key{.name = "outputs",
        .kind = kSection,
        .help = "files written by the run, besides the files of tx and of NFs",
        .fallback = "{}",
        .keys = kOutputs,
        .into = into_section<&RunConfig::outputs>},
    Key{.name = "transfers",
        .kind = kSection,
        .help = "transfers of packets between host and device",
        .fallback = "{}",
        .keys = kTransfers,
        .into = into_section<&RunConfig::transfers>},
    Key{.name = "sharing",
        .kind = kSection,
        .help = "how the NFs on the gpu share it; without: each takes all of it",
        .keys = kSharing,
        .into = kReadBy<read_sharing>},
    Key{.name = "device_servers",
        .kind = kWord,
        .help =
            "processes for the devices: none, one for all users of a device, for the chains of one tenant, or for each "
            "process; chains of different servers share no GPU memory, and use the GPU in turn",
        .fallback = "none",
        .words = kServersFor,
        .into = into<&RunConfig::device_servers>},
    Key{.name = "workers",
        .kind = kInteger,
        .help = "threads that poll the stages; auto: one per core, at most one per stage",
        .fallback = "auto",
        .minimum = 1,
        .maximum = kMaxWorkers,
        .words = kAutoWorkers,
        .into = into<&RunConfig::workers>},
    Key{.name = "cores",
        .kind = kTexts,
        .help = "cores for the workers, used in turn: 0,2-5",
        .minimum = 1,
        .maximum = kMaxCores,
        .into = kReadBy<read_cores>},
};

}  // namespace

std::span<const Key> run_keys() { return kRun; }

}  // namespace catena::chain
