// SPDX-License-Identifier: Apache-2.0
// A vendor's NF that writes: at its end the number of packets it has seen, to each output that its configuration names.
#include <catena/nf/nf.hpp>

#include <catena/core/text.hpp>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace catena;

constexpr std::array<nf::ConfigKey, 3> kConfig{{
    {"file", "file", "", "has the number"},
    {"folder", "folder", "", "has the number of all runs"},
    {"receiver", "HOST:PORT", "", "gets the number"},
}};

class Tally final : public nf::Nf {
 public:
  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config) {
    auto tally = std::make_unique<Tally>();
    const std::shared_ptr<nf::Outputs> outputs = config.outputs();
    if (config.has("file")) {
      CATENA_ASSIGN_OR_RETURN(const std::string path, config.output_path("file"));
      CATENA_ASSIGN_OR_RETURN(tally->outputs_.emplace_back(), outputs->open_file(path));
    }
    if (config.has("folder")) {
      CATENA_ASSIGN_OR_RETURN(const std::string folder, config.output_folder("folder", ""));
      CATENA_ASSIGN_OR_RETURN(tally->kept_, outputs->open_kept(folder, "tally"));
    }
    if (config.has("receiver")) {
      CATENA_ASSIGN_OR_RETURN(const std::string receiver, config.receiver("receiver"));
      CATENA_ASSIGN_OR_RETURN(tally->outputs_.emplace_back(), outputs->connect(receiver));
    }
    CATENA_RETURN_IF_ERROR(config.finish());
    return tally;
  }

  nf::Hints hints() const override { return {.cr = packet::fields(packet::kIpv4Ttl)}; }
  void compute(packet::Batch const& batch, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {
    packets_ += batch.size();
  }
  Status finish() override {
    const std::string line = concat(packets_, "\n");
    for (std::unique_ptr<nf::Output> const& output : outputs_) {
      CATENA_RETURN_IF_ERROR(output->write(std::as_bytes(std::span(line))));
      CATENA_RETURN_IF_ERROR(output->close());
    }
    if (kept_.output == nullptr) {
      return absl::OkStatus();
    }
    const std::string all = concat(kept_.text.value_or(""), line);
    return kept_.output->write(std::as_bytes(std::span(all)));
  }

 private:
  std::vector<std::unique_ptr<nf::Output>> outputs_;
  nf::KeptFile kept_;
  std::uint64_t packets_ = 0;
};

}  // namespace

catena::nf::Descriptor const& catena_nf_tally() {
  static constexpr nf::Descriptor kDescriptor{
      .type = "tally",
      .help = "Counts packets",
      .drop_reasons = {},
      .config = kConfig,
      .create = &Tally::create,
  };
  return kDescriptor;
}
