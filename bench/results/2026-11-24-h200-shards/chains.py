#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chains.py FOLDER DATA: C4 for some placements, sizes and shards. DATA: the rules and routes of bench/paper."""

import os
import sys

KEYS = (
    'source: 192.0.2.1, destination: 198.51.100.1, encryption_key: "000102030405060708090a0b0c0d0e{0:02x}", '
    'salt: "a0a1a2a3", authentication_key: "101112131415161718191a1b1c1d1e1f20212223", anti_replay: false'
)
CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: c4}}
spec:
  rx: {{replay: {{packet: {size}, flows: 4096, count: COUNT}}}}
  tx: null
  device: {device}
  shards: {shards}
  tuning: {{pool_slots: 65536, units_per_launch: 16}}
  nfs:
    - {{name: fw, type: firewall, on: {on}, config: {{rules: {data}/fw.rules, default: allow}}}}
    - {{name: vpn, type: ipsec, on: {on}, config: {{direction: encrypt, sa: {sa}, mtu: 2034}}}}
    - {{name: ids, type: nids, on: {on}, config: {{rules: {data}/ids.rules}}}}
    - {{name: rt, type: router, on: cpu, config: {{routes: {data}/routes.txt}}}}
"""


def parts_of(shards):
    """The traffic's clients, 10.0.0.0/8, in as many equal parts, as near as prefixes allow; association i is shard i's."""
    if shards == 12:
        networks = [f"10.{i * 16}.0.0/12" for i in range(12)]
        networks += [f"10.{192 + i * 4}.0.0/14" for i in range(12)]
        return networks + [f"10.{240 + i}.0.0/16" for i in range(16)]
    bits = shards.bit_length() - 1
    return [f"10.{i * (256 >> bits)}.0.0/{8 + bits}" for i in range(shards)]


def main():
    folder, data = sys.argv[1], os.path.abspath(sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    for device in ("cuda", "none"):
        for size in (60, 1514):
            for shards, parts in (("1", 1), ("4", 4), ("8", 8), ("auto", 16), ("12", 12)):
                name = os.path.join(folder, f"c4-{device}-{size}-{shards}")
                with open(name + "-sa.yaml", "w", encoding="ascii") as sa:
                    sa.write("associations:\n")
                    for i, network in enumerate(parts_of(parts)):
                        sa.write(f"  - {{spi: {4096 + i}, {KEYS.format(i)}, selector: {{source: {network}}}}}\n")
                with open(name + ".yaml", "w", encoding="ascii") as chain:
                    on = "cpu" if device == "none" else "gpu"
                    chain.write(
                        CHAIN.format(size=size, device=device, shards=shards, on=on, data=data, sa=name + "-sa.yaml")
                    )


if __name__ == "__main__":
    main()
