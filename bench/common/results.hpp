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

/// What catena-bench writes: one JSON file, in one form for all parts, after every cell.
///
///     {"part", "commit", "machine", "device", "command", "seconds", "repeats",
///      "settings": {..},          how it measures; the same for all cells
///      "runs": [{..}],            each time that catena-bench made cells of it: machine, device, command, and what the
///      part
///                                 has found of the machine; the fields above are those of the last
///      "notes": [..],             what was left out, and why
///      "chains": {NAME: {..}},    what cells call so
///      "cells": [{KEY.., "run": N, "repeats": [{..}], ..}]}
///
/// A cell has the fields by which it is found (group, chain, wire_bytes ...), the run that measured it, what each
/// repeat gave, and "error" where it could not be measured. tools/render-bench makes pages of it.
namespace catena::bench {

using Json = nlohmann::ordered_json;

/// What each repeat of a cell has at `path`, a JSON pointer; those that have nothing there are left out.
std::vector<double> values_of(Json const& cell, std::string const& path);

/// How a list of cells is measured.
struct Work {
  /// Adds to `cell`, which has its key, "repeats" and the rest. `number`: which one of the list it is.
  std::function<Status(std::size_t number, Json& cell)> measure;
  /// Where given, it adds one to "repeats", after `measure`: as often as there are repeats, in turns with the other
  /// cells of the table, so that what changes with time is the same for all.
  std::function<Status(std::size_t number, Json& cell)> repeat = nullptr;
  /// Where given: after the last repeat of the table.
  std::function<Status(std::size_t number, Json& cell)> finish = nullptr;
  /// A few words about a cell that was measured, for its line of progress.
  std::function<std::string(Json const& cell)> summary;
  /// The fields by which cells are of one table: those that are alike in them are kept together or not at all, so that
  /// no table is of two runs. Without them each cell is kept by itself.
  std::vector<std::string> table = {};
  std::uint32_t repeats = 0;  ///< of each cell; 0: as many as are asked for
  bool by_every_run = false;  ///< never kept; what earlier runs measured stays beside it
};

/// One run of catena-bench and what it goes on with. Belongs to one thread.
class Results {
 public:
  /// `run`: what the part has found of the machine, "device" among it. `how`: what must be the same for cells to be
  /// compared, besides Request::how(). With Told::resume the file's cells are taken up. Errors:
  ///   Unavailable         a temporary folder cannot be made
  ///   NotFound            there is no file to resume
  ///   InvalidArgument     it is no result of this part
  ///   FailedPrecondition  its cells are of another commit, or were measured otherwise
  static Result<Results> begin(Request const& request, Progress progress, Json const& run,
                               Json const& how = Json::object());

  /// The cells that `keys` list, in their order: each is kept where an earlier run has all repeats of it and no error,
  /// and measured else, with a line of progress. What fails has its error in the cell. `work.measure` may measure other
  /// cells. PermissionDenied: the file cannot be written.
  Status measure(std::vector<Json> const& keys, Work const& work);
  /// The last cell with all fields of the key that was measured without an error, or null. Good until the next
  /// measure().
  Json const* find(Json const& key) const;
  /// All of them.
  std::vector<Json> find_all(Json const& key) const;

  void add_note(std::string const& note);
  /// What cells mean by a chain of that name.
  void describe_chain(std::string const& name, Json chain) { head_["chains"][name] = std::move(chain); }
  /// Something about this run that is known only now.
  void add_to_run(std::string const& name, Json value) { head_["runs"].back()[name] = std::move(value); }
  /// A device never answered: the process must not tear it down.
  void abandon_if(bool abandoned) { abandoned_ = abandoned_ || abandoned; }
  bool abandoned() const { return abandoned_; }

  Json to_json() const;
  std::size_t cells() const { return cells_.size(); }
  std::size_t failed_cells() const;
  /// Packets that were compared with the CPU's, and those of them that were different.
  std::uint64_t samples_compared() const { return count_samples("compared"); }
  std::uint64_t samples_different() const { return count_samples("different"); }

 private:
  Results(Request const& request, Progress progress)
      : out_(request.told().out), repeats_(request.repeats()), progress_(std::move(progress)) {}

  /// May throw what nlohmann does where the file has another form.
  Status take_up(Json const& earlier);
  bool is_complete(Json const& cell, Work const& work) const;
  std::vector<Json> take_kept(std::vector<Json> const& keys, Work const& work);
  Json new_cell(Json const& key) const;
  Status write() const;
  std::uint64_t count_samples(const char* what) const;

  std::string out_;
  std::uint32_t repeats_;
  Progress progress_;
  Json head_;                ///< everything but the cells
  std::vector<Json> cells_;  ///< null where one is listed and not measured yet
  bool abandoned_ = false;
};

}  // namespace catena::bench
