// SPDX-License-Identifier: Apache-2.0
#include <catena/core/decimal.hpp>
#include <catena/core/escape.hpp>
#include <catena/core/ipv4.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/config.hpp>

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "base/core/open_file.hpp"
#include "nf/integer.hpp"
#include "nf/named_files.hpp"
#include "nf/yaml_files.hpp"
#include "nf/yaml_gauge.hpp"
#include "nf/yaml_limits.hpp"

namespace catena::nf {
namespace {

namespace fs = std::filesystem;

/// InvalidArgument with a message of one line, whatever the file has in it.
Status invalid(std::string_view message) { return absl::InvalidArgumentError(escaped(message)); }

/// Letters that are added, left out, replaced, or exchanged with their neighbour (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        rows[i][j] = i + j;
        continue;
      }
      rows[i][j] =
          std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

/// A file name as a YAML file has it, from that file's folder.
std::string absolute(std::string const& file, std::string const& name) {
  const fs::path relative(name);
  return (relative.is_absolute() ? relative : fs::path(file).parent_path() / relative).lexically_normal().string();
}

/// Texts below `node`, each with the nearest key above it.
void add_scalars(YAML::Node const& node, std::string const& key, std::uint32_t depth,
                 std::vector<std::pair<std::string, std::string>>& scalars) {
  constexpr std::size_t kMost = 4096;
  if (scalars.size() > kMost || depth > kMaxYamlNesting) {
    return;
  }
  if (node.IsScalar() && !node.Scalar().empty()) {
    scalars.emplace_back(key, node.Scalar());
  }
  if (node.IsSequence()) {
    for (YAML::Node const& entry : node) {
      add_scalars(entry, key, depth + 1, scalars);
    }
  }
  if (node.IsMap()) {
    for (auto const& entry : node) {
      add_scalars(entry.second, entry.first.IsScalar() ? entry.first.Scalar() : key, depth + 1, scalars);
    }
  }
}

/// Adds what `node` says; texts have their lengths in front of them, so that no two configurations are one text.
/// Aliases may make a small file a huge or an endless one.
void add_canonical(YAML::Node const& node, std::uint32_t depth, std::string& text) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
  if (text.size() > kMaxBytes || depth > kMaxYamlNesting) {
    return;
  }
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      text += concat("'", node.Scalar().size(), ":", node.Scalar());
      return;
    case YAML::NodeType::Sequence:
      text += '[';
      for (YAML::Node const& entry : node) {
        add_canonical(entry, depth + 1, text);
      }
      text += ']';
      return;
    case YAML::NodeType::Map: {
      std::map<std::string, YAML::Node> sorted;
      for (auto const& entry : node) {
        sorted.emplace(entry.first.IsScalar() ? entry.first.Scalar() : std::string(), entry.second);
      }
      text += '{';
      for (auto const& [key, value] : sorted) {
        text += concat("'", key.size(), ":", key);
        add_canonical(value, depth + 1, text);
      }
      text += '}';
      return;
    }
    default:
      text += '~';
  }
}

/// That the value of `node` is a tag, where `!` begins a text without quotes; OK for any other value.
Status check_no_tag(YAML::Node const& node, std::string const& position, std::string_view key) {
  std::string const& tag = node.Tag();  // "!" of a text in quotes
  if (node.IsScalar() && node.Scalar().empty() && tag.size() > 1 && tag.starts_with('!')) {
    return invalid(
        concat(position, ": '", key, "' begins with '!', which is a tag in YAML; write it in quotes: \"", tag, "\""));
  }
  return absl::OkStatus();
}

constexpr std::size_t kLongestWord = 64;  // of hostile input, only this much is compared

}  // namespace

