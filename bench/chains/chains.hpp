// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// The chains of "AdaptChain: Adaptive Data Sharing and Synchronization for NFV Systems on Heterogeneous Architectures"
/// (IEEE TPDS 2024), section VI, as chain files.
namespace catena::bench {

/// Number of flows in the benchmark's frames, used round-robin.
inline constexpr std::uint32_t kFlows = 1024;
/// Bytes of the frame check sequence. The paper's sizes include it, Catena's frames do not.
inline constexpr std::uint32_t kFcsBytes = 4;

struct PaperNf {
  const char* name;
  const char* type;
  const char* config;  ///< YAML flow text; %SA% is replaced by the path of the SA file
  bool on_gpu;
};

inline constexpr const char* kEncryptConfig = "direction: encrypt, sa: %SA%, mtu: 2034";
inline constexpr const char* kRulesConfig = "rules: ids.rules";
inline constexpr const char* kRoutesConfig = "routes: routes.txt";
inline constexpr PaperNf kGpuVpn{"vpn", "ipsec", kEncryptConfig, true};
inline constexpr PaperNf kGpuIds{"ids", "nids", kRulesConfig, true};
inline constexpr PaperNf kGpuRouter{"rt", "router", kRoutesConfig, true};

struct PaperChain {
  const char* name;
  std::vector<PaperNf> nfs;
  bool esp_input = false;  ///< receives ESP and decrypts it

  /// "firewall(C) ipsec(G) nids(G)".
  std::string title() const;
};

/// C1 to C5 encrypting, then C1, C3 and C4 decrypting.
std::vector<PaperChain> const& paper_chains();
/// The chains of the paper's sections II and III, about single NFs: F is a firewall alone, F-I adds IPsec, F-I-N also a
/// NIDS. IPsec and a NIDS also run alone and "resident". Resident chains surround the NF with NIDS that do not modify
/// packets, so a plan may move whole packets to the device before the NF and keep them there after it. The NF has the
/// same name as when alone.
std::vector<PaperChain> const& figure_chains();
/// S_a to S_d of "G-NET: Effective GPU Sharing in NFV Systems" (NSDI 2018): decrypting, every NF on the GPU. See
/// examples/chains.
std::vector<PaperChain> const& gnet_chains();
/// The same chains encrypting, so that NF costs can be measured repeatedly over the same packets. The firewall has as
/// many rules as in the paper.
std::vector<PaperChain> const& sharing_chains();
/// Chains of one to four of these NFs, as in figure 16 of that paper: IPsec alone, S_a, S_b and S_d.
std::vector<PaperChain> const& growing_chains();
/// One chain per kernel of this tree's NFs, named after the kernel, with the NF configured as in the chains above.
std::vector<PaperChain> const& kernel_chains();
/// Chains measured on the CPU and on the GPU: S_d of sharing_chains(), and FNR (firewall, NIDS, router), which costs
/// little CPU time.
std::vector<PaperChain> const& placed_chains();
/// One of paper_chains(), figure_chains() or placed_chains(). NotFound lists the known chains.
Result<PaperChain const*> find_chain(std::string_view name);
/// rx and tx alone, with or without ESP: the upper limit of the source.
PaperChain const& empty_chain(bool esp_input = false);
/// IPsec alone, encrypting. Produces the input of the decrypting chains.
PaperChain const& encrypting_chain();

/// Placement of the NFs of a chain.
enum class Placed : std::uint8_t {
  kAsListed,  ///< see PaperNf::on_gpu
  kCpu,
  kAuto,  ///< `on: auto` for all NFs
};

/// Contents of a chain file besides its NFs.
struct ChainText {
  std::uint32_t frame_bytes = 60;   ///< frame size of the replay and of the plan
  std::uint64_t packets_per_s = 0;  ///< 0: no limit
  std::string device = "none";      ///< "none": every NF on the CPU
  Placed placed = Placed::kAsListed;
  std::string sa_file;  ///< for chains with IPsec
  std::string tuning;   ///< YAML flow text without its braces
};
std::string chain_text(PaperChain const& chain, ChainText const& text);
/// The NF's configuration with the path of its SA file, as YAML.
std::string config_text(PaperNf const& nf, std::string const& sa_file);

/// Files of the data folder: rules, routes and security associations (see find_data()).
inline constexpr std::array<std::string_view, 5> kPaperFiles{"fw.rules", "fw-188.rules", "ids.rules", "routes.txt",
                                                             "sa.yaml.in"};
/// Writes an SA file into `folder`, made from the data folder's sa.yaml.in, and returns its path. Errors: NotFound,
/// PermissionDenied.
Result<std::string> write_sa(std::filesystem::path const& data, std::filesystem::path const& folder, std::uint32_t spi,
                             std::uint32_t first_sequence);

}  // namespace catena::bench
