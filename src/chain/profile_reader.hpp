// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// Reader of cost profiles, for the code of their sections.
namespace catena::chain {

using Json = nlohmann::ordered_json;

/// Ends messages about an unusable profile.
inline constexpr std::string_view kMeasureAgain = "; `catena profile` measures again";

constexpr bool is_printable(char c) { return c >= ' ' && c <= '~'; }
/// `text` with '?' for each unprintable byte: drivers may name themselves anything, and names go to terminals and JSON.
std::string printable(std::string_view text);
/// "2026-11-21T18:30:10Z", with digits in the right places.
bool is_time(std::string_view text);

/// Reads members of JSON objects; keeps the first error, with the path to it. A wrong member reads as empty or 0.
/// `path` is the path of `from`, with a dot at its end: "methods.staged."
class ProfileReader {
 public:
  /// `name` names the text in messages, and `remedy` ends them; both must outlive the reader.
  ProfileReader(std::string_view name, std::string_view remedy) : name_(name), remedy_(remedy) {}

  /// The object in `whole`. InvalidArgument: not a JSON object. Complains of another format or version.
  Result<Json> parse(std::string_view whole, std::string_view format, int version);
  Json const& object(Json const& from, std::string const& path, std::string_view key);
  /// From 0 to 1e12.
  double number(Json const& from, std::string const& path, std::string_view key);
  /// A whole number from `least` to `most`; `least` if it is wrong.
  std::uint32_t whole(Json const& from, std::string const& path, std::string_view key, std::uint32_t least,
                      std::uint32_t most);
  /// Of printable ASCII.
  std::string text(Json const& from, std::string const& path, std::string_view key);
  /// Null if missing.
  Json const* member(Json const& from, std::string const& path, std::string_view key);
  void complain(std::string const& path, std::string_view key, std::string_view what);
  Status const& status() const { return status_; }

 private:
  std::string_view name_;
  std::string_view remedy_;
  Status status_;
};

}  // namespace catena::chain