std::string nearest(std::string_view word, std::vector<std::string> const& known) {
  word = word.substr(0, kLongestWord);
  std::string best;
  std::size_t best_distance = word.size() / 2 + 2;
  for (std::string const& candidate : known) {
    if (const std::size_t distance = edit_distance(word, candidate); distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string misspelt(std::string_view word, std::vector<std::string> const& known) {
  constexpr std::size_t kLettersPerSlip = 4;
  if (word.size() > kLongestWord) {
    return {};
  }
  std::string near = nearest(word, known);
  const std::size_t letters = std::max(word.size(), near.size());
  return !near.empty() && edit_distance(word, near) * kLettersPerSlip <= letters ? near : std::string();
}

struct Config::State {
  std::string file;
  std::shared_ptr<YamlFiles> files;
  std::string text;
  YAML::Node node;
  std::set<std::string, std::less<>> asked;
  Ends ends;
  OnUnsupported on_unsupported = OnUnsupported::kDrop;
  Shard shard;
  std::shared_ptr<Outputs> outputs;  ///< null: own_outputs()

  /// That `key` is missing; where a key that nobody asked for is nearly the same word, that it is misspelt.
  Status missing(std::string_view key) const {
    constexpr std::size_t kLettersPerSlip = 3;
    for (auto const& entry : node) {
      std::string const& word = entry.first.Scalar();
      const std::size_t longest = std::max(word.size(), key.size());
      if (!asked.contains(word) && longest < 2 * key.size() + 2 &&
          edit_distance(word, key) <= longest / kLettersPerSlip) {
        return invalid(concat(files->at(entry.first.Mark()), ": unknown key '", word, "'; did you mean '", key,
                              "'? The key is required"));
      }
    }
    return invalid(concat(files->at(node.Mark()), ": missing key '", key, "'"));
  }

  YAML::Node find(std::string_view key) const {
    for (auto const& entry : node) {
      if (entry.first.IsScalar() && entry.first.Scalar() == key) {
        return entry.second;
      }
    }
    return YAML::Node(YAML::NodeType::Undefined);
  }
};

Ends Config::ends() const { return state_->ends; }
void Config::set_ends(Ends ends) { state_->ends = ends; }

OnUnsupported Config::on_unsupported() const { return state_->on_unsupported; }
void Config::set_on_unsupported(OnUnsupported on_unsupported) { state_->on_unsupported = on_unsupported; }

Shard Config::shard() const { return state_->shard; }
void Config::set_shard(Shard shard) { state_->shard = shard; }

std::shared_ptr<Outputs> Config::outputs() const {
  return state_->outputs != nullptr ? state_->outputs : own_outputs();
}
void Config::set_outputs(std::shared_ptr<Outputs> outputs) { state_->outputs = std::move(outputs); }

Config::Config(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<Config> Config::load(std::string const& path, Preparation const& prepare) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, read_file(path, YamlScope::limits().bytes));
  return parse(text, path, prepare);
}

Result<Config> Config::parse(std::string_view text, std::string const& file, Preparation const& prepare) {
  auto state = std::make_shared<State>();
  state->file = file;
  state->files = std::make_shared<YamlFiles>();
  const std::unique_lock<std::mutex> turn = YamlScope::take_turn();
  CATENA_ASSIGN_OR_RETURN(state->node, state->files->parse(text, file));
  state->text = plain_text(std::string(text));
  if (prepare) {
    CATENA_RETURN_IF_ERROR(prepare(state->node, *state->files));
  }
  return Config(std::move(state));
}

Config Config::of(YAML::Node const& mapping, std::string const& name) {
  auto state = std::make_shared<State>();
  state->file = name;
  state->files = std::make_shared<YamlFiles>(name);
  state->node = mapping;
  return Config(std::move(state));
}

bool Config::has(std::string_view key) {
  state_->asked.emplace(key);
  return state_->find(key).IsDefined();
}

bool Config::is_null(std::string_view key) {
  if (!has(key)) {
    return false;
  }
  const YAML::Node node = state_->find(key);
  return node.IsNull() || (node.IsScalar() && node.Scalar() == "null");
}

Result<std::string> Config::string(std::string_view key) {
  if (!has(key)) {
    return state_->missing(key);
  }
  const YAML::Node node = state_->find(key);
  CATENA_RETURN_IF_ERROR(check_no_tag(node, position(key), key));
  if (!node.IsScalar() || node.Scalar().empty()) {
    return error(key, concat("'", key, "' must be text, found ", kind_of(node)));
  }
  // the kernel would cut a name there
  if (node.Scalar().find('\0') != std::string::npos) {
    return error(key, concat("'", key, "' has a zero byte; leave it out"));
  }
  return node.Scalar();
}

Result<std::string> Config::string_or(std::string_view key, std::string_view fallback) {
  return has(key) ? string(key) : std::string(fallback);
}

Result<std::string> Config::one_of(std::string_view key, std::vector<std::string> const& allowed,
                                   std::string_view fallback) {
  if (!has(key) && !fallback.empty()) {
    return std::string(fallback);
  }
  CATENA_ASSIGN_OR_RETURN(std::string value, string(key));
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) {
    return value;
  }
  const std::string near = allowed.size() > 1 ? nearest(value, allowed) : std::string();
  return error(key, concat("'", key, "' is '", value, "'; allowed: ", fmt::format("{}", fmt::join(allowed, ", ")),
                           allowed.size() == 1 ? ", no other is supported" : "",
                           near.empty() ? "" : concat("; did you mean '", near, "'?")));
}

Result<std::int64_t> Config::integer(std::string_view key, std::int64_t minimum, std::int64_t maximum) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, string(key));
  const std::optional<std::int64_t> value = parse_integer(text);
  if (!value || *value < minimum || *value > maximum) {
    return error(key, concat("'", key, "' is '", text, "'; allowed: a whole number from ", minimum, " to ", maximum,
                             leading_zeros_advice(text)));
  }
  return *value;
}

