// SPDX-License-Identifier: Apache-2.0
#include "bench/common/request.hpp"

#include <catena/core/decimal.hpp>
#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace catena::bench {
namespace {

/// Between commas that no blank follows.
std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> values;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == ',' && (at + 1 == text.size() || text[at + 1] != ' ')) {
      values.emplace_back(text.substr(begin, at - begin));
      begin = at + 1;
    }
  }
  values.emplace_back(text.substr(begin));
  return values;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

Status check_value(Setting const& setting, std::string const& value) {
  if (setting.is_text() || std::find(setting.names.begin(), setting.names.end(), value) != setting.names.end()) {
    return absl::OkStatus();
  }
  if (const std::string advice = leading_zeros_advice(value); !advice.empty()) {
    return absl::InvalidArgumentError(concat(option_of(setting), ": '", value, "' is no decimal number", advice));
  }
  const std::optional<double> number = parse_number(value);
  if (number && *number >= setting.least && *number <= setting.most) {
    return absl::OkStatus();
  }
  std::string allowed = fmt::format("{}", fmt::join(setting.names, ", "));
  if (setting.least <= setting.most) {
    allowed += fmt::format("{}{} to {}", allowed.empty() ? "" : ", or ", setting.least, setting.most);
  }
  return absl::InvalidArgumentError(concat(option_of(setting), ": there is no '", value, "'; allowed: ", allowed));
}

Result<std::vector<std::string>> values_of_setting(Setting const& setting, std::string const& text) {
  std::vector<std::string> values = text.empty()      ? std::vector<std::string>()
                                    : setting.is_list ? split_values(text)
                                                      : std::vector<std::string>{text};
  for (std::string const& value : values) {
    CATENA_RETURN_IF_ERROR(check_value(setting, value));
  }
  return values;
}

}  // namespace

std::string option_of(Setting const& setting) {
  std::string option = concat("--", setting.name);
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

Result<Request> Request::create(Part const& part, Told told) {
  if (told.out.empty()) {
    return absl::InvalidArgumentError("the file for results has no name: write --out FILE.json");
  }
  if (told.seconds == 0) {
    told.seconds = part.seconds;
  }
  if (!(told.seconds > 0) || told.repeats == 0) {
    return absl::InvalidArgumentError("seconds and repeats must be above 0");
  }
  if (told.quick) {
    told.seconds = std::min(told.seconds, part.quick_seconds);
    told.repeats = 1;
  }
  Request request(part, std::move(told));
  for (Setting const& setting : part.settings) {
    const auto said = request.told_.settings.find(setting.name);
    const bool is_quick = request.told_.quick && setting.quick != nullptr;
    const std::string text = said != request.told_.settings.end() ? said->second
                             : is_quick                           ? setting.quick
                                                                  : setting.usual;
    CATENA_ASSIGN_OR_RETURN(request.values_[setting.name], values_of_setting(setting, text));
  }
  return request;
}

std::vector<std::string> const& Request::texts(std::string_view name) const { return values_.find(name)->second; }

std::string const& Request::text(std::string_view name) const {
  static const std::string kNothing;
  std::vector<std::string> const& values = texts(name);
  return values.empty() ? kNothing : values.front();
}

std::vector<double> Request::numbers(std::string_view name) const {
  std::vector<double> numbers;
  for (std::string const& value : texts(name)) {
    numbers.push_back(parse_number(value).value_or(0));
  }
  return numbers;
}

std::vector<std::uint32_t> Request::counts(std::string_view name) const {
  std::vector<std::uint32_t> counts;
  for (const double number : numbers(name)) {
    counts.push_back(static_cast<std::uint32_t>(number));
  }
  return counts;
}

double Request::number(std::string_view name) const { return parse_number(text(name)).value_or(0); }

std::uint32_t Request::count(std::string_view name) const { return static_cast<std::uint32_t>(number(name)); }

bool Request::wants(std::string_view name, std::string_view value) const {
  std::vector<std::string> const& values = texts(name);
  return values.empty() || std::find(values.begin(), values.end(), value) != values.end();
}

nlohmann::ordered_json Request::how() const {
  nlohmann::ordered_json how = nlohmann::ordered_json::object();
  for (Setting const& setting : part_->settings) {
    if (!setting.chooses) {
      how[setting.name] = fmt::format("{}", fmt::join(texts(setting.name), ","));
    }
  }
  return how;
}

Setting groups_setting(std::vector<std::string> names) {
  return {.name = "groups",
          .help = "Groups of measurements; default: all",
          .usual = "",
          .quick = nullptr,
          .names = std::move(names),
          .is_list = true,
          .chooses = true};
}

Setting device_setting(std::vector<std::string> more) {
  std::vector<std::string> names = device::preference_names();
  std::erase(names, "none");
  names.insert(names.end(), more.begin(), more.end());
  return {.name = "device",
          .help = "Where kernels run",
          .usual = "auto",
          .quick = nullptr,
          .names = std::move(names),
          .chooses = true};
}

device::DevicePreference device_preference(Request const& request) {
  return *device::parse_preference(request.text("device"));
}

Result<std::unique_ptr<device::Device>> open_device(Request const& request) {
  std::string why_not;
  CATENA_ASSIGN_OR_RETURN(auto device, device::open(device_preference(request), &why_not));
  if (!device) {
    return absl::UnavailableError(concat("there is no device that kernels could run on: ", why_not));
  }
  return device;
}

}  // namespace catena::bench
