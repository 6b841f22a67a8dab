# SPDX-License-Identifier: Apache-2.0
"""Rules of Catena's firewall, for programs of others that are to decide the same."""

import re
from typing import NamedTuple


class Rule(NamedTuple):
    allows: bool
    protocol: int | None
    source: str
    destination: str
    source_ports: tuple[int, int]
    destination_ports: tuple[int, int]


ALL_PORTS = (0, 65535)
PROTOCOLS = {"tcp": 6, "udp": 17, "icmp": 1, "esp": 50, "ah": 51, "gre": 47, "any": None, "ip": None}
NUMBERS = re.compile(r"\s*:\s*|\s+")


def ports_of(text):
    if text == "any":
        return ALL_PORTS
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def classbench_rule(line):
    """Of a rule whose protocol is one, or any; what says no action denies, as in Catena."""
    source, destination, s_first, s_last, d_first, d_last, protocol = NUMBERS.split(line[1:].strip())[:7]
    number, mask = (int(part, 0) for part in protocol.split("/"))
    if mask not in (0, 0xff):
        raise ValueError(f"no such rule in OpenFlow: {line}")
    return Rule(False, number if mask else None, source, destination, (int(s_first), int(s_last)),
                (int(d_first), int(d_last)))


def read_rules(text):
    rules = []
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if words and words[0].startswith("@"):
            rules.append(classbench_rule(line))
        elif words:
            protocol = PROTOCOLS[words[1]] if words[1] in PROTOCOLS else int(words[1])
            rules.append(Rule(words[0] == "allow", protocol, words[2], words[3], ports_of(words[4]), ports_of(words[5])))
    return rules


def nftables(rules):
    """A table for `nft -f` which filters what a bridge forwards: the first rule that matches decides, and what none matches
    passes. Ports of any protocol are those of TCP and of UDP."""
    lines = ["table bridge firewall {", "chain forward {", "type filter hook forward priority 0; policy accept;"]
    for rule in rules:
        words = ["ether type ip"]
        ports = [f"th {name} {first}-{last}" for name, (first, last) in (("sport", rule.source_ports),
                 ("dport", rule.destination_ports)) if (first, last) != ALL_PORTS]
        if rule.protocol is not None:
            words.append(f"ip protocol {rule.protocol}")
        elif ports:
            words.append("ip protocol { 6, 17 }")
        words += [f"ip {name} {address}" for name, address in (("saddr", rule.source), ("daddr", rule.destination))
                  if address not in ("any", "0.0.0.0/0")]
        lines.append(" ".join([*words, *ports, "accept" if rule.allows else "drop"]))
    return "\n".join([*lines, "}", "}", ""])
