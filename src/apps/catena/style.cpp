// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/style.hpp"

#include <catena/core/escape.hpp>

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <ostream>

namespace catena::cli {
namespace {

/// Whether bytes after `text` may make it one character of UTF-8.
bool is_begun_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first >> 5 == 0x6 ? 2 : first >> 4 == 0xE ? 3 : first >> 3 == 0x1E ? 4 : 0;
  return text.size() < length &&
         std::ranges::all_of(text.substr(1), [](char c) { return static_cast<unsigned char>(c) >> 6 == 0x2; });
}

}  // namespace

bool has_colours(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(descriptor) == 1 && (no_color == nullptr || *no_color == '\0');
}

EscapedOutput::EscapedOutput(std::ostream& out) : out_(&out), raw_(out.rdbuf(this)) {}

EscapedOutput::~EscapedOutput() {
  write_pending(true);
  const std::ios::iostate state = out_->rdstate();
  out_->rdbuf(raw_);  // this clears the state, which tells that the output failed
  out_->setstate(state);
}

void EscapedOutput::write_control(std::string_view sequence) {
  write_pending(true);
  raw_->sputn(sequence.data(), static_cast<std::streamsize>(sequence.size()));
}

EscapedOutput::int_type EscapedOutput::overflow(int_type c) {
  const char character = traits_type::to_char_type(c);
  return traits_type::eq_int_type(c, traits_type::eof()) || xsputn(&character, 1) == 1 ? traits_type::not_eof(c)
                                                                                       : traits_type::eof();
}

std::streamsize EscapedOutput::xsputn(const char* text, std::streamsize bytes) {
  pending_.append(text, static_cast<std::size_t>(bytes));
  return write_pending(false) ? bytes : 0;
}

int EscapedOutput::sync() { return write_pending(false) && raw_->pubsync() == 0 ? 0 : -1; }

bool EscapedOutput::write_pending(bool all) {
  std::string_view text = pending_;
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const bool is_layout = text[0] == '\n' || text[0] == '\t';
    const std::size_t bytes = is_layout ? 1 : printable_bytes(text);
    if (bytes == 0 && !all && is_begun_character(text)) {
      break;  // the rest of it may come with the next call
    }
    const std::string_view next = text.substr(0, std::max<std::size_t>(bytes, 1));
    result += bytes == 0 ? escaped(next) : std::string(next);
    text.remove_prefix(next.size());
  }
  pending_.erase(0, pending_.size() - text.size());
  return raw_->sputn(result.data(), static_cast<std::streamsize>(result.size())) ==
         static_cast<std::streamsize>(result.size());
}

void write_control(std::ostream& out, std::string_view sequence) {
  if (auto* escaping = dynamic_cast<EscapedOutput*>(out.rdbuf()); escaping != nullptr) {
    escaping->write_control(sequence);
  } else {
    out << sequence;
  }
}

void print(std::ostream& out, std::string_view text, bool coloured) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const bool warns = coloured && (line.starts_with("WARNING") || line.find("NOT BALANCED") != std::string_view::npos);
    if (warns) {
      write_control(out, "\x1b[33m");
    }
    out << line;
    if (warns) {
      write_control(out, "\x1b[0m");
    }
    out << '\n';
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  out.flush();
}

void print_json(std::ostream& out, nlohmann::ordered_json const& json) {
  out << json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace catena::cli
