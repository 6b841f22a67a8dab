// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/nf/config.hpp>
#include <catena/nf/nf.hpp>
#include <catena/nf/persistent.hpp>

#include "nf/named_files.hpp"
#include "pipeline/isolation/field_mask.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Messages between an NF process and its parent over a socket, besides packets: frames of JSON
/// (base/ipc/frames.hpp). All input from the process is untrusted.
namespace catena::nf_process {

enum class Call : std::uint32_t {
  // to the process
  kDescribe = 1,  ///< Wanted; once for each NF of the process, in chain order
  kFrames,        ///< with the descriptor of the slots
  kChannel,       ///< with the descriptor of the channel
  kDevicePage,    ///< with memory for kDevice, which follows: see device::remote::make_client_page()
  kDevice,        ///< with a socket to a device server, or without one and a text with the reason
  kStart,         ///< Setup
  kOutput,        ///< reply to kOpenOutput, kWriteOutput and kCloseOutput: Answer
  kKept,          ///< content of a kept file, after the kOutput that announces it
  kStateMemory,   ///< memory for a state, which the process fills before its next message
  kTakeState,     ///< StateOf, with its memory: of an NF replaced by one of its NFs
  kBegin,         ///< after all kTakeState; if Setup::waits_for_state, packets follow it
  // from the process
  kNfInfo,       ///< Described
  kStarted,      ///< each NF's report: Started
  kRefused,      ///< instead of one of the two above: an error
  kWantDevice,   ///< requests kDevice
  kStatistics,   ///< NfStatistics of one NF. Once more after its end
  kEnded,        ///< Ended, after the last statistics; then it exits
  kOpenOutput,   ///< OpenOutput
  kWriteOutput,  ///< a handle (with_handle()) and the bytes
  kCloseOutput,  ///< a handle
  kState,        ///< StateOf, before kEnded, if it transfers state; kStateMemory replies
  kBegun,        ///< reply to kBegin: the result for each state
};

/// Limit for frames from a process.
inline constexpr std::uint32_t kMaxFrameBytes = 1U << 20;

/// Descriptors that the process starts with.
inline constexpr int kControlFd = 3;
inline constexpr int kEventNotifierFd = 4;  ///< its end of the notifier

/// An NF to add to the process.
struct StartRequest {
  std::string type;    ///< empty: the type of the plug-in
  std::string plugin;  ///< file of a shared object; empty: the type is built in
};

/// Description of an NF's type, available before an NF is created.
struct NfInfo {
  std::string type;
  std::string help;
  std::vector<std::pair<std::string, std::string>> drop_reasons;    ///< name, help; without the framework's
  std::vector<std::pair<std::string, std::string>> packet_outputs;  ///< name, help; without the outputs of every NF
  bool has_kernel = false;
  nf::Sharding sharding = nf::Sharding::kNone;
};

/// How an NF on a GPU shares it with others: see chain::SharingOptions. Its partition is in the channel.
struct SharedGpu {
  std::string mode;
  std::string parts;
  std::uint32_t compute_units = 0;
};

/// Requests an output of one of its NFs. The process itself only names files in a folder.
struct OpenOutput {
  std::uint32_t output = 0;  ///< its number among all NfSetup::outputs
  std::string name;          ///< of a file in a folder; else empty
};

struct Answer {
  Status status;
  std::uint32_t handle = 0;  ///< for the following calls, if one was opened
  bool is_kept = false;      ///< kKept follows
};

/// One NF of the process, in the order of description.
struct NfSetup {
  std::string name;  ///< in the chain file
  bool on_gpu = false;
  std::vector<nf::NamedOutput> outputs = {};  ///< outputs named by its configuration
};

/// Input for creating the NFs and their part of the data path.
struct Setup {
  std::string file;                                             ///< the chain file's name
  std::string text;                                             ///< and its content
  std::vector<std::pair<std::string, std::string>> included;    ///< the same of the files included by it
  std::map<std::string, std::string, std::less<>> environment;  ///< of its variables
  std::vector<NfSetup> nfs;                                     ///< 1 to kMaxNfs
  nf::Shard shard = {};                                         ///< other shards have other processes
  std::string device;                                           ///< as device::parse_preference() takes it
  nf::Ends ends;
  nf::RunContext context;
  bool records = false;          ///< send lines for `--record`
  bool alerts = false;           ///< and for `--eve`
  bool waits_for_state = false;  ///< wait for kBegin: see NfProcess::start_replacement()
  // as chain::SyncOptions
  std::uint8_t sync = 0;  ///< a plan::Mode
  bool pushdown = true;
  std::uint8_t methods = 0;  ///< a plan::MethodSet
  std::uint32_t slots = 0;
  std::uint32_t unit_packets = 0;
  std::uint32_t units_per_launch = 0;
  std::uint32_t launches_in_flight = 0;
  std::uint32_t device_limit_ms = 0;
  std::uint32_t max_batch_delay_us = 0;
  std::optional<SharedGpu> sharing = std::nullopt;
};

/// Of one NF.
struct Started {
  FieldUse field_use;                                                ///< by the NF as configured
  std::vector<std::string> lines;                                    ///< of the start report
  std::vector<std::pair<std::string, std::uint64_t>> refused_rules;  ///< number of rules, by reason
  bool is_portable = false;                                          ///< see nf::Portable
};

/// State of an NF, in memory sent with it.
struct StateOf {
  std::size_t nf = 0;  ///< its number in the sending or receiving process
  std::uint64_t bytes = 0;
};
/// Limit for all NFs of a process.
inline constexpr std::uint64_t kMaxStateBytes = std::uint64_t{1} << 30U;
/// The memory has one byte more, since it cannot be empty.
inline constexpr std::uint64_t memory_bytes(StateOf const& state) { return state.bytes + 1; }

/// Statistics of one NF, since a frame could not hold many of them.
struct NfStatistics {
  std::size_t nf = 0;  ///< its number
  std::vector<nf::Statistic> statistics = {};
  std::vector<std::string> lines = {};  ///< of the final report; empty before
};

struct Ended {
  Status status;
};

/// Whether it may be the name of a statistic: at most 256 letters, digits, '_', '-' and '.'. Any thread.
bool is_statistic_name(std::string_view name);

// Texts of frames. Readers return DataLoss if the text is malformed, has too many elements, or is not about `nfs` NFs.
// Names of drop reasons must be valid in metrics; other text must be printable and of limited length.
std::string to_json(StartRequest const& wanted);
std::string to_json(NfInfo const& described);
std::string to_json(Setup const& setup);
std::string to_json(std::vector<Started> const& started);
std::string to_json(Ended const& ended);
std::string to_json(Status const& error);
std::string to_json(NfStatistics const& statistics);
std::string to_json(StateOf const& state);
std::string to_json(std::vector<Status> const& of_nfs);
Result<StartRequest> read_start_request(std::string_view text);
Result<NfInfo> read_nf_info(std::string_view text);
Result<Setup> read_setup(std::string_view text);
Result<std::vector<Started>> read_started(std::string_view text, std::size_t nfs);
Result<Ended> read_ended(std::string_view text);
std::string to_json(OpenOutput const& open);
std::string to_json(Answer const& answer);
Result<OpenOutput> read_open_output(std::string_view text);
Result<Answer> read_answer(std::string_view text);
/// The error reported by the process; never OK.
Status read_error(std::string_view text);
Result<NfStatistics> read_statistics(std::string_view text, std::size_t nfs);
Result<StateOf> read_state_of(std::string_view text, std::size_t nfs);
Result<std::vector<Status>> read_begun(std::string_view text, std::size_t nfs);

/// Sends a frame with a text, and `fd` with it unless it is -1. As ipc::send_frame().
Status send(int socket, Call call, std::string_view text, int fd = -1);
/// The body of kWriteOutput or kCloseOutput: a handle, followed by the bytes; and its handle. DataLoss if it is
/// missing.
std::vector<std::byte> with_handle(std::uint32_t handle, std::span<const std::byte> bytes);
Result<std::uint32_t> handle_of(std::span<const std::byte> body);
inline constexpr std::size_t kHandleBytes = 4;
std::string_view text_of(std::span<const std::byte> body);

}  // namespace catena::nf_process
