// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/keys.hpp"

#include <catena/core/status.hpp>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace YAML {
class Node;
}

/// The options of the command line and of requests to a service that are keys of `spec`, put over the chain file.
namespace catena::chain {

struct ChainConfig;
struct PortConfig;

/// A row of the table: an option and its key.
struct OptionKey {
  std::string_view name;   ///< "compute_units"; on the command line "--compute-units"
  std::string_view key;    ///< "sharing.compute_units"
  bool is_of_gpu = false;  ///< only for chains with NFs on a gpu
  /// Of `rx` and `tx`, whose options have a syntax of their own: the port of a text.
  Result<PortConfig> (*parse)(std::string_view text) = nullptr;
  PortConfig ChainConfig::*port = nullptr;
};

/// All, in the order of help texts.
std::span<const OptionKey> option_keys();
/// Null: no option has this name.
OptionKey const* find_option(std::string_view name);

/// "--compute-units".
std::string flag_of(std::string_view name);
/// The row of the key: its kind, words and help.
Key const& key_of(OptionKey const& option);

/// The file named by a value, a part of `text`; nullopt: the value is not a file.
std::optional<std::string_view> file_of(OptionKey const& option, std::string_view text);

/// Options as given: their values as text, by name. The names are in the table.
using GivenOptions = std::map<std::string, std::string, std::less<>>;

/// Whether `text` is a value of the option, on any machine. InvalidArgument begins with the option, and lists the
/// allowed values.
Status check_option(OptionKey const& option, std::string const& text);

/// Puts the options over the keys of a file. Names of files are relative to the working folder.
/// Errors, one per line: as check_option(), and as for the keys in a file, with the option as their position.
Status put_over(GivenOptions const& options, ChainConfig& chain);

/// Puts the options over the document of a chain file.
void put_over(GivenOptions const& options, YAML::Node& document);

}  // namespace catena::chain
