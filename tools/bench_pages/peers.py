# SPDX-License-Identifier: Apache-2.0
"""The page of bench/peers/peers.py: Catena beside programs of others that do the same work on the processor."""

from bench_pages.page import Page, bars, over, plain, spread

TITLES = {"frameworks": "Frameworks: DPDK's testpmd and l3fwd", "filters": "Packet filters: Open vSwitch with DPDK",
          "tunnels": "ESP tunnels: DPDK's ipsec-secgw",
          "ids": "Intrusion detection: Suricata"}
WORDS = {
    "frameworks": ("testpmd sends frames on as they are (io), with MAC addresses exchanged (macswap), or with addresses and",
                   "ports exchanged (5tswap). l3fwd and Catena's router have the same prefixes; l3fwd sends all to one port, and",
                   "neither it nor net_pcap looks at checksums. Rows with replay have another source, which copies 64 bytes of a frame in",
                   "place of all."),
    "filters": ("Open vSwitch keeps decisions for flows it has seen; Catena's firewall decides every packet by the rules.",
                "With ct connections are tracked, which Catena's firewall does not do. Passed is the part that the rules",
                "let through. Rows with replay have another source, as above."),
    "tunnels": ("Both encrypt all frames into one tunnel with AES-128-CTR and HMAC-SHA1-96, by the same library. Gbps are",
                "those of arriving frames. Rows with replay have another source, as above."),
    "ids": ("Both read the same capture with the same rules, which look at single packets, and write alerts alone. Suricata",
            "puts streams together and, unless told otherwise, reads application layers; Catena's nids does neither. Time",
            "is that from the first packet to the last. Catena reads the capture as often as it takes to be busy",
            "long enough.")}


def name(cell):
    """'64 B, 1 core'"""
    frame = f"{cell['wire_bytes']} B, " if "wire_bytes" in cell else ""
    return f"{frame}{cell['threads']} core{'s' if cell['threads'] > 1 else ''}"


def rate(cell, way):
    return over(cell, lambda repeat: repeat[way]["packets_per_s"] / 1e6)


def rows_of(cell, group):
    ways = list(cell["repeats"][0])
    share = "alerts_percent" if group == "ids" else "passed_percent"
    for way in ways:
        def value(what, style, way=way):
            return over(cell, lambda repeat: repeat[way][what]).text(style)
        ratio = spread(repeat[way]["packets_per_s"] / repeat[ways[0]]["packets_per_s"] for repeat in cell["repeats"])
        last = cell["repeats"][-1][way]
        yield (name(cell), way, rate(cell, way).text(".2f"), value("gbps", ".2f"), value("cores", ".2f"),
               value("ns_per_packet", ".0f"), f"{last[share]:.1f} %" if share in last else "-", ratio.text(".2f"),
               last["settings"])


def page(results):
    made = Page(results.prefix)
    settings = results["settings"]
    made.heading(1, "Catena beside other programs, on the processor")
    made.text("Measured by `bench/peers/peers.py`, whose first lines say what it measures and how. Frames of all programs",
              f"come from memory, {settings['flows']:,} flows, and go nowhere; sizes and Gbps count the FCS. Cores are",
              "processor time of the program over that of the window, and ns a packet those of all its cores. Settings",
              "are the fastest of a trial.")
    run = results.run
    made.facts((("machine", run["machine"]), ("commit", results["commit"]), ("rules of the filters", settings["rules"]),
                ("command", f"`{run['command']}`"),
                ("runs", f"{results['repeats']} of {plain(results['seconds'])} s each after {settings['warm_up_s']} s of "
                         "warm-up, the ways in turn within each repeat")))
    if results["notes"]:
        made.items(results["notes"])
    made.failures(results, lambda cell: f"{cell['group']}: {name(cell)}")
    for group, title in TITLES.items():
        cells = results.measured(group=group)
        if not cells:
            continue
        made.heading(2, title)
        made.text(*WORDS[group])
        ways = list(cells[0]["repeats"][0])
        series = [(way, [rate(cell, way) if way in cell["repeats"][0] else None for cell in cells]) for way in ways]
        made.figure(group, bars((title, "", "Mpps"), [name(cell) for cell in cells], series))
        made.table(("of", "program", "Mpps", "Gbps", "cores", "ns a packet", "alerts" if group == "ids" else "passed",
                    "over the first", "settings"), [row for cell in cells for row in rows_of(cell, group)], "llrrrrrrl")
    return made
