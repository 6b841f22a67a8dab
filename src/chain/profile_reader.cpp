// SPDX-License-Identifier: Apache-2.0
#include "chain/profile_reader.hpp"

#include <catena/core/text.hpp>

#include <algorithm>

namespace catena::chain {
namespace {

constexpr double kMaxNs = 1e12;  // some minutes for one transfer: sums of such figures are still finite

}  // namespace

std::string printable(std::string_view text) {
  std::string result(text);
  std::ranges::replace_if(
      result, [](char c) { return !is_printable(c); }, '?');
  return result;
}

bool is_time(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00Z";
  return text.size() == kShape.size() && std::ranges::equal(text, kShape, [](char c, char shape) {
           return shape == '0' ? c >= '0' && c <= '9' : c == shape;
         });
}

Result<Json> ProfileReader::parse(std::string_view whole, std::string_view format, int version) {
  Json json = Json::parse(whole, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(concat(name_, ": not a JSON object", remedy_));
  }
  if (text(json, "", "format") != format) {
    complain("", "format", concat("is not '", format, "'"));
  }
  if (number(json, "", "version") != version) {
    complain("", "version", concat("is not ", version, ": another version of Catena wrote it"));
  }
  return json;
}

Json const& ProfileReader::object(Json const& from, std::string const& path, std::string_view key) {
  static const Json kNothing = Json::object();
  Json const* found = member(from, path, key);
  if (found != nullptr && !found->is_object()) {
    complain(path, key, "is no object");
  }
  return found != nullptr && found->is_object() ? *found : kNothing;
}

double ProfileReader::number(Json const& from, std::string const& path, std::string_view key) {
  Json const* found = member(from, path, key);
  if (found == nullptr) {
    return 0;
  }
  const double value = found->is_number() ? found->get<double>() : -1;
  if (!(value >= 0 && value <= kMaxNs)) {  // NaN is neither
    complain(path, key, concat("is not a number from 0 to ", kMaxNs));
    return 0;
  }
  return value;
}

std::uint32_t ProfileReader::whole(Json const& from, std::string const& path, std::string_view key, std::uint32_t least,
                                   std::uint32_t most) {
  Json const* found = member(from, path, key);
  if (found == nullptr) {
    return least;
  }
  const std::uint64_t value = found->is_number_unsigned() ? found->get<std::uint64_t>() : std::uint64_t{most} + 1;
  if (value < least || value > most) {
    complain(path, key, concat("is not a whole number from ", least, " to ", most));
    return least;
  }
  return static_cast<std::uint32_t>(value);
}

std::string ProfileReader::text(Json const& from, std::string const& path, std::string_view key) {
  Json const* found = member(from, path, key);
  if (found == nullptr) {
    return {};
  }
  if (!found->is_string() || !std::ranges::all_of(found->get_ref<std::string const&>(), is_printable)) {
    complain(path, key, "is no text of printable characters");
    return {};
  }
  return found->get<std::string>();
}

Json const* ProfileReader::member(Json const& from, std::string const& path, std::string_view key) {
  const auto found = from.find(key);
  if (found == from.end()) {
    complain(path, key, "is missing");
    return nullptr;
  }
  return &*found;
}

void ProfileReader::complain(std::string const& path, std::string_view key, std::string_view what) {
  if (status_.ok()) {
    status_ = absl::InvalidArgumentError(concat(name_, ": '", path, key, "' ", what, remedy_));
  }
}

}  // namespace catena::chain
