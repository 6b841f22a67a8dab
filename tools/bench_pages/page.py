# SPDX-License-Identifier: Apache-2.0
"""What pages of benchmarks are made of: medians with their spread, tables, and charts as data that figures.py draws."""

import math
import statistics
import textwrap
from typing import NamedTuple

WIDTH = 120


class Spread(NamedTuple):
    """Median, smallest and largest of the repeats of a measurement."""
    median: float
    low: float
    high: float

    def scaled(self, factor):
        return Spread(*(value * factor for value in self))

    def text(self, style):
        """'2.0 (1.5 .. 3.0)', each number in that style."""
        return f"{self.median:{style}} ({self.low:{style}} .. {self.high:{style}})"

    def percent(self, style="+.1f"):
        return f"{self.median:{style}} % ({self.low:{style}} .. {self.high:{style}})"


def spread(values):
    """Of any values; all 0 without them."""
    values = list(values)
    return Spread(statistics.median(values), min(values), max(values)) if values else Spread(0, 0, 0)


def over(cell, value):
    """The spread of what `value` makes of each repeat."""
    return spread(value(repeat) for repeat in cell["repeats"])


def plain(number):
    """As short as it can be written: 2, 2.8, 0.05."""
    return f"{number:g}"


def is_measured(cell):
    return not cell.get("error") and bool(cell["repeats"])


class Results:
    """What catena-bench has written, with the questions that every page asks."""

    def __init__(self, json, prefix=""):
        self.json = json
        self.prefix = prefix  # of the names of figures
        self.cells = json["cells"]
        self.run = json["runs"][-1]

    def __getitem__(self, key):
        return self.json[key]

    def measured(self, **key):
        """The cells with that key that were measured, in their order."""
        return [cell for cell in self.cells if is_measured(cell) and all(cell.get(k) == v for k, v in key.items())]

    def first(self, **key):
        """The first one of them, or None."""
        found = self.measured(**key)
        return found[0] if found else None

    def failed(self):
        return [cell for cell in self.cells if cell.get("error")]

    def samples(self):
        """(compared, different) of all cells."""
        found = [cell["samples"] for cell in self.cells if "samples" in cell]
        return sum(one["compared"] for one in found), sum(one["different"] for one in found)


class Page:
    """A page of Markdown as it grows, and the figures that it shows."""

    def __init__(self, prefix=""):
        self.prefix = prefix
        self.pieces = []
        self.figures = {}

    def markdown(self):
        return "".join(self.pieces)

    def heading(self, level, text):
        self.pieces.append(f"{'#' * level} {text}\n\n")

    def text(self, *words):
        """A paragraph."""
        self.pieces.append(textwrap.fill(" ".join(words), WIDTH, break_long_words=False, break_on_hyphens=False) + "\n\n")

    def items(self, items):
        self.pieces.append("".join(f"- {item}\n" for item in items) + "\n")

    def table(self, heads, rows, align=""):
        """`align`: one character for a column, r where it goes to the right."""
        rules = ["---:" if side == "r" else "---" for side in align.ljust(len(heads), "l")]
        self.pieces.extend("| " + " | ".join(map(str, row)) + " |\n" for row in (heads, rules, *rows))
        self.pieces.append("\n")

    def facts(self, rows):
        """A table of what is what."""
        self.table(("", ""), rows)

    def failures(self, results, name):
        """What could not be measured, or not so often as asked for, by the name that `name` makes of a cell."""
        failed = results.failed()
        if failed:
            self.pieces.append(f"**{len(failed)} measurements failed:**\n\n")
            self.items(f"{name(cell)}: {cell['error']}" for cell in failed)
        cut = [cell for cell in results.measured() if len(cell["repeats"]) < results["repeats"]]
        if cut:
            self.pieces.append(f"**{len(cut)} measurements were cut off** and have fewer repeats:\n\n")
            self.items(f"{name(cell)}: {len(cell['repeats'])} of {results['repeats']} repeats" for cell in cut)

    def surroundings(self, results):
        """What was beside each run: other blocks of its set on the same machine, and the clocks of its GPU. Nothing where
        tools/bench-set has noted nothing."""
        rows = []
        for number, run in enumerate(results["runs"]):
            if "beside" in run:
                gpu = run["gpu"]
                clocks = ("{1:.0f} ({0:.0f} .. {2:.0f})".format(*gpu[clock]) if clock in gpu else "-"
                          for clock in ("sm_mhz", "memory_mhz"))
                rows.append((number + 1, ", ".join(run["beside"]) or "nothing", gpu["name"], *clocks))
        if rows:
            self.text("Beside each run: other blocks measured on the same host at the same time, which have cores and a GPU of their",
                      "own but share memory and caches.")
            self.table(("run", "beside it", "GPU", "SM clock, MHz", "memory clock, MHz"), rows)

    def figure(self, stem, chart):
        """Shows the chart as STEM.svg; nothing for one without anything in it."""
        if chart is not None:
            self.figures[self.prefix + stem] = chart
            self.pieces.append(f"![{chart['title']}]({self.prefix}{stem}.svg)\n\n")


def number(value):
    """What a chart shows of a value: 0 for what is no finite number, or negative."""
    return value if value is not None and math.isfinite(value) and value > 0 else 0


def bars(titles, labels, series, stacked=False):
    """`titles`: of the chart, of x and of y; `series`: (name, bars), where a bar is a Spread, a number or None, one for
    each label; stacked one upon the other, else side by side. None where no bar is above 0."""
    drawn = []
    for name, values in series:
        spreads = [value if isinstance(value, tuple) else (value or 0, 0, 0) for value in values]
        drawn.append({"name": name, "bars": [[number(part) for part in one] for one in spreads]})
    if not any(bar[0] for one in drawn for bar in one["bars"]):
        return None
    return {"kind": "bars", **dict(zip(("title", "x_title", "y_title"), titles)), "labels": list(labels),
            "stacked": stacked, "series": drawn}


def lines(titles, series):
    """`series`: (name, points). The axis of x is logarithmic, so points with x <= 0 are left out, and those that are no
    finite numbers. None without points."""
    drawn = []
    for name, points in series:
        good = [[x, y] for x, y in points if None not in (x, y) and math.isfinite(x) and math.isfinite(y) and x > 0]
        if good:
            drawn.append({"name": name, "points": good})
    return {"kind": "lines", **dict(zip(("title", "x_title", "y_title"), titles)), "series": drawn} if drawn else None


def times(title, timeline):
    """`timeline`: {"kinds", "length", "rows": [{"name", "boxes": [[kind, begin, end]..]}]}, in microseconds. Boxes are
    cut at the ends of the axis; those wholly outside, and of no kind that there is, are left out. None without boxes."""
    kinds, length = timeline["kinds"], timeline["length"]
    rows = []
    for row in timeline["rows"]:
        boxes = [[kind, max(begin, 0), min(end, length)] for kind, begin, end in row["boxes"]
                 if None not in (begin, end) and kind < len(kinds)]
        rows.append({"name": row["name"], "boxes": [box for box in boxes if box[1] < box[2]]})
    if not any(row["boxes"] for row in rows):
        return None
    return {"kind": "times", "title": title, "x_title": "us", "kinds": kinds, "length": length, "rows": rows}
