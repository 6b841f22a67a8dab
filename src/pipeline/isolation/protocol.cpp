// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/protocol.hpp"

#include "base/ipc/frames.hpp"
#include "pipeline/isolation/channel.hpp"

#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>

#include <absl/strings/ascii.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace catena::nf_process {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxEntries = 16'384;
constexpr std::size_t kMaxDropReasons = 256;
constexpr std::size_t kMaxPacketOutputs = 64;  // as nf::Descriptor has it
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxStatisticName = 256;
constexpr std::size_t kMaxLine = 65'536;
constexpr std::size_t kMaxReason = 200;

Json to_value(std::vector<nf::Statistic> const& statistics) {
  Json list = Json::array();
  for (nf::Statistic const& statistic : statistics) {
    list.push_back({statistic.name, statistic.value});
  }
  return list;
}

Json to_value(Status const& status) {
  return {{"code", static_cast<int>(status.code())}, {"message", std::string(status.message())}};
}

Json to_value(std::vector<nf::NamedOutput> const& outputs) {
  Json list = Json::array();
  for (nf::NamedOutput const& output : outputs) {
    list.push_back({static_cast<std::uint8_t>(output.kind), output.name});
  }
  return list;
}

std::string dump(Json const& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// What `read` makes of `text`, whose values have the types that it asks for, or an error.
template <typename Read>
auto parsed(std::string_view text, Read read) -> Result<decltype(read(Json()))> {
  try {
    return read(Json::parse(text));
  } catch (std::exception const& error) {
    return absl::DataLossError(concat("its words cannot be read: ", std::string(error.what()).substr(0, kMaxReason)));
  }
}

struct Refused : std::exception {
  const char* what() const noexcept override { return "an invalid name, line or count"; }
};

void require(bool is_so) {
  if (!is_so) {
    throw Refused();
  }
}

/// A word that a metric's label may be.
std::string name_of(Json const& value) {
  auto name = value.get<std::string>();
  require(!name.empty() && name.size() <= kMaxName && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' || c == '-';
  }));
  return name;
}

/// Text for people, of one line or of several: the beginning, escaped.
std::string text_for_people(Json const& value) { return escaped_lines(value.get<std::string>().substr(0, kMaxLine)); }

/// The same of one line, and shorter.
std::string name_for_people(Json const& value) {
  return escaped(value.get<std::string>().substr(0, kMaxStatisticName));
}

template <typename Read>
auto list_of(Json const& value, Read read) {
  require(value.is_array() && value.size() <= kMaxEntries);
  std::vector<decltype(read(value))> list;
  for (Json const& entry : value) {
    list.push_back(read(entry));
  }
  return list;
}

std::vector<nf::Statistic> statistics_of(Json const& value) {
  require(value.is_array() && value.size() <= kMaxEntries);
  std::vector<nf::Statistic> statistics;
  for (Json const& entry : value) {
    statistics.push_back({name_for_people(entry.at(0)), entry.at(1).get<std::uint64_t>()});
  }
  return statistics;
}

/// Something of each NF of the process.
template <typename Read>
auto of_each_nf(Json const& value, std::size_t nfs, Read read) {
  require(value.is_array() && value.size() == nfs);
  return list_of(value, read);
}

Started started_of(Json const& value) {
  const FieldUse field_use{value.at("reads").get<packet::FieldSet>(), value.at("writes").get<packet::FieldSet>()};
  return {
      field_use, list_of(value.at("lines"), text_for_people),
      list_of(value.at("refused_rules"),
              [](Json const& rule) { return std::pair(name_for_people(rule.at(0)), rule.at(1).get<std::uint64_t>()); }),
      value.at("is_portable").get<bool>()};
}

nf::Sharding sharding_of(Json const& value) {
  const int kind = value.get<int>();
  require(kind >= 0 && kind <= static_cast<int>(nf::Sharding::kOwn));
  return static_cast<nf::Sharding>(kind);
}

Status status_of(Json const& value) {
  const int code = value.at("code").get<int>();
  require(code >= 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated));
  return {static_cast<absl::StatusCode>(code), text_for_people(value.at("message"))};
}

}  // namespace

bool is_statistic_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxStatisticName &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.'; });
}

std::string to_json(StartRequest const& wanted) { return dump({{"type", wanted.type}, {"plugin", wanted.plugin}}); }

Result<StartRequest> read_start_request(std::string_view text) {
  return parsed(text, [](Json const& value) {
    return StartRequest{value.at("type").get<std::string>(), value.at("plugin").get<std::string>()};
  });
}

