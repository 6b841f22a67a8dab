// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// The commands of `catena`. Each prints its result to standard output, problems to standard error, and returns the
/// process's exit status.
namespace catena::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  ///< the run or the check failed
inline constexpr int kExitUsage = 2;   ///< the command line is wrong

struct RunArguments {
  std::string chain_file;
  std::string rx;
  std::string tx;
  std::string device;
  std::string record;
  std::string eve;
  std::string trace;
  std::string sync;      ///< empty: adaptive
  std::string pushdown;  ///< "on" or "off"; empty: on
  std::string methods;   ///< empty: all
  std::string profile;   ///< file; empty: that of the device, else the built-in one
  std::string nf_path;
  bool device_server = false;  ///< run: the device is in a process of its own
  bool json = false;
  bool new_keys = false;
  bool quiet = false;         ///< no first lines and no live line
  bool kernels = false;       ///< check: also the kernels of the chain's NFs
  bool verbose = false;       ///< run: also what each stage did; check: each rule that is not applied
  std::uint32_t workers = 0;  ///< 0: see chain::default_workers()
  std::string cores;          ///< empty: any
};

struct KernelArguments {
  std::vector<std::string> files;    ///< the kernel first
  std::vector<std::string> defines;  ///< "LANES=8": macros of a plan without CATENA_; the others have defaults
  bool json = false;
};

int run(RunArguments const& arguments);
/// Of `arguments` everything that a run takes counts, but for quiet; no device is opened.
int check(RunArguments const& arguments);
/// Checks the source of a kernel; see static_check::check_kernel().
int check_kernel(KernelArguments const& arguments);
/// Of `arguments` the chain file, device, pushdown, methods, profile, json and nf_path count.
int plan(RunArguments const& arguments);
/// Measures `device` ("auto", "cuda" or "opencl") and keeps the result in `output`; empty: among this user's profiles.
int profile(std::string const& device, std::string const& output, bool json);
/// Prints the kernels of an NF and the macros they are compiled with; of `arguments` sync, pushdown, methods, device
/// and profile count.
int show_program(std::string const& chain_file, std::string const& nf, RunArguments const& arguments, bool json);
/// Prints the JSON Schema of a chain file.
int show_schema(std::string const& nf_path);
int doctor(bool json);
/// `what`: "nfs", "devices" or "fields".
int show(std::string const& what, bool json, std::string const& nf_path);

}  // namespace catena::cli
