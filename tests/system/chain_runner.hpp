// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/session.hpp"

#include <catena/nf/testing/harness.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Runs whole chains in this process, from capture file to capture file, for the system tests.
namespace catena::testing {

/// Stands in configs for the file to which an NF writes flows, at most one of a chain.
inline constexpr std::string_view kFlowsFile = "@flows";

/// One NF of a chain under test: name, type, and its `config:` as YAML flow text.
struct NfText {
  std::string name;
  std::string type;
  std::string config;
};

/// What a run gave.
struct ChainOutput {
  std::string capture;  ///< bytes of the output pcap
  std::string records;  ///< bytes of the record file
  std::string flows;    ///< bytes of kFlowsFile, if there was one
  runtime::Report report;
  std::optional<plan::Plan> plan;
};

struct ChainRun {
  std::vector<NfText> nfs;
  std::uint32_t gpu_mask = 0;  ///< bit i: NF i is placed on the gpu
  std::string capture;         ///< input file
  std::string device = "none";
  std::string spec_extra;  ///< further lines of `spec:`, two spaces in front of each
  std::uint32_t workers = 1;
  chain::SyncOptions sync = {};
  nf::Registry const* registry = &nf::builtin_nfs();            ///< the NF types that there are
  bool device_server = false;                                   ///< the device is in another process
  std::optional<chain::SharingOptions> sharing = std::nullopt;  ///< every NF has costs where it asks for those
  bool processes = false;                                       ///< each NF is in a process of its own
  bool is_one_group = false;  ///< or, with `processes`, all of them are in one process
  bool is_auto = false;       ///< NFs are `on: auto`, with costs by which gpu_mask is the placement
  bool records = true;        ///< none: NFs get small units together, for nobody asks of which unit a line is
};

/// A file of associations with other keys, as number `number` has them; 0: the same. Two NFs of a chain must not
/// encrypt with the same ones.
std::string with_keys(std::string associations, unsigned number);
/// The name of a file with those of tests/data/chain/`name`.
std::string sa_file(std::string const& name, unsigned number);

/// The program that NFs in processes of their own are in.
std::string nf_program();

/// Costs with which a planner takes `method` wherever it can.
chain::CostProfile costs_for(TransferMethod method);

/// As if each NF of the chain had been measured: costs that differ from NF to NF, the last one's the highest.
Result<std::vector<chain::MeasuredNf>> costs_of_nfs(chain::ChainConfig const& config, nf::Registry const& registry);

/// Costs of the chain's NFs that make each NF of `gpu_mask` dear on the CPU, and the others too slow for the gpu.
Result<chain::CostProfile> costs_that_place(std::uint32_t gpu_mask, chain::ChainConfig const& config,
                                            nf::Registry const& registry);

/// The chain file of a run.
std::string chain_text(ChainRun const& run, std::string const& output);
Result<ChainOutput> run_chain(ChainRun const& run);

/// A fresh folder of this test process; removed when it ends.
std::filesystem::path const& scratch_folder();

/// Captures that the suites share; made once a process in scratch_folder().
struct Traffic {
  std::string name;
  std::string capture;
};
/// "mixed" (the large shared capture where it is there, else the example's), "imix", "64", "512", "1518".
std::vector<Traffic> const& clear_traffic();
/// The same after IPsec encryption with tests/data/chain/sa.yaml.
std::vector<Traffic> const& esp_traffic();

/// What the runs in combination share: some 3,000 packets of "mixed", and among them destination unreachable messages
/// about datagrams of 40 hosts in 100.64.0.0/10, whose first packets open the capture. The errors quote what a NAT
/// makes of these datagrams that has 203.0.113.1 alone to give and keeps free ports: 40 from outside about what the
/// hosts sent, 40 from the hosts about what came for them.
struct CombinedTraffic {
  std::string clear;  ///< captures; made once a process in scratch_folder()
  std::string esp;    ///< after IPsec encryption with tests/data/chain/sa-all.yaml
  std::size_t icmp_errors = 0;
};
CombinedTraffic const& combined_traffic();

/// The `config:` of an lb whose services are the four endpoints that most TCP and UDP packets of the capture go to, so
/// that there is something to balance in any capture.
std::string lb_config_for(std::string const& capture);

/// `--device` values of the devices that are here: "opencl", and "cuda" on a machine with a GPU.
std::vector<std::string> const& device_names();

/// Writes frames as a pcap file, with these stamps (ns since 1970, before the year 2106), else 0; NotFound or
/// PermissionDenied if it cannot be created.
Status write_capture(std::string const& path, std::vector<packet::testing::Frame> const& frames,
                     std::vector<std::uint64_t> const& stamps_ns = {});

/// The first line in which two texts differ, for messages; empty if they are the same.
std::string first_difference(std::string const& actual, std::string const& expected);

std::string read_file(std::filesystem::path const& path);
std::string data_file(std::string const& name);

}  // namespace catena::testing
