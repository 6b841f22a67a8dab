// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

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
  std::string sync;      ///< empty: adaptive
  std::string pushdown;  ///< "on" or "off"; empty: on
  std::string nf_path;
  bool json = false;
  std::uint32_t workers = 0;  ///< 0: one for each core, at most one for each stage
};

int run(RunArguments const& arguments);
/// `nf_path`: folders with further NFs, separated by ':'.
int check(std::string const& chain_file, bool json, std::string const& nf_path);
int plan(std::string const& chain_file, std::string const& pushdown, bool json, std::string const& nf_path);
/// Prints the kernels of an NF and the macros they are compiled with; `sync` and `pushdown` as RunArguments has them.
int show_program(std::string const& chain_file, std::string const& nf, RunArguments const& arguments, bool json);
int doctor(bool json);
/// `what`: "nfs", "devices" or "fields".
int show(std::string const& what, bool json, std::string const& nf_path);

}  // namespace catena::cli
