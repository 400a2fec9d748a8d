#!/usr/bin/env python3
"""Checks a run directory with other people's tools: the files must agree with each other.

    check-run-directory.py RUN [--printed FILE]   what run.json, intervals.csv and histograms.hlog say
    check-run-directory.py RUN --prove            the same on damaged copies, which must be refused

Opens the histogram log with the PyPI package `hdrhistogram`. A quantile is the value at the nearest rank over all
messages of its denominator: the highest value equivalent to that of its cell, but never above the exact maximum.
"""

import argparse
import csv
import json
import shutil
import sys
import tempfile
from pathlib import Path

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

HIGHEST_NS = 2**41 - 1
QUANTILES = {"p50": (1, 2), "p90": (9, 10), "p99": (99, 100)}
ALWAYS = ("supply_to_receive", "rtt", "send_lateness", "turnaround")
TAGS = (*ALWAYS, "send_gap")
FATES = ("scheduled", "answered", "lost", "late", "unsent", "duplicate", "reordered")
KEYS = (
    "format source engine seed valid invalid_because interrupted labels identity plan fates losses achieved_rate_hz "
    "answered_rate_hz whole after_warm_up cpu memory clock sockets"
).split()


class Checks:
    """Counts what was compared, and keeps what disagreed."""

    def __init__(self):
        self.made = 0
        self.failures = []

    def equal(self, what, got, want):
        self.made += 1
        if got != want:
            self.failures.append(f"{what}: {got!r}, want {want!r}")

    def true(self, what, holds):
        self.equal(what, bool(holds), True)


def read_log(path):
    """The merged histogram and the number of lines of each tag."""
    merged, lines = {}, {}
    reader = HistogramLogReader(str(path), HdrHistogram(1, HIGHEST_NS, 3))
    while (interval := reader.get_next_interval_histogram()) is not None:
        tag = interval.get_tag()
        merged.setdefault(tag, HdrHistogram(1, HIGHEST_NS, 3)).add(interval)
        lines[tag] = lines.get(tag, 0) + 1
    return merged, lines


def quantile(histogram, q, denominator, exact_max):
    """As run.json writes it: a number, "inf" among the messages without a value, None where nothing lies beyond."""
    numerator, whole = q
    rank = max(1, -(-denominator * numerator // whole))
    if denominator - rank <= 0:
        return None
    below = 0
    for cell in histogram.get_recorded_iterator():
        below += cell.count_at_value_iterated_to
        if below >= rank:
            return min(histogram.get_highest_equivalent_value(cell.value_iterated_to), exact_max)
    return "inf"


def check_metric(checks, tag, summary, histogram):
    checks.equal(f"{tag}: count in the log", histogram.get_total_count(), summary["count"])
    checks.true(f"{tag}: counts no more than its denominator", summary["count"] <= summary["denominator"])
    if summary["count"] == 0:
        return
    for name, q in QUANTILES.items():
        want = quantile(histogram, q, summary["denominator"], summary["max"])
        checks.equal(f"{tag}: {name} in run.json", summary[name], want)
    for edge, from_log in (("min", histogram.get_min_value()), ("max", histogram.get_max_value())):
        # Exact in run.json, somewhere in the same cell in the log.
        same = histogram.values_are_equivalent(min(summary[edge], HIGHEST_NS), from_log)
        checks.true(f"{tag}: {edge} {summary[edge]} in the cell of the log's {from_log}", same)


def check(directory, printed=None):
    checks = Checks()
    run = json.loads((directory / "run.json").read_text())
    if printed is not None:
        checks.equal("what was printed", json.loads(printed.read_text()), run)
    for key in KEYS:
        checks.true(f"run.json has `{key}`", key in run)
    checks.true("run.json begins with its format", next(iter(run)) == "format")
    checks.equal("valid", (run["valid"], run["invalid_because"]), (True, []))
    checks.equal("interrupted", run["interrupted"], False)

    fates = run["fates"]
    ended = sum(fates[fate] for fate in ("answered", "late", "lost", "unsent"))
    checks.equal("fates add up to scheduled", ended, fates["scheduled"])
    checks.true("something was answered", fates["answered"] > 0)

    with (directory / "intervals.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    checks.true("intervals.csv has rows", rows)
    for fate in FATES:
        checks.equal(f"{fate} in intervals.csv", sum(int(row[fate]) for row in rows), fates[fate])
    plan, length = run["plan"], sum(int(row["length_ns"]) for row in rows)
    checks.equal("length of all intervals", length, plan["warm_up_ns"] + plan["duration_ns"])

    merged, lines = read_log(directory / "histograms.hlog")
    open_loop = plan["offered_rate_hz"] is not None
    expected = {tag for tag in ALWAYS if open_loop or tag in ("rtt", "turnaround")}
    checks.true(f"tags of the log {sorted(merged)}", expected <= set(merged) <= set(TAGS))
    for tag, histogram in merged.items():
        checks.equal(f"{tag}: lines of the log", lines[tag], len(rows))
        summary = run["whole"].get(f"{tag}_ns")
        checks.true(f"{tag}: summarised in run.json", summary is not None)
        if summary is not None:
            check_metric(checks, tag, summary, histogram)
    checks.equal("rtt: count", run["whole"]["rtt_ns"]["count"], fates["answered"])
    if open_loop:
        supply = run["whole"]["supply_to_receive_ns"]
        checks.equal("supply_to_receive: denominator", supply["denominator"], fates["scheduled"])
        checks.equal("supply_to_receive: count", supply["count"], fates["answered"])
    for name in ("host-pinger.json", "host-reflector.json"):
        checks.true(f"{name} is an object", isinstance(json.loads((directory / name).read_text()), dict))
    return checks


def damage_quantile(directory):
    path = directory / "run.json"
    run = json.loads(path.read_text())
    run["whole"]["rtt_ns"]["p50"] += 1
    path.write_text(json.dumps(run))


def damage_fates(directory):
    path = directory / "run.json"
    run = json.loads(path.read_text())
    run["fates"]["answered"] -= 1
    path.write_text(json.dumps(run))


def damage_intervals(directory):
    path = directory / "intervals.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def damage_log(directory):
    path = directory / "histograms.hlog"
    kept, dropped = [], False
    for line in path.read_text().splitlines(keepends=True):
        if not dropped and line.startswith("Tag=rtt,"):
            dropped = True
        else:
            kept.append(line)
    path.write_text("".join(kept))


def prove(directory):
    """The damages that go unnoticed; a directory that is refused as it is proves nothing."""
    unnoticed = ["the directory itself is refused"] if check(directory).failures else []
    damages = (damage_quantile, damage_fates, damage_intervals, damage_log)
    for damage in damages:
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch) / "run"
            shutil.copytree(directory, copy)
            damage(copy)
            if not check(copy).failures:
                unnoticed.append(damage.__name__)
    print(f"{len(damages)} damages, {len(unnoticed)} of them not noticed")
    return unnoticed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--printed", type=Path, help="what the run printed with --format json")
    parser.add_argument("--prove", action="store_true", help="check damaged copies instead")
    arguments = parser.parse_args()
    if arguments.prove:
        failures = prove(arguments.run)
    else:
        checks = check(arguments.run, arguments.printed)
        failures = checks.failures
        print(f"{arguments.run}: {checks.made} comparisons, {len(failures)} disagree")
    for failure in failures:
        print(f"  {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
