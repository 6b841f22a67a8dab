// SPDX-License-Identifier: Apache-2.0
#include "nf/testing/hint_check.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <algorithm>
#include <filesystem>

#include "nf/testing/decide.hpp"
#include "nf/testing/twin_nf.hpp"

namespace catena::nf::testing {
namespace {

/// The name of a file that is not the same in both folders; empty if all are.
std::string differing_file(ScratchFolder const& folder, ScratchFolder const& other) {
  for (auto const& [in, beside] : {std::pair{&folder, &other}, std::pair{&other, &folder}}) {
    for (auto const& entry : std::filesystem::recursive_directory_iterator(in->path())) {
      const std::string name = std::filesystem::relative(entry.path(), in->path()).string();
      if (in->read(name) != beside->read(name)) {
        return name;
      }
    }
  }
  return {};
}

class Check {
 public:
  Check(HintSubject const& subject, device::Device* device, RunOptions const& options)
      : subject_(subject), device_(device), options_(options) {}

  Status run_round(std::uint32_t round);
  std::vector<std::string> lies() const { return lies_; }

 private:
  struct Found {
    std::string difference;
    std::vector<UndeclaredWrite> writes;
  };
  Result<Found> run(Poison const& poison) const;
  /// By running the NF with ever less of it overwritten, finds which fields `difference` is due to.
  Status explain(std::uint32_t round, std::string const& difference);
  Result<bool> explain_step(std::uint32_t round, Step step);
  void add(std::string const& lie) {
    const std::string sentence = concat(subject_.descriptor.type, ": ", lie);
    if (std::find(lies_.begin(), lies_.end(), sentence) == lies_.end()) {
      lies_.push_back(sentence);
    }
  }

  HintSubject const& subject_;
  device::Device* device_;
  RunOptions const& options_;
  bool is_explained_ = false;
  std::vector<std::string> lies_;
};

Result<Check::Found> Check::run(Poison const& poison) const {
  const ScratchFolder folder;
  const ScratchFolder twins;
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<Nf> nf, subject_.make(folder.path()));
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<Nf> twin, subject_.make(twins.path()));
  Descriptor const& descriptor = subject_.descriptor;
  PacketStore store(subject_.frames, options_.arrivals_ns);
  auto both = std::make_unique<TwinNf>(descriptor, std::move(nf), std::move(twin), store.all(), poison);
  TwinNf const& seen = *both;
  Instance instance(std::string(descriptor.type), descriptor, std::move(both),
                    options_.on_unsupported.value_or(descriptor.on_unsupported_default), options_.records,
                    options_.link_local);
  CATENA_RETURN_IF_ERROR(decide(instance, cut(store, options_), device_, options_));
  CATENA_RETURN_IF_ERROR(instance.nf().finish());
  Found found{seen.difference(), seen.undeclared_writes()};
  if (const std::string file = differing_file(folder, twins); found.difference.empty() && !file.empty()) {
    found.difference = concat("the file ", file, " is another one");
  }
  return found;
}

Status Check::run_round(std::uint32_t round) {
  CATENA_ASSIGN_OR_RETURN(const Found found, run({round}));
  for (UndeclaredWrite const& write : found.writes) {
    add(write.is_unmarked ? concat(name_of(write.step), " writes ", name_of_part(write.part), " of ", write.packet,
                                   ", which prepare_writes_few names, without mark_rewritten()")
                          : concat(name_of(write.step), " writes ", name_of_part(write.part), " of ", write.packet,
                                   ", which ", writes_of(write.step), " does not name"));
  }
  if (!found.difference.empty() && !is_explained_) {
    is_explained_ = true;
    return explain(round, found.difference);
  }
  return absl::OkStatus();
}

Status Check::explain(std::uint32_t round, std::string const& difference) {
  bool is_known = false;
  for (const Step step : kSteps) {
    CATENA_ASSIGN_OR_RETURN(const bool is_known_here, explain_step(round, step));
    is_known |= is_known_here;
  }
  if (!is_known) {
    add(concat("reads fields that its hints do not name: with other values in all of them ", difference));
  }
  return absl::OkStatus();
}

Result<bool> Check::explain_step(std::uint32_t round, Step step) {
  CATENA_ASSIGN_OR_RETURN(const Found all, run({round, step}));
  if (all.difference.empty()) {
    return false;
  }
  const auto say = [&](std::string const& what, std::string const& difference) {
    add(concat(name_of(step), " reads ", what, ", which ", reads_of(step), " does not name: with other values there ",
               difference));
  };
  bool is_known = false;
  for (std::uint32_t part = 0; part < kPartIds; ++part) {
    CATENA_ASSIGN_OR_RETURN(const Found one, run({round, step, part}));
    if (!one.difference.empty()) {
      is_known = true;
      say(name_of_part(part), one.difference);
    }
  }
  if (!is_known) {
    say("several fields at once", all.difference);
  }
  return true;
}

}  // namespace

Result<std::vector<std::string>> find_lies(HintSubject const& subject, device::Device* device, std::uint32_t rounds,
                                           RunOptions const& options) {
  Check check(subject, device, options);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    CATENA_RETURN_IF_ERROR(check.run_round(round));
  }
  return check.lies();
}

}  // namespace catena::nf::testing
