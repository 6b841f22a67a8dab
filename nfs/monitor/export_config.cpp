// SPDX-License-Identifier: Apache-2.0
#include "export_config.hpp"

#include <absl/strings/numbers.h>
#include <catena/core/text.hpp>

#include <filesystem>
#include <set>

namespace catena::monitor {
namespace {

constexpr std::int64_t kMaxObservationDomain = 0xFFFFFFFF;
constexpr std::int64_t kTemplateRefresh = 20;
constexpr std::int64_t kMaxTemplateRefresh = 1'000'000;

Result<std::string> read_file(nf::Config& entry) {
  CATENA_ASSIGN_OR_RETURN(std::string path, entry.output_path("file"));
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return entry.error("file", concat("'file': ", path, " is a folder; write the name of a file"));
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
    return entry.error("file", concat("'file': there is no folder ", folder.string(), "; make it first"));
  }
  return path;
}

struct Collector {
  std::string host;
  std::uint16_t port;
};

Result<Collector> read_collector(nf::Config& entry) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, entry.string("udp"));
  const std::size_t colon = text.rfind(':');
  std::uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port == 0 ||
      port > 0xFFFF) {
    return entry.error("udp", concat("'udp' is '", text, "'; write HOST:PORT, as 192.0.2.1:4739"));
  }
  return Collector{text.substr(0, colon), static_cast<std::uint16_t>(port)};
}

Result<NamedExporter> read_udp_exporter(nf::Config& entry, IpfixOptions options) {
  CATENA_ASSIGN_OR_RETURN(const Collector collector, read_collector(entry));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t refresh,
                          entry.integer_or("template_refresh", kTemplateRefresh, 1, kMaxTemplateRefresh));
  CATENA_RETURN_IF_ERROR(entry.finish());
  options.template_refresh = static_cast<std::uint32_t>(refresh);
  auto output = udp_output(collector.host, collector.port);
  if (!output.ok()) {
    return entry.error("udp", std::string(output.status().message()));
  }
  return NamedExporter{concat("ipfix to udp ", collector.host, ":", collector.port),
                       ipfix_exporter(std::move(output).value(), options)};
}

Result<NamedExporter> read_exporter(nf::Config& entry, IpfixOptions options, std::set<std::string>& files) {
  CATENA_ASSIGN_OR_RETURN(const std::string format, entry.one_of("format", {"json", "ipfix"}));
  const bool to_udp = entry.has("udp");
  if (entry.has("file") == to_udp) {
    return entry.error({}, "an entry of 'export' has either 'file' or 'udp'");
  }
  if (to_udp && format == "json") {
    return entry.error("udp", "json goes to a file only; write 'file', or 'format: ipfix'");
  }
  if (to_udp) {
    return read_udp_exporter(entry, options);
  }
  CATENA_ASSIGN_OR_RETURN(const std::string path, read_file(entry));
  CATENA_RETURN_IF_ERROR(entry.finish());
  if (!files.insert(path).second) {
    return entry.error("file", concat("'file': ", path, " is exported to by another entry; write another name"));
  }
  return NamedExporter{concat(format, " to ", path), format == "json" ? json_exporter(file_output(path))
                                                                      : ipfix_exporter(file_output(path), options)};
}

}  // namespace

Result<std::vector<NamedExporter>> read_exporters(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(const std::int64_t domain,
                          config.integer_or("observation_domain", 1, 0, kMaxObservationDomain));
  std::vector<NamedExporter> exporters;
  if (!config.has("export")) {
    return exporters;
  }
  CATENA_ASSIGN_OR_RETURN(std::vector<nf::Config> entries, config.sections("export"));
  std::set<std::string> files;
  for (nf::Config& entry : entries) {
    const IpfixOptions options{.observation_domain = static_cast<std::uint32_t>(domain)};
    CATENA_ASSIGN_OR_RETURN(NamedExporter exporter, read_exporter(entry, options, files));
    exporters.push_back(std::move(exporter));
  }
  return exporters;
}

}  // namespace catena::monitor
