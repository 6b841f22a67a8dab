// SPDX-License-Identifier: Apache-2.0
#include "chain/variables.hpp"

#include "nf/yaml_limits.hpp"
#include "nf/yaml_texts.hpp"

#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/config.hpp>

#include <absl/strings/ascii.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace catena::chain {
namespace {

constexpr std::string_view kBegin = "${";
constexpr std::string_view kItself = "$${";
constexpr std::string_view kDefault = ":-";
constexpr const char* kVars = "vars";

/// Replaces variables by values of several sources, the first that has the name.
class Replacer {
 public:
  /// `taken`: gets the variables of the last source that are used.
  Replacer(nf::YamlFiles const& files, std::vector<Variables const*> sources, Variables& taken)
      : files_(&files), sources_(std::move(sources)), taken_(&taken), room_(nf::YamlScope::limits().bytes) {}

  Result<std::string> replace(std::string_view text, YAML::Mark const& mark) {
    std::string result;
    for (std::size_t begin = text.find(kBegin); begin != std::string_view::npos; begin = text.find(kBegin)) {
      const bool is_itself = begin > 0 && text[begin - 1] == '$';
      result += text.substr(0, is_itself ? begin - 1 : begin);
      text.remove_prefix(begin);
      if (is_itself) {
        result += kBegin;
        text.remove_prefix(kBegin.size());
        continue;
      }
      const std::size_t end = text.find('}');
      if (end == std::string_view::npos) {
        return error(mark, "'${' without '}'; write $${ for ${ itself");
      }
      CATENA_ASSIGN_OR_RETURN(const std::string value, value_of(text.substr(kBegin.size(), end - kBegin.size()), mark));
      result += value;
      text.remove_prefix(end + 1);
      CATENA_RETURN_IF_ERROR(check_room(result.size(), mark));
    }
    result += text;
    CATENA_RETURN_IF_ERROR(check_room(result.size(), mark));
    room_ -= result.size();
    return result;
  }

 private:
  Status error(YAML::Mark const& mark, std::string_view message) const {
    return absl::InvalidArgumentError(escaped(concat(files_->at(mark), ": ", message)));
  }

  Status check_room(std::size_t bytes, YAML::Mark const& mark) const {
    return bytes <= room_ ? absl::OkStatus()
                          : error(mark, concat("with the values of variables the texts of the file have more than ",
                                               nf::YamlScope::limits().bytes, " bytes"));
  }

  /// `variable`: NAME or NAME:-TEXT.
  Result<std::string> value_of(std::string_view variable, YAML::Mark const& mark) {
    const std::size_t at = variable.find(kDefault);
    const std::string_view name = variable.substr(0, at);
    if (!is_variable_name(name)) {
      return error(mark, concat("'${", variable, "}' is no variable: a name has letters, digits and '_'; ",
                                "write $${ for ${ itself"));
    }
    for (Variables const* source : sources_) {
      if (const auto found = source->find(name); found != source->end()) {
        if (source == sources_.back()) {
          taken_->insert(*found);
        }
        return found->second;
      }
    }
    if (at != std::string_view::npos) {
      return std::string(variable.substr(at + kDefault.size()));
    }
    std::vector<std::string> known;
    for (auto const& [own, value] : *sources_.front()) {
      known.push_back(own);
    }
    const std::string near = nf::misspelt(name, known);
    return error(mark,
                 concat("no value for '${", name, "}'; ",
                        near.empty() ? std::string() : concat("did you mean '${", near, "}'? Else "), "write `", kVars,
                        ": {", name, ": TEXT}`", sources_.back()->empty() ? "" : ", or set it in the environment"));
  }

  nf::YamlFiles const* files_;
  std::vector<Variables const*> sources_;
  Variables* taken_;
  std::size_t room_;  ///< bytes
};

}  // namespace

bool is_variable_name(std::string_view text) {
  return !text.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(text.front())) &&
         std::ranges::all_of(text, [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

Variables environment_variables() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t end = text.find('=');
    if (end != std::string_view::npos && is_variable_name(text.substr(0, end))) {
      variables.emplace(text.substr(0, end), text.substr(end + 1));
    }
  }
  return variables;
}

Result<Variables> replace_variables(YAML::Node const& document, nf::YamlFiles const& files,
                                    Variables const& environment) {
  nf::ReplacedTexts replaced;
  Variables taken;
  const auto replace_below = [&](YAML::Node const& node, std::vector<Variables const*> sources) {
    Replacer replacer(files, std::move(sources), taken);
    return nf::replace_texts(node, replaced, [&replacer](std::string const& text, YAML::Mark const& mark) {
      return replacer.replace(text, mark);
    });
  };
  Variables vars;
  if (const YAML::Node own = document[kVars]; own.IsDefined() && own.IsMap()) {
    CATENA_RETURN_IF_ERROR(replace_below(own, {&environment}));
    for (auto const& entry : own) {
      if (entry.first.IsScalar() && entry.second.IsScalar()) {
        vars.insert_or_assign(entry.first.Scalar(), entry.second.Scalar());
      }
    }
  }
  CATENA_RETURN_IF_ERROR(replace_below(document, {&vars, &environment}));
  return taken;
}

std::string without_variables(std::string_view text) {
  std::string result(text);
  for (std::size_t at = result.find(kBegin); at != std::string::npos; at = result.find(kBegin, at + kItself.size())) {
    result.replace(at, kBegin.size(), kItself);
  }
  return result;
}

}  // namespace catena::chain