std::string to_json(NfInfo const& described) {
  return dump({{"type", described.type},
               {"help", described.help},
               {"drop_reasons", described.drop_reasons},
               {"packet_outputs", described.packet_outputs},
               {"has_kernel", described.has_kernel},
               {"sharding", described.sharding}});
}

Result<NfInfo> read_nf_info(std::string_view text) {
  return parsed(text, [](Json const& value) {
    require(value.at("drop_reasons").size() <= kMaxDropReasons);
    require(value.at("packet_outputs").size() <= kMaxPacketOutputs);
    const auto named = [](Json const& entry) { return std::pair(name_of(entry.at(0)), text_for_people(entry.at(1))); };
    return NfInfo{name_of(value.at("type")),
                  text_for_people(value.at("help")),
                  list_of(value.at("drop_reasons"), named),
                  list_of(value.at("packet_outputs"), named),
                  value.at("has_kernel").get<bool>(),
                  sharding_of(value.at("sharding"))};
  });
}

std::string to_json(Setup const& setup) {
  Json nfs = Json::array();
  for (NfSetup const& nf : setup.nfs) {
    nfs.push_back({{"name", nf.name}, {"on_gpu", nf.on_gpu}, {"outputs", to_value(nf.outputs)}});
  }
  return dump({{"file", setup.file},
               {"text", setup.text},
               {"included", setup.included},
               {"environment", setup.environment},
               {"nfs", std::move(nfs)},
               {"shard", setup.shard.index},
               {"shards", setup.shard.count},
               {"device", setup.device},
               {"live_rx", setup.ends.live_rx},
               {"live_tx", setup.ends.live_tx},
               {"leaves", setup.context.live_tx},
               {"new_keys", setup.context.new_keys},
               {"records", setup.records},
               {"alerts", setup.alerts},
               {"waits_for_state", setup.waits_for_state},
               {"sync", setup.sync},
               {"pushdown", setup.pushdown},
               {"methods", setup.methods},
               {"slots", setup.slots},
               {"unit_packets", setup.unit_packets},
               {"units_per_launch", setup.units_per_launch},
               {"launches_in_flight", setup.launches_in_flight},
               {"device_limit_ms", setup.device_limit_ms},
               {"max_batch_delay_us", setup.max_batch_delay_us},
               {"share", setup.sharing ? setup.sharing->mode : ""},
               {"parts", setup.sharing ? setup.sharing->parts : ""},
               {"compute_units", setup.sharing ? setup.sharing->compute_units : 0}});
}

Result<Setup> read_setup(std::string_view text) {
  return parsed(text, [](Json const& value) {
    Setup setup;
    value.at("file").get_to(setup.file);
    value.at("text").get_to(setup.text);
    setup.included = value.at("included").get<decltype(setup.included)>();
    setup.environment = value.at("environment").get<decltype(setup.environment)>();
    for (Json const& of : value.at("nfs")) {
      NfSetup& nf = setup.nfs.emplace_back();
      of.at("name").get_to(nf.name);
      of.at("on_gpu").get_to(nf.on_gpu);
      for (Json const& output : of.at("outputs")) {
        nf.outputs.push_back(
            {static_cast<nf::NamedOutput::Kind>(output.at(0).get<std::uint8_t>()), output.at(1).get<std::string>()});
      }
    }
    require(!setup.nfs.empty() && setup.nfs.size() <= kMaxNfs);
    value.at("shard").get_to(setup.shard.index);
    value.at("shards").get_to(setup.shard.count);
    require(setup.shard.index < setup.shard.count);
    setup.shard.is_alone = setup.shard.count > 1;
    value.at("device").get_to(setup.device);
    value.at("live_rx").get_to(setup.ends.live_rx);
    value.at("live_tx").get_to(setup.ends.live_tx);
    value.at("leaves").get_to(setup.context.live_tx);
    value.at("new_keys").get_to(setup.context.new_keys);
    value.at("records").get_to(setup.records);
    value.at("alerts").get_to(setup.alerts);
    value.at("waits_for_state").get_to(setup.waits_for_state);
    value.at("sync").get_to(setup.sync);
    value.at("pushdown").get_to(setup.pushdown);
    value.at("methods").get_to(setup.methods);
    value.at("slots").get_to(setup.slots);
    value.at("unit_packets").get_to(setup.unit_packets);
    value.at("units_per_launch").get_to(setup.units_per_launch);
    value.at("launches_in_flight").get_to(setup.launches_in_flight);
    value.at("device_limit_ms").get_to(setup.device_limit_ms);
    value.at("max_batch_delay_us").get_to(setup.max_batch_delay_us);
    SharedGpu sharing{value.at("share"), value.at("parts"), value.at("compute_units")};
    if (!sharing.mode.empty()) {
      setup.sharing = std::move(sharing);
    }
    return setup;
  });
}

