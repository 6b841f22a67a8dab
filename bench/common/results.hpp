// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/request.hpp"

#include <catena/core/status.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

/// Output of catena-bench: one JSON file, written after every cell, in one format for all parts.
///
///     {"part", "commit", "machine", "device", "command", "seconds", "repeats",
///      "settings": {..},          the method of measurement; the same for all cells
///      "runs": [{..}],            one per catena-bench run that measured cells: machine, device, command, and the
///                                 part's findings about the machine; the fields above are those of the last run
///      "notes": [..],             omitted measurements, with reasons
///      "chains": {NAME: {..}},    the chains named in cells
///      "cells": [{KEY.., "run": N, "repeats": [{..}], ..}]}
///
/// A cell has its key fields (group, chain, wire_bytes ...), the number of the run that measured it, the result of each
/// repeat, and "error" if it could not be measured. tools/render-bench renders pages from this file.
namespace catena::bench {

using Json = nlohmann::ordered_json;

/// The value at `path`, a JSON pointer, of each repeat of a cell. Repeats without a value at `path` are omitted.
std::vector<double> values_of(Json const& cell, std::string const& path);

/// How to measure a list of cells.
struct Work {
  /// Adds "repeats" and other results to `cell`, which already has its key. `number`: index of the cell in the list.
  std::function<Status(std::size_t number, Json& cell)> measure;
  /// If set, adds one entry to "repeats", after `measure`. Called once per repeat, alternating with the other cells of
  /// the table, so that changes over time affect all of them equally.
  std::function<Status(std::size_t number, Json& cell)> repeat = nullptr;
  /// If set, called after the last repeat of the table.
  std::function<Status(std::size_t number, Json& cell)> finish = nullptr;
  /// Short summary of a measured cell, for its progress line.
  std::function<std::string(Json const& cell)> summary;
  /// Fields that define a table: cells with equal values in them form one. A table is kept whole or not at all, so that
  /// no table mixes two runs. If empty, each cell is kept by itself.
  std::vector<std::string> table = {};
  std::uint32_t repeats = 0;  ///< per cell; 0: as requested
  bool by_every_run = false;  ///< never kept: every run measures again, beside the results of earlier runs
};

/// One run of catena-bench, including the results that it resumes. Thread rule: one thread.
class Results {
 public:
  /// `run`: the part's findings about the machine, including "device". `how`: conditions that must be equal for cells
  /// to be comparable, besides Request::how(). With Told::resume, loads the cells of the file. Errors:
  ///   Unavailable         a temporary folder cannot be made
  ///   NotFound            the file to resume does not exist
  ///   InvalidArgument     the file is not a result of this part
  ///   FailedPrecondition  its cells are from another commit, or were measured under other conditions
  static Result<Results> begin(Request const& request, Progress progress, Json const& run,
                               Json const& how = Json::object());

  /// The cells listed in `keys`, in order. A cell is kept if an earlier run has all its repeats and no error; else it
  /// is measured, with a progress line. A failed cell contains its error. `work.measure` may measure other cells.
  /// PermissionDenied: the file cannot be written.
  Status measure(std::vector<Json> const& keys, Work const& work);
  /// The last cell measured without error that has all fields of `key`, or null. Valid until the next measure().
  Json const* find(Json const& key) const;
  /// All such cells.
  std::vector<Json> find_all(Json const& key) const;

  void add_note(std::string const& note);
  /// The chain named `name` in cells.
  void describe_chain(std::string const& name, Json chain) { head_["chains"][name] = std::move(chain); }
  /// Adds a late finding about this run.
  void add_to_run(std::string const& name, Json value) { head_["runs"].back()[name] = std::move(value); }
  /// A device never answered: the process must not tear it down.
  void abandon_if(bool abandoned) { abandoned_ = abandoned_ || abandoned; }
  bool abandoned() const { return abandoned_; }

  Json to_json() const;
  std::size_t cells() const { return cells_.size(); }
  std::size_t failed_cells() const;
  /// Packets compared with the CPU's output, and the number of different ones.
  std::uint64_t samples_compared() const { return count_samples("compared"); }
  std::uint64_t samples_different() const { return count_samples("different"); }

 private:
  Results(Request const& request, Progress progress)
      : out_(request.told().out), repeats_(request.repeats()), progress_(std::move(progress)) {}

  /// May throw nlohmann's exceptions if the file has another format.
  Status take_up(Json const& earlier);
  bool is_complete(Json const& cell, Work const& work) const;
  std::vector<Json> take_kept(std::vector<Json> const& keys, Work const& work);
  Json new_cell(Json const& key) const;
  Status write() const;
  std::uint64_t count_samples(const char* what) const;

  std::string out_;
  std::uint32_t repeats_;
  Progress progress_;
  Json head_;                ///< everything except the cells
  std::vector<Json> cells_;  ///< null: listed and not measured yet
  bool abandoned_ = false;
};

}  // namespace catena::bench
