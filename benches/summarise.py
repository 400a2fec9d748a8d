#!/usr/bin/env python3
"""Summarises what benches/hosts.sh kept: medians over the rounds, ratios to the floor, and the targets.

    summarise.py RESULTS [--of all|floors]
    summarise.py --self-test

RESULTS holds, for each run, ROUND.PROGRAM.CASE.out (what it printed), .err and .status (its exit code).
Exits 0 when every target is met, 1 when one is missed, 2 when a run failed: a run that failed has missed no target,
it has said nothing.
"""

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path
from statistics import median

CASES = ("closed", "100k", "200k", "10k", "100k-10s", "100k-60s")
RATES_HZ = {"100k": 100_000, "200k": 200_000, "10k": 10_000, "100k-10s": 100_000, "100k-60s": 100_000}
# The largest median ratio to the floor in the same round.
RATIO_AT_MOST = {"closed": 1.05, "100k": 1.05, "200k": 1.10}
LATENESS_BELOW_NS = 200
RATE_WITHIN = 0.001
PEAK_BELOW_BYTES = 64 << 20
# A run of sixty seconds against one of ten, at either end.
PEAK_GROWS_AT_MOST = 1.05


class Failed(Exception):
    """A run that says nothing, and why."""


def field(text, name):
    found = re.search(rf"\b{name}=([0-9.]+)", text)
    if found is None:
        raise Failed(f"printed no {name}")
    return float(found.group(1))


def of_floor(text, case):
    if case == "closed":
        return {"p50_ns": field(text, "p50") * 1e3, "lost": field(text, "lost")}
    # The last p50 of the line is that of the lateness.
    late = re.search(r"late_us p50=([0-9.]+)", text)
    if late is None:
        raise Failed("printed no lateness")
    return {
        "p50_ns": field(text, "p50") * 1e3,
        "lost": field(text, "lost"),
        "lateness_ns": float(late.group(1)) * 1e3,
        "rate_hz": field(text, "achieved"),
    }


def of_sockperf(text, _case):
    found = re.search(r"percentile 50\.000 =\s*([0-9.]+)", text)
    dropped = re.search(r"# dropped messages = (\d+)", text)
    if found is None or dropped is None:
        raise Failed("printed no median")
    return {"p50_ns": float(found.group(1)) * 1e3, "lost": float(dropped.group(1))}


def of_tickpong(text, case):
    try:
        run = json.loads(text)
        if not run["valid"]:
            raise Failed(f"invalid: {'; '.join(map(str, run['invalid_because']))}")
        whole, fates = run["whole"], run["fates"]
        figures = {
            "p50_ns": whole["rtt_ns" if case == "closed" else "supply_to_receive_ns"]["p50"],
            "lost": fates["lost"] + fates["late"] + fates["unsent"],
            "peak_bytes": run["memory"]["pinger"]["peak_bytes"],
            "reflector_peak_bytes": run["memory"]["reflector"]["peak_bytes"],
        }
        if case != "closed":
            figures["lateness_ns"] = whole["send_lateness_ns"]["p50"]
            figures["rate_hz"] = run["achieved_rate_hz"]
    except (ValueError, KeyError, TypeError) as error:
        raise Failed(f"printed no run.json: {type(error).__name__} {error}") from error
    for name, figure in figures.items():
        if not isinstance(figure, (int, float)):
            raise Failed(f"{name} is {figure!r}")
    return figures


READERS = {"floor": of_floor, "tickpong": of_tickpong, "sockperf": of_sockperf}


def read(directory):
    """Figures by (program, case) and round, and what failed."""
    runs, failures = {}, []
    for status in sorted(directory.glob("*.status")):
        number, program, case, _ = status.name.split(".")
        try:
            code, out = status.read_text().strip(), status.with_suffix(".out")
            text = out.read_text() if out.exists() else ""
            # An invalid run ends with 5 and still says why on its standard output.
            if code != "0" and not (program == "tickpong" and code == "5" and text.strip()):
                said = status.with_suffix(".err").read_text().strip().splitlines()
                raise Failed(f"exit code {code}: {said[-1] if said else 'it said nothing'}")
            runs.setdefault((program, case), {})[int(number)] = READERS[program](text, case)
        except Failed as why:
            failures.append(f"round {int(number)}, {program}, {case}: {why}")
    return runs, failures


