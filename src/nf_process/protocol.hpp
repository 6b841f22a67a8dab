// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/nf/config.hpp>
#include <catena/nf/nf.hpp>
#include <catena/nf/persistent.hpp>

#include "nf/named_files.hpp"
#include "nf_process/crossing.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What an NF's process and who started it say to one another over a socket, beside packets: frames of JSON
/// (device/remote/socket.hpp). Whatever comes from the process is hostile.
namespace catena::nf_process {

enum class Call : std::uint32_t {
  // to the process
  kDescribe = 1,  ///< Wanted; once for each NF that the process is to have, in the order of the chain
  kFrames,        ///< with the descriptor of the slots
  kChannel,       ///< with that of the channel
  kDevicePage,    ///< with memory for what follows: see device::remote::make_client_page()
  kDevice,        ///< with a socket to a device server, or without one; a text that says why
  kStart,         ///< Setup
  kOutput,        ///< answers the three below: Answer
  kKept,          ///< what was in a file that is kept, after a kOutput that announces it
  kStateMemory,   ///< memory for a state, which it fills before it says anything else
  kTakeState,     ///< StateOf, with its memory: of an NF that one of its NFs goes on for
  kBegin,         ///< after those; where Setup::waits_for_state says so, packets come behind it
  // from it
  kDescribed,    ///< Described
  kStarted,      ///< what each NF says: Started
  kRefused,      ///< why one of the two above cannot be: an error
  kWantDevice,   ///< it asks for kDevice
  kStatistics,   ///< of one NF: NfStatistics. After its end once more
  kEnded,        ///< Ended, after the last statistics; it exits then
  kOpenOutput,   ///< OpenOutput
  kWriteOutput,  ///< a handle (with_handle()) and the bytes
  kCloseOutput,  ///< a handle
  kState,        ///< StateOf, before kEnded, where it hands over; kStateMemory answers it
  kBegun,        ///< answers kBegin: what became of each state
};

/// Of what comes from a process.
inline constexpr std::uint32_t kMaxFrameBytes = 1U << 20;

/// Where the process finds what it is started with.
inline constexpr int kControlFd = 3;
inline constexpr int kBellFd = 4;  ///< its end of the bell

/// An NF that the process is to have.
struct Wanted {
  std::string type;    ///< empty: that of the plug-in
  std::string plugin;  ///< file of a shared object; empty: the type is built in
};

/// What there is to know of an NF's type before one is made.
struct Described {
  std::string type;
  std::string help;
  std::vector<std::pair<std::string, std::string>> drop_reasons;    ///< name, help; without the framework's
  std::vector<std::pair<std::string, std::string>> packet_outputs;  ///< name, help; without those that every NF has
  bool has_kernel = false;
  nf::Sharding sharding = nf::Sharding::kNone;
};

/// How an NF on a GPU shares it with others: see chain::SharingOptions. Which part it has, the channel says.
struct SharedGpu {
  std::string mode;
  std::string parts;
  std::uint32_t compute_units = 0;
};

/// Asks for an output of one of its NFs: the process names nothing that is not among them but a file of a folder.
struct OpenOutput {
  std::uint32_t output = 0;  ///< its number, among those of all NfSetup::outputs
  std::string name;          ///< of a file in a folder; else empty
};

struct Answer {
  Status status;
  std::uint32_t handle = 0;  ///< for the following calls, where one was opened
  bool is_kept = false;      ///< kKept follows
};

/// One NF of the process, in the order in which they were described.
struct NfSetup {
  std::string name;  ///< in the chain file
  bool on_gpu = false;
  std::vector<nf::NamedOutput> outputs = {};  ///< what its configuration says that it writes
};

/// All that the NFs and their part of the data path are made from.
struct Setup {
  std::string file;          ///< the chain file's name
  std::string text;          ///< and what is in it
  std::vector<NfSetup> nfs;  ///< one at least, and kMaxNfs at most
  nf::Shard shard = {};      ///< the others are other processes
  std::string device;        ///< as device::parse_preference() takes it
  nf::Ends ends;
  nf::RunContext context;
  bool records = false;          ///< lines for `--record` are wanted
  bool alerts = false;           ///< and for `--eve`
  bool waits_for_state = false;  ///< kBegin is to be waited for: see NfProcess::go_on_for_another()
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
  Touched touched;                                                   ///< by the NF as it was configured
  std::vector<std::string> lines;                                    ///< of the start report
  std::vector<std::pair<std::string, std::uint64_t>> refused_rules;  ///< how many, by reason
  bool is_portable = false;                                          ///< see nf::Portable
};

/// What packets have left in an NF, in memory that comes with it.
struct StateOf {
  std::size_t nf = 0;  ///< its number in the process that this goes to or comes from
  std::uint64_t bytes = 0;
};
/// Of all NFs of a process.
inline constexpr std::uint64_t kMaxStateBytes = std::uint64_t{1} << 30U;
/// The memory has one more, since there is none of no bytes.
inline constexpr std::uint64_t memory_bytes(StateOf const& state) { return state.bytes + 1; }

/// One NF's, as many of them in a frame would not fit.
struct NfStatistics {
  std::size_t nf = 0;  ///< its number
  std::vector<nf::Statistic> statistics = {};
  std::vector<std::string> lines = {};  ///< of the report at the end; before it none
};

struct Ended {
  Status status;
};

// Texts of frames. Reading: DataLoss where it is not what it should be, or more than there should be of anything, or
// not about `nfs` NFs; names of drop reasons are what metrics have, and other text is printable and not endless.
std::string to_json(Wanted const& wanted);
std::string to_json(Described const& described);
std::string to_json(Setup const& setup);
std::string to_json(std::vector<Started> const& started);
std::string to_json(Ended const& ended);
std::string to_json(Status const& error);
std::string to_json(NfStatistics const& statistics);
std::string to_json(StateOf const& state);
std::string to_json(std::vector<Status> const& of_nfs);
Result<Wanted> read_wanted(std::string_view text);
Result<Described> read_described(std::string_view text);
Result<Setup> read_setup(std::string_view text);
Result<std::vector<Started>> read_started(std::string_view text, std::size_t nfs);
Result<Ended> read_ended(std::string_view text);
std::string to_json(OpenOutput const& open);
std::string to_json(Answer const& answer);
Result<OpenOutput> read_open_output(std::string_view text);
Result<Answer> read_answer(std::string_view text);
/// The error that the process gives, which is never OK.
Status read_error(std::string_view text);
Result<NfStatistics> read_statistics(std::string_view text, std::size_t nfs);
Result<StateOf> read_state_of(std::string_view text, std::size_t nfs);
Result<std::vector<Status>> read_begun(std::string_view text, std::size_t nfs);

/// Sends a frame with a text, and `fd` with it unless it is -1. As device::remote::send_frame().
Status send(int socket, Call call, std::string_view text, int fd = -1);
/// The body of kWriteOutput or kCloseOutput; and its handle, of which the rest are the bytes. DataLoss where there is
/// none.
std::vector<std::byte> with_handle(std::uint32_t handle, std::span<const std::byte> bytes);
Result<std::uint32_t> handle_of(std::span<const std::byte> body);
inline constexpr std::size_t kHandleBytes = 4;
std::string_view text_of(std::span<const std::byte> body);

}  // namespace catena::nf_process
