// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/remote/socket.hpp"
#include "nf_process/channel.hpp"
#include "nf_process/crossing.hpp"
#include "nf_process/protocol.hpp"

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace catena::nf_process {

/// A file that an NF's process is shown, read-only.
struct ShownFile {
  std::string path;            ///< whole
  device::remote::Fd fd = {};  ///< where given, it is shown what is behind this, whoever its user is
};

/// How the process of an NF, or of a group of NFs, is made.
struct ProcessOptions {
  std::string program;   ///< see find_nf_program()
  std::string name;      ///< of the NF, for messages; "group X" for several
  std::string position;  ///< "file:line:column" of the first NF, in front of errors that are not an NF's own
  std::string group;     ///< name of the group; empty: the process is of one NF
  std::vector<ShownFile> files;
  std::string container;  ///< folder of its root file system; empty: it has this machine's /usr
  bool is_trial = false;  ///< it is only made: nothing is opened, and nothing written
  std::uint64_t memory_bytes = std::uint64_t{6} << 30U;  ///< see sandbox::SandboxOptions
  std::uint32_t cpus = 0;                                ///< CPUs that it runs on; 0: any
  std::optional<uid_t> uid;  ///< see sandbox::SandboxOptions; none: the caller, and `nobody` where that is root
  std::optional<gid_t> gid;
  /// Connects the process with the server of a device: a socket for device::remote::connect(); none, and why, where
  /// there is no such device. Called by a thread of the process's keeper. Null: there is no server.
  std::function<Result<device::remote::Fd>(std::string const& preference, std::string* why)> connect_device;
  std::stop_token give_up;  ///< ends create(), add() and start(), which then are Cancelled; later it does nothing
};

/// One life of an NF's process, as who gives it packets sees it. Its memory is of this life alone: what still works in
/// it when the process is gone, a device perhaps, disturbs nobody.
struct Link {
  Link(Channel own_channel, device::remote::Mapping own_frames)
      : channel(std::move(own_channel)), frames(std::move(own_frames)) {}
  Channel channel;
  device::remote::Mapping frames;      ///< ChannelShape::slots() slots, in which packets cross
  Crossing crossing;                   ///< what of them; set before anybody takes the link
  std::atomic<bool> is_closed{false};  ///< there are no more packets for it: it may end
  std::atomic<bool> is_gone{false};    ///< the process is no more
  /// When it last asked for something to be written; the clock's beginning: never.
  std::atomic<std::chrono::steady_clock::time_point> wrote_at{};
};

/// The process of NFs in its sandbox: started, watched, and started again when it ends unasked, lies or hangs: at once
/// the first time, then after growing pauses. Call order: create() -> add() for each NF, in the order in which packets
/// come to them -> start() -> anything else. NFs have numbers by that order. One thread uses it, but for what says
/// otherwise.
class NfProcess {
 public:
  /// Starts the process. Errors: as sandbox::SandboxedProcess::start().
  static Result<std::unique_ptr<NfProcess>> create(ProcessOptions options);
  /// Kills it.
  ~NfProcess();
  NfProcess(NfProcess const&) = delete;
  NfProcess& operator=(NfProcess const&) = delete;

  /// The process is to have one more NF, and says what that is. `outputs`: what it may have written, with whole paths.
  /// Errors: NotFound where the process knows no such NF; what the process says where it does not load the NF's file;
  /// DataLoss where it says nothing that can be read; DeadlineExceeded where it says nothing for 30 s.
  Result<Described> add(Wanted wanted, std::vector<nf::NamedOutput> outputs);
  /// The process makes its NFs and is ready for packets. Precondition: `setup` has the NFs that were added, in their
  /// order; their outputs are known. Errors: those of the NFs; DeadlineExceeded where they are not made after 120 s.
  Status start(Setup const& setup);

  /// Files of NF number `nf` are added to, as NF number `of` of `before` has begun them. False, where it has others.
  /// Before start().
  bool go_on_with_files(std::size_t nf, NfProcess const& before, std::size_t of);

  // How it goes on for the process of a session before: go_on_for_another() -> start() -> hand_over() of that one ->
  // begin_after(), once that one is gone -> has_begun() until it is so -> how_it_began().
  /// Its NFs get what those of a process before leave, which has the same ones in the same order. Before start().
  void go_on_for_another();
  /// Whether all its NFs can hand over what packets have left in them: they are nf::Portable where
  /// `has_state` says that packets leave something. After start(); any thread.
  bool can_hand_over(std::vector<bool> const& has_state) const;
  /// When it has had its last packet it is to hand over, in place of finishing its NFs. Any thread.
  void hand_over();
  bool is_handing_over() const;
  /// Gives its NFs what those of `before` have left.
  void begin_after(NfProcess& before);
  /// Whether packets can come: its NFs have that, or never will, as its life has ended, or is ended now because it took
  /// too long.
  bool has_begun();
  /// For each NF OK, or why it begins anew.
  std::vector<Status> how_it_began() const;

  /// A life that nobody has taken yet; null: there is none now. Any thread.
  std::shared_ptr<Link> take_link();
  /// Whether packets would wait for too long: it is to be started again later, or takes its time. Any thread.
  bool is_down() const;
  /// It lied or hangs: ends this life, and no later one. Any thread.
  void fail(Link const& link, std::string_view why);
  /// This side's end of the bell, for both lanes: readable when there is something in the channel.
  int bell() const;
  std::uint64_t restarts() const;
  /// How often it asked for something to be written that is not its own. Any thread.
  std::uint64_t refusals() const;

  std::string const& group() const;
  /// Of start(), after it.
  Setup const& setup() const;

  // What it said last; any thread. Of NF number `nf`:
  pid_t pid() const;
  std::vector<std::string> start_lines(std::size_t nf) const;
  std::vector<std::pair<std::string, std::uint64_t>> refused_rules(std::size_t nf) const;
  std::vector<nf::Statistic> statistics(std::size_t nf) const;
  std::vector<std::string> end_lines(std::size_t nf) const;
  /// OK, or why it did not finish as it should. What is not about a certain NF is about the first.
  Status ended(std::size_t nf) const;

 private:
  struct Impl;
  explicit NfProcess(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The program: beside this process's own program, or where an installation has it. NotFound with the places.
Result<std::string> find_nf_program();

}  // namespace catena::nf_process