std::string to_json(std::vector<Started> const& started) {
  Json list = Json::array();
  for (Started const& nf : started) {
    list.push_back({{"lines", nf.lines},
                    {"refused_rules", nf.refused_rules},
                    {"reads", nf.field_use.reads},
                    {"writes", nf.field_use.writes},
                    {"is_portable", nf.is_portable}});
  }
  return dump(list);
}

Result<std::vector<Started>> read_started(std::string_view text, std::size_t nfs) {
  return parsed(text, [nfs](Json const& value) { return of_each_nf(value, nfs, started_of); });
}

std::string to_json(Ended const& ended) { return dump({{"status", to_value(ended.status)}}); }

Result<Ended> read_ended(std::string_view text) {
  return parsed(text, [](Json const& value) { return Ended{status_of(value.at("status"))}; });
}

std::string to_json(OpenOutput const& open) { return dump({{"output", open.output}, {"name", open.name}}); }

Result<OpenOutput> read_open_output(std::string_view text) {
  return parsed(text, [](Json const& value) {
    return OpenOutput{value.at("output").get<std::uint32_t>(), value.at("name").get<std::string>()};
  });
}

std::string to_json(Answer const& answer) {
  return dump({{"status", to_value(answer.status)}, {"handle", answer.handle}, {"is_kept", answer.is_kept}});
}

Result<Answer> read_answer(std::string_view text) {
  return parsed(text, [](Json const& value) {
    return Answer{status_of(value.at("status")), value.at("handle").get<std::uint32_t>(),
                  value.at("is_kept").get<bool>()};
  });
}

std::string to_json(Status const& error) { return dump(to_value(error)); }

Status read_error(std::string_view text) {
  const Result<Status> error = parsed(text, status_of);
  if (!error.ok()) {
    return error.status();
  }
  return error->ok() ? absl::DataLossError("its process refuses without a reason") : *error;
}

std::string to_json(NfStatistics const& statistics) {
  return dump({{"nf", statistics.nf}, {"statistics", to_value(statistics.statistics)}, {"lines", statistics.lines}});
}

Result<NfStatistics> read_statistics(std::string_view text, std::size_t nfs) {
  return parsed(text, [nfs](Json const& value) {
    NfStatistics said{value.at("nf").get<std::size_t>(), statistics_of(value.at("statistics")),
                      list_of(value.at("lines"), text_for_people)};
    require(said.nf < nfs);
    return said;
  });
}

std::string to_json(StateOf const& state) { return dump({{"nf", state.nf}, {"bytes", state.bytes}}); }

Result<StateOf> read_state_of(std::string_view text, std::size_t nfs) {
  return parsed(text, [nfs](Json const& value) {
    const StateOf state{value.at("nf").get<std::size_t>(), value.at("bytes").get<std::uint64_t>()};
    require(state.nf < nfs && state.bytes <= kMaxStateBytes);
    return state;
  });
}

std::string to_json(std::vector<Status> const& of_nfs) {
  Json list = Json::array();
  for (Status const& status : of_nfs) {
    list.push_back(to_value(status));
  }
  return dump(list);
}

Result<std::vector<Status>> read_begun(std::string_view text, std::size_t nfs) {
  return parsed(text, [nfs](Json const& value) { return of_each_nf(value, nfs, status_of); });
}

Status send(int socket, Call call, std::string_view text, int fd) {
  return ipc::send_frame(socket, static_cast<std::uint32_t>(call), std::as_bytes(std::span(text.data(), text.size())),
                         fd);
}

std::vector<std::byte> with_handle(std::uint32_t handle, std::span<const std::byte> bytes) {
  std::vector<std::byte> body(kHandleBytes + bytes.size());
  std::memcpy(body.data(), &handle, kHandleBytes);
  std::copy(bytes.begin(), bytes.end(), body.begin() + kHandleBytes);
  return body;
}

Result<std::uint32_t> handle_of(std::span<const std::byte> body) {
  std::uint32_t handle = 0;
  if (body.size() < kHandleBytes) {
    return absl::DataLossError("it writes without naming an output");
  }
  std::memcpy(&handle, body.data(), kHandleBytes);
  return handle;
}

std::string_view text_of(std::span<const std::byte> body) {
  return {reinterpret_cast<const char*>(body.data()), body.size()};
}

}  // namespace catena::nf_process
