// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "nf/named_files.hpp"
#include "share/gpu_model.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// What single NFs cost on a device, as a cost profile keeps it.
namespace catena::chain {

/// Whose costs they are.
struct NfKey {
  std::string type;
  /// 16 hexadecimal digits: a hash of the NF's configuration and of what is in the files that it names.
  std::string configuration;
  bool operator==(NfKey const&) const = default;
};

/// Bytes that are read of the files of one NF for its key, in all: twice the longest file that any NF here takes.
inline constexpr std::uint64_t kMaxHashedBytes = std::uint64_t{512} << 20;

/// That of an entry of a chain file. `files`: what nf::NamedFiles collected while the NF was made. Files that are
/// written do not count, and of the others the content, wherever they are, if they are regular files; what they include
/// in turn is not seen. Thread rule: any thread.
///   Unavailable        one cannot be read, or changes meanwhile
///   InvalidArgument    they have more than kMaxHashedBytes
///   PermissionDenied   as open_to_read()
Result<NfKey> key_of(NfConfig const& config, std::span<const nf::NamedFile> files);
/// The same of an NF that is not made here: as if it read each file that its configuration names, but for those that
/// are written by what is `known` of its files.
Result<NfKey> key_of_unmade(NfConfig const& config, std::span<const nf::NamedFile> known);

/// The performance model of an NF for packets of one size, and how well it fits what was measured.
struct MeasuredNf {
  NfKey nf;
  std::uint32_t packet_bytes = 0;  ///< of a frame, without FCS
  std::string measured;            ///< as CostProfile::measured
  share::NfCost cost;
  double kernel_r_squared = 0;    ///< 0 to 1; 0: the line explains nothing
  double transfer_r_squared = 0;  ///< the same
  /// As cost.cpu_ns_per_packet, which is with every NF on the device that may be there: with those beside it on the
  /// CPU, so that it shares no move with them. 0: not measured.
  double host_alone_ns = 0;
};

/// What an NF takes on one core for packets of one size.
struct MeasuredOnCpu {
  NfKey nf;
  std::uint32_t packet_bytes = 0;  ///< as MeasuredNf's
  std::string measured;            ///< the same
  double ns_per_packet = 0;        ///< the median of several runs
  double spread_percent = 0;       ///< from the fastest of them to the slowest, of the median
  double after_gpu_ns = 0;         ///< as ns_per_packet, of packets that were on the device before; 0: not measured
};

/// What the ends of a chain take on one core for packets of one size: the generator as rx, nothing behind tx.
struct MeasuredEnds {
  std::uint32_t packet_bytes = 0;  ///< as MeasuredNf's
  std::string measured;            ///< the same
  double rx_ns_per_packet = 0;
  double tx_ns_per_packet = 0;
};

/// Entries of each kind that a profile keeps; the oldest go first.
inline constexpr std::size_t kMaxMeasuredNfs = 256;

/// Puts `nf` behind the others, in place of an entry of the same NF and packet size.
void keep(std::vector<MeasuredNf>& all, MeasuredNf nf);
void keep(std::vector<MeasuredOnCpu>& all, MeasuredOnCpu nf);
/// The same, of the packet size.
void keep(std::vector<MeasuredEnds>& all, MeasuredEnds ends);

/// The costs of an NF for packets of `packet_bytes` bytes: those of the smallest size that was measured and is not
/// smaller, so that an NF is never promised more than it was seen to do. Null: there is no such size. Pure.
MeasuredNf const* find(std::span<const MeasuredNf> all, NfKey const& nf, std::uint32_t packet_bytes);
MeasuredOnCpu const* find(std::span<const MeasuredOnCpu> all, NfKey const& nf, std::uint32_t packet_bytes);
MeasuredEnds const* find(std::span<const MeasuredEnds> all, std::uint32_t packet_bytes);

}  // namespace catena::chain
