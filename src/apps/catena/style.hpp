// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <iosfwd>
#include <streambuf>
#include <string>
#include <string_view>

namespace catena::cli {

/// Whether output to `descriptor` may have colours: it is a terminal, and NO_COLOR is not set (https://no-color.org).
bool has_colours(int descriptor);

/// Writes what a stream of the program gets, from its creation to its end, with tabs and line feeds unchanged and
/// everything else escaped(): texts of files and other processes control no terminal. One thread at a time, as the
/// stream. The stream must outlive it.
class EscapedOutput final : public std::streambuf {
 public:
  explicit EscapedOutput(std::ostream& out);
  ~EscapedOutput() override;
  EscapedOutput(EscapedOutput const&) = delete;
  EscapedOutput& operator=(EscapedOutput const&) = delete;

  /// Writes a control sequence of the program itself.
  void write_control(std::string_view sequence);

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize bytes) override;
  int sync() override;

 private:
  /// Writes pending_, without an unfinished character of UTF-8 at its end unless `all`. False: the output failed.
  bool write_pending(bool all);

  std::ostream* out_;
  std::streambuf* raw_;
  std::string pending_;
};

/// Writes a control sequence to `out`, whether it is an EscapedOutput or not.
void write_control(std::ostream& out, std::string_view sequence);

/// Prints text. Warning lines are coloured if `coloured`.
void print(std::ostream& out, std::string_view text, bool coloured);

/// Prints JSON of ASCII, indented: it stays JSON whatever its texts are. Invalid UTF-8 in them is replaced.
void print_json(std::ostream& out, nlohmann::ordered_json const& json);

}  // namespace catena::cli
