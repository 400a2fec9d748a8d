#!/usr/bin/env python3
"""Makes market-open.trace: the first moments after an opening bell, made up.

    python3 crates/lab/suites/make-market-open.py >crates/lab/suites/market-open.trace

No market data is in it. Messages excite each other (Hawkes, Biometrika 58, 1971): each brings on others for a few microseconds, and the
rate of those that come by themselves decays from the bell on. Sizes mix short updates, the standard message and long snapshots. The
same seed gives the same bytes with any Python 3.
"""
import random

SEED = 20261201
LENGTH_NS = 250_000_000
# Messages that come by themselves, a second: at the bell, and long after it; and how fast one becomes the other.
BELL_HZ, CALM_HZ, DECAY_NS = 25_000, 5_000, 60_000_000
# Each message brings on so many others on average, exponentially later.
CHILDREN, LATER_NS = 0.6, 4_000
SIZES = [(96, 0.35), (264, 0.5), (520, 0.1), (1_200, 0.05)]


def poisson(rng, mean):
    """By counting exponential gaps: small means only."""
    count, total = -1, 0.0
    while total < mean:
        total += rng.expovariate(1.0)
        count += 1
    return max(count, 0)


def main():
    rng = random.Random(SEED)
    times, at = [], 0.0
    while True:
        at += rng.expovariate(BELL_HZ) * 1e9
        if at >= LENGTH_NS:
            break
        rate = CALM_HZ + (BELL_HZ - CALM_HZ) * 2.0 ** (-at / DECAY_NS)
        if rng.random() * BELL_HZ < rate:
            times.append(at)
    family = list(times)
    while family:
        parent = family.pop()
        for _ in range(poisson(rng, CHILDREN)):
            child = parent + rng.expovariate(1.0 / LATER_NS)
            if child < LENGTH_NS:
                times.append(child)
                family.append(child)
    times.sort()
    print("# Made up by make-market-open.py: inter-arrival in ns, bytes.")
    before = 0
    for time in times:
        size = rng.choices([size for size, _ in SIZES], [weight for _, weight in SIZES])[0]
        print(int(time) - before, size)
        before = int(time)


if __name__ == "__main__":
    main()
