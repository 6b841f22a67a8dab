// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// Reading a cost profile, for the files that know its parts.
namespace catena::chain {

using Json = nlohmann::ordered_json;

/// At the end of what is said about a profile that cannot be used.
inline constexpr std::string_view kMeasureAgain = "; `catena profile` measures anew";

constexpr bool is_printable(char c) { return c >= ' ' && c <= '~'; }
/// "2026-11-21T18:30:10Z": digits where digits belong.
bool is_time(std::string_view text);

/// Reads members of JSON objects; the first thing that is wrong is kept, with the path to it. Where a member is wrong,
/// what is returned is empty or 0. `path` is that of `from`, with a dot at its end: "methods.staged."
class ProfileReader {
 public:
  /// `name` is that of the text in messages; it must outlive the reader.
  explicit ProfileReader(std::string_view name) : name_(name) {}

  Json const& object(Json const& from, std::string const& path, std::string_view key);
  /// From 0 to 1e12.
  double number(Json const& from, std::string const& path, std::string_view key);
  /// A whole number from `least` to `most`; where it is none, `least`.
  std::uint32_t whole(Json const& from, std::string const& path, std::string_view key, std::uint32_t least,
                      std::uint32_t most);
  /// Of printable ASCII.
  std::string text(Json const& from, std::string const& path, std::string_view key);
  /// Null where it is missing.
  Json const* member(Json const& from, std::string const& path, std::string_view key);
  void complain(std::string const& path, std::string_view key, std::string_view what);
  Status const& status() const { return status_; }

 private:
  std::string_view name_;
  Status status_;
};

}  // namespace catena::chain
