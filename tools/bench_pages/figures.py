# SPDX-License-Identifier: Apache-2.0
"""Draws charts, which are data as page.py makes it, with Matplotlib (apt-get install python3-matplotlib)."""

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "catena"  # the same figures, the same bytes
import matplotlib.pyplot as plt  # noqa: E402

PNG_DPI = 144


def bars(axes, chart):
    series, labels = chart["series"], chart["labels"]
    width = 0.8 if chart["stacked"] else 0.8 / len(series)
    below = [0.0] * len(labels)
    for number, one in enumerate(series):
        values = [bar[0] for bar in one["bars"]] + [0.0] * (len(labels) - len(one["bars"]))
        if chart["stacked"]:
            axes.bar(range(len(labels)), values, width, bottom=below, label=one["name"])
            below = [low + value for low, value in zip(below, values)]
            continue
        at = [x + (number - (len(series) - 1) / 2) * width for x in range(len(labels))]
        # whiskers from the least to the most of the repeats, where there were several
        spread = [[max(value - bar[1], 0) if bar[2] > bar[1] else 0 for value, bar in zip(values, one["bars"])],
                  [max(bar[2] - value, 0) if bar[2] > bar[1] else 0 for value, bar in zip(values, one["bars"])]]
        axes.bar(at, values, width, label=one["name"], yerr=spread if any(map(any, spread)) else None,
                 error_kw={"elinewidth": 0.8, "capsize": 2})
    axes.set_xticks(range(len(labels)), labels)
    axes.set_ylim(bottom=0)


def lines(axes, chart):
    for one in chart["series"]:
        axes.plot(*zip(*one["points"]), label=one["name"])
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(matplotlib.ticker.StrMethodFormatter("{x:g}"))
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)


def times(axes, chart):
    rows, kinds = chart["rows"], chart["kinds"]
    seen = set()
    for number, row in enumerate(rows):
        for kind, begin, end in row["boxes"]:
            axes.barh(number, end - begin, left=begin, color=f"C{kind}", height=0.8,
                      label=None if kind in seen else kinds[kind])
            seen.add(kind)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, chart["length"])


DRAW = {"bars": bars, "lines": lines, "times": times}


def draw(chart, stem):
    """Writes STEM.svg and STEM.png."""
    height = max(2.0, 0.28 * len(chart["rows"]) + 1.2) if chart["kind"] == "times" else 4.0
    figure, axes = plt.subplots(figsize=(8, height))
    DRAW[chart["kind"]](axes, chart)
    axes.set_title(chart["title"])
    axes.set_xlabel(chart["x_title"])
    axes.set_ylabel(chart.get("y_title", ""))
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    # "tight": nothing that was drawn is cut off
    svg = stem.with_suffix(".svg")
    figure.savefig(svg, bbox_inches="tight", metadata={"Date": None})
    # Matplotlib leaves blanks at the ends of lines, which no text of the tree has
    svg.write_text("".join(line.rstrip() + "\n" for line in svg.read_text(encoding="utf-8").splitlines()), encoding="utf-8")
    figure.savefig(stem.with_suffix(".png"), bbox_inches="tight", dpi=PNG_DPI)
    plt.close(figure)
