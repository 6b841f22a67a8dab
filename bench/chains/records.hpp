// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/chains/busy.hpp"
#include "bench/chains/chains.hpp"
#include "bench/chains/launches.hpp"
#include "bench/chains/reference.hpp"
#include "bench/chains/sample_sink.hpp"
#include "bench/common/request.hpp"
#include "bench/common/results.hpp"
#include "bench/common/time_rows.hpp"
#include "gpu/device/subprocess.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Shared by the parts of catena-bench that run chains: their settings, their files, and the JSON form of run results.
namespace catena::bench {

Setting tuning_setting(const char* usual, const char* quick);
/// Frame sizes with FCS, at most `longest` bytes.
Setting sizes_setting(const char* usual, const char* quick, std::uint32_t longest);
Setting chains_setting(std::vector<std::string> names);
std::vector<std::string> names_of(std::vector<PaperChain> const& chains);

/// A Workplace and its temporary folder.
class OpenWorkplace {
 public:
  /// Errors: as find_data() and TemporaryFolder::create().
  static Result<std::unique_ptr<OpenWorkplace>> create(Request const& request, nf::Registry const& registry);
  Workplace const& get() const { return workplace_; }

 private:
  OpenWorkplace(device::TemporaryFolder folder, std::filesystem::path data, nf::Registry const& registry)
      : folder_(std::move(folder)), workplace_{std::move(data), folder_.path(), &registry} {}

  device::TemporaryFolder folder_;
  Workplace workplace_;
};

/// {"title", "decrypts", "nfs": [{"name", "type", "on_gpu"}]}.
Json to_json(PaperChain const& chain);
/// [{"what", "share"}].
Json to_json(std::vector<BusyShare> const& busy);
/// [{"name", "bytes_to_device", "bytes_to_host"}], per packet.
Json to_json(std::vector<NfBytes> const& nfs);
/// [{"name", "launches", "packets", "median_us": {PHASE: us}, "total_us": {PHASE: us}}].
Json to_json(std::vector<LaunchTimes> const& launches);
/// Adds to the cell's "samples": {"compared", "different", "first_difference"}; the last only if a sample differs.
void add_samples(SampleCheck const& check, Json& cell);

}  // namespace catena::bench
