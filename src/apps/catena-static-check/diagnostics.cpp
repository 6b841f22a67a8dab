// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-static-check/diagnostics.hpp"

#include <utility>

namespace catena::checker {
namespace {

constexpr std::size_t kMaxShown = 160;
constexpr std::size_t kMaxMessage = 600;

/// Without control characters, which would end a field or a line of what lines() makes.
std::string on_one_line(std::string_view text, std::size_t most) {
  std::string line;
  for (const char c : text.substr(0, most)) {
    line += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return text.size() > most ? line + "..." : line;
}

}  // namespace

std::string as_written(std::string text) {
  for (const std::string_view inserted : {"catena_word_", "__generic ", "__private ", "__constant ", " __private"}) {
    for (std::size_t at = text.find(inserted); at != std::string::npos; at = text.find(inserted, at)) {
      text.erase(at, inserted.size());
    }
  }
  return text;
}

std::string shown(std::string_view text) { return on_one_line(as_written(std::string(text)), kMaxShown); }

void Diagnostics::add(Finding finding) {
  if (full() || !seen_.emplace(finding.file, finding.line, finding.message).second) {
    return;
  }
  diagnostics_.push_back(std::move(finding));
}

std::string Diagnostics::lines() const {
  std::string text;
  for (Finding const& finding : diagnostics_) {
    text += finding.severity == Severity::kRefused ? "refused" : "caution";
    for (std::string const& field :
         {finding.file, std::to_string(finding.line), std::to_string(finding.column), finding.rule, finding.message}) {
      text += '\t' + on_one_line(field, kMaxMessage);
    }
    text += '\n';
  }
  return text + "end\n";
}

}  // namespace catena::checker
