// SPDX-License-Identifier: Apache-2.0
#include "functions/lpm/route_file.hpp"

#include <catena/core/decimal.hpp>
#include <catena/core/escape.hpp>
#include <catena/nf/text_file.hpp>

#include <algorithm>

namespace catena::lpm {
namespace {

constexpr std::size_t kTypicalLineBytes = 16;

bool before(Route const& a, Route const& b) {
  return a.address != b.address ? a.address < b.address : a.length < b.length;
}

Status parse_line(nf::TextCursor& cursor, Route& route) {
  packet::Ipv4Prefix prefix;
  if (!cursor.prefix(prefix)) {
    return cursor.error(concat(cursor.quoted_word(),
                               " is no IPv4 prefix; write a line as `prefix port`, e.g. `10.1.0.0/16 3`",
                               leading_zeros_advice(cursor.word())));
  }
  if ((prefix.address & ~prefix.mask()) != 0) {
    return cursor.error(concat("the prefix has bits set after its length; write ",
                               to_string(packet::Ipv4Prefix{prefix.address & prefix.mask(), prefix.length}),
                               ", or a longer one"));
  }
  cursor.skip_blanks();
  if (cursor.at_end()) {
    return cursor.error(concat("the output port is missing; write e.g. `", packet::to_string(prefix),
                               " 3`, a port from 0 to ", kMaxPort));
  }
  std::uint32_t port = 0;
  if (!cursor.number_word(kMaxPort, port)) {
    return cursor.error(concat(cursor.quoted_word(), " is no output port; write a number from 0 to ", kMaxPort,
                               "; gateways and interface names are not supported",
                               leading_zeros_advice(cursor.word())));
  }
  cursor.skip_blanks();
  if (!cursor.at_end()) {
    return cursor.error(concat("unexpected ", cursor.quoted_word(), " after the port; a line is `prefix port`"));
  }
  route = {prefix.address, cursor.line(), static_cast<std::uint16_t>(port), prefix.length};
  return absl::OkStatus();
}

/// Removes lines that repeat an earlier one. `routes`: sorted, and equal prefixes in the order of their lines.
Status merge_repeated(std::vector<Route>& routes, std::string_view file) {
  const auto is_same = [](Route const& a, Route const& b) { return a.address == b.address && a.length == b.length; };
  auto last = std::adjacent_find(routes.begin(), routes.end(), is_same);
  if (last == routes.end()) {
    return absl::OkStatus();
  }
  for (auto next = last + 1; next != routes.end(); ++next) {
    if (!is_same(*last, *next)) {
      *++last = *next;
      continue;
    }
    if (last->port != next->port) {
      return absl::InvalidArgumentError(concat(
          escaped(file), ":", next->line, ":1: prefix ", to_string(packet::Ipv4Prefix{last->address, last->length}),
          " is on line ", last->line, " already, with port ", last->port, "; delete one of the two lines"));
    }
    last->repeated_on = last->repeated_on == 0 ? next->line : last->repeated_on;
  }
  routes.erase(last + 1, routes.end());
  return absl::OkStatus();
}

}  // namespace

Result<std::vector<Route>> parse_routes(std::string_view text, std::string_view file) {
  std::vector<Route> routes;
  routes.reserve(text.size() / kTypicalLineBytes);
  nf::TextCursor cursor(text, file);
  while (cursor.next_line()) {
    Route route{};
    CATENA_RETURN_IF_ERROR(parse_line(cursor, route));
    routes.push_back(route);
  }
  if (routes.empty()) {
    return absl::InvalidArgumentError(concat(escaped(file), ": no routes; write one per line as `prefix port`"));
  }
  if (!std::is_sorted(routes.begin(), routes.end(), before)) {
    std::stable_sort(routes.begin(), routes.end(), before);  // equal prefixes stay in the order of their lines
  }
  CATENA_RETURN_IF_ERROR(merge_repeated(routes, file));
  return routes;
}

Result<std::vector<Route>> load_routes(std::string const& path) {
  CATENA_ASSIGN_OR_RETURN(const std::string text, nf::read_text_file(path, kMaxRouteFileBytes));
  return parse_routes(text, path);
}

}  // namespace catena::lpm
