// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <exception>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
  namespace cli = catena::cli;
  // a reader of an output that goes away is an error of that output, not the end of the process
  std::signal(SIGPIPE, SIG_IGN);
  spdlog::set_default_logger(spdlog::stderr_color_mt("catena"));
  spdlog::set_pattern("%^%l%$ %v");

  CLI::App app{"Catena runs service chains of network functions across CPUs and GPUs."};
  app.require_subcommand(1);
  app.set_version_flag("--version", CATENA_VERSION);
  std::string nf_path;
  app.add_option("--nf-path", nf_path, "Folders with further network functions (*.so), separated by ':'")
      ->envname("CATENA_NF_PATH");
  int status = cli::kExitOk;

  cli::RunArguments arguments;
  CLI::App* run = app.add_subcommand("run", "Run a chain until its source ends or Ctrl-C, then report");
  run->add_option("chain", arguments.chain_file, "Chain file (YAML)")->required();
  run->add_option("--rx", arguments.rx, "Instead of the file's rx: pcap:FILE, dpdk:DEVICE, dev:INTERFACE or generator");
  run->add_option("--tx", arguments.tx, "Instead of the file's tx: pcap:FILE, dpdk:DEVICE, dev:INTERFACE or null");
  run->add_option("--device", arguments.device, "Instead of the file's device: auto, cuda, opencl or none");
  run->add_option("--record", arguments.record, "Write one JSON line per packet and NF decision to this file");
  run->add_option("--eve", arguments.eve, "Write alerts to this file, as JSON lines in the form of Suricata's EVE");
  run->add_option("--trace", arguments.trace,
                  "Write a time line of the launches on the device to this file, for chrome://tracing or Perfetto");
  run->add_option("--sync", arguments.sync, "What moves between host and device: adaptive (default), shared or copy")
      ->check(CLI::IsMember({"copy", "shared", "adaptive"}));
  run->add_option("--pushdown", arguments.pushdown, "Whether --sync adaptive may move packets ahead of need: on, off")
      ->check(CLI::IsMember({"on", "off"}));
  run->add_option("--profile", arguments.profile, "Cost profile (file of `catena profile`) instead of the device's");
  run->add_option("--workers", arguments.workers,
                  "Threads that poll the stages; default: one a core, at most one a stage")
      ->check(CLI::Range(1, 256));
  run->add_flag("--new-keys", arguments.new_keys,
                "No key of the chain was used before: associations without a state may start anew");
  run->add_option("--cores", arguments.cores, "Cores that the workers stay on, in turn: 0,2-5");
  run->add_flag("--json", arguments.json, "Report as one JSON object on standard output");
  run->callback([&] {
    arguments.nf_path = nf_path;
    status = cli::run(arguments);
  });

  std::string chain_file;
  bool json = false;
  CLI::App* check = app.add_subcommand("check", "Read a chain file and everything it names; say what is wrong");
  check->add_option("chain", chain_file, "Chain file (YAML)")->required();
  check->add_flag("--json", json, "Result as one JSON object");
  bool verbose = false;
  check->add_flag("-v,--verbose", verbose, "List every rule that an NF refuses, with file, line and reason");
  check->callback([&] { status = cli::check(chain_file, json, verbose, nf_path); });

  CLI::App* plan = app.add_subcommand("plan", "Say what a chain moves between host and device, how and why");
  plan->add_option("chain", arguments.chain_file, "Chain file (YAML)")->required();
  plan->add_option("--device", arguments.device,
                   "Whose costs, instead of the file's device: auto, cuda, opencl or none; none is opened");
  plan->add_option("--profile", arguments.profile, "Cost profile (file of `catena profile`) instead of the device's");
  plan->add_option("--pushdown", arguments.pushdown, "Whether packets may move ahead of need: on, off")
      ->check(CLI::IsMember({"on", "off"}));
  plan->add_flag("--json", arguments.json, "Result as one JSON object");
  plan->callback([&] {
    arguments.nf_path = nf_path;
    status = cli::plan(arguments);
  });

  CLI::App* profile =
      app.add_subcommand("profile", "Measure what moving packets costs on this machine; runs and plans then use it");
  std::string profiled_device = "auto";
  std::string output;
  profile->add_option("--device", profiled_device, "auto, cuda or opencl")
      ->check(CLI::IsMember({"auto", "cuda", "opencl"}));
  profile->add_option("--output", output, "Write the profile to this file instead of keeping it for this user");
  profile->add_flag("--json", json, "Result as one JSON object");
  profile->callback([&] { status = cli::profile(profiled_device, output, json); });

  CLI::App* doctor =
      app.add_subcommand("doctor", "What this machine can do, and the command that fixes what it cannot");
  doctor->add_flag("--json", json, "Result as one JSON object");
  doctor->callback([&] { status = cli::doctor(json); });

  CLI::App* show = app.add_subcommand("show", "List NF types, devices or packet fields; print an NF's program");
  show->require_subcommand(1);
  for (const char* what : {"nfs", "devices", "fields"}) {
    CLI::App* list = show->add_subcommand(what, std::string("List the ") + what);
    list->add_flag("--json", json, "Result as one JSON object");
    list->callback([&, what] { status = cli::show(what, json, nf_path); });
  }
  std::string nf;
  CLI::App* program = show->add_subcommand("program", "The kernels that a chain compiles for an NF, with their macros");
  program->add_option("chain", chain_file, "Chain file (YAML)")->required();
  program->add_option("nf", nf, "Name of an NF of the chain that is placed on the gpu")->required();
  program->add_option("--sync", arguments.sync, "As for run")->check(CLI::IsMember({"copy", "shared", "adaptive"}));
  program->add_option("--pushdown", arguments.pushdown, "As for run")->check(CLI::IsMember({"on", "off"}));
  program->add_option("--device", arguments.device, "As for plan");
  program->add_option("--profile", arguments.profile, "As for plan");
  program->add_flag("--json", json, "Result as one JSON object");
  program->callback([&] {
    arguments.nf_path = nf_path;
    status = cli::show_program(chain_file, nf, arguments, json);
  });

  CLI::App* bench = app.add_subcommand("bench", "Measure this machine");
  bench->require_subcommand(1);
  cli::PaperArguments paper;
  CLI::App* compare = bench->add_subcommand("paper", "The comparisons of the AdaptChain paper, as a page with figures");
  compare->add_option("--device", paper.device, "auto (default), cuda or opencl")
      ->check(CLI::IsMember({"auto", "cuda", "opencl"}));
  compare->add_option("--chains", paper.chains, "Of C1,C2,C3,C4,C5,C1-decrypt,C4-decrypt; default: all")
      ->delimiter(',');
  compare->add_option("--sizes", paper.sizes, "Frames in bytes with FCS; default: 64,128,256,512,1024,1518")
      ->delimiter(',');
  compare->add_option("--parts", paper.parts, "Of source,throughput,decrypt,units,latency; default: all")
      ->delimiter(',');
  compare->add_option("--seconds", paper.seconds, "Length of a run, of which a quarter is warm-up; default: 2")
      ->check(CLI::Range(0.01, 3600.0));
  compare->add_option("--repeats", paper.repeats, "Runs of each measurement; default: 5")->check(CLI::Range(1, 100));
  compare->add_option("--replicas", paper.replicas, "Copies of the chain side by side, or auto: one a core a stage")
      ->check(CLI::Range(1, 64) | CLI::IsMember({"auto"}));
  compare->add_option("--output", paper.output, "Folder for results.json, README.md and figures; default: bench-paper");
  compare->add_option("--data", paper.data,
                      "Folder with rules, routes and keys; default: the source tree's bench/paper");
  compare->add_option("--tuning", paper.tuning, "Instead of the benchmark's tuning: \"pool_slots: 65536, ...\"");
  compare->add_flag("--quick", paper.quick, "One short repeat of two sizes");
  const auto typed = [&] {
    std::string command;
    for (int i = 0; i < argc; ++i) {
      command += (i == 0 ? "" : " ") + std::string(argv[i]);
    }
    return command;
  };
  compare->callback([&] {
    paper.command = typed();
    status = cli::bench_paper(paper, nf_path);
  });

  cli::NcaArguments nca;
  CLI::App* draft = bench->add_subcommand(
      "nca", "The C library, as the NFV Compute Acceleration draft measures it, as a page with figures");
  draft->add_option("--device", nca.device, "auto (default), cuda, opencl or cpu")
      ->check(CLI::IsMember({"auto", "cuda", "opencl", "cpu"}));
  draft->add_option("--parts", nca.parts, "Of draft,queues,kernel; default: all")->delimiter(',');
  draft->add_option("--seconds", nca.seconds, "Length of a run, of which a quarter is warm-up; default: 1")
      ->check(CLI::Range(0.01, 3600.0));
  draft->add_option("--repeats", nca.repeats, "Runs of each measurement; default: 5")->check(CLI::Range(1, 100));
  draft->add_option("--streams", nca.streams, "Streams of the application; default: 4 with CUDA, else 1")
      ->check(CLI::Range(1, 64));
  draft->add_option("--threads", nca.threads, "Threads that add packets, a stream; default: 2 with CUDA, else 1")
      ->check(CLI::Range(1, 64));
  draft->add_option("--queues", nca.queues, "Queues of a stream; default: 3")->check(CLI::Range(1, 62));
  draft->add_option("--output", nca.output, "Folder for results.json, README.md and figures; default: bench-nca");
  draft->add_option("--data", nca.data, "Folder with strings.txt; default: the source tree's bench/nca");
  draft->add_flag("--quick", nca.quick, "One short repeat of fewer and smaller buffers");
  draft->callback([&] {
    nca.command = typed();
    status = cli::bench_nca(nca);
  });

  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& error) {
    return app.exit(error) == 0 ? cli::kExitOk : cli::kExitUsage;
  } catch (std::exception const& error) {
    // libraries below may throw (out of memory); nothing of ours does
    std::cerr << "catena: " << error.what() << '\n';
    return cli::kExitFailed;
  }
  return status;
}
