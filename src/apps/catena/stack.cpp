// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "apps/catena/flags.hpp"
#include "apps/catena/guest_program.hpp"
#include "apps/catena/stack_copies.hpp"
#include "apps/catena/stack_metrics.hpp"
#include "base/core/own_program.hpp"
#include "base/core/port_list.hpp"
#include "service/listen.hpp"
#include "stack/process/stack_host.hpp"

#include <catena/core/decimal.hpp>
#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace catena::cli {
namespace {

struct StackArguments {
  std::string interface = "catena0";
  std::vector<std::string> addresses{"10.123.0.2/24", "fd00:ca7e::2/64"};
  std::vector<std::string> host_addresses{"10.123.0.1/24", "fd00:ca7e::1/64"};
  std::string ports = "all";
  CopyArguments copies;
  std::uint32_t sessions = 1024;
  std::uint32_t rx_kib = 64;
  std::uint32_t tx_kib = 256;
  std::vector<int> cpus;
  std::string metrics;  ///< address and port; empty: not served
  bool json = false;
  std::vector<std::string> program;
};

Result<stack::InterfaceAddress> parse_address(std::string const& text) {
  const std::size_t slash = text.find('/');
  const auto address = packet::Address::parse(std::string_view(text).substr(0, slash));
  const std::string_view length =
      slash == std::string::npos ? std::string_view() : std::string_view(text).substr(slash + 1);
  const std::optional<std::uint64_t> prefix = parse_decimal(length, address && address->is_v4() ? 32 : 128);
  if (!address || !prefix) {
    return absl::InvalidArgumentError(
        concat("'", text, "' is no address of an interface: write 10.123.0.2/24 or fd00::2/64"));
  }
  return stack::InterfaceAddress{*address, static_cast<std::uint8_t>(*prefix)};
}

Result<stack::SegmentShape> shape_of(StackArguments const& arguments) {
  constexpr std::uint32_t kLeastRx = 64;  // a window of TCP
  constexpr std::uint32_t kMostRx = 1024;
  constexpr std::uint32_t kMostTx = 4096;
  const stack::SegmentShape shape{arguments.sessions, arguments.rx_kib * 1024, arguments.tx_kib * 1024};
  if (arguments.rx_kib >= kLeastRx && arguments.rx_kib <= kMostRx && arguments.tx_kib <= kMostTx &&
      stack::is_possible(shape)) {
    return shape;
  }
  return absl::InvalidArgumentError(
      "--sessions (to 65536), --rx (64 to 1024 KiB) and --tx (4 to 4096 KiB) are powers of two");
}

Result<stack::StackHostOptions> options_of(StackArguments const& arguments) {
  if (PortList ports; arguments.ports.empty() || !ports.parse(arguments.ports.c_str())) {
    const std::string advice = leading_zeros_advice(arguments.ports);
    return absl::InvalidArgumentError(
        concat("--ports '", arguments.ports, "' is no list of ports",
               advice.empty() ? concat(": write all, or up to ", PortList::kMaxPorts, " ports as 80,443") : advice));
  }
  stack::StackHostOptions options;
  options.interface = arguments.interface;
  stack::StackSettings& settings = options.process.settings;
  for (std::string const& text : arguments.addresses) {
    CATENA_ASSIGN_OR_RETURN(const stack::InterfaceAddress address, parse_address(text));
    auto& network = address.address.is_v4() ? settings.tcp.ipv4 : settings.tcp.ipv6;
    if (network) {
      return absl::InvalidArgumentError(concat("--address ", text, ": the stack has one address of each family"));
    }
    network = stack::TcpOptions::Network{address.address, address.prefix, std::nullopt};
  }
  for (std::string const& text : arguments.host_addresses) {
    CATENA_ASSIGN_OR_RETURN(const stack::InterfaceAddress address, parse_address(text));
    options.addresses.push_back(address);
    auto& network = address.address.is_v4() ? settings.tcp.ipv4 : settings.tcp.ipv6;
    if (!network) {
      continue;
    }
    const stack::InterfaceAddress own{network->address, network->prefix};
    if (address.address == own.address || !is_in_network(address.address, own) ||
        !is_in_network(own.address, address)) {
      return absl::InvalidArgumentError(concat("--host-address ", text,
                                               " is not another address of the network of --address ", to_string(own),
                                               ": the machine would not reach the stack"));
    }
    network->gateway = address.address;
  }
  settings.tcp.mac = {2, 0xCA, 0x7E, 0, 0, 2};
  CATENA_RETURN_IF_ERROR(set_copies(arguments.copies, settings));
  CATENA_ASSIGN_OR_RETURN(settings.shape, shape_of(arguments));
  settings.tcp.receive_window = settings.shape.rx_bytes;
  options.process.cpus = arguments.cpus;
  return options;
}

constexpr char kFolderName[] = "catena-stack-XXXXXX";
constexpr char kSocketName[] = "stack.sock";

/// Removes the folders of this user's runs that were killed: their lock files have a process number and no lock.
void remove_old_folders(std::filesystem::path const& parent) {
  std::error_code error;
  for (auto const& entry : std::filesystem::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename().string();
    const std::string_view start = std::string_view(kFolderName).substr(0, sizeof kFolderName - sizeof "XXXXXX");
    struct stat status {};
    if (name.size() != sizeof kFolderName - 1 || !name.starts_with(start) ||
        ::lstat(entry.path().c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid()) {
      continue;
    }
    const FileDescriptor lock(
        ::open((entry.path() / concat(kSocketName, ".lock")).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    // a run writes its number after it has locked the file
    if (lock && ::fstat(lock.get(), &status) == 0 && status.st_size > 0 &&
        ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
      std::filesystem::remove_all(entry.path(), error);
    }
  }
}

/// A folder for the socket, which every user may pass: a server's workers have rights of their own.
class Folder {
 public:
  static Result<Folder> make() {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    remove_old_folders(parent);
    std::string name = (parent / kFolderName).string();
    if (::mkdtemp(name.data()) == nullptr || ::chmod(name.c_str(), 0711) != 0) {
      return absl::UnavailableError(concat(name, ": ", std::strerror(errno)));
    }
    return Folder(name);
  }
  Folder(Folder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Folder& operator=(Folder&&) = delete;
  ~Folder() {
    std::error_code error;
    if (!path_.empty()) {
      std::filesystem::remove_all(path_, error);
    }
  }
  std::string const& path() const { return path_; }

 private:
  explicit Folder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// `threshold`: with --copy full.
void print(stack::StackReport const& report, std::uint32_t restarts,
           std::optional<chain::CopyThreshold> const& threshold, bool as_json) {
  const std::uint64_t all =
      std::max<std::uint64_t>(std::accumulate(report.cycles.begin(), report.cycles.end(), std::uint64_t{0}), 1);
  if (as_json) {
    nlohmann::json json{{"accepted", report.sessions.accepted},
                        {"refused", report.sessions.refused},
                        {"violations", report.sessions.violations},
                        {"failed", report.sessions.failed},
                        {"received_bytes", report.sessions.received_bytes},
                        {"sent_bytes", report.tx.bytes},
                        {"pieces",
                         {{"reference", report.tx.by_reference},
                          {"cpu", report.tx.by_cpu},
                          {"engine", report.tx.by_engine},
                          {"illegal", report.tx.illegal}}},
                        {"copies",
                         {{"engine", report.copies.by_engine},
                          {"cpu", report.copies.by_cpu},
                          {"lost_engines", report.copies.losses},
                          {"illegal", report.copies.illegal},
                          {"quarantined_applications", report.copies.quarantined}}},
                        {"buffers_in_use", report.buffers_in_use},
                        {"connections", report.connections},
                        {"restarts", restarts}};
    if (threshold) {
      const bool is_never = threshold->bytes == chain::CopyThreshold::kNever;
      json["threshold"] = {{"bytes", is_never ? nlohmann::json() : nlohmann::json(threshold->bytes)},
                           {"why", threshold->why}};
    }
    for (std::size_t part = 0; part < report.cycles.size(); ++part) {
      json["cpu"][std::string(stack::kPartNames[part])] = report.cycles[part];
    }
    std::cerr << json.dump() << '\n';
    return;
  }
  std::cerr << fmt::format(
      "stack     {} connections, {} refused, {} B received, {} B sent; copied by cpu {}, engine {}\n",
      report.sessions.accepted, report.sessions.refused, report.sessions.received_bytes, report.tx.bytes,
      report.tx.by_cpu, report.tx.by_engine);
  std::cerr << "cpu      ";
  for (std::size_t part = 0; part < report.cycles.size(); ++part) {
    std::cerr << fmt::format(" {} {:.0f} %", stack::kPartNames[part],
                             100.0 * static_cast<double>(report.cycles[part]) / static_cast<double>(all));
  }
  std::cerr << '\n';
}

/// The stack's counters when the peers have all bytes of the connections that the program has closed, or some seconds
/// after its end.
stack::StackReport last_report(stack::StackHost const& host) {
  constexpr std::chrono::milliseconds kAge{250};  // the stack reports each 200 ms
  constexpr int kAttempts = 20;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::this_thread::sleep_for(kAge);
    if (host.report().connections == 0) {
      break;
    }
  }
  return host.report();
}

Result<int> run_program(StackArguments const& arguments) {
  CATENA_ASSIGN_OR_RETURN(stack::StackHostOptions options, options_of(arguments));
  CATENA_ASSIGN_OR_RETURN(const std::string library, find_own_program("libcatena-sockets.so"));
  CATENA_ASSIGN_OR_RETURN(GuestProgram program, GuestProgram::prepare(arguments.program));
  options.may_attach = [&program](pid_t pid) { return program.has(pid); };
  // after prepare(), which blocks signals: each thread of a driver inherits this
  CATENA_ASSIGN_OR_RETURN(const std::optional<chain::CopyThreshold> threshold,
                          prepare_copies(arguments.copies, options.process));
  if (threshold) {
    std::cerr << concat("copies    ", describe(arguments.copies, *threshold), "\n");
  }
  CATENA_ASSIGN_OR_RETURN(const Folder folder, Folder::make());
  const std::string path = concat(folder.path(), "/", kSocketName);
  CATENA_ASSIGN_OR_RETURN(service::ControlSocket door, service::ControlSocket::open(path));
  constexpr mode_t kForAll = 0666;  // a server's workers have rights of their own; may_attach decides
  if (::chmod(path.c_str(), kForAll) != 0) {
    return absl::UnavailableError(concat(path, ": ", std::strerror(errno)));
  }
  const auto host = stack::StackHost::start(std::move(options), FileDescriptor(door.release()));
  if (absl::IsAlreadyExists(host.status())) {
    return absl::AlreadyExistsError(concat(std::string(host.status().message()),
                                           ": give this stack others with --interface, --address and --host-address"));
  }
  CATENA_RETURN_IF_ERROR(host.status());
  std::unique_ptr<service::HttpServer> metrics;
  if (!arguments.metrics.empty()) {
    CATENA_ASSIGN_OR_RETURN(const int listening, service::listen_tcp(arguments.metrics));
    CATENA_ASSIGN_OR_RETURN(metrics, service::HttpServer::start(listening, [&host](auto const& request) {
                              return answer_stack_metrics(**host, request);
                            }));
  }
  const char* const other = std::getenv("LD_PRELOAD");
  CATENA_RETURN_IF_ERROR(program.start({{"LD_PRELOAD", other == nullptr ? library : concat(library, ":", other)},
                                        {"CATENA_STACK", path},
                                        {"CATENA_STACK_PORTS", arguments.ports}}));
  const int status = program.wait();
  print(last_report(**host), (*host)->restarts(), threshold, arguments.json);
  return status;
}

}  // namespace

void add_stack_commands(CLI::App& app, int& status) {
  auto arguments = std::make_shared<StackArguments>();
  CLI::App* const stack = app.add_subcommand("stack", "Serve unmodified programs by Catena's own TCP stack");
  stack->require_subcommand(1);
  CLI::App* const run = stack->add_subcommand(
      "run", "Start a stack on a TAP interface and run a program whose TCP connections it serves");
  run->add_option("program", arguments->program, "The program and its arguments, after --")->required();
  run->add_option("--interface", arguments->interface, "TAP interface, made where it is missing")
      ->capture_default_str();
  run->add_option("--address", arguments->addresses, "Addresses of the stack, one of each family")
      ->delimiter(',')
      ->allow_extra_args(false);
  run->add_option("--host-address", arguments->host_addresses, "Addresses of this machine at the interface")
      ->delimiter(',')
      ->allow_extra_args(false);
  run->add_option("--ports", arguments->ports, "Ports at which the stack listens in the kernel's place: 80,443 or all")
      ->capture_default_str();
  add_copy_options(*run, arguments->copies);
  run->add_option("--sessions", arguments->sessions, "Connections of a process of the program; a power of two")
      ->capture_default_str();
  run->add_option("--rx", arguments->rx_kib, "KiB of a connection's receive buffer; a power of two")
      ->capture_default_str();
  run->add_option("--tx", arguments->tx_kib, "KiB of a connection's send buffer; a power of two")
      ->capture_default_str();
  run->add_option("--cpus", arguments->cpus, "CPUs of the stack")->delimiter(',')->allow_extra_args(false);
  run->add_option("--metrics", arguments->metrics, "Serve /metrics for Prometheus at this address: 127.0.0.1:9465");
  run->add_flag("--json", arguments->json, "Report as one JSON object on standard error");
  run->callback([arguments, &status] {
    const Result<int> result = run_program(*arguments);
    status = result.ok() ? *result : fail(result.status());
  });
}

}  // namespace catena::cli
