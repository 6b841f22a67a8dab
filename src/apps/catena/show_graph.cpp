// SPDX-License-Identifier: Apache-2.0
#include "chain/graph_text.hpp"

#include <catena/core/text.hpp>

#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "gpu/device/subprocess.hpp"

#include <chrono>
#include <fstream>
#include <iostream>
#include <string>

namespace catena::cli {
namespace {

constexpr std::chrono::seconds kDrawingLimit{60};

/// What Graphviz makes of `dot`.
Status print_svg(std::string const& dot) {
  const std::string program = device::find_in_path("dot");
  if (program.empty()) {
    return absl::NotFoundError(
        "pictures are drawn by Graphviz, whose program dot is missing: `apt install graphviz`; --format dot and "
        "mermaid do not need it");
  }
  CATENA_ASSIGN_OR_RETURN(const device::TemporaryFolder folder, device::TemporaryFolder::create());
  const std::string source = folder.path() / "chain.dot";
  const std::string picture = folder.path() / "chain.svg";
  if (!(std::ofstream(source) << dot).flush()) {
    return absl::UnavailableError(concat(source, " cannot be written"));
  }
  CATENA_ASSIGN_OR_RETURN(const device::ProcessResult result,
                          device::run_process({program, "-Tsvg", "-o", picture, source}, folder.path(), kDrawingLimit));
  if (result.exit_code != 0) {
    return absl::InternalError(concat("dot: ", result.output));
  }
  std::cout << std::ifstream(picture).rdbuf();
  return absl::OkStatus();
}

}  // namespace

int show_graph(std::string const& chain_file, std::string const& format) {
  const Result<chain::ChainConfig> config = chain::load_chain(chain_file, {}, chain::environment_variables());
  if (!config.ok()) {
    return fail(config.status());
  }
  if (format == "svg") {
    const Status status = print_svg(chain::draw(*config, chain::GraphFormat::kDot));
    return status.ok() ? kExitOk : fail(status);
  }
  std::cout << chain::draw(*config, format == "text"      ? chain::GraphFormat::kText
                                    : format == "mermaid" ? chain::GraphFormat::kMermaid
                                                          : chain::GraphFormat::kDot);
  return kExitOk;
}

}  // namespace catena::cli
