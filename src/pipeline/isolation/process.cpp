// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/process.hpp"

#include "base/core/own_program.hpp"
#include "pipeline/isolation/supervisor.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <utility>

namespace catena::nf_process {

NfProcess::NfProcess(std::unique_ptr<Supervisor> supervisor) : supervisor_(std::move(supervisor)) {}

NfProcess::~NfProcess() = default;

Result<std::unique_ptr<NfProcess>> NfProcess::create(ProcessOptions options) {
  auto supervisor = std::make_unique<Supervisor>(std::move(options));
  CATENA_RETURN_IF_ERROR(supervisor->launch());
  return std::unique_ptr<NfProcess>(new NfProcess(std::move(supervisor)));
}

Result<NfInfo> NfProcess::add(StartRequest wanted, std::vector<nf::NamedOutput> outputs) {
  return supervisor_->add(std::move(wanted), std::move(outputs));
}

Status NfProcess::start(Setup const& setup) { return supervisor_->start(setup); }

void NfProcess::start_replacement() { supervisor_->transfer.expect(); }

bool NfProcess::can_transfer_state(std::vector<bool> const& has_state) const {
  const std::vector<Started> started = supervisor_->reports.started();
  if (has_state.size() != started.size()) {
    return false;
  }
  for (std::size_t nf = 0; nf < has_state.size(); ++nf) {
    if (has_state[nf] && !started[nf].is_portable) {
      return false;
    }
  }
  return true;
}

void NfProcess::transfer_state() { supervisor_->transfer.let_leave(); }

bool NfProcess::is_transferring_state() const { return supervisor_->transfer.leaves(); }

void NfProcess::start_after(NfProcess& before) {
  supervisor_->transfer.take(before.supervisor_->transfer, supervisor_->nfs.size());
  supervisor_->signal.ring();
}

bool NfProcess::has_started() {
  Connection const* late = nullptr;
  const bool has_begun = supervisor_->transfer.has_begun(late);
  if (late != nullptr) {
    supervisor_->signal.fail(*late, "it takes too long to replace its predecessor");
  }
  return has_begun;
}

std::vector<Status> NfProcess::start_status() const {
  std::vector<bool> is_portable;
  for (Started const& nf : supervisor_->reports.started()) {
    is_portable.push_back(nf.is_portable);
  }
  return supervisor_->transfer.results(is_portable);
}

std::shared_ptr<Connection> NfProcess::take_connection() { return supervisor_->reports.take_connection(); }

bool NfProcess::is_down() const { return supervisor_->reports.is_down(); }

void NfProcess::fail(Connection const& connection, std::string_view why) { supervisor_->signal.fail(connection, why); }

int NfProcess::notifier() const { return supervisor_->notifier.get(); }

std::uint64_t NfProcess::refusals() const { return supervisor_->rights.refusals; }

std::uint64_t NfProcess::restarts() const { return supervisor_->reports.restarts(); }

pid_t NfProcess::pid() const { return supervisor_->reports.pid(); }

std::string const& NfProcess::group() const { return supervisor_->options.group; }

Setup const& NfProcess::setup() const { return supervisor_->setup; }

std::vector<std::string> NfProcess::start_lines(std::size_t nf) const { return supervisor_->reports.started(nf).lines; }

std::vector<std::pair<std::string, std::uint64_t>> NfProcess::refused_rules(std::size_t nf) const {
  return supervisor_->reports.started(nf).refused_rules;
}

std::vector<nf::Statistic> NfProcess::statistics(std::size_t nf) const {
  return supervisor_->reports.statistics(nf).statistics;
}

std::vector<std::string> NfProcess::end_lines(std::size_t nf) const {
  return supervisor_->reports.statistics(nf).lines;
}

Status NfProcess::ended(std::size_t nf) const {
  const Status ended = supervisor_->reports.ended();
  const auto is_about = [&ended](NfSetup const& of) {
    return std::string(ended.message()).starts_with(concat("NF '", of.name, "': "));
  };
  std::vector<NfSetup> const& nfs = supervisor_->setup.nfs;
  const auto found = std::ranges::find_if(nfs, is_about);
  const std::size_t whose = found == nfs.end() ? 0 : static_cast<std::size_t>(found - nfs.begin());
  return whose == nf ? ended : absl::OkStatus();
}

Result<std::string> find_nf_program() { return find_own_program("catena-nf"); }

}  // namespace catena::nf_process
