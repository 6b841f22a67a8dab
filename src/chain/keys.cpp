// SPDX-License-Identifier: Apache-2.0
#include "chain/keys.hpp"

#include "chain/diagnostics.hpp"
#include "chain/variables.hpp"
#include "gpu/device/device.hpp"
#include "nf/integer.hpp"

#include <catena/core/decimal.hpp>
#include <catena/core/text.hpp>

#include <absl/strings/ascii.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <system_error>

namespace catena::chain {
namespace {

std::string_view name_in(std::string_view sample) { return sample.substr(0, sample.find(':')); }

std::vector<std::string> words_of(Key const& key) { return {key.words.begin(), key.words.end()}; }

/// "tcp, udp"
std::string words_text(Key const& key) { return fmt::format("{}", fmt::join(key.words, ", ")); }

bool is_among_words(Key const& key, std::string_view text) {
  return std::find(key.words.begin(), key.words.end(), text) != key.words.end();
}

bool is_name(std::string const& text) {
  return text.size() <= kMaxNameLength && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

Result<std::int64_t> number(nf::Config& section, Key const& key, std::string const& text) {
  const std::optional<std::int64_t> value = nf::parse_integer(text);
  if (!value || *value < key.minimum || *value > key.maximum) {
    return section.error(key.name,
                         concat("'", key.name, "' is '", text, "'; allowed: a whole number from ", key.minimum, " to ",
                                key.maximum, ", or a list of such", leading_zeros_advice(text)));
  }
  return *value;
}

Result<std::vector<std::int64_t>> read_integers(nf::Config& section, Key const& key) {
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> texts, section.strings(key.name));
  if (texts.empty() || texts.size() > static_cast<std::size_t>(key.most)) {
    return section.error(key.name,
                         concat("'", key.name, "' lists ", texts.size(), " numbers; allowed: 1 to ", key.most));
  }
  std::vector<std::int64_t> values;
  for (std::string const& text : texts) {
    CATENA_ASSIGN_OR_RETURN(const std::int64_t value, number(section, key, text));
    values.push_back(value);
  }
  return values;
}

Result<std::vector<std::string>> read_texts(nf::Config& section, Key const& key) {
  CATENA_ASSIGN_OR_RETURN(std::vector<std::string> texts, section.strings(key.name));
  const auto count = static_cast<std::int64_t>(texts.size());
  if (count < key.minimum || count > key.maximum) {
    return section.error(
        key.name, concat("'", key.name, "' lists ", count, " of them; allowed: ", key.minimum, " to ", key.maximum));
  }
  for (auto text = texts.begin(); text != texts.end(); ++text) {
    if (!key.words.empty() && !is_among_words(key, *text)) {
      return section.error(key.name, concat("'", key.name, "' has '", *text, "'; allowed: ", words_text(key)));
    }
    if (std::find(texts.begin(), text, *text) != text) {
      return section.error(key.name, concat("'", key.name, "' lists '", *text, "' twice"));
    }
  }
  return texts;
}

/// "a, b"
std::string names_of(std::span<const Key> keys) {
  std::string names;
  for (Key const& key : keys) {
    names += concat(names.empty() ? "" : ", ", key.name);
  }
  return names;
}

Result<std::int64_t> read_integer(nf::Config& section, Key const& key) {
  Result<std::int64_t> value = section.integer(key.name, key.minimum, key.maximum);
  if (value.ok() || key.words.empty()) {
    return value;
  }
  const std::string small_letters = absl::AsciiStrToLower(section.string_or(key.name, "").value_or(""));
  const auto meant = std::ranges::find(key.words, small_letters);
  return Status(value.status().code(),
                concat(std::string(value.status().message()), ", or ", words_text(key),
                       meant != key.words.end() ? concat("; did you mean '", *meant, "'?") : std::string()));
}

Result<double> read_number(nf::Config& section, Key const& key) {
  return section.number_or(key.name, 0, static_cast<double>(key.minimum), static_cast<double>(key.maximum));
}

/// What may be in place of `null`; empty: it is said elsewhere.
std::string allowed_in(Key const& key) {
  switch (key.kind) {
    case KeyKind::kWord:
      return words_text(key);
    case KeyKind::kInteger:
      return concat("a whole number from ", key.minimum, " to ", key.maximum,
                    key.words.empty() ? std::string() : concat(", or ", words_text(key)));
    case KeyKind::kSection:
      if (!key.alternatives.empty()) {
        return concat("exactly one of ", fmt::format("{}", fmt::join(key.alternatives, ", ")));
      }
      return key.words.empty() ? std::string() : concat(words_text(key), ", or a section with ", names_of(key.keys));
    default:
      return {};
  }
}

/// What to write for `text` in place of a section that has one of several alternatives.
std::string meant_by(Key const& key, std::string_view text) {
  const std::string all = concat("write one of {", fmt::format("{}", fmt::join(key.alternatives, "}, {")), "}",
                                 key.is_nullable ? ", or null" : "");
  const auto found = std::ranges::find(key.alternatives, text, name_in);
  if (key.is_nullable && (text == "none" || text == "drop")) {
    return "write null";
  }
  if (found != key.alternatives.end()) {
    return concat("write {", *found, "}");
  }
  return text.ends_with(".pcap") || text.ends_with(".pcapng") ? concat("write {pcap: ", text, "}") : all;
}

Status check_devices(nf::Config& section, Key const& key) {
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> texts, read_texts(section, key));
  Status status = device::parse_preferences(texts).status();
  if (status.ok()) {
    return status;
  }
  // of one text the nearest word is said, too
  return texts.size() == 1 ? section.one_of(key.name, device::preference_names()).status()
                           : section.error(key.name, concat("'", key.name, "': ", std::string(status.message())));
}

/// Of one of the sections that `key` stands for, which is in `section`.
Status check_inner(nf::Config& section, Key const& key, nf::Config inner) {
  Diagnostics diagnostics;
  const auto given = std::count_if(key.alternatives.begin(), key.alternatives.end(),
                                   [&inner](std::string_view sample) { return inner.has(name_in(sample)); });
  if (!key.alternatives.empty() && given != 1) {
    const std::string one_of = concat("exactly one of ", fmt::format("{}", fmt::join(key.alternatives, ", ")));
    diagnostics.add(key.kind == KeyKind::kSections
                        ? inner.error({}, concat("an entry of '", key.name, "' has ", one_of))
                        : section.error(key.name, concat("'", key.name, "' ", key.is_nullable ? "is null, or " : "",
                                                         "takes ", one_of)));
  }
  diagnostics.add(check_keys(std::move(inner), key.keys, key.advice));
  return diagnostics.status();
}

Status check_variables(nf::Config& variables) {
  Diagnostics diagnostics;
  for (std::string const& name : variables.keys()) {
    if (!is_variable_name(name)) {
      diagnostics.add(variables.error(name, concat("'", name, "' is no name of a variable; allowed: letters, digits ",
                                                   "and '_', at first no digit")));
    } else {
      diagnostics.add(variables.string(name).status());
    }
  }
  diagnostics.add(variables.finish());  // names that are given twice
  return diagnostics.status();
}

Status check_value(nf::Config& section, Key const& key) {
  if (const std::string allowed = section.is_null(key.name) ? allowed_in(key) : std::string(); !allowed.empty()) {
    return section.error(key.name, concat("'", key.name, "' is null; allowed: ", allowed));
  }
  switch (key.kind) {
    case KeyKind::kText:
    case KeyKind::kFile:
      return section.string(key.name).status();
    case KeyKind::kName: {
      CATENA_ASSIGN_OR_RETURN(const std::string text, section.string(key.name));
      return is_name(text) ? absl::OkStatus()
                           : section.error(key.name, concat("'", key.name, "' is '", text,
                                                            "'; allowed: letters, digits, '-', '_' and '.', at most ",
                                                            kMaxNameLength));
    }
    case KeyKind::kTexts:
      return read_texts(section, key).status();
    case KeyKind::kWord:
      return section.one_of(key.name, words_of(key)).status();
    case KeyKind::kDevices:
      return check_devices(section, key);
    case KeyKind::kInteger: {
      CATENA_ASSIGN_OR_RETURN(const std::string text, section.string(key.name));
      return is_among_words(key, text) ? absl::OkStatus() : read_integer(section, key).status();
    }
    case KeyKind::kNumber:
      return read_number(section, key).status();
    case KeyKind::kIntegers:
      return read_integers(section, key).status();
    case KeyKind::kOfNf:
      return section.section(key.name).status();
    case KeyKind::kVariables: {
      CATENA_ASSIGN_OR_RETURN(nf::Config variables, section.section(key.name));
      return check_variables(variables);
    }
    case KeyKind::kSection: {
      const Result<std::string> word = section.string(key.name);
      if (word.ok() && key.takes_text) {
        return absl::OkStatus();
      }
      if (word.ok() && !key.words.empty()) {
        return std::ranges::find(key.words, *word) != key.words.end()
                   ? absl::OkStatus()
                   : section.error(key.name, concat("'", key.name, "' is '", *word, "'; allowed: ", allowed_in(key)));
      }
      if (word.ok() && !key.alternatives.empty()) {
        return section.error(key.name, concat("'", key.name, "' is '", *word, "'; ", meant_by(key, *word)));
      }
      CATENA_ASSIGN_OR_RETURN(nf::Config inner, section.section(key.name));
      return check_inner(section, key, std::move(inner));
    }
    case KeyKind::kSections: {
      CATENA_ASSIGN_OR_RETURN(const std::vector<nf::Config> entries, section.sections(key.name));
      if (entries.size() > static_cast<std::size_t>(key.maximum)) {
        return section.error(
            key.name, concat("'", key.name, "' has ", entries.size(), " entries; allowed: at most ", key.maximum));
      }
      Diagnostics diagnostics;
      for (nf::Config const& entry : entries) {
        diagnostics.add(check_inner(section, key, entry));
      }
      return diagnostics.status();
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status check_keys(nf::Config section, std::span<const Key> keys, std::span<const Advice> advice) {
  for (Key const& key : keys) {
    section.has(key.name);  // so that what is left is unknown, or misspelt
  }
  Diagnostics diagnostics;
  for (Key const& key : keys) {
    if (key.is_nullable && section.is_null(key.name)) {
      continue;
    }
    const bool is_missed = key.is_required && (key.stands_in.empty() || !section.has(key.stands_in));
    if (is_missed || section.has(key.name)) {
      diagnostics.add(check_value(section, key));
    }
  }
  diagnostics.add(section.finish([advice](std::string_view unknown) {
    const auto found =
        std::ranges::find_if(advice, [unknown](Advice const& each) { return each.key.empty() || each.key == unknown; });
    return found == advice.end() ? std::string_view() : found->text;
  }));
  return diagnostics.status();
}

Key const& FileSection::key(std::string_view name) const {
  return *std::find_if(keys_.begin(), keys_.end(), [name](Key const& each) { return each.name == name; });
}

Result<std::string> FileSection::text(std::string_view name) { return config_.string_or(name, key(name).fallback); }

Result<std::int64_t> FileSection::integer(std::string_view name) {
  Key const& own = key(name);
  if (!config_.has(name)) {
    std::int64_t value = 0;
    std::from_chars(own.fallback.data(), own.fallback.data() + own.fallback.size(), value);
    return value;
  }
  return read_integer(config_, own);
}

Result<std::int64_t> FileSection::integer_or_word(std::string_view name) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, this->text(name));
  return is_among_words(key(name), text) ? std::int64_t{0} : integer(name);
}

Status FileSection::read_fields(Target const& target) {
  for (Key const& each : keys_) {
    CATENA_RETURN_IF_ERROR(each.into == nullptr ? absl::OkStatus() : each.into(*this, each, target));
  }
  return absl::OkStatus();
}

Result<double> FileSection::number(std::string_view name) {
  Key const& own = key(name);
  if (!config_.has(name)) {
    double value = 0;
    std::from_chars(own.fallback.data(), own.fallback.data() + own.fallback.size(), value);
    return value;
  }
  return read_number(config_, own);
}

Result<std::vector<std::int64_t>> FileSection::integers(std::string_view name) {
  if (!config_.has(name)) {
    CATENA_ASSIGN_OR_RETURN(const std::int64_t value, integer(name));
    return std::vector{value};
  }
  return read_integers(config_, key(name));
}

Result<std::vector<std::string>> FileSection::texts(std::string_view name) {
  Key const& own = key(name);
  if (!config_.has(name) && !own.fallback.empty()) {
    return std::vector{std::string(own.fallback)};
  }
  return read_texts(config_, own);
}

Result<FileSection> FileSection::section(std::string_view name) {
  CATENA_ASSIGN_OR_RETURN(nf::Config inner, config_.section_or_empty(name));
  return FileSection(std::move(inner), key(name).keys, missing_);
}

Result<std::vector<FileSection>> FileSection::sections(std::string_view name) {
  CATENA_ASSIGN_OR_RETURN(std::vector<nf::Config> entries, config_.sections(name));
  std::vector<FileSection> sections;
  for (nf::Config& entry : entries) {
    sections.emplace_back(std::move(entry), key(name).keys, missing_);
  }
  return sections;
}

}  // namespace catena::chain
