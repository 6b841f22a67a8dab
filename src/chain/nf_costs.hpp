// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "nf/named_files.hpp"
#include "plan/sharing/gpu_model.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// The costs of single NFs on a device, as kept in a cost profile.
namespace catena::chain {

/// The NF of a cost.
struct NfKey {
  std::string type;
  /// 16 hexadecimal digits: a hash of the NF's configuration and of the contents of the files named in it.
  std::string configuration;
  bool operator==(NfKey const&) const = default;
};

/// Maximum number of bytes hashed for the key of one NF, over all its files: twice the longest file accepted by any NF
/// here.
inline constexpr std::uint64_t kMaxHashedBytes = std::uint64_t{512} << 20;

/// The key of an entry of a chain file. `files`: collected by nf::NamedFiles while the NF was created. Written files do
/// not count. Of other files the contents count, wherever they are, if they are regular files; files included by these
/// do not count. Thread rule: any thread.
///   Unavailable        a file cannot be read, or changes meanwhile
///   InvalidArgument    they have more than kMaxHashedBytes
///   PermissionDenied   as open_to_read()
Result<NfKey> key_of(NfConfig const& config, std::span<const nf::NamedFile> files);
/// The same for an NF not created here: as if it read each file named in its configuration, except its written files
/// according to `known`.
Result<NfKey> key_of_unmade(NfConfig const& config, std::span<const nf::NamedFile> known);

/// The performance model of an NF for packets of one size, and its goodness of fit.
struct MeasuredNf {
  NfKey nf;
  std::uint32_t packet_bytes = 0;  ///< of a frame, without FCS
  std::string measured;            ///< as CostProfile::measured
  share::NfCost cost;
  double kernel_r_squared = 0;    ///< 0 to 1; 0: the line explains nothing
  double transfer_r_squared = 0;  ///< the same
  /// As cost.cpu_ns_per_packet, which is measured with as many NFs on the device as possible. Here the neighbours are
  /// on the CPU, so that the NF shares no move with them. 0: not measured.
  double host_alone_ns = 0;
};

/// The time of an NF on one core for packets of one size.
struct MeasuredOnCpu {
  NfKey nf;
  std::uint32_t packet_bytes = 0;  ///< as MeasuredNf's
  std::string measured;            ///< the same
  double ns_per_packet = 0;        ///< the median of several runs
  double spread_percent = 0;       ///< from the fastest run to the slowest, relative to the median
  double after_gpu_ns = 0;         ///< as ns_per_packet, for packets coming from the device; 0: not measured
};

/// The time of rx and tx on one core for packets of one size: the generator as rx, `null` as tx.
struct MeasuredEnds {
  std::uint32_t packet_bytes = 0;  ///< as MeasuredNf's
  std::string measured;            ///< the same
  double rx_ns_per_packet = 0;
  double tx_ns_per_packet = 0;
};

/// Maximum number of entries of each kind in a profile; the oldest are removed first.
inline constexpr std::size_t kMaxMeasuredNfs = 256;

/// Appends `nf`, in place of an entry of the same NF and packet size.
void keep(std::vector<MeasuredNf>& all, MeasuredNf nf);
void keep(std::vector<MeasuredOnCpu>& all, MeasuredOnCpu nf);
/// The same, for the same packet size.
void keep(std::vector<MeasuredEnds>& all, MeasuredEnds ends);

/// The costs of an NF for packets of `packet_bytes` bytes: of the smallest measured size not below it, so that
/// predictions never exceed measured speeds. Null without such a size. Pure.
MeasuredNf const* find(std::span<const MeasuredNf> all, NfKey const& nf, std::uint32_t packet_bytes);
MeasuredOnCpu const* find(std::span<const MeasuredOnCpu> all, NfKey const& nf, std::uint32_t packet_bytes);
MeasuredEnds const* find(std::span<const MeasuredEnds> all, std::uint32_t packet_bytes);

}  // namespace catena::chain
