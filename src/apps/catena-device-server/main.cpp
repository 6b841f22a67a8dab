// SPDX-License-Identifier: Apache-2.0
// The program of a device server. Its supervisor starts it (see supervisor.hpp); people do not.
#include "apps/catena-device-server/server_program_cache.hpp"
#include "apps/catena-device-server/strangers.hpp"
#include "base/core/log_line.hpp"
#include "base/ipc/mapping.hpp"
#include "gpu/device/device.hpp"
#include "gpu/device/remote/server.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/prctl.h>
#include <unistd.h>

int main(int count, char** arguments) {
  using namespace catena::device;
  constexpr int kArguments = 8;
  if (count != kArguments) {
    static_cast<void>(std::fputs("a part of Catena, which starts it by itself: see `catena serve --help`\n", stderr));
    return 2;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("catena-device-server"));  // packets may go to standard output
  catena::set_log_pattern("[%Y-%m-%d %H:%M:%S.%e] [%n] [%^%l%$] %v");
  // Ctrl-C at a terminal and systemd end a whole group of processes: the supervisor says when this one ends
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  // whatever ends the supervisor ends this process too; it may have ended before that could be said
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_TIMERSLACK, 1);
  const auto number = [arguments](int at) { return std::strtoull(arguments[at], nullptr, 10); };
  catena::FileDescriptor control(static_cast<int>(number(2)));
  auto box = catena::ipc::Mapping::map(catena::FileDescriptor(static_cast<int>(number(3))), sizeof(remote::BlackBox));
  if (!box.ok()) {
    return remote::kExitNoDevice;
  }
  auto& black_box = box->as<remote::BlackBox>();
  const auto preference = parse_preference(arguments[1]);
  std::string why;
  auto device = preference.ok() ? open(*preference, &why) : preference.status();
  if (!device.ok() || *device == nullptr) {
    black_box.reason.set(device.ok() ? why : std::string(device.status().message()));
    black_box.has_reason.store(1);
    return remote::kExitNoDevice;
  }
  remote::ServerLimits limits{std::chrono::milliseconds(number(4)), number(5), number(6), number(7) != 0};
  limits.launch = limits.launch_on((*device)->info());
  catena::device_server::ServerProgramCache programs(
      **device, catena::program::ProgramCache::from_environment().below("strangers"));
  remote::serve(**device, std::move(control), limits, black_box, &_exit, &catena::device_server::judge, programs);
}