def spread(values, scale=1.0, digits=0):
    low, mid, high = (f"{v / scale:.{digits}f}" for v in (min(values), median(values), max(values)))
    return f"{mid} ({low}–{high})"


def ratios(runs, case):
    floor, ours = runs.get(("floor", case), {}), runs.get(("tickpong", case), {})
    return [ours[n]["p50_ns"] / floor[n]["p50_ns"] for n in sorted(ours.keys() & floor.keys())]


def table(runs):
    lines = [
        "| case | program | rounds | p50 µs, median (min–max) | p50 ÷ floor | send lateness p50 ns | achieved /s | lost | peak MiB | reflector's |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case in CASES:
        for program in READERS:
            rounds = list(runs.get((program, case), {}).values())
            if not rounds:
                continue

            def column(name, scale=1.0, digits=0, rounds=rounds):
                known = [r[name] for r in rounds if name in r]
                return spread(known, scale, digits) if known else "—"

            own = ratios(runs, case) if program == "tickpong" else []
            cells = (
                case, program, str(len(rounds)), column("p50_ns", 1e3, 2), spread(own, digits=3) if own else "—",
                column("lateness_ns"), column("rate_hz"), str(int(sum(r["lost"] for r in rounds))), column("peak_bytes", 2**20, 1),
                column("reflector_peak_bytes", 2**20, 1),
            )  # fmt: skip
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def targets(runs):
    """Rows of (target, got, met); `None` where no run can tell."""
    rows = []
    for case, most in RATIO_AT_MOST.items():
        own = ratios(runs, case)
        got = median(own) if own else None
        rows.append((f"{case}: p50 at most {most:.2f} × the floor", got and f"{got:.3f}", None if got is None else got <= most))
    late = [r["lateness_ns"] for r in runs.get(("tickpong", "10k"), {}).values()]
    got = median(late) if late else None
    met = None if got is None else got < LATENESS_BELOW_NS
    rows.append((f"10k: send lateness p50 below {LATENESS_BELOW_NS} ns", None if got is None else f"{got:.0f} ns", met))
    every = [(case, r) for case in CASES for r in runs.get(("tickpong", case), {}).values()]
    lost = int(sum(r["lost"] for _, r in every))
    rows.append(("nothing lost, late or unsent", str(lost), lost == 0 if every else None))
    off = [abs(r["rate_hz"] / RATES_HZ[case] - 1) for case, r in every if "rate_hz" in r]
    got = max(off) if off else None
    rows.append(("every rate within 0.1 % of the offered", got is not None and f"{got:.4%}", None if got is None else got <= RATE_WITHIN))
    peers = [r["p50_ns"] for r in runs.get(("sockperf", "closed"), {}).values()]
    own = [r["p50_ns"] for r in runs.get(("tickpong", "closed"), {}).values()]
    if peers and own:
        rows.append(("closed: p50 at most sockperf's", f"{median(own) / median(peers):.3f}", median(own) <= median(peers)))
    ends = ("peak_bytes", "reflector_peak_bytes")
    peaks = [r[end] for _, r in every for end in ends]
    got = max(peaks) if peaks else None
    rows.append(("peak memory below 64 MiB at each end", got and f"{got / 2**20:.1f} MiB", None if got is None else got < PEAK_BELOW_BYTES))
    short, long = ([r for case, r in every if case == wanted] for wanted in ("100k-10s", "100k-60s"))
    grown = max((long[0][end] / short[0][end] for end in ends), default=None) if short and long else None
    rows.append(("the same peak over 60 s as over 10 s", grown and f"{grown:.3f}", None if grown is None else grown <= PEAK_GROWS_AT_MOST))
    return rows


def summarise(directory, of):
    runs, failures = read(directory)
    lines = table(runs)
    if not runs and not failures:
        failures.append("there are no results")
    missed = 0
    if of == "all":
        lines += ["", "| target | got | |", "|---|---|---|"]
        for target, got, met in targets(runs):
            verdict = {True: "met", False: "**missed**", None: "**cannot be told**"}[met]
            lines.append(f"| {target} | {got or '—'} | {verdict} |")
            missed += met is False
            if met is None and not failures:
                failures.append(f"no run tells: {target}")
    if failures:
        lines += ["", f"{len(failures)} failed:"] + [f"- {failure}" for failure in failures]
    return lines, 2 if failures else 1 if missed else 0


def self_test():
    """Shows that a missed target, a failed run and an empty directory are told apart."""
    closed = "pp-spin size=264 n=9 rate=9 lost=0 rtt_us min=5.0 p50=6.000 p90=7.0"
    opened = "open-spin rate={r} achieved={r} sent=9 lost=0 per_call=1.00 s2r_us p50=6.00 p90=7.00 late_us p50=0.030 p99=0.1"

    def run(rate, p50=6_100, lateness=90, lost=0, valid=True, peak=2**22):
        metric = {"p50": p50}
        whole = {"supply_to_receive_ns": metric, "rtt_ns": metric, "send_lateness_ns": rate and {"p50": lateness}}
        fates = {"lost": lost, "late": 0, "unsent": 0}
        return json.dumps({
            "valid": valid, "invalid_because": [] if valid else ["rate"], "whole": whole, "fates": fates,
            "achieved_rate_hz": rate, "memory": {"pinger": {"peak_bytes": 2**22}, "reflector": {"peak_bytes": peak}},
        })  # fmt: skip

    def outcome(of="all", **changed):
        files = {"floor.closed": closed, "tickpong.closed": run(None)}
        for case, rate in RATES_HZ.items():
            files[f"tickpong.{case}"] = run(rate)
            if not case.endswith("s"):
                files[f"floor.{case}"] = opened.format(r=rate)
        files |= {name.replace("_", "."): text for name, text in changed.items()}
        with tempfile.TemporaryDirectory() as scratch:
            for name, text in files.items():
                code, out = text if isinstance(text, tuple) else (0, text)
                for suffix, content in (("out", out), ("err", ""), ("status", str(code))):
                    Path(scratch, f"001.{name}.{suffix}").write_text(content)
            return summarise(Path(scratch), of)

    expected = [
        ("all met", outcome(), 0),
        ("too slow", outcome(tickpong_100k=run(100_000, p50=6_400)), 1),
        ("too slow, closed", outcome(tickpong_closed=run(None, p50=6_400)), 1),
        ("too late", outcome(tickpong_10k=run(10_000, lateness=200)), 1),
        ("a loss", outcome(tickpong_200k=run(200_000, lost=1)), 1),
        ("too few", outcome(tickpong_200k=run(199_000)), 1),
        ("a crash", outcome(tickpong_100k=(101, "")), 2),
        ("an invalid run", outcome(tickpong_100k=(5, run(100_000, valid=False))), 2),
        ("no JSON", outcome(tickpong_100k="ok"), 2),
        ("an infinite median", outcome(tickpong_100k=run(100_000, p50="inf")), 2),
        ("a floor without figures", outcome(floor_100k="open-spin"), 2),
        ("too much memory", outcome(tickpong_100k=run(100_000, peak=2**26)), 1),
        ("memory that grows", outcome(**{"tickpong_100k-60s": run(100_000, peak=2**23)}), 1),
        ("slower than a peer", outcome(sockperf_closed="percentile 50.000 = 6.0\n# dropped messages = 0"), 1),
        ("floors alone", outcome(of="floors"), 0),
    ]
    with tempfile.TemporaryDirectory() as scratch:
        expected.append(("nothing", summarise(Path(scratch), "all"), 2))
    wrong = [f"{what}: exit code {got}, want {want}" for what, (_, got), want in expected if got != want]
    print(f"summarise: {len(expected) - len(wrong)} passed, {len(wrong)} failed", *wrong, sep="\n  ")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--of", choices=("all", "floors"), default="all")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if arguments.results is None:
        parser.error("which results?")
    lines, code = summarise(arguments.results, arguments.of)
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
