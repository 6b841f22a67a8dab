// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "functions/classify/classify.layout.hpp"
#include "functions/classify/dpdk/acl.hpp"
#include "functions/classify/rule_parser.hpp"

/// A packet filter over addresses, ports and protocol. The first matching rule of the file decides, else `default`. A
/// denied packet drops as `denied`. Packet bytes never change.
///
/// A packet has ports if its TCP or UDP header is whole. Other protocols and later fragments have no ports and match
/// only rules without ports, as in iptables. TCP and UDP packets without readable ports match no rule: they drop as
/// `fragment` (RFC 1858, RFC 3128) or `malformed`.
///
/// One packet: UDP 10.0.0.5:4000 -> 8.8.8.8:53 against
///     allow udp 10.0.0.0/24 10.0.0.138/32 any 53
///     deny  udp any         any           any 53
/// is not for 10.0.0.138, so rule 1 (from 0) drops it.
///
/// CPU: rte_acl. Kernel: classify.kernel.cpp over the tables of bit_vector.hpp.
namespace catena::firewall {

class Firewall final : public nf::Nf {
 public:
  /// Errors: as load_rules() and Acl::create(); InvalidArgument for a wrong configuration.
  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config);

  nf::Hints hints() const override;
  /// The replica uses the same tables, even if the rules file has changed.
  Result<std::unique_ptr<nf::Nf>> replicate(std::uint32_t shard) const override;
  /// True if both use the same tables in memory.
  bool shares_tables_with(Firewall const& other) const { return tables_ == other.tables_; }
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(nf::Completion const& completion) override;
  Result<nf::KernelSide> kernel_side() const override;
  std::vector<std::string> start_report() const override;

 private:
  /// Packets per rte_acl call: a whole unit.
  static constexpr std::uint32_t kChunk = 256;

  /// Immutable: any number of threads.
  struct Tables {
    classify::RuleFile file;
    classify::Acl acl;
    std::vector<std::uint8_t> actions;  ///< Action of the default, then of each rule
    nf::OnUnsupported on_unsupported;   ///< of the chain
  };
  explicit Firewall(std::shared_ptr<const Tables> tables);
  void classify(packet::Batch const& batch, std::uint32_t first, std::uint32_t count, std::int32_t* rules);
  bool allows(classify::ClassifyResult result) const;

  std::shared_ptr<const Tables> tables_;

  // of one chunk; packets with ports from the start, packets without ports from the end
  std::array<classify::AclKey, kChunk> keys_{};
  std::array<const std::uint8_t*, kChunk> key_pointers_{};  ///< into keys_
  std::array<std::uint32_t, kChunk> positions_{};           ///< position of each key in the chunk
  std::array<std::uint32_t, kChunk> matches_{};
};

}  // namespace catena::firewall

catena::nf::Descriptor const& catena_nf_firewall();
