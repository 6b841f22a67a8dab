// SPDX-License-Identifier: Apache-2.0
#include "bench/common/results.hpp"

#include "bench/common/machine.hpp"
#include "gpu/device/subprocess.hpp"

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

bool is_of_table(Work const& work, Json const& a, Json const& b) {
  return std::ranges::all_of(work.table, [&](std::string const& field) { return a.at(field) == b.at(field); });
}

/// Where the cell has not failed. What fails has its error in the cell.
void run(std::function<Status(std::size_t, Json&)> const& step, std::size_t number, Json& cell) {
  if (!step || is_failed(cell)) {
    return;
  }
  if (const Status status = step(number, cell); !status.ok()) {
    cell["error"] = std::string(status.message());
  }
}

/// For its line of progress.
std::string outcome_of(Json const& cell, Work const& work) {
  std::string words = is_failed(cell) ? concat("FAILED: ", cell.at("error").get<std::string>()) : work.summary(cell);
  if (cell.contains("void")) {
    words += concat("; VOID: ", cell.at("void").get<std::string>());
  }
  if (const Json::json_pointer difference("/samples/first_difference"); cell.contains(difference)) {
    words += concat("; DIFFERENT OUTPUT: ", cell.at(difference).get<std::string>());
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
  std::vector<Json> whole = kept;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t j = 0; j < keys.size() && !work.table.empty(); ++j) {
      if (kept[j].is_null() && is_of_table(work, keys[i], keys[j])) {
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
  const std::uint32_t repeats = work.repeats == 0 ? repeats_ : work.repeats;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (is_there(cells_[first + i])) {
      continue;
    }
    // those that take turns with it: what lies behind it in the list
    std::vector<std::size_t> turns{i};
    for (std::size_t j = i + 1; work.repeat && !work.table.empty() && j < keys.size(); ++j) {
      if (!is_there(cells_[first + j]) && is_of_table(work, keys[i], keys[j])) {
        turns.push_back(j);
      }
    }
    std::vector<Json> measured;
    for (const std::size_t number : turns) {
      run(work.measure, number, measured.emplace_back(new_cell(keys[number])));
    }
    for (std::uint32_t repeat = 0; work.repeat && repeat < repeats; ++repeat) {
      for (std::size_t turn = 0; turn < turns.size(); ++turn) {
        // each is the first one now and then
        const std::size_t place = (turn + repeat) % turns.size();
        run(work.repeat, turns[place], measured[place]);
      }
    }
    for (std::size_t turn = 0; turn < turns.size(); ++turn) {
      Json& cell = measured[turn];
      run(work.finish, turns[turn], cell);
      progress_(time_left.line(turns[turn] + 1, concat(words_of(keys[turns[turn]]), ": ", outcome_of(cell, work))));
      cells_[first + turns[turn]] = std::move(cell);
    }
    CATENA_RETURN_IF_ERROR(write());
  }
  return write();
}

Json Results::new_cell(Json const& key) const {
  Json cell = key;
  cell["run"] = head_["runs"].size() - 1;
  cell["repeats"] = Json::array();
  return cell;
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
