// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/chains/random.hpp"

#include <catena/core/status.hpp>

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// Random NFs for the chain fuzzer, with any of their keys, and the files that they name.
namespace catena::fuzz {

/// One NF of a chain file.
struct FuzzNf {
  std::string type;
  std::string config;     ///< YAML flow text; file names are relative to the folder of the chain file
  std::string more = {};  ///< further keys beside `type`, ", key: value"
};

/// Files of associations; any one takes off the tunnels that it has put on.
inline constexpr std::array<const char*, 4> kAssociations{"sa.yaml", "sa-all.yaml", "udp-all.yaml", "esn-all.yaml"};

/// Gives NFs that encrypt keys of their own, and those that decrypt the keys of the tunnel that is outermost where they
/// are. Files of associations are the same but for their keys.
void give_keys(std::vector<FuzzNf>& nfs);
/// The same where NFs make traffic for those that decrypt: the outermost tunnel is the last one.
void give_keys_inwards(std::vector<FuzzNf>& nfs);

/// Stands in configs for the file of flows of the NF that writes it.
inline constexpr std::string_view kFlows = "@flows";

/// `mtu`: of the outer datagram; 2034 is what a slot has room for.
FuzzNf make_encrypt(std::string_view associations, std::uint32_t mtu = 2034);
FuzzNf make_decrypt(Random& random, std::string_view associations);
FuzzNf make_nids(Random& random);
/// Of any type.
FuzzNf make_nf(Random& random);

/// Any of the keys that say what becomes of packets that an NF cannot inspect, each with `before` in front of it and
/// `behind` after it; often none.
std::string make_unseen(Random& random, std::string_view before, std::string_view behind);

/// Writes the files that these NFs name into `folder`. Errors: NotFound or Unavailable, with the file.
Status write_chain_files(std::filesystem::path const& folder);

}  // namespace catena::fuzz