Result<std::int64_t> Config::integer_or(std::string_view key, std::int64_t fallback, std::int64_t minimum,
                                        std::int64_t maximum) {
  return has(key) ? integer(key, minimum, maximum) : fallback;
}

Result<double> Config::number_or(std::string_view key, double fallback, double minimum, double maximum) {
  if (!has(key)) {
    return fallback;
  }
  CATENA_ASSIGN_OR_RETURN(const std::string text, string(key));
  const std::string advice = leading_zeros_advice(text);
  double value = 0;
  if (!advice.empty() || !absl::SimpleAtod(text, &value) || !(value >= minimum && value <= maximum)) {
    return error(key, concat("'", key, "' is '", text, "'; allowed: a number from ", minimum, " to ", maximum, advice));
  }
  return value;
}

Result<bool> Config::boolean_or(std::string_view key, bool fallback) {
  if (!has(key)) {
    return fallback;
  }
  CATENA_ASSIGN_OR_RETURN(const std::string value, one_of(key, {"true", "false", "yes", "no", "on", "off"}));
  return value == "true" || value == "yes" || value == "on";
}

Status Config::check_named(std::string_view key, std::string const& path) const {
  const Status status = check_name(path);
  return status.ok() ? status
                     : Status(status.code(), concat(position(key), ": '", key, "': ", std::string(status.message())));
}

Result<std::string> Config::path(std::string_view key) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, string(key));
  const std::string path = absolute(state_->file, text);
  CATENA_RETURN_IF_ERROR(check_named(key, path));
  std::error_code status;
  if (!fs::exists(path, status)) {
    return error(key, concat("'", key, "': no such file: ", path));
  }
  // asked and not tried: to open a FIFO waits for its writer, and takes the writer's reader away
  if (fs::is_directory(path, status) || ::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) {
    return error(key, concat("'", key, "': ", path, " cannot be read as a file"));
  }
  NamedFiles::add({std::string(key), path, position(key), false});
  return path;
}

Result<std::string> Config::output_path(std::string_view key) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, string(key));
  std::string path = absolute(state_->file, text);
  CATENA_RETURN_IF_ERROR(check_named(key, path));
  if (state_->outputs == nullptr) {  // else it is not a file here
    NamedFiles::add({std::string(key), path, position(key), true});
  }
  NamedFiles::add({NamedOutput::Kind::kFile, path});
  return path;
}

Result<std::string> Config::output_folder(std::string_view key, std::string const& fallback) {
  // no NamedFile: those are files, of which no two NFs write one
  std::string path = fallback;
  if (has(key)) {
    CATENA_ASSIGN_OR_RETURN(const std::string text, string(key));
    path = absolute(state_->file, text);
    CATENA_RETURN_IF_ERROR(check_named(key, path));
  }
  NamedFiles::add({NamedOutput::Kind::kFolder, path});
  return path;
}

Result<std::string> Config::receiver(std::string_view key) {
  CATENA_ASSIGN_OR_RETURN(std::string text, string(key));
  const std::size_t colon = text.rfind(':');
  constexpr std::uint64_t kMaxPort = 0xFFFF;
  if (colon == std::string::npos || colon == 0 || parse_decimal(text.substr(colon + 1), kMaxPort).value_or(0) == 0) {
    return error(key,
                 concat("'", key, "' is '", text, "'; write HOST:PORT, as 192.0.2.1:4739", leading_zeros_advice(text)));
  }
  const std::string host = text.substr(0, colon);
  // getaddrinfo() takes the forms of inet_aton()
  if (in_addr address{}; ::inet_aton(host.c_str(), &address) != 0 && !parse_ipv4_address(host)) {
    return error(key, concat("'", key, "' is '", text,
                             "'; write an IPv4 address as four decimal numbers without leading zeros, as 192.0.2.1"));
  }
  NamedFiles::add({NamedOutput::Kind::kReceiver, text});
  return text;
}

void Config::encrypts_with(std::string id, std::string what, std::uint32_t spi) {
  NamedFiles::add(NamedKey{std::move(id), std::move(what), spi});
}

void Config::decrypts_with(std::uint32_t spi) { NamedFiles::add(NamedKey{{}, {}, spi}); }

Result<Config> Config::section(std::string_view key) {
  if (!has(key)) {
    return state_->missing(key);
  }
  const YAML::Node node = state_->find(key);
  if (!node.IsMap()) {
    return error(key, concat("'", key, "' must be a mapping, found ", kind_of(node)));
  }
  auto state = std::make_shared<State>();
  state->file = state_->file;
  state->files = state_->files;
  state->outputs = state_->outputs;
  state->node = node;
  return Config(std::move(state));
}

