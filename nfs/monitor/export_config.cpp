// SPDX-License-Identifier: Apache-2.0
#include "export_config.hpp"

#include <catena/core/text.hpp>
#include <catena/core/time.hpp>

#include <set>

namespace catena::monitor {
namespace {

constexpr std::int64_t kMaxObservationDomain = 0xFFFFFFFF;
constexpr std::int64_t kTemplateRefresh = 20;
constexpr std::int64_t kMaxTemplateRefresh = 1'000'000;
constexpr std::int64_t kTemplateRefreshSeconds = 600;  // RFC 6728, section 4.4.2: templateRefreshTimeout
constexpr std::int64_t kMaxTemplateRefreshSeconds = 86'400 * 365;

/// An entry of `export`.
struct Entry {
  nf::Config config;  ///< for messages
  std::string format;
  std::string file;  ///< empty: it goes to
  std::string receiver;
  IpfixOptions options;
};

Result<Entry> read_entry(nf::Config const& section, IpfixOptions options) {
  Entry entry{.config = section, .format = {}, .file = {}, .receiver = {}, .options = options};
  CATENA_ASSIGN_OR_RETURN(entry.format, entry.config.one_of("format", {"json", "ipfix"}));
  const bool to_udp = entry.config.has("udp");
  if (entry.config.has("file") == to_udp) {
    return entry.config.error({}, "an entry of 'export' has either 'file' or 'udp'");
  }
  if (to_udp && entry.format == "json") {
    return entry.config.error("udp", "json goes to a file only; write 'file', or 'format: ipfix'");
  }
  if (to_udp) {
    CATENA_ASSIGN_OR_RETURN(entry.receiver, entry.config.receiver("udp"));
    CATENA_ASSIGN_OR_RETURN(const std::int64_t refresh,
                            entry.config.integer_or("template_refresh", kTemplateRefresh, 1, kMaxTemplateRefresh));
    entry.options.template_refresh = static_cast<std::uint32_t>(refresh);
    CATENA_ASSIGN_OR_RETURN(
        const std::int64_t seconds,
        entry.config.integer_or("template_refresh_s", kTemplateRefreshSeconds, 1, kMaxTemplateRefreshSeconds));
    entry.options.template_refresh_ns = static_cast<std::uint64_t>(seconds) * kNsPerSecond;
  } else {
    CATENA_ASSIGN_OR_RETURN(entry.file, entry.config.output_path("file"));
  }
  CATENA_RETURN_IF_ERROR(entry.config.finish());
  return entry;
}

Result<std::vector<Entry>> read_entries(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(const std::int64_t domain,
                          config.integer_or("observation_domain", 1, 0, kMaxObservationDomain));
  std::vector<Entry> entries;
  if (!config.has("export")) {
    return entries;
  }
  CATENA_ASSIGN_OR_RETURN(const std::vector<nf::Config> sections, config.sections("export"));
  std::set<std::string> files;
  for (nf::Config const& section : sections) {
    const IpfixOptions options{.observation_domain = static_cast<std::uint32_t>(domain)};
    CATENA_ASSIGN_OR_RETURN(Entry entry, read_entry(section, options));
    if (!entry.file.empty() && !files.insert(entry.file).second) {
      return entry.config.error("file",
                                concat("'file': ", entry.file, " is exported to by another entry; write another name"));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<NamedExporter> make_exporter(Entry const& entry, std::shared_ptr<nf::Outputs> outputs) {
  if (!entry.file.empty()) {
    std::unique_ptr<Output> output = file_output(std::move(outputs), entry.file);
    return NamedExporter{
        concat(entry.format, " to ", entry.file),
        entry.format == "json" ? json_exporter(std::move(output)) : ipfix_exporter(std::move(output), entry.options)};
  }
  auto output = udp_output(*outputs, entry.receiver);
  if (!output.ok()) {
    return entry.config.error("udp", std::string(output.status().message()));
  }
  return NamedExporter{concat("ipfix to udp ", entry.receiver), ipfix_exporter(*std::move(output), entry.options)};
}

}  // namespace

Result<std::vector<NamedExporter>> read_exporters(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(const std::vector<Entry> entries, read_entries(config));
  std::vector<NamedExporter> exporters;
  for (Entry const& entry : entries) {
    CATENA_ASSIGN_OR_RETURN(NamedExporter exporter, make_exporter(entry, config.outputs()));
    exporters.push_back(std::move(exporter));
  }
  return exporters;
}

Status name_exports(nf::Config& config) { return read_entries(config).status(); }

}  // namespace catena::monitor
