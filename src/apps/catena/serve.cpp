// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "apps/catena/known_nfs.hpp"
#include "base/core/log_line.hpp"
#include "base/core/name_watch.hpp"
#include "pipeline/device_servers.hpp"
#include "service/chain_log.hpp"
#include "service/service.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace catena::cli {
namespace {

/// What is inside the chains is finished; what waits for a reader of its output by then is given up.
constexpr std::chrono::seconds kEndLimit{15};

/// Blocks the signals that the service waits for, for all threads that it starts.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

Result<service::ServiceOptions> options_of(ServiceArguments const& arguments) {
  service::ServiceOptions options{arguments.socket, arguments.state, arguments.metrics, CATENA_VERSION,
                                  arguments.quotas, arguments.roles, arguments.audit,   arguments.pci};
  CATENA_ASSIGN_OR_RETURN(options.sharing, chain::sharing_of(arguments.sharing));
  CATENA_ASSIGN_OR_RETURN(options.servers_for, runtime::parse_servers_for(arguments.device_servers));
  CATENA_RETURN_IF_ERROR(runtime::check_servers(options.servers_for, options.sharing));
  if (options.socket.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.socket, service::default_socket());
  }
  if (options.state_folder.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.state_folder, service::default_state_folder());
  }
  return options;
}

/// Whether standard error is the journal's (systemd.exec(5)): children of a service inherit the variable.
bool is_read_by_journald() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  return stream != nullptr && ::fstat(STDERR_FILENO, &status) == 0 &&
         stream == concat(std::uint64_t{status.st_dev}, ":", std::uint64_t{status.st_ino});
}

void set_log(std::string const& form) {
  const bool is_journal = form == "journal" || (form == "auto" && is_read_by_journald());
  spdlog::default_logger()->sinks().push_back(service::chain_log());
  set_log_pattern(is_journal ? kJournalLog : form == "json" ? kJsonLog : kTextLog);
}

/// Of a file read again.
void log_failure(std::string_view rows, Status const& read) {
  if (!read.ok()) {
    spdlog::error("the earlier {} hold: {}", rows, std::string(read.message()));
  }
}

/// Until a signal ends the service. Another one has the outputs of chains opened again where a rotation of logs took
/// their names; SIGHUP also has the quotas and roles read again.
void wait_for_end(sigset_t const& signals, service::Service& service) {
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && (signal == SIGHUP || signal == SIGUSR1)) {
    check_names_of_outputs();
    if (signal == SIGHUP) {
      log_failure("quotas", service.read_quotas());
      log_failure("roles", service.read_roles());
    }
    spdlog::info("outputs follow their names; chains are unchanged: 'catena apply' changes them");
  }
}

}  // namespace

int serve(ServiceArguments const& arguments, std::string const& nf_path) {
  set_log(arguments.log);
  const sigset_t signals = block_signals();
  const Result<service::ServiceOptions> options = options_of(arguments);
  if (!options.ok()) {
    return fail(options.status());
  }
  const Result<nf::Registry> registry = known_nfs(nf_path);
  if (!registry.ok()) {
    return fail(registry.status());
  }
  Result<std::unique_ptr<service::Service>> service = service::Service::start(*options, *registry);
  if (!service.ok()) {
    return fail(service.status());
  }
  spdlog::info("serves at {}{}", options->socket, options->metrics.empty() ? "" : ", metrics at " + options->metrics);
  wait_for_end(signals, **service);
  spdlog::info("ends: all chains are stopped");
  // `timeout` and terminals may signal twice at once; who cannot wait signals again later
  constexpr std::chrono::milliseconds kAtOnce{100};
  std::this_thread::sleep_for(kAtOnce);
  constexpr timespec kNoTime{};
  while (sigtimedwait(&signals, nullptr, &kNoTime) > 0) {
  }
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  if (!(*service)->end(kEndLimit)) {
    spdlog::warn("ends with unfinished work");
    // what waits for others, or for a device, would keep the service's own clean-up waiting for ever
    std::_Exit(kExitOk);
  }
  return kExitOk;
}

}  // namespace catena::cli
