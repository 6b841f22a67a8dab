// SPDX-License-Identifier: Apache-2.0
#include "bench/chains/records.hpp"

#include "bench/common/data.hpp"
#include "io/source.hpp"

#include <utility>

namespace catena::bench {
namespace {

Json phases_json(PhaseTimes const& us) {
  Json json;
  for (std::size_t phase = 0; phase < kPhases.size(); ++phase) {
    json[std::string(kPhases[phase])] = us[phase];
  }
  return json;
}

}  // namespace

Setting tuning_setting(const char* usual, const char* quick) {
  return {.name = "tuning",
          .help = "Of the chain files, as in their `tuning:` without braces",
          .usual = usual,
          .quick = quick};
}

Setting sizes_setting(const char* usual, const char* quick, std::uint32_t longest) {
  return {.name = "sizes",
          .help = "Frames in bytes with FCS",
          .usual = usual,
          .quick = quick,
          .least = io::kMinGeneratedBytes + kFcsBytes,
          .most = static_cast<double>(longest),
          .is_list = true,
          .chooses = true};
}

Setting chains_setting(std::vector<std::string> names) {
  return {.name = "chains",
          .help = "Chains; default: all",
          .usual = "",
          .quick = nullptr,
          .names = std::move(names),
          .is_list = true,
          .chooses = true};
}

std::vector<std::string> names_of(std::vector<PaperChain> const& chains) {
  std::vector<std::string> names;
  for (PaperChain const& chain : chains) {
    names.emplace_back(chain.name);
  }
  return names;
}

Result<std::unique_ptr<OpenWorkplace>> OpenWorkplace::create(Request const& request, nf::Registry const& registry) {
  CATENA_ASSIGN_OR_RETURN(std::filesystem::path data, find_data(request.told().data, "chains", kPaperFiles));
  CATENA_ASSIGN_OR_RETURN(device::TemporaryFolder folder, device::TemporaryFolder::create());
  return std::unique_ptr<OpenWorkplace>(new OpenWorkplace(std::move(folder), std::move(data), registry));
}

Json to_json(PaperChain const& chain) {
  Json nfs = Json::array();
  for (PaperNf const& nf : chain.nfs) {
    nfs.push_back({{"name", nf.name}, {"type", nf.type}, {"on_gpu", nf.on_gpu}});
  }
  return {{"title", chain.title()}, {"decrypts", chain.esp_input}, {"nfs", std::move(nfs)}};
}

Json to_json(std::vector<BusyShare> const& busy) {
  Json json = Json::array();
  for (BusyShare const& share : busy) {
    json.push_back({{"what", share.what}, {"share", share.share}});
  }
  return json;
}

Json to_json(std::vector<NfBytes> const& nfs) {
  Json json = Json::array();
  for (NfBytes const& bytes : nfs) {
    json.push_back({{"name", bytes.nf}, {"bytes_to_device", bytes.to_device}, {"bytes_to_host", bytes.to_host}});
  }
  return json;
}

Json to_json(std::vector<LaunchTimes> const& launches) {
  Json json = Json::array();
  for (LaunchTimes const& times : launches) {
    json.push_back({{"name", times.nf},
                    {"launches", times.launches},
                    {"packets", times.packets},
                    {"median_us", phases_json(times.median_us)},
                    {"total_us", phases_json(times.total_us)}});
  }
  return json;
}

void add_samples(SampleCheck const& check, Json& cell) {
  if (!cell.contains("samples")) {
    cell["samples"] = {{"compared", 0U}, {"different", 0U}};
  }
  Json& samples = cell["samples"];
  samples["compared"] = samples["compared"].get<std::uint64_t>() + check.compared;
  samples["different"] = samples["different"].get<std::uint64_t>() + check.different;
  if (check.different > 0 && !samples.contains("first_difference")) {
    samples["first_difference"] = check.first_difference;
  }
}

}  // namespace catena::bench
