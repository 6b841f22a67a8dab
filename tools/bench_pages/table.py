# SPDX-License-Identifier: Apache-2.0
"""Results as one flat table, which is what stays of a set in bench/results: a row for each quantity of each cell."""

import csv
import re

from bench_pages.page import spread

COLUMNS = ("run", "cell", "what", "median", "smallest", "largest", "values")
ABOUT = "about"  # the cell of what is said of a run as a whole: commit, machine, command ...
# what a cell is found by; everything else of it was measured
KEYS = ("group", "chain", "nf", "mode", "shared_as", "wire_bytes", "packets", "unit_packets", "compute_units", "offered_gbps",
        "qt", "load", "tuning", "strings", "packet_bytes", "matching_percent", "streams", "threads", "queues", "replicas", "copies")
NONE_AT_0 = ("packets", "unit_packets", "offered_gbps")
# what no table needs: time lines are pictures
NO_QUANTITIES = ("repeats", "timeline", "run")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def text(value):
    """Six digits say more than repeats agree on; counts stay whole."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 1e5 else f"{value:.6g}"


def leaves(value, path=""):
    """(path, value) of every number, text and list of numbers in it. Entries of lists have their names for a path; lists
    of entries without names become lists, one for each of their fields."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, f"{path}/{key}" if path else str(key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        name = next((key for key in ("name", "nf", "what") if key in value[0]), None)
        if name:
            for one in value:
                yield from leaves({key: field for key, field in one.items() if key != name}, f"{path}/{one[name]}")
        else:
            yield from leaves({key: [one[key] for one in value] for key in value[0]}, path)
    elif isinstance(value, list) and value and isinstance(value[0], list):
        yield path, [number for one in value for number in one]
    elif value not in ("", None, []):
        yield path, value


def values_text(value):
    return " ".join(map(text, value)) if isinstance(value, list) else text(value)


def key_of(cell):
    """'group=throughput; chain=C4': what the cell is found by."""
    return "; ".join(f"{name}={values_text(cell[name])}" for name in KEYS
                     if name in cell and not (cell[name] == 0 and name in NONE_AT_0))


def cell_rows(cell):
    """The rows of a cell, without its run: first what was measured in each repeat, with the spread, then the rest."""
    key = key_of(cell)
    repeats = [dict(leaves(repeat)) for repeat in cell["repeats"]]
    for what in dict.fromkeys(what for repeat in repeats for what in repeat):
        values = [repeat[what] for repeat in repeats if what in repeat]
        median = [text(one) for one in spread(values)] if len(values) > 1 and all(map(is_number, values)) else [""] * 3
        yield key, what, *median, " ".join(map(values_text, values))
    for what, value in leaves({name: value for name, value in cell.items() if name not in (*KEYS, *NO_QUANTITIES)}):
        yield key, what, "", "", "", values_text(value)


def about_rows(json):
    """What is said of all cells, and of each run where there were several."""
    facts = {name: json[name] for name in ("part", "commit", "seconds", "repeats", "settings")}
    runs = [{**run, "command": re.sub(r"(?<!\S)/\S*/", "", run["command"])} for run in json["runs"]]  # no paths of one machine
    for number, run in enumerate(runs):
        facts.update({(f"run {number + 1}/{name}" if len(runs) > 1 else name): value for name, value in run.items()})
    for what, value in leaves(facts):
        yield ABOUT, what, "", "", "", values_text(value)


def rows(name, json):
    """All rows of the results, which are those of the run called `name`."""
    for row in about_rows(json):
        yield name, *row
    for cell in json["cells"]:
        for row in cell_rows(cell):
            yield name, *row


def write(path, all_rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(all_rows)
