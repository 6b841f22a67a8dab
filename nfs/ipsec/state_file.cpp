// SPDX-License-Identifier: Apache-2.0
#include "state_file.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/config.hpp>

#include <absl/strings/numbers.h>

#include <filesystem>
#include <span>
#include <utility>

namespace catena::ipsec {
namespace {

constexpr std::string_view kHeader =
    "# Sequence numbers of an IPsec association. Do not edit it, copy it, or bring an older one back: packets would "
    "be\n"
    "# encrypted with a key stream used before.\n";
std::string_view name_of(Direction direction) { return direction == Direction::kEncrypt ? "encrypt" : "decrypt"; }

Result<std::uint64_t> read_number(nf::Config& config, std::string_view key, bool hexadecimal) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, config.string(key));
  std::uint64_t value = 0;
  if (!(hexadecimal ? absl::SimpleHexAtoi(text, &value) : absl::SimpleAtoi(text, &value))) {
    return config.error(key, concat("'", key, "' is '", text, "', which is no number of 64 bits; the file is damaged"));
  }
  return value;
}

Result<SavedState> read(std::string const& text, std::string const& path, Direction direction) {
  CATENA_ASSIGN_OR_RETURN(nf::Config file, nf::Config::parse(text, path));
  CATENA_RETURN_IF_ERROR(file.one_of("version", {"1"}).status());
  CATENA_RETURN_IF_ERROR(file.one_of("direction", {std::string(name_of(direction))}).status());
  CATENA_RETURN_IF_ERROR(file.string("spi").status());
  SavedState state;
  CATENA_ASSIGN_OR_RETURN(state.next, read_number(file, "next", false));
  if (direction == Direction::kDecrypt) {
    CATENA_ASSIGN_OR_RETURN(state.seen, read_number(file, "seen", true));
  }
  CATENA_RETURN_IF_ERROR(file.finish());
  if (state.next == 0) {
    return file.error("next", "'next' is 0, which is no sequence number; the file is damaged");
  }
  return state;
}

}  // namespace

std::string StateFile::path_of(std::string const& folder, std::string const& name) {
  return (std::filesystem::path(folder) / name).string();
}

bool StateFile::is_taken(nf::Outputs& outputs, std::string const& folder, std::string const& name) {
  return absl::IsFailedPrecondition(outputs.open_kept(folder, name).status());
}

Result<StateFile> StateFile::open(nf::Outputs& outputs, std::string const& folder, std::string const& name,
                                  Direction direction) {
  StateFile file;
  file.path_ = path_of(folder, name);
  file.direction_ = direction;
  Result<nf::KeptFile> kept = outputs.open_kept(folder, name);
  if (absl::IsFailedPrecondition(kept.status())) {
    return absl::FailedPreconditionError(
        concat(file.path_,
               ": another run uses these keys in the same direction; end it first, or give one of both "
               "associations other keys"));
  }
  CATENA_RETURN_IF_ERROR(kept.status());
  if (kept->text) {
    file.is_new_ = false;
    CATENA_ASSIGN_OR_RETURN(file.loaded_, read(*kept->text, file.path_, direction));
  }
  file.output_ = std::move(kept->output);
  return file;
}

Status StateFile::save(SavedState const& state, std::uint32_t spi) const {
  std::string text =
      concat(kHeader, "version: 1\ndirection: ", name_of(direction_), "\nspi: ", spi, "\nnext: ", state.next, "\n");
  if (direction_ == Direction::kDecrypt) {
    text += fmt::format("seen: \"0x{:016x}\"\n", state.seen);
  }
  return output_->write(std::as_bytes(std::span(text)));
}

}  // namespace catena::ipsec
