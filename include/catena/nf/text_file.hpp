// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/decimal.hpp>
#include <catena/core/escape.hpp>
#include <catena/core/status.hpp>
#include <catena/core/text.hpp>
#include <catena/packet/ipv4_prefix.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Rule, route and string files: read in one piece, parsed by hand, every error with its position.
namespace catena::nf {

/// The lines of a text file, whose bytes are `bytes`: without a byte order mark of UTF-8 at the start, and with a line
/// feed alone where CR LF ends a line. Editors of other systems write both. Positions of all other bytes in their lines
/// are the same. Every reader of a text file uses this function. Thread rule: pure.
std::string plain_text(std::string bytes);

/// The plain_text() of `path`. NotFound if it cannot be read. InvalidArgument if it has more than `max_bytes` bytes or
/// is no file; a FIFO is not waited for, and /dev/null is an empty file. PermissionDenied if the thread acts for a
/// service user without read access, or if `path` is the process's own, e.g. in /proc.
Result<std::string> read_text_file(std::string const& path, std::size_t max_bytes);

/// Walks a text line by line. A line ends with LF or CR LF; `#` starts a comment up to the line's end. The readers
/// (number(), prefix() ...) advance only when they return true. `text` and `file` must outlive the cursor.
class TextCursor {
 public:
  TextCursor(std::string_view text, std::string_view file)
      : at_(text.data()), end_(text.data() + text.size()), line_start_(at_), line_end_(at_), next_(at_), file_(file) {}

  /// Moves to the first word of the next line with a word. False at the end of the text.
  bool next_line() {
    while (next_ != end_) {
      line_start_ = next_;
      line_end_ = line_start_;
      while (line_end_ != end_ && *line_end_ != '\n') {
        ++line_end_;
      }
      next_ = line_end_ == end_ ? end_ : line_end_ + 1;
      ++line_;
      if (line_end_ != line_start_ && line_end_[-1] == '\r') {
        --line_end_;
      }
      at_ = line_start_;
      skip_blanks();
      if (!at_end()) {
        return true;
      }
    }
    return false;
  }
  std::uint32_t line() const { return line_; }
  std::uint32_t column() const { return static_cast<std::uint32_t>(at_ - line_start_) + 1; }

  bool skip_blanks() {
    const char* before = at_;
    while (at_ != line_end_ && (*at_ == ' ' || *at_ == '\t')) {
      ++at_;
    }
    return at_ != before;
  }
  /// At the end of the line or at a comment.
  bool at_end() const { return at_ == line_end_ || *at_ == '#'; }
  /// Between two words, or at_end().
  bool at_gap() const { return at_end() || *at_ == ' ' || *at_ == '\t'; }
  char peek() const { return at_ == line_end_ ? '\0' : *at_; }
  bool accept(char c) {
    if (at_ == line_end_ || *at_ != c) {
      return false;
    }
    ++at_;
    return true;
  }
  /// The word at the current position, up to the next gap. Does not advance.
  std::string_view word() const {
    const char* last = at_;
    while (last != line_end_ && *last != ' ' && *last != '\t' && *last != '#') {
      ++last;
    }
    return {at_, static_cast<std::size_t>(last - at_)};
  }
  void skip(std::size_t bytes) { at_ += bytes; }

  /// The number of parse_decimal() in the digits at the current position.
  bool number(std::uint32_t maximum, std::uint32_t& value) {
    const char* const last = std::find_if(at_, line_end_, [](char c) { return c < '0' || c > '9'; });
    const std::optional<std::uint64_t> number = parse_decimal({at_, static_cast<std::size_t>(last - at_)}, maximum);
    if (number) {
      at_ = last;
      value = static_cast<std::uint32_t>(*number);
    }
    return number.has_value();
  }
  /// A number that is a whole word.
  bool number_word(std::uint32_t maximum, std::uint32_t& value) {
    const char* before = at_;
    if (number(maximum, value) && at_gap()) {
      return true;
    }
    at_ = before;
    return false;
  }
  /// A whole word of packet::Ipv4Prefix::parse(): `1.2.3.0/24`, or a single address as a prefix of 32 bits.
  bool prefix(packet::Ipv4Prefix& value) {
    const std::optional<packet::Ipv4Prefix> parsed = packet::Ipv4Prefix::parse(word());
    if (parsed) {
      value = *parsed;
      skip(word().size());
    }
    return parsed.has_value();
  }

  /// InvalidArgument `file:line:column: message` at the current position, escaped.
  Status error(std::string_view message) const {
    return absl::InvalidArgumentError(escaped(concat(file_, ":", line_, ":", column(), ": ", message)));
  }
  /// The current word for messages: truncated if long.
  std::string quoted_word() const {
    constexpr std::size_t kLongest = 40;
    const std::string_view text = word();
    return concat("'", text.substr(0, kLongest), text.size() > kLongest ? "...'" : "'");
  }

 private:
  const char* at_;
  const char* end_;
  const char* line_start_;
  const char* line_end_;
  const char* next_;
  std::string_view file_;
  std::uint32_t line_ = 0;
};

}  // namespace catena::nf
