// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/device.hpp"
#include "nf/registry.hpp"

#include <catena/core/status.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The parts of catena-bench and their common command line.
namespace catena::bench {

/// An additional setting of a part: a row of its table, and an option of its command. Values are texts separated by
/// commas. A comma before a space is part of a value.
struct Setting {
  const char* name;  ///< "kernel_seconds", as in results; the option is --kernel-seconds
  const char* help;
  const char* usual;                    ///< the default; empty: all names, or no value
  const char* quick;                    ///< the default with --quick; null: `usual`
  std::vector<std::string> names = {};  ///< allowed values
  double least = 0;                     ///< numbers are also allowed if `least` <= `most`
  double most = -1;
  bool is_list = false;
  bool chooses = false;  ///< selects cells without changing their measurement: other cells join them in one file

  /// True if any text is allowed: neither names nor numbers are defined.
  bool is_text() const { return names.empty() && least > most; }
};

/// "--kernel-seconds".
std::string option_of(Setting const& setting);

/// The command line of a run.
struct Told {
  std::string out;     ///< the results file
  double seconds = 0;  ///< per run; 0: the part's default
  std::uint32_t repeats = 5;
  bool resume = false;  ///< continue the results in `out`
  bool quick = false;   ///< one short repeat of a smaller workload: for machines without a GPU, and tests
  std::string data;     ///< see find_data()
  std::string command;  ///< for the record
  std::map<std::string, std::string> settings = {};  ///< by Setting::name
};

class Request;
class Results;
using Progress = std::function<void(std::string const&)>;

/// A part of catena-bench: a row of its table.
struct Part {
  const char* name;
  const char* help;
  double seconds;        ///< default per run; a quarter of it is warm-up
  double quick_seconds;  ///< maximum with --quick
  std::vector<Setting> settings;
  /// Measures all requested cells. A failed cell contains its error, and the other cells continue.
  Result<Results> (*run)(Request const& request, nf::Registry const& registry, Progress const& progress);
};

/// A request to a part, with defaults for missing settings.
class Request {
 public:
  /// `part` outlives this. InvalidArgument, listing the allowed values, for a value that is not allowed.
  static Result<Request> create(Part const& part, Told told);

  std::string_view part() const { return part_->name; }
  Told const& told() const { return told_; }
  bool quick() const { return told_.quick; }
  double seconds() const { return told_.seconds; }
  std::uint32_t repeats() const { return told_.repeats; }

  // Precondition of all functions below: the part has a setting of this name.
  std::string const& text(std::string_view name) const;
  double number(std::string_view name) const;
  std::uint32_t count(std::string_view name) const;
  std::vector<std::string> const& texts(std::string_view name) const;
  std::vector<double> numbers(std::string_view name) const;
  std::vector<std::uint32_t> counts(std::string_view name) const;
  /// True if the setting's list of names contains `value` or is empty: an empty list selects all.
  bool wants(std::string_view name, std::string_view value) const;

  /// The method of measurement: the values of the settings that do not select cells, as an object.
  nlohmann::ordered_json how() const;

 private:
  Request(Part const& part, Told told) : part_(&part), told_(std::move(told)) {}

  Part const* part_;
  Told told_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

/// Settings shared by all parts.
Setting groups_setting(std::vector<std::string> names);
Setting device_setting(std::vector<std::string> more = {});

/// The value of the setting "device"; every part accepts it.
device::DevicePreference device_preference(Request const& request);
/// Opens that device. Unavailable if it does not exist.
Result<std::unique_ptr<device::Device>> open_device(Request const& request);

}  // namespace catena::bench
