// SPDX-License-Identifier: Apache-2.0
#include "chain/graph.hpp"
#include "chain/schema.hpp"

#include <catena/packet/fields.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>

#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "apps/catena/known_nfs.hpp"
#include "apps/catena/style.hpp"
#include "gpu/device/device.hpp"
#include "nf/instance.hpp"
#include "nf/registry.hpp"

namespace catena::cli {
namespace {

using Json = nlohmann::ordered_json;

Json nfs_json(nf::Registry const& registry) {
  Json list = Json::array();
  for (nf::Descriptor const* descriptor : registry.all()) {
    Json drops = Json::array();
    for (nf::DropReason const& reason : descriptor->drop_reasons) {
      drops.push_back({{"name", std::string(reason.name)}, {"help", std::string(reason.help)}});
    }
    Json keys = Json::array();
    for (nf::ConfigKey const& key : descriptor->config) {
      keys.push_back({{"name", std::string(key.name)},
                      {"type", std::string(key.type)},
                      {"default", std::string(key.fallback)},
                      {"help", std::string(key.help)}});
    }
    Json outputs = Json::array();
    for (const std::string_view name : chain::kCommonOutputs) {
      outputs.push_back({{"name", std::string(name)}, {"help", ""}});
    }
    for (nf::PacketOutput const& output : descriptor->packet_outputs) {
      outputs.push_back({{"name", std::string(output.name)}, {"help", std::string(output.help)}});
    }
    list.push_back({{"type", std::string(descriptor->type)},
                    {"help", std::string(descriptor->help)},
                    {"cpu", true},
                    {"gpu", descriptor->has_kernel},
                    {"origin", registry.origin(descriptor->type)},
                    {"config", keys},
                    {"outputs", outputs},
                    {"drops", drops}});
  }
  return list;
}

void print_nfs(nf::Registry const& registry) {
  for (nf::Descriptor const* descriptor : registry.all()) {
    const std::string origin = registry.origin(descriptor->type);
    std::cout << fmt::format("{}  ({}){}\n  {}\n", descriptor->type, descriptor->has_kernel ? "cpu, gpu" : "cpu",
                             origin.empty() ? "" : "  from " + origin, descriptor->help);
    for (nf::ConfigKey const& key : descriptor->config) {
      std::cout << fmt::format("    {:<20} {:<28} {}{}\n", key.name, key.type, key.help,
                               key.fallback.empty() ? " (required)" : fmt::format(" (default: {})", key.fallback));
    }
    for (nf::PacketOutput const& output : descriptor->packet_outputs) {
      std::cout << fmt::format("    output {:<13} {}\n", output.name, output.help);
    }
    for (nf::DropReason const& reason : descriptor->drop_reasons) {
      std::cout << fmt::format("    drops {:<14} {}\n", reason.name, reason.help);
    }
    std::cout << '\n';
  }
  std::cout << "every NF\n";
  for (nf::DropReason const& reason : nf::framework_reasons()) {
    std::cout << fmt::format("    drops {:<14} {}\n", reason.name, reason.help);
  }
}

Json devices_json() {
  Json list = Json::array();
  for (device::Probe const& probe : device::probe()) {
    Json found = Json::array();
    for (device::DeviceInfo const& info : probe.devices) {
      found.push_back({{"name", info.name},
                       {"driver", info.driver},
                       {"target", info.target},
                       {"compute_units", info.compute_units},
                       {"memory_bytes", info.memory_bytes},
                       {"local_memory_bytes", info.local_memory_bytes}});
    }
    list.push_back(
        {{"backend", std::string(probe.backend)}, {"devices", found}, {"error", std::string(probe.status.message())}});
  }
  return list;
}

void print_devices() {
  constexpr double kMiB = 1024.0 * 1024.0;
  for (device::Probe const& probe : device::probe()) {
    for (device::DeviceInfo const& info : probe.devices) {
      std::cout << fmt::format("{:<7} {}: {} compute units, {:.0f} MiB, {}, compiled for {}\n", probe.backend,
                               info.name, info.compute_units, static_cast<double>(info.memory_bytes) / kMiB,
                               info.driver, info.target);
    }
    if (probe.devices.empty()) {
      std::cout << fmt::format("{:<7} not available: {}\n", probe.backend, std::string(probe.status.message()));
    }
  }
}

struct FieldRow {
  unsigned id;
  const char* name;
  unsigned bytes;
  const char* help;
};
constexpr FieldRow kFields[] = {
#define CATENA_FIELD_ROW(id, name, constant, bytes, help) {id, name, bytes, help},
    CATENA_PACKET_FIELDS(CATENA_FIELD_ROW)
#undef CATENA_FIELD_ROW
};

Json fields_json() {
  Json list = Json::array();
  for (FieldRow const& field : kFields) {
    list.push_back({{"id", field.id}, {"name", field.name}, {"bytes", field.bytes}, {"help", field.help}});
  }
  return list;
}

void print_fields() {
  for (FieldRow const& field : kFields) {
    std::cout << fmt::format("{:>2}  {:<15} {:>8}  {}\n", field.id, field.name,
                             field.bytes == 0 ? "variable" : fmt::format("{} B", field.bytes), field.help);
  }
}

}  // namespace

int show(std::string const& what, bool json, std::string const& nf_path) {
  if (what == "nfs") {
    const Result<nf::Registry> registry = known_nfs(nf_path);
    if (!registry.ok()) {
      return fail(registry.status(), json);
    }
    json ? print_json(std::cout, nfs_json(*registry)) : print_nfs(*registry);
  } else if (what == "devices") {
    json ? print_json(std::cout, devices_json()) : print_devices();
  } else {
    json ? print_json(std::cout, fields_json()) : print_fields();
  }
  return kExitOk;
}

int show_schema(std::string const& nf_path) {
  const Result<nf::Registry> registry = known_nfs(nf_path);
  if (!registry.ok()) {
    return fail(registry.status());
  }
  std::cout << chain::chain_schema(*registry) << '\n';
  return kExitOk;
}

}  // namespace catena::cli
