// SPDX-License-Identifier: Apache-2.0
#include "state_file.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/config.hpp>

#include <absl/strings/numbers.h>

#include <algorithm>
#include <charconv>
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

constexpr std::size_t kDigits = ReplayWindow::kWordBits / 4;  // of a word of `seen`

Result<std::uint64_t> read_number(nf::Config& config, std::string_view key) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, config.string(key));
  std::uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) {
    return config.error(key, concat("'", key, "' is '", text, "', which is no number of 64 bits; the file is damaged"));
  }
  return value;
}

/// One hexadecimal number: bit i of it is that of number next - 1 - i.
Result<ReplayWindow::Seen> read_seen(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, config.string("seen"));
  std::string_view digits = text;
  digits.remove_prefix(digits.starts_with("0x") ? 2 : 0);
  ReplayWindow::Seen seen;
  bool is_number = !digits.empty() && digits.size() <= ReplayWindow::kMaxPackets / 4;
  while (is_number && !digits.empty()) {
    char const* const end = digits.data() + digits.size();
    char const* const begin = end - std::min(digits.size(), kDigits);
    const auto [parsed, error] = std::from_chars(begin, end, seen.emplace_back(), 16);
    is_number = error == std::errc() && parsed == end;
    digits.remove_suffix(static_cast<std::size_t>(end - begin));
  }
  if (!is_number) {
    return config.error("seen", concat("'seen' is '", text, "', which is no hexadecimal number of at most ",
                                       ReplayWindow::kMaxPackets, " bits; the file is damaged"));
  }
  return seen;
}

Result<SavedState> read(std::string const& text, std::string const& path, Direction direction) {
  CATENA_ASSIGN_OR_RETURN(nf::Config file, nf::Config::parse(text, path));
  CATENA_RETURN_IF_ERROR(file.one_of("version", {"1"}).status());
  CATENA_RETURN_IF_ERROR(file.one_of("direction", {std::string(name_of(direction))}).status());
  CATENA_RETURN_IF_ERROR(file.string("spi").status());
  SavedState state;
  CATENA_ASSIGN_OR_RETURN(state.next, read_number(file, "next"));
  if (direction == Direction::kDecrypt) {
    CATENA_ASSIGN_OR_RETURN(state.seen, read_seen(file));
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
    text += "seen: \"0x";
    if (state.seen.empty()) {
      text += std::string(kDigits, 'f');
    }
    for (auto word = state.seen.rbegin(); word != state.seen.rend(); ++word) {
      text += fmt::format("{:016x}", *word);
    }
    text += "\"\n";
  }
  return output_->write(std::as_bytes(std::span(text)));
}

}  // namespace catena::ipsec
