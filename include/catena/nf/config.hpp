// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/nf/outputs.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace YAML {
class Node;
}

/// A mapping of a YAML file with typed access. Every error is InvalidArgument and reads
/// `file:line:column: what is wrong, with the key, the value and what is allowed`.
/// Thread rule: one thread at a time.
namespace catena::nf {

/// Whether packets of the run that an NF is made for come from and go to ports that others are connected to. Captures,
/// generators and null are not live: the same input gives the same output there, whatever the time.
struct Ends {
  bool live_rx = false;
  bool live_tx = false;
};

/// Which NF of those that divide a chain's packets among them. Limits of what an NF keeps (mappings, flows, answers a
/// second) are those of all: each takes its part of them.
struct Shard {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
  /// Each is in another process, made from its configuration: they share nothing, limits are divided.
  bool is_alone = false;

  /// This one's part of `limit`: the parts add up to it, but that none is 0.
  std::uint64_t part_of(std::uint64_t limit) const {
    const std::uint64_t part = limit / count + (index < limit % count ? 1 : 0);
    return part == 0 ? 1 : part;
  }
};

class Config {
 public:
  /// Parses `path`. NotFound if it cannot be read; InvalidArgument with position if it is no regular file, too long, or
  /// not a YAML mapping; PermissionDenied where a user of a service may not read it.
  static Result<Config> load(std::string const& path);
  /// The same from text; `file` is used in messages, and relative paths are taken from its folder.
  static Result<Config> parse(std::string_view text, std::string const& file);

  /// True if the key is there (and counts as known).
  bool has(std::string_view key);
  /// True if the key is there and its value is `null` (or the text "null").
  bool is_null(std::string_view key);
  Result<std::string> string(std::string_view key);
  Result<std::string> string_or(std::string_view key, std::string_view fallback);
  /// One of `allowed`; the message lists them and names the nearest.
  Result<std::string> one_of(std::string_view key, std::vector<std::string> const& allowed,
                             std::string_view fallback = {});
  Result<std::int64_t> integer(std::string_view key, std::int64_t minimum, std::int64_t maximum);
  Result<std::int64_t> integer_or(std::string_view key, std::int64_t fallback, std::int64_t minimum,
                                  std::int64_t maximum);
  Result<double> number_or(std::string_view key, double fallback, double minimum, double maximum);
  Result<bool> boolean_or(std::string_view key, bool fallback);
  /// PermissionDenied, with the position of `key`, where a user of a service may not name `path`, as what is in /proc.
  Status check_named(std::string_view key, std::string const& path) const;
  /// A file name, made absolute from the folder of the YAML file. The file must be readable.
  Result<std::string> path(std::string_view key);
  /// A file name to be written; only made absolute.
  Result<std::string> output_path(std::string_view key);
  /// A folder for files that are kept (Outputs::open_kept()); only made absolute. `fallback` where the key is missing.
  Result<std::string> output_folder(std::string_view key, std::string const& fallback);
  /// "HOST:PORT" of who gets datagrams (Outputs::connect()).
  Result<std::string> receiver(std::string_view key);
  /// Says that the NF encrypts with a key, of which no other NF of the chain may use a number again: a chain with two
  /// such NFs is refused. `id`: the same for the same key, and no secret; `what` has it, for people.
  static void encrypts_with(std::string id, std::string what);
  Result<Config> section(std::string_view key);
  /// An empty section where the key is missing.
  Result<Config> section_or_empty(std::string_view key);
  Result<std::vector<Config>> sections(std::string_view key);
  Result<std::vector<std::string>> strings(std::string_view key);

  /// The ends of the chain that this configuration is part of. Set before the NF is made, at the NF's own mapping.
  Ends ends() const;
  void set_ends(Ends ends);
  /// The NF's place among those that divide the chain's packets. As ends(). An NF that cannot be divided sees all
  /// packets and has nothing to do with it.
  Shard shard() const;
  void set_shard(Shard shard);

  /// What opens the outputs that this configuration names; own_outputs() unless somebody set others, before the NF was
  /// made and at its own mapping.
  std::shared_ptr<Outputs> outputs() const;
  void set_outputs(std::shared_ptr<Outputs> outputs);

  /// InvalidArgument for the first key that nobody asked for; names the nearest known key.
  Status finish() const;

  /// An error at the value of `key` (or at this mapping, if the key is missing or empty).
  Status error(std::string_view key, std::string_view message) const;
  std::string const& file() const;
  /// "file:line:column" of the value of `key`.
  std::string position(std::string_view key = {}) const;
  std::vector<std::string> keys() const;
  /// The regular files that texts of the mapping, and of all below it, name, whole and without the same one twice:
  /// those that path() could give. Bounds as canonical().
  std::vector<std::pair<std::string, std::string>> files() const;
  /// All that is in the file; empty below its outermost mapping.
  std::string const& text() const;
  /// The mapping and all below it as text that is the same for the same keys and values, however they are written and
  /// in whichever order: for telling configurations apart. Ends after 1 MiB, and below 64 levels.
  std::string canonical() const;

 private:
  struct State;
  explicit Config(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// The entry of `known` nearest to `word` by edit distance, or empty if none is near.
std::string nearest(std::string_view word, std::vector<std::string> const& known);

}  // namespace catena::nf
