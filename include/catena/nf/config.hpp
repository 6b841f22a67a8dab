// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/nf/outputs.hpp>
#include <catena/nf/text_file.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace YAML {
class Node;
}

/// A mapping of a YAML file with typed access. Every error is InvalidArgument and reads `file:line:column: error`, with
/// the key, the value and the allowed values.
/// Thread rule: one thread at a time.
namespace catena::nf {

class YamlFiles;

/// Whether rx and tx of the NF's chain are live ports, connected to other hosts. Captures, generators and null are not
/// live. With them the same input gives the same output at any time.
struct Ends {
  bool live_rx = false;
  bool live_tx = false;
};

/// Treatment of packets that an NF cannot inspect, and of the link-local control frames (packet::is_link_local()) among
/// them.
enum class OnUnsupported { kPass, kDrop };
enum class LinkLocal { kPass, kDrop };

/// The number of an NF among the NFs that divide a chain's packets. Limits of an NF's state (mappings, flows, answers
/// per second) hold for all shards together; each shard has its part.
struct Shard {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
  /// Each shard is in its own process, created from its configuration. The shards share no data and divide the limits.
  bool is_alone = false;

  /// This shard's part of `limit`, at least 1. Apart from this minimum the parts add up to `limit`.
  std::uint64_t part_of(std::uint64_t limit) const {
    const std::uint64_t part = limit / count + (index < limit % count ? 1 : 0);
    return part == 0 ? 1 : part;
  }
};

/// In the order of its bytes on the wire.
using MacAddress = std::array<std::uint8_t, 6>;

class Config {
 public:
  /// Changes a document, a mapping, before its keys are read, or replaces it. `files`: of its nodes. Its errors
  /// are returned as they are.
  using Preparation = std::function<Status(YAML::Node& document, YamlFiles& files)>;

  /// Parses `path`. NotFound if it cannot be read; InvalidArgument with position if it is no regular file, too long, or
  /// not a YAML mapping; PermissionDenied if a service user may not read it.
  static Result<Config> load(std::string const& path, Preparation const& prepare = {});
  /// Parses `text`. `file` is the name in messages, and relative paths start from its folder.
  static Result<Config> parse(std::string_view text, std::string const& file, Preparation const& prepare = {});
  /// A mapping made by the program, with plain words as keys. Its messages begin with `name` in place of a position;
  /// relative paths start from the working folder.
  static Config of(YAML::Node const& mapping, std::string const& name);

