// SPDX-License-Identifier: Apache-2.0
// catena-bench: measures whole chains, how NFs share a GPU, what overload costs, the checks of kernels and the C
// library on this machine. What it writes, tools/render-bench makes pages of.
#include <catena/core/decimal.hpp>
#include <catena/core/text.hpp>

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "bench/adaptchain/adaptchain.hpp"
#include "bench/common/results.hpp"
#include "bench/gnet/gnet.hpp"
#include "bench/havs/havs.hpp"
#include "bench/isoptr/isoptr.hpp"
#include "bench/nca/nca.hpp"
#include "bench/simmer/simmer.hpp"
#include "nf/registry.hpp"

namespace catena::bench {
namespace {

enum ExitStatus : int { kOk = 0, kFailed = 1, kUsage = 2 };

std::vector<Part> all_parts() {
  std::vector<Part> parts{adaptchain_part(), isoptr_part(), gnet_part(), simmer_part(), nca_part()};
#ifdef CATENA_HAS_STACK
  parts.push_back(havs_part());
#endif
  return parts;
}

int fail(Status const& status, ExitStatus exit_status) {
  std::cerr << "catena-bench: " << status.message() << '\n';
  return exit_status;
}

/// Fails where a measurement failed, or where something else came out than on the CPU.
int run(Part const& part, Told const& told) {
  const Result<Request> request = Request::create(part, told);
  if (!request.ok()) {
    return fail(request.status(), kUsage);
  }
  const Result<Results> results =
      part.run(*request, nf::builtin_nfs(), [](std::string const& line) { std::cerr << line << std::endl; });
  if (!results.ok()) {
    return fail(results.status(), kFailed);
  }
  std::cout << told.out << ": " << results->cells() << " measurements, " << results->failed_cells() << " failed; "
            << results->samples_compared() << " packets compared with the CPU's, " << results->samples_different()
            << " different" << std::endl;
  const int status = results->failed_cells() == 0 && results->samples_different() == 0 ? kOk : kFailed;
  if (results->abandoned()) {
    // a kernel that never ended would keep the driver's own clean-up waiting for ever
    std::_Exit(status);
  }
  return status;
}

/// CLI11 takes 010 for 8.
std::string decimal_error(std::string const& value) {
  const std::string advice = leading_zeros_advice(value);
  return advice.empty() ? advice : concat("'", value, "' is no decimal number", advice);
}

void add_options(CLI::App& command, Part const& part, Told& told) {
  const CLI::Validator decimal(decimal_error, "");
  told.seconds = part.seconds;
  command.add_option("--out", told.out, "File for what was measured, which tools/render-bench reads")->required();
  command.add_option("--seconds", told.seconds, "Length of a run, of which a quarter is warm-up")
      ->check(decimal)
      ->capture_default_str();
  command.add_option("--repeats", told.repeats, "Runs of each measurement")->check(decimal)->capture_default_str();
  command.add_flag("--resume", told.resume, "Keep what the file has, and measure the rest");
  command.add_flag("--quick", told.quick, "One short repeat of less");
  command.add_option("--data", told.data, "Folder of the benchmark's files; default: that of the source tree");
  for (Setting const& setting : part.settings) {
    std::string help = setting.help;
    for (std::size_t i = 0; i < setting.names.size(); ++i) {
      help += (i == 0 ? ": " : ", ") + setting.names[i];
    }
    help += *setting.usual != '\0' ? std::string("; default: ") + setting.usual : "";
    command.add_option_function<std::string>(
        option_of(setting),
        [&told, name = std::string(setting.name)](std::string const& value) { told.settings[name] = value; }, help);
  }
}

int bench(int argc, char** argv) {
  CLI::App app{"Measures whole chains, the checks of kernels, and the C library, on this machine."};
  app.require_subcommand(1);
  std::string typed;
  for (int i = 0; i < argc; ++i) {
    typed += i == 0 ? std::filesystem::path(argv[i]).filename().string() : " " + std::string(argv[i]);
  }
  int status = kOk;
  const std::vector<Part> parts = all_parts();
  std::vector<Told> told(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    CLI::App* command = app.add_subcommand(parts[i].name, parts[i].help);
    told[i].command = typed;
    add_options(*command, parts[i], told[i]);
    command->callback([&parts, &told, &status, i] { status = run(parts[i], told[i]); });
  }
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  } catch (std::exception const& error) {
    // libraries below may throw (out of memory); nothing of ours does
    std::cerr << "catena-bench: " << error.what() << '\n';
    return kFailed;
  }
  return status;
}

}  // namespace
}  // namespace catena::bench

int main(int argc, char** argv) { return catena::bench::bench(argc, argv); }
