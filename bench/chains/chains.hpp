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

/// Frames of the benchmark belong to so many flows, which take turns.
inline constexpr std::uint32_t kFlows = 1024;
/// Bytes of the frame check sequence: the paper counts it, Catena's frames are without it.
inline constexpr std::uint32_t kFcsBytes = 4;

struct PaperNf {
  const char* name;
  const char* type;
  const char* config;  ///< YAML flow text; %SA% stands for the file of associations
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
  bool esp_input = false;  ///< takes ESP and decrypts it

  /// "firewall(C) ipsec(G) nids(G)".
  std::string title() const;
};

/// C1 to C5, which encrypt, then C1, C3 and C4 decrypting.
std::vector<PaperChain> const& paper_chains();
/// What its sections II and III measure of single NFs: a firewall alone, F, with IPsec, F-I, and a NIDS too, F-I-N;
/// IPsec and a NIDS alone, and the same "resident": with NIDS around them that leave packets alone, so that a plan may
/// have whole packets on the device before the NF and leave them there behind it. There the NF has the name that it has
/// alone.
std::vector<PaperChain> const& figure_chains();
/// S_a to S_d of "G-NET: Effective GPU Sharing in NFV Systems" (NSDI 2018), which decrypt, every NF on the GPU; see
/// examples/chains.
std::vector<PaperChain> const& gnet_chains();
/// The same, encrypting, so that what NFs cost can be measured over the same packets again and again; the firewall with
/// as many rules as that paper's.
std::vector<PaperChain> const& sharing_chains();
/// One to four NFs of these, as figure 16 of that paper has them: IPsec alone, S_a, S_b and S_d.
std::vector<PaperChain> const& growing_chains();
/// Every kernel of an NF of this tree by itself, as the chains above have it: chains of one NF, with the kernel's name.
std::vector<PaperChain> const& kernel_chains();
/// Of which each is measured on the CPU and on the GPU: S_d of sharing_chains(), and FNR, a firewall, a NIDS and a
/// router, which cost the CPU little.
std::vector<PaperChain> const& placed_chains();
/// One of paper_chains(), figure_chains() or placed_chains(). NotFound names the chains that there are.
Result<PaperChain const*> find_chain(std::string_view name);
/// rx and tx alone: what the source can give at most; with ESP, or without.
PaperChain const& empty_chain(bool esp_input = false);
/// IPsec alone, encrypting: what makes the input of the chains that decrypt.
PaperChain const& encrypting_chain();

/// Where the NFs of a chain run.
enum class Placed : std::uint8_t {
  kAsListed,  ///< see PaperNf::on_gpu
  kCpu,
  kAuto,  ///< `on: auto`, all of them
};

/// What a chain file says besides its NFs.
struct ChainText {
  std::uint32_t frame_bytes = 60;   ///< of the replay, and what the plan is made for
  std::uint64_t packets_per_s = 0;  ///< 0: no limit
  std::string device = "none";      ///< "none": every NF on the CPU
  Placed placed = Placed::kAsListed;
  std::string sa_file;  ///< where the chain has IPsec
  std::string tuning;   ///< YAML flow text without its braces
};
std::string chain_text(PaperChain const& chain, ChainText const& text);
/// The NF's configuration with its file of associations, as YAML.
std::string config_text(PaperNf const& nf, std::string const& sa_file);

/// What the folder of data has: rules, routes and associations (see find_data()).
inline constexpr std::array<std::string_view, 5> kPaperFiles{"fw.rules", "fw-188.rules", "ids.rules", "routes.txt",
                                                             "sa.yaml.in"};
/// Writes a file of associations from the data folder's sa.yaml.in into `folder`, and gives its path. Errors: NotFound,
/// PermissionDenied.
Result<std::string> write_sa(std::filesystem::path const& data, std::filesystem::path const& folder, std::uint32_t spi,
                             std::uint32_t first_sequence);

}  // namespace catena::bench
