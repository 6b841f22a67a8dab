// SPDX-License-Identifier: Apache-2.0
// The words of the commands of a service: serve.cpp, chains.cpp and top.cpp are what they do.
#include "apps/catena/flags.hpp"
#include "service/apply_record.hpp"

namespace catena::cli {
namespace {

void add_serve(CLI::App& app, ServiceArguments& service, std::string const& nf_path, int& status) {
  CLI::App* serve = app.add_subcommand("serve", "Run chains applied by users over a control socket");
  add_socket(*serve, service.socket);
  serve->add_option("--state", service.state,
                    "Folder of the saved chains; default: /var/lib/catena for root, else catena in $XDG_STATE_HOME");
  serve->add_option("--metrics", service.metrics,
                    "Serve /metrics for Prometheus at this address and port, too: 127.0.0.1:9464");
  serve->add_option(
      "--audit", service.audit,
      "Also append each line of the audit to this file, as JSON: user, process, operation, chain and outcome");
  serve->add_option("--quotas", service.quotas, "Limits of each user, in a YAML file; SIGHUP reads it again");
  serve->add_option("--roles", service.roles,
                    "Roles of users and groups (reader, owner, operator), in a YAML file; SIGHUP reads it again");
  serve->add_option("--pci", service.pci, "PCI device for chains of root, as 0000:03:00.0; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  serve->add_option("--log", service.log, "Form of the log; auto: journal where systemd reads it, else text")
      ->check(CLI::IsMember({"auto", "text", "json", "journal"}));
  add_share_options(*serve, service.sharing);
  add_device_servers(*serve, service.device_servers);
  serve->callback([&] { status = cli::serve(service, nf_path); });
}

/// The commands of the table of routes. Those with a name take it in any case, and need it without a row for all.
void add_route_commands(CLI::App& app, ServiceArguments& service, int& status) {
  CLI::App* nf = nullptr;
  for (service::Route const& route : service::routes()) {
    if (route.command.help.empty()) {
      continue;
    }
    if (route.command.is_of_nf && nf == nullptr) {
      nf = app.add_subcommand("nf", "Network functions of the service");
      nf->require_subcommand(1);
    }
    CLI::App* command = (route.command.is_of_nf ? nf : &app)
                            ->add_subcommand(std::string(route.command.word), std::string(route.command.help));
    command->add_option("name", service.name, "Name of the chain")->required(route.has_name());
    if (route.command.takes_revision) {
      command->add_option("revision", service.revision, "As listed by catena history; default: the one before");
    }
    if (route.command.takes_consents) {
      add_consents(*command, service.consents);
    }
    add_socket(*command, service.socket);
    command->add_flag("--json", service.json, "Result as one JSON object");
    command->callback([&] { status = cli::control(route.command, service); });
  }
}

}  // namespace

void add_socket(CLI::App& command, std::string& socket) {
  command.add_option("--socket", socket,
                     "Control socket of the service; default: /run/catena/catena.sock for root, else catena.sock in "
                     "$XDG_RUNTIME_DIR");
}

void add_service_commands(CLI::App& app, RunArguments& run, ServiceArguments& service, std::string const& nf_path,
                          int& status) {
  add_serve(app, service, nf_path, status);
  CLI::App* apply = app.add_subcommand("apply", "Start a chain in the service, or replace the one of the same name");
  add_run_options(*apply, run);
  add_socket(*apply, service.socket);
  apply->add_flag("--json", service.json, "Result as one JSON object");
  apply->add_flag("--dry-run", service.dry_run, "Only show the changes");
  apply
      ->add_option("--confirm", service.confirm_s,
                   "Return to the present spec after this many seconds, unless catena confirm is run before")
      ->check(CLI::Range(1U, service::kMaxConfirmSeconds));
  apply->callback([&] { status = cli::apply(run, service); });
  add_route_commands(app, service, status);
  CLI::App* logs = app.add_subcommand("logs", "Show the last lines of a chain in the service's log");
  CLI::Option* name = logs->add_option("name", service.name, "Name of the chain");
  add_socket(*logs, service.socket);
  logs->add_flag("-f,--follow", service.follow, "And all lines from now on, until interrupted");
  logs->add_flag("--json", service.json, "Each line as one line of JSON");
  logs->add_flag("--reopen", service.reopen, "Have the outputs of all chains follow their names, after a rotation")
      ->excludes(name);
  logs->callback([&] { status = cli::logs(service); });
  CLI::App* top = app.add_subcommand("top", "Show the activity of the service's chains, updated each second");
  add_socket(*top, service.socket);
  top->add_flag("--once", service.once, "One frame, of one second, and no more");
  top->add_flag("--json", service.json, "Each frame as one line of JSON");
  top->callback([&] { status = cli::top(service); });
}

}  // namespace catena::cli
