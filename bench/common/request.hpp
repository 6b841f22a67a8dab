// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.hpp"
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

/// The parts of catena-bench and what one may tell them: the same command line for all.
namespace catena::bench {

/// What a part may be told besides: a row of its table, which is an option of its command. Values are texts with commas
/// in between; a comma before a blank is part of a value.
struct Setting {
  const char* name;  ///< "kernel_seconds", as results have it; the option is --kernel-seconds
  const char* help;
  const char* usual;                    ///< where nothing is said; empty: all names, or none
  const char* quick;                    ///< the same with --quick; null: as `usual`
  std::vector<std::string> names = {};  ///< what may be said
  double least = 0;                     ///< numbers may be said, too, where `least` is not above `most`
  double most = -1;
  bool is_list = false;
  bool chooses = false;  ///< says which cells are measured and not how: other cells go with them into one file

  /// Of anything: neither names nor numbers.
  bool is_text() const { return names.empty() && least > most; }
};

/// "--kernel-seconds".
std::string option_of(Setting const& setting);

/// What was typed.
struct Told {
  std::string out;     ///< the file for results
  double seconds = 0;  ///< of a run; 0: as the part has it
  std::uint32_t repeats = 5;
  bool resume = false;  ///< goes on with what `out` has
  bool quick = false;   ///< one short repeat of less: for machines without a GPU, and tests
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
  double seconds;        ///< of a run, where nothing is said; a quarter of each is warm-up
  double quick_seconds;  ///< at most, with --quick
  std::vector<Setting> settings;
  /// Measures all that is asked for. A cell that fails has its error in it, and the others go on.
  Result<Results> (*run)(Request const& request, nf::Registry const& registry, Progress const& progress);
};

/// What a part is asked for, with everything in it that was not said.
class Request {
 public:
  /// `part` outlives this. InvalidArgument: a value that may not be said, with those that may.
  static Result<Request> create(Part const& part, Told told);

  std::string_view part() const { return part_->name; }
  Told const& told() const { return told_; }
  bool quick() const { return told_.quick; }
  double seconds() const { return told_.seconds; }
  std::uint32_t repeats() const { return told_.repeats; }

  // Precondition of all that follows: the part has a setting of that name.
  std::string const& text(std::string_view name) const;
  double number(std::string_view name) const;
  std::uint32_t count(std::string_view name) const;
  std::vector<std::string> const& texts(std::string_view name) const;
  std::vector<double> numbers(std::string_view name) const;
  std::vector<std::uint32_t> counts(std::string_view name) const;
  /// Whether the setting, which lists names, asks for this one: an empty list asks for all.
  bool wants(std::string_view name, std::string_view value) const;

  /// How it measures: the values of the settings that do not choose cells, as an object.
  nlohmann::ordered_json how() const;

 private:
  Request(Part const& part, Told told) : part_(&part), told_(std::move(told)) {}

  Part const* part_;
  Told told_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

/// Of settings that all parts have.
Setting groups_setting(std::vector<std::string> names);
Setting device_setting(std::vector<std::string> more = {});

/// What the setting "device" asks for, which is one of those that every part takes.
device::DevicePreference device_preference(Request const& request);
/// That device. Unavailable: there is none.
Result<std::unique_ptr<device::Device>> open_device(Request const& request);

}  // namespace catena::bench
