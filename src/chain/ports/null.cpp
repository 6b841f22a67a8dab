// SPDX-License-Identifier: Apache-2.0
// `tx: null`: packets are counted and discarded.
#include "chain/port_kind.hpp"

namespace catena::chain {

const PortKind kNullPort{
    .name = "null",
    .take_argument = [](std::string_view, PortConfig&) { return true; },
    .describe = [](PortConfig const&) { return std::string("null"); },
    .tx = {.open = [](PortConfig const&, io::DpdkPort&) { return io::make_null_sink(); }},
};

}  // namespace catena::chain
