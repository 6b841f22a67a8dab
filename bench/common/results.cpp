// SPDX-License-Identifier: Apache-2.0
#include "bench/common/results.hpp"

#include "bench/common/machine.hpp"
#include "device/subprocess.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace catena::bench {
namespace {

namespace fs = std::filesystem;

/// By these the whole file is of one measurement, and runs can be put together.
constexpr const char* kSameFields[] = {"part", "commit", "seconds", "settings"};

bool has_key(Json const& cell, Json const& key) {
  for (auto const& [name, value] : key.items()) {
    const auto found = cell.find(name);
    if (found == cell.end() || *found != value) {
      return false;
    }
  }
  return true;
}

/// Of cells that are listed, those that are not measured yet are null.
bool is_there(Json const& cell) { return !cell.is_null(); }

bool is_failed(Json const& cell) { return cell.contains("error"); }

bool is_measured(Json const& cell, Json const& key) { return is_there(cell) && !is_failed(cell) && has_key(cell, key); }

/// "throughput, C4, adaptive, wire_bytes 64": what is 0 was not asked for.
std::string words_of(Json const& key) {
  std::string words;
  for (auto const& [name, value] : key.items()) {
    if (value != 0) {
      words +=
          concat(words.empty() ? "" : ", ", value.is_string() ? value.get<std::string>() : name + " " + value.dump());
    }
  }
  return words;
}

/// What is done of a list and how long the rest will take.
class TimeLeft {
 public:
  explicit TimeLeft(std::size_t all) : all_(all) {}
  std::string line(std::size_t done, std::string const& words) {
    ++measured_;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    const double left = passed.count() / static_cast<double>(measured_) * static_cast<double>(all_ - done);
    return fmt::format("[{}/{}] {}; about {:.0f} s left", done, all_, words, left);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::size_t all_;
  std::size_t measured_ = 0;
};

/// What of the file tells whether its cells go with those of now.
std::string same_fields(Json const& head) {
  std::string text;
  for (const char* field : kSameFields) {
    text += concat(text.empty() ? "" : ", ", field, " ", head.at(field).dump());
  }
  return text;
}

Result<Json> read_file(std::string const& path) {
  std::ifstream in(path);
  if (!in) {
    return absl::NotFoundError(concat("there is no ", path, " to resume"));
  }
  Json json = Json::parse(in, nullptr, false);
  if (json.is_discarded()) {
    return absl::InvalidArgumentError(concat(path, " is no JSON"));
  }
  return json;
}

}  // namespace

std::vector<double> values_of(Json const& cell, std::string const& path) {
  const Json::json_pointer pointer(path);
  std::vector<double> values;
  for (Json const& repeat : cell.at("repeats")) {
    if (repeat.contains(pointer)) {
      values.push_back(repeat.at(pointer).get<double>());
    }
  }
  return values;
}

Result<Results> Results::begin(Request const& request, Progress progress, Json const& run, Json const& how) {
  Results results(request, std::move(progress));
  CATENA_ASSIGN_OR_RETURN(const device::TemporaryFolder folder, device::TemporaryFolder::create());
  Json settings = request.how();
  settings.update(how);
  Json about{{"machine", describe_machine()}, {"device", ""}, {"command", request.told().command}};
  about.update(run);
  results.head_ = {{"part", request.part()},       {"commit", source_commit(folder.path())},
                   {"machine", about["machine"]},  {"device", about["device"]},
                   {"command", about["command"]},  {"seconds", request.seconds()},
                   {"repeats", request.repeats()}, {"settings", std::move(settings)},
                   {"runs", Json::array()},        {"notes", Json::array()},
                   {"chains", Json::object()}};
  if (request.told().resume) {
    CATENA_ASSIGN_OR_RETURN(const Json earlier, read_file(results.out_));
    try {
      CATENA_RETURN_IF_ERROR(results.take_up(earlier));
    } catch (Json::exception const& error) {
      return absl::InvalidArgumentError(concat(results.out_, " is no result of this part: ", error.what()));
    }
  }
  results.head_["runs"].push_back(std::move(about));
  CATENA_RETURN_IF_ERROR(results.write());
  return results;
}

Status Results::take_up(Json const& earlier) {
  const std::string before = same_fields(earlier);
  const std::string now = same_fields(head_);
  if (earlier.at("part") != head_.at("part")) {
    return absl::InvalidArgumentError(concat(out_, " is no result of this part: ", before));
  }
  if (before != now) {
    return absl::FailedPreconditionError(concat("the results to resume are of ", before, "; this run is of ", now));
  }
  head_["runs"] = earlier.at("runs").get<std::vector<Json>>();
  head_["chains"] = earlier.at("chains");
  for (Json const& cell : earlier.at("cells").get<std::vector<Json>>()) {
    if (!cell.at("repeats").is_array()) {
      return absl::InvalidArgumentError(concat(out_, " is no result of this part: a cell without repeats"));
    }
    cells_.push_back(cell);
  }
  return absl::OkStatus();
}

bool Results::is_complete(Json const& cell, Work const& work) const {
  return !is_failed(cell) && cell.at("repeats").size() == (work.repeats == 0 ? repeats_ : work.repeats);
}

/// For each key the cell that is kept, or null; they leave cells_, as do those that will be measured again.
std::vector<Json> Results::take_kept(std::vector<Json> const& keys, Work const& work) {
  std::vector<Json> kept(keys.size());
  if (work.by_every_run) {
    return kept;
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto found = std::ranges::find_if(cells_, [&](Json const& cell) { return has_key(cell, keys[i]); });
    if (found != cells_.end()) {
      kept[i] = is_complete(*found, work) ? std::move(*found) : Json();
      cells_.erase(found);
    }
  }
  const auto is_of_table = [&work](Json const& a, Json const& b) {
    return std::ranges::all_of(work.table, [&](std::string const& field) { return a.at(field) == b.at(field); });
  };
  std::vector<Json> whole = kept;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t j = 0; j < keys.size() && !work.table.empty(); ++j) {
      if (kept[j].is_null() && is_of_table(keys[i], keys[j])) {
        whole[i] = Json();
      }
    }
  }
  return whole;
}