  /// True if the key exists. The key then counts as known.
  bool has(std::string_view key);
  /// True if the key exists and its value is `null` (or the text "null").
  bool is_null(std::string_view key);
  Result<std::string> string(std::string_view key);
  Result<std::string> string_or(std::string_view key, std::string_view fallback);
  /// One of `allowed`; the error message lists them and names the nearest.
  Result<std::string> one_of(std::string_view key, std::vector<std::string> const& allowed,
                             std::string_view fallback = {});
  Result<std::int64_t> integer(std::string_view key, std::int64_t minimum, std::int64_t maximum);
  Result<std::int64_t> integer_or(std::string_view key, std::int64_t fallback, std::int64_t minimum,
                                  std::int64_t maximum);
  Result<double> number_or(std::string_view key, double fallback, double minimum, double maximum);
  Result<bool> boolean_or(std::string_view key, bool fallback);
  /// An IPv4 address such as 203.0.113.10, host order.
  Result<std::uint32_t> ipv4_address(std::string_view key);
  /// An IPv4 prefix such as 10.0.0.0/8 without bits after its length, or an address as a prefix of 32 bits; and a list
  /// of such prefixes, or one.
  Result<packet::Ipv4Prefix> ipv4_prefix(std::string_view key);
  Result<std::vector<packet::Ipv4Prefix>> ipv4_prefixes(std::string_view key);
  /// A MAC address such as 02:00:00:00:00:01.
  Result<MacAddress> mac_address(std::string_view key);
  /// A whole number with its unit: `250 ms`, `30 s`, `5 min`, `2 h` or `1 d`.
  Result<std::chrono::milliseconds> duration_or(std::string_view key, std::chrono::milliseconds fallback,
                                                std::chrono::milliseconds minimum, std::chrono::milliseconds maximum);
  /// PermissionDenied, with the position of `key`, if a service user may not name `path`, e.g. a file in /proc.
  Status check_named(std::string_view key, std::string const& path) const;
  /// A file name as an absolute path, relative to the folder of the YAML file. The file must be readable.
  Result<std::string> path(std::string_view key);
  /// The name of an output file; only made absolute.
  Result<std::string> output_path(std::string_view key);
  /// A folder for kept files (Outputs::open_kept()); only made absolute. `fallback` if the key is missing.
  Result<std::string> output_folder(std::string_view key, std::string const& fallback);
  /// "HOST:PORT" of a receiver of datagrams (Outputs::connect()).
  Result<std::string> receiver(std::string_view key);
  /// Declares a key that the NF encrypts with. No other NF of the chain may reuse a sequence number of this key, so a
  /// chain with two such NFs is refused. `id` is equal for equal keys and no secret; `what` names the owner of the key,
  /// for messages. `spi`: of the key, for `--new-keys`.
  static void encrypts_with(std::string id, std::string what, std::uint32_t spi);
  /// Declares the SPI of a key that the NF only decrypts with, for `--new-keys`.
  static void decrypts_with(std::uint32_t spi);
  Result<Config> section(std::string_view key);
  /// An empty section if the key is missing.
  Result<Config> section_or_empty(std::string_view key);
  Result<std::vector<Config>> sections(std::string_view key);
  Result<std::vector<std::string>> strings(std::string_view key);

  /// Whether the ports of the chain are live. Set before the NF is created, at the NF's own mapping.
  Ends ends() const;
  void set_ends(Ends ends);
  /// The chain's treatment of packets that the NF cannot inspect, for its start report. kDrop unless set, as ends().
  OnUnsupported on_unsupported() const;
  void set_on_unsupported(OnUnsupported on_unsupported);
  /// The NF's number among the NFs that divide the chain's packets. Set as ends(). An NF that cannot be divided sees
  /// all packets and ignores it.
  Shard shard() const;
  void set_shard(Shard shard);

  /// Opens the outputs named by this configuration. own_outputs(), unless set_outputs() was called before the NF was
  /// created, at its own mapping.
  std::shared_ptr<Outputs> outputs() const;
  void set_outputs(std::shared_ptr<Outputs> outputs);

  /// InvalidArgument for each key that is unknown, because it was never read, or given twice; names the nearest known
  /// key. `advice`, if set: what to do about an unknown key, or empty.
  Status finish(std::function<std::string_view(std::string_view)> const& advice = {}) const;

  /// An error at the value of `key` (or at this mapping, if the key is missing or empty).
  Status error(std::string_view key, std::string_view message) const;
  std::string const& file() const;
  /// "file:line:column" of the value of `key`.
  std::string position(std::string_view key = {}) const;
  std::vector<std::string> keys() const;
  /// The regular files named by texts of this mapping and of everything below it: key and absolute path, without
  /// duplicates. These are the files that path() could return. Bounds as canonical().
  std::vector<std::pair<std::string, std::string>> files() const;
  /// The whole text of the file; empty below its outermost mapping.
  std::string const& text() const;
  /// This mapping and everything below it as text for comparing configurations. Equal keys and values give equal text,
  /// in any notation and order. Ends after 1 MiB, and below 64 levels.
  std::string canonical() const;

 private:
  struct State;
  explicit Config(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// The entry of `known` nearest to `word` by edit distance, or empty if no entry is near.
std::string nearest(std::string_view word, std::vector<std::string> const& known);
/// Likewise, but empty if `word` has more than one wrong letter in four: for words that are mostly right and unknown.
std::string misspelt(std::string_view word, std::vector<std::string> const& known);

}  // namespace catena::nf
