// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/opencl/toolchain.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/subprocess.hpp"

#include <absl/strings/str_replace.h>

#include <charconv>
#include <chrono>

namespace catena::device::opencl {

namespace {

/// Far above what a kernel takes (tens of milliseconds); it ends a compiler that hangs.
constexpr std::chrono::seconds kCompileLimit{120};

/// Major version that `clang -dumpversion` tells; 0 if it cannot be asked.
int clang_version(std::string const& clang) {
  Result<TemporaryFolder> folder = TemporaryFolder::create();
  if (!folder.ok()) {
    return 0;
  }
  const Result<ProcessResult> result = run_process({clang, "-dumpversion"}, folder->path(), std::chrono::seconds{10});
  int version = 0;
  if (result.ok() && result->exit_code == 0) {
    std::from_chars(result->output.data(), result->output.data() + result->output.size(), version);
  }
  return version;
}

/// Removes the private folder from a compiler's messages: what stays are the names that the author knows.
std::string readable(std::string const& log, std::filesystem::path const& folder) {
  return absl::StrReplaceAll(log, {{folder.string() + "/", ""}});
}

/// clang optimizes what PoCL gets. For SPIR-V the driver must do that: some of LLVM's passes make instructions that
/// SPIR-V does not have.
enum class Optimize { kNow, kInDriver };

Status compile_into(Toolchain const& toolchain, ProgramSource const& source, Optimize optimize,
                    std::filesystem::path const& folder, std::filesystem::path const& output) {
  const std::filesystem::path sources = folder / "source";
  CATENA_RETURN_IF_ERROR(write_sources(source, sources));
  std::vector<std::string> arguments = {toolchain.clang,
                                        "-x",
                                        "clcpp",
                                        "-cl-std=CLC++2021",
                                        "-Xclang",
                                        "-finclude-default-header",
                                        "-target",
                                        "spir64",
                                        "-nostdlibinc",
                                        "-O2",
                                        "-fwrapv",
                                        "-emit-llvm",
                                        "-c",
                                        "-fno-color-diagnostics",
                                        "-I",
                                        sources.string()};
  if (optimize == Optimize::kInDriver) {
    arguments.insert(arguments.end(), {"-Xclang", "-disable-llvm-passes"});
  } else {
    arguments.emplace_back("-DCATENA_OPENCL_BITCODE");  // see dialect.hpp
  }
  for (std::string const& define : source.defines) {
    arguments.push_back("-D" + define);
  }
  arguments.push_back((sources / source.files.front().name).string());
  arguments.insert(arguments.end(), {"-o", output.string()});
  CATENA_ASSIGN_OR_RETURN(const ProcessResult result, run_process(arguments, folder, kCompileLimit));
  if (result.exit_code != 0) {
    return absl::InvalidArgumentError(
        concat("kernel source is refused by ", toolchain.clang, ":\n", readable(result.output, sources)));
  }
  return absl::OkStatus();
}

}  // namespace

Result<Toolchain> find_toolchain(int newest) {
  if (newest < kOldestClang) {
    return absl::UnavailableError(concat("the driver is built on LLVM ", newest, ", kernels need LLVM ", kOldestClang,
                                         " or newer; install a newer driver, e.g. PoCL 3.0"));
  }
  Toolchain found;
  for (int version = newest; version >= kOldestClang && found.clang.empty(); --version) {
    found.clang = find_in_path(concat("clang-", version));
    found.version = version;
  }
  if (found.clang.empty()) {
    found.clang = find_in_path("clang");
    found.version = found.clang.empty() ? 0 : clang_version(found.clang);
  }
  if (found.version < kOldestClang || found.version > newest) {
    const std::string seen = found.clang.empty() ? "" : concat(" (", found.clang, " is version ", found.version, ")");
    return absl::UnavailableError(concat("no clang of version ", kOldestClang, " to ", newest,
                                         " in $PATH to compile kernels", seen, "; install it: apt-get install clang-",
                                         newest));
  }
  found.llvm_spirv = find_in_path(concat("llvm-spirv-", found.version));
  return found;
}

Result<std::vector<std::byte>> compile_bitcode(Toolchain const& toolchain, ProgramSource const& source) {
  CATENA_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
  const std::filesystem::path bitcode = folder.path() / "kernel.bc";
  CATENA_RETURN_IF_ERROR(compile_into(toolchain, source, Optimize::kNow, folder.path(), bitcode));
  return read_file(bitcode);
}

Result<std::vector<std::byte>> compile_spirv(Toolchain const& toolchain, ProgramSource const& source) {
  if (toolchain.llvm_spirv.empty()) {
    return absl::UnavailableError(concat("no llvm-spirv-", toolchain.version,
                                         " in $PATH; install it: apt-get install llvm-spirv-", toolchain.version));
  }
  CATENA_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
  const std::filesystem::path bitcode = folder.path() / "kernel.bc";
  const std::filesystem::path spirv = folder.path() / "kernel.spv";
  CATENA_RETURN_IF_ERROR(compile_into(toolchain, source, Optimize::kInDriver, folder.path(), bitcode));
  CATENA_ASSIGN_OR_RETURN(
      const ProcessResult result,
      run_process({toolchain.llvm_spirv, bitcode.string(), "-o", spirv.string()}, folder.path(), kCompileLimit));
  if (result.exit_code != 0) {
    return absl::InternalError(concat(toolchain.llvm_spirv, " failed:\n", result.output));
  }
  return read_file(spirv);
}

}  // namespace catena::device::opencl
