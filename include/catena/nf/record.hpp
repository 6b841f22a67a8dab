// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/instance.hpp>
#include <catena/nf/outcome.hpp>

#include <string>

namespace catena::nf {

/// One line of `--record`, without the line end:
/// {"packet":17,"nf":"fw","verdict":"drop","reason":"denied","rule":103}. Thread rule: pure.
std::string format_record(Instance const& instance, RecordLine const& line);

}  // namespace catena::nf
