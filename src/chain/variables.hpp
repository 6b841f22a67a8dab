// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/yaml_files.hpp"

#include <catena/core/status.hpp>

#include <map>
#include <string>
#include <string_view>

namespace YAML {
class Node;
}

/// Variables of a chain file: `${NAME}` in a value. The value comes from the file's mapping `vars`, else from the
/// environment; `${NAME:-TEXT}` is TEXT without either. `$${` is `${` itself. Values of `vars` may name variables of
/// the environment.
namespace catena::chain {

/// Values by name.
using Variables = std::map<std::string, std::string, std::less<>>;

/// Letters, digits and '_', at first no digit.
bool is_variable_name(std::string_view text);

/// The environment of this process: its entries with a variable's name. Not while another thread changes it.
Variables environment_variables();

/// Replaces variables in the values of `document`, a mapping. Keys and positions stay. Returns the variables whose
/// values came from `environment`.
/// InvalidArgument, with the position in one of `files`: a variable without a value, another text after `${`, or texts
/// longer in total than a YAML file may be.
Result<Variables> replace_variables(YAML::Node const& document, nf::YamlFiles const& files,
                                    Variables const& environment);

/// `text` as a value without variables: the inverse of replace_variables().
std::string without_variables(std::string_view text);

}  // namespace catena::chain
