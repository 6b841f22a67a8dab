// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/option_keys.hpp"
#include "service/route.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

/// The commands of `catena`. Each prints its result to standard output, problems to standard error, and returns the
/// process's exit status.
namespace catena::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  ///< the run or the check failed
inline constexpr int kExitUsage = 2;   ///< the command line is wrong

/// Of the user, for one start or change.
struct Consents {
  std::set<std::uint32_t> new_keys = {};  ///< SPIs whose keys were not used before
  bool accepts_loss = false;              ///< to the losses of replacements; check: unused
};

struct RunArguments : Consents {
  std::string chain_file;
  chain::GivenOptions options;  ///< over the file
  std::string nf_path;
  bool json = false;
  bool quiet = false;    ///< no start report and no live line
  bool kernels = false;  ///< check: also the kernels of the chain's NFs
  bool verbose = false;  ///< run: also the work of each stage; check: each rule not applied
};

struct ServiceArguments {
  std::string socket;                     ///< empty: see service::default_socket()
  std::string state;                      ///< folder; empty: see service::default_state_folder()
  std::string metrics;                    ///< address and port; empty: no metrics
  std::string quotas;                     ///< file; empty: the built-in ones
  std::string roles;                      ///< file; empty: all users are owners
  std::string audit;                      ///< file; empty: the log alone
  std::vector<std::string> pci;           ///< devices for chains of the service
  chain::GivenOptions sharing;            ///< of a device by the NFs of all chains: see chain::sharing_of()
  std::string device_servers = "device";  ///< see runtime::ServersFor
  std::string name;                       ///< of a chain; get: empty for all
  std::string revision;                   ///< rollback: of the chain; empty: the one before
  std::string log = "auto";  ///< form of the log: text, json, journal; auto: journal under systemd, else text
  bool json = false;
  bool once = false;            ///< top: one frame
  bool follow = false;          ///< logs: also the lines to come
  bool reopen = false;          ///< logs: reopen the outputs
  bool dry_run = false;         ///< apply: only print the changes
  std::uint32_t confirm_s = 0;  ///< apply: limit for the confirmation; 0: it needs none
  Consents consents;            ///< of start, restart, reload and rollback
};

struct CheckKernelArguments {
  std::vector<std::string> files;    ///< the kernel file first
  std::vector<std::string> defines;  ///< "LANES=8": macros of a plan without CATENA_; the others have defaults
  bool json = false;
};

int run(RunArguments const& arguments);
/// Uses all run options except quiet. Opens no device.
int check(RunArguments const& arguments);
/// Checks the source of a kernel; see static_check::check_kernel().
int check_kernel(CheckKernelArguments const& arguments);
/// Uses the chain file, options, json and nf_path of `arguments`.
int plan(RunArguments const& arguments);
struct ProfileArguments {
  std::string device = "auto";  ///< "auto" or the name of a backend
  std::string output;           ///< file for the result; empty: among this user's profiles
  std::string chain_file;       ///< chain whose NFs are measured; empty: measure transfers
  std::vector<std::uint32_t> packet_bytes = {64, 512, 1518};
  double seconds = 60;
  bool copies = false;  ///< measure the engines that copy within host memory
  std::string engine;   ///< the one of them; empty: all
  bool json = false;
};

/// Measures the engines that copy within host memory, adds them to the profile of copies of this machine, and proposes
/// from which size on to use one. Uses `engine`, `output` and `json` of `arguments`.
int profile_copies(ProfileArguments const& arguments);
/// Measures the cost of moving packets on a device, and keeps the NFs of the previous profile.
int profile(ProfileArguments const& arguments);
/// Measures the NFs of a chain on a device and adds them to its profile. Measures transfers only if the profile lacks
/// them.
int profile_nfs(ProfileArguments const& arguments, std::string const& nf_path);
/// Prints the kernels of an NF and their macros. Uses the options and nf_path of `arguments`.
int show_program(std::string const& chain_file, std::string const& nf, RunArguments const& arguments, bool json);
/// Prints the paths of packets through a chain. `format`: "text", "mermaid", "dot" or "svg", which needs Graphviz.
int show_graph(std::string const& chain_file, std::string const& format);
/// Prints the chain file with the options over it and with all defaults; of a name that is no file, the chain file of
/// this chain of the service at `socket`. Uses the chain file and options of `arguments`.
int show_config(RunArguments const& arguments, std::string const& socket);
/// Prints the JSON Schema of a chain file.
int show_schema(std::string const& nf_path);
/// Runs a service until SIGTERM or SIGINT.
int serve(ServiceArguments const& arguments, std::string const& nf_path);
/// Uses all of `run` except nf_path, quiet, verbose and json.
int apply(RunArguments const& run, ServiceArguments const& arguments);
/// Sends the request of a command in the table of routes. Of two routes with the same command, `name` selects one.
int control(service::RouteCommand const& command, ServiceArguments const& arguments);
/// Prints the last lines of a chain in the service's log; with `follow`, all lines from then on, until interrupted.
/// With `reopen` instead, has the outputs of all chains follow their names.
int logs(ServiceArguments const& arguments);
/// Shows the activity of the chains, refreshed each second until interrupted.
int top(ServiceArguments const& arguments);
int doctor(bool json);
/// `what`: "nfs", "devices" or "fields".
int show(std::string const& what, bool json, std::string const& nf_path);

}  // namespace catena::cli