Result<Config> Config::section_or_empty(std::string_view key) {
  if (has(key)) {
    return section(key);
  }
  auto state = std::make_shared<State>();
  state->file = state_->file;
  state->files = state_->files;
  state->outputs = state_->outputs;
  state->node = YAML::Node(YAML::NodeType::Map);
  return Config(std::move(state));
}

Result<std::vector<Config>> Config::sections(std::string_view key) {
  if (!has(key)) {
    return state_->missing(key);
  }
  const YAML::Node node = state_->find(key);
  if (!node.IsSequence()) {
    return error(key, concat("'", key, "' must be a list, found ", kind_of(node)));
  }
  std::vector<Config> result;
  for (auto const& entry : node) {
    if (!entry.IsMap()) {
      return invalid(concat(state_->files->at(entry.Mark()), ": an entry of '", key, "' must be a mapping, found ",
                            kind_of(entry)));
    }
    auto state = std::make_shared<State>();
    state->file = state_->file;
    state->files = state_->files;
    state->outputs = state_->outputs;
    state->node = YAML::Node(entry);
    result.push_back(Config(std::move(state)));
  }
  return result;
}

Result<std::vector<std::string>> Config::strings(std::string_view key) {
  if (!has(key)) {
    return state_->missing(key);
  }
  const YAML::Node node = state_->find(key);
  CATENA_RETURN_IF_ERROR(check_no_tag(node, position(key), key));
  if (node.IsScalar()) {
    return std::vector<std::string>{node.Scalar()};
  }
  if (!node.IsSequence()) {
    return error(key, concat("'", key, "' must be a list, found ", kind_of(node)));
  }
  std::vector<std::string> result;
  for (auto const& entry : node) {
    CATENA_RETURN_IF_ERROR(check_no_tag(entry, state_->files->at(entry.Mark()), key));
    if (!entry.IsScalar()) {
      return invalid(
          concat(state_->files->at(entry.Mark()), ": an entry of '", key, "' must be text, found ", kind_of(entry)));
    }
    result.push_back(entry.Scalar());
  }
  return result;
}

Status Config::finish(std::function<std::string_view(std::string_view)> const& advice) const {
  constexpr std::size_t kMaxErrors = 64;  // a hostile file has tens of thousands
  std::set<std::string> seen;
  std::string errors;
  std::size_t count = 0;
  const std::vector<std::string> known(state_->asked.begin(), state_->asked.end());
  for (auto const& entry : state_->node) {
    std::string const& key = entry.first.Scalar();
    const std::string where = state_->files->at(entry.first.Mark());
    const bool is_new = seen.insert(key).second;
    if (is_new && state_->asked.contains(key)) {
      continue;
    }
    errors += errors.empty() ? "" : "\n";
    if (++count > kMaxErrors) {
      errors += escaped(concat(where, ": and more keys from here on"));
      break;
    }
    if (!is_new) {
      errors += escaped(concat(where, ": key '", key, "' is given twice"));
    } else {
      const std::string_view remedy = advice ? advice(key) : std::string_view();
      const std::string near = remedy.empty() ? nearest(key, known) : misspelt(key, known);
      errors +=
          escaped(concat(where, ": unknown key '", key, "'", near.empty() ? "" : concat("; did you mean '", near, "'?"),
                         remedy.empty() ? "" : "; ", remedy,
                         known.empty() ? "; no key is allowed here"
                                       : concat("; allowed: ", fmt::format("{}", fmt::join(known, ", ")))));
    }
  }
  return errors.empty() ? absl::OkStatus() : absl::InvalidArgumentError(errors);
}

Status Config::error(std::string_view key, std::string_view message) const {
  return invalid(concat(position(key), ": ", message));
}

std::string const& Config::file() const { return state_->file; }

std::string Config::position(std::string_view key) const {
  if (const YAML::Node node = key.empty() ? YAML::Node(YAML::NodeType::Undefined) : state_->find(key);
      node.IsDefined()) {
    return state_->files->at(node.Mark());
  }
  return state_->files->at(state_->node.Mark());
}

std::string Config::canonical() const {
  std::string text;
  add_canonical(state_->node, 0, text);
  return text;
}

std::vector<std::pair<std::string, std::string>> Config::files() const {
  std::vector<std::pair<std::string, std::string>> names;
  add_scalars(state_->node, {}, 0, names);
  std::set<std::pair<std::string, std::string>> files;
  for (auto const& [key, name] : names) {
    std::error_code error;
    std::string path = fs::absolute(absolute(state_->file, name), error).lexically_normal().string();
    if (!error && fs::is_regular_file(path, error)) {
      files.emplace(key, std::move(path));
    }
  }
  return {files.begin(), files.end()};
}

std::string const& Config::text() const { return state_->text; }

std::vector<std::string> Config::keys() const {
  std::vector<std::string> result;
  for (auto const& entry : state_->node) {
    result.push_back(entry.first.Scalar());
  }
  return result;
}

}  // namespace catena::nf
