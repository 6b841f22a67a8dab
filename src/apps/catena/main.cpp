// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/commands.hpp"
#include "apps/catena/flags.hpp"
#include "apps/catena/style.hpp"
#include "apps/catena/usage.hpp"
#include "base/core/log_line.hpp"
#include "gpu/device/device.hpp"
#include "nf/plugins.hpp"

#include <catena/core/text.hpp>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

namespace {

CLI::Validator folders() {
  return CLI::Validator(
      [](std::string& value) {
        for (std::string const& folder : catena::nf::split_search_path(value)) {
          std::error_code error;
          if (!std::filesystem::is_directory(folder, error)) {
            return "no such folder: " + folder;
          }
        }
        return std::string();
      },
      "");
}

}  // namespace

int main(int argc, char** argv) {
  namespace cli = catena::cli;
  // a reader that goes away, or a file that may not grow, is an error of that output, not the end of the process
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  spdlog::set_default_logger(spdlog::stderr_color_mt("catena"));
  catena::set_log_pattern("%^%l%$ %v");
  if (!cli::has_colours(STDERR_FILENO)) {
    static_cast<spdlog::sinks::stderr_color_sink_mt*>(spdlog::default_logger()->sinks().front().get())
        ->set_color_mode(spdlog::color_mode::never);
  }

  cli::EscapedOutput escaped_output(std::cout);
  cli::EscapedOutput escaped_errors(std::cerr);

  CLI::App app{"Catena runs service chains of network functions across CPUs and GPUs."};
  app.name("catena");
  app.require_subcommand(1);
  app.set_version_flag("--version", CATENA_VERSION);
  std::string nf_path;
  app.add_option("--nf-path", nf_path, "Folders with further network functions (*.so), separated by ':'")
      ->envname("CATENA_NF_PATH")
      ->check(folders());
  int status = cli::kExitOk;

  cli::RunArguments arguments;
  CLI::App* run = app.add_subcommand("run", "Run a chain until its source ends or Ctrl-C, then report");
  cli::add_run_options(*run, arguments);
  run->add_flag_callback(
         "--device-server", [&] { arguments.options.try_emplace("device_servers", "device"); },
         "As --device-servers device: a kernel that traps or never ends takes down only the device's process, and the "
         "chain continues without the device until it is back")
      ->group(cli::kGpuGroup);
  run->add_flag("--json", arguments.json, "Report as one JSON object on standard output");
  run->add_flag("-q,--quiet", arguments.quiet, "Only warnings, errors and the report");
  run->add_flag("-v,--verbose", arguments.verbose, "Also report each stage of the data path, rx and tx included")
      ->excludes("--quiet");
  run->callback([&] {
    arguments.nf_path = nf_path;
    status = cli::run(arguments);
  });

  std::string chain_file;
  bool json = false;
  CLI::App* check = app.add_subcommand("check", "Find errors in a chain file and the files it names, or in a run");
  cli::add_run_options(*check, arguments);
  check->add_flag("--json", arguments.json, "Result as one JSON object");
  check->add_flag("--kernels", arguments.kernels,
                  "Also report where the kernels of the chain could reach memory other than through IsoPtr");
  check->add_flag("-v,--verbose", arguments.verbose,
                  "List every rule that an NF does not apply, with file, line and reason");
  check->callback([&] {
    arguments.nf_path = nf_path;
    status = cli::check(arguments);
  });

  CLI::App* check_kernel = app.add_subcommand(
      "check-kernel", "Report where the source of a kernel could reach memory other than through IsoPtr");
  cli::CheckKernelArguments kernel;
  check_kernel->add_option("files", kernel.files, "The kernel, then its included files")->required();
  check_kernel->add_option(
      "--define", kernel.defines,
      "Macros of the plan to check it for, without CATENA_: LANES=8, AUX_BYTES=16; may be repeated");
  check_kernel->add_flag("--json", kernel.json, "Result as one JSON object");
  check_kernel->callback([&] { status = cli::check_kernel(kernel); });

  CLI::App* plan =
      app.add_subcommand("plan", "Show the transfers of a chain between host and device, with methods and reasons");
  cli::add_chain_options(*plan, arguments);
  plan->add_flag("--json", arguments.json, "Result as one JSON object");
  plan->callback([&] {
    arguments.nf_path = nf_path;
    status = cli::plan(arguments);
  });

  cli::ProfileArguments profiled;
  CLI::App* profile = cli::add_profile_command(app, profiled);
  profile->callback([&] {
    status = profiled.copies               ? cli::profile_copies(profiled)
             : profiled.chain_file.empty() ? cli::profile(profiled)
                                           : cli::profile_nfs(profiled, nf_path);
  });

  CLI::App* doctor = app.add_subcommand("doctor", "Show what this machine can do, and a command to fix each problem");
  doctor->add_flag("--json", json, "Result as one JSON object");
  doctor->callback([&] { status = cli::doctor(json); });

  cli::ServiceArguments of_service;
  CLI::App* show = app.add_subcommand(
      "show",
      "List NF types, devices or packet fields; print a chain's file with all defaults, its graph, an NF's program or "
      "the schema of chain files");
  show->require_subcommand(1);
  for (const char* what : {"nfs", "devices", "fields"}) {
    CLI::App* list = show->add_subcommand(what, std::string("List the ") + what);
    list->add_flag("--json", json, "Result as one JSON object");
    list->callback([&, what] { status = cli::show(what, json, nf_path); });
  }
  CLI::App* schema = show->add_subcommand("schema", "Print the JSON Schema of chain files, for editors");
  schema->callback([&] { status = cli::show_schema(nf_path); });
  CLI::App* config = show->add_subcommand(
      "config", "Print a chain file, or the one of a chain of the service, with options over it and with all defaults");
  cli::add_chain_options(*config, arguments);
  cli::add_socket(*config, of_service.socket);
  config->callback([&] { status = cli::show_config(arguments, of_service.socket); });
  std::string format = "text";
  CLI::App* graph =
      show->add_subcommand("graph", "The paths of packets through a chain: its next-node table, or a picture of it");
  graph->add_option("chain", chain_file, "Chain file (YAML)")->required();
  graph->add_option("--format", format, "text, mermaid (for Markdown), dot (for Graphviz) or svg (by Graphviz)")
      ->check(CLI::IsMember({"text", "mermaid", "dot", "svg"}))
      ->capture_default_str();
  graph->callback([&] { status = cli::show_graph(chain_file, format); });
  std::string nf;
  CLI::App* program = show->add_subcommand("program", "The kernels compiled for an NF of a chain, with their macros");
  program->add_option("chain", chain_file, "Chain file (YAML)")->required();
  program->add_option("nf", nf, "Name of an NF of the chain that is on the gpu")->required();
  for (const char* name : {"sync", "pushdown", "methods", "device", "profile"}) {
    cli::add_option_key(*program, name, arguments.options);
  }
  program->add_flag("--json", json, "Result as one JSON object");
  program->callback([&] {
    arguments.nf_path = nf_path;
    status = cli::show_program(chain_file, nf, arguments, json);
  });

  cli::add_service_commands(app, arguments, of_service, nf_path, status);

#ifdef CATENA_HAS_STACK
  cli::add_stack_commands(app, status);
#endif

  std::vector<std::string> asked;
  CLI::App* help = app.add_subcommand("help", "Describe a command and its options");
  help->add_option("command", asked, "As it would be typed: run, or show program");
  help->callback([&] { status = cli::print_help(app, asked) ? cli::kExitOk : cli::kExitUsage; });
  std::string shell;
  CLI::App* completion = app.add_subcommand("completion", "Print a completion script for commands and options");
  completion->add_option("shell", shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([&] { std::cout << cli::completion_script(app, shell); });
  CLI::App* manual = app.add_subcommand("manual", "Print the manual page, for man");
  manual->callback([&] { std::cout << cli::manual_page(app, CATENA_VERSION); });

  cli::add_examples(app);
  cli::check_values(app);
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    app.parse(argc, argv);
    if (status == cli::kExitUsage && !asked.empty()) {
      std::cerr << "catena: " << cli::usage_error(app, asked) << '\n';
    }
  } catch (CLI::ParseError const& error) {
    if (const std::string wrong = cli::usage_error(app, words); !wrong.empty() && error.get_exit_code() != 0) {
      std::cerr << "catena: " << wrong << '\n';
      return cli::kExitUsage;
    }
    return app.exit(error) == 0 ? cli::kExitOk : cli::kExitUsage;
  } catch (std::exception const& error) {
    // libraries below may throw (out of memory); nothing of ours does
    std::cerr << "catena: " << error.what() << '\n';
    return cli::kExitFailed;
  }
  if (!std::cout.flush()) {
    std::cerr << "catena: standard output cannot be written: " << std::strerror(errno) << '\n';
    return status == cli::kExitOk ? cli::kExitFailed : status;
  }
  return status;
}