Status Results::measure(std::vector<Json> const& keys, Work const& work) {
  std::vector<Json> kept = take_kept(keys, work);
  const std::size_t first = cells_.size();
  if (const auto count = std::ranges::count_if(kept, is_there); count > 0) {
    progress_(concat("kept ", count, " of ", keys.size(), " measurements of earlier runs"));
  }
  cells_.insert(cells_.end(), std::make_move_iterator(kept.begin()), std::make_move_iterator(kept.end()));
  TimeLeft time_left(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (is_there(cells_[first + i])) {
      continue;
    }
    Json cell = keys[i];
    cell["run"] = head_["runs"].size() - 1;
    cell["repeats"] = Json::array();
    std::string words = words_of(keys[i]);
    if (const Status status = work.measure(i, cell); status.ok()) {
      words += concat(": ", work.summary(cell));
    } else {
      cell["error"] = std::string(status.message());
      words += concat(": FAILED: ", std::string(status.message()));
    }
    if (cell.contains(Json::json_pointer("/samples/first_difference"))) {
      words += concat("; DIFFERENT OUTPUT: ", cell["samples"]["first_difference"].get<std::string>());
    }
    cells_[first + i] = std::move(cell);
    progress_(time_left.line(i + 1, words));
    CATENA_RETURN_IF_ERROR(write());
  }
  return write();
}

Json const* Results::find(Json const& key) const {
  const auto found =
      std::find_if(cells_.rbegin(), cells_.rend(), [&key](Json const& cell) { return is_measured(cell, key); });
  return found == cells_.rend() ? nullptr : &*found;
}

std::vector<Json> Results::find_all(Json const& key) const {
  std::vector<Json> found;
  std::ranges::copy_if(cells_, std::back_inserter(found), [&key](Json const& cell) { return is_measured(cell, key); });
  return found;
}

void Results::add_note(std::string const& note) {
  head_["notes"].push_back(note);
  progress_(note);
}

Json Results::to_json() const {
  Json json = head_;
  Json& cells = json["cells"] = Json::array();
  for (Json const& cell : cells_) {
    if (is_there(cell)) {
      cells.push_back(cell);
    }
  }
  return json;
}

std::size_t Results::failed_cells() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(cells_, [](Json const& cell) { return is_there(cell) && is_failed(cell); }));
}

std::uint64_t Results::count_samples(const char* what) const {
  std::uint64_t sum = 0;
  for (Json const& cell : cells_) {
    if (const Json::json_pointer path(concat("/samples/", what)); cell.contains(path)) {
      sum += cell.at(path).get<std::uint64_t>();
    }
  }
  return sum;
}

/// Into a file beside it, which then takes its place: who reads meanwhile, or after a run that was cut off, finds it
/// whole.
Status Results::write() const {
  const fs::path path = out_;
  const fs::path beside = concat(out_, ".part");
  std::error_code error;  // without the folder the file cannot be written either
  if (path.has_parent_path()) {
    fs::create_directories(path.parent_path(), error);
  }
  {
    std::ofstream out(beside, std::ios::binary);
    out << to_json().dump(1) << '\n' << std::flush;
    if (!out) {
      return absl::PermissionDeniedError(concat("cannot write ", beside.string()));
    }
  }
  fs::rename(beside, path, error);
  return error ? absl::PermissionDeniedError(concat("cannot write ", path.string(), ": ", error.message()))
               : absl::OkStatus();
}

}  // namespace catena::bench
