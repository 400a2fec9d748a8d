#!/bin/bash
# tickpong beside hand-written floors, interleaved, between two namespaces of this machine (root):
#
#   hosts.sh [SECONDS] [ROUNDS] [all|floors]
#
# A round plays every program once, in turn, so that what drifts on the machine drifts for all of them. Pinger on CPU 0,
# reflector on CPU 1, datagrams of 264 bytes. Prints a Markdown table; TICKPONG names the binary, RESULTS a new
# directory that keeps what the programs printed.
# Exits 0 when every target is met, 1 when one is missed, 2 when a run failed and nothing can be said.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
seconds=${1:-3} rounds=${2:-5} what=${3:-all}
tickpong=${TICKPONG:-${CARGO_TARGET_DIR:-$here/../target}/release/tickpong}
case $seconds$rounds in *[!0-9]*) echo "usage: $0 [SECONDS] [ROUNDS] [all|floors]" >&2; exit 2 ;; esac
case $what in all | floors) ;; *) echo "usage: $0 [SECONDS] [ROUNDS] [all|floors]" >&2; exit 2 ;; esac
[ "$(id -u)" = 0 ] || { echo "$0: making named namespaces takes root" >&2; exit 2; }
[ "$what" = floors ] || [ -x "$tickpong" ] || { echo "$tickpong: missing; cargo build --release" >&2; exit 2; }

# One measurement at a time on the pair. No child keeps the lock: each closes descriptor 9.
exec 9>/run/lock/tickpong-hosts
flock 9

work=$(mktemp -d)
results=${RESULTS:-$work/results}
mkdir -p "$results"
reflector="" made=""
stop_reflector() {
    [ -n "$reflector" ] || return 0
    kill "$reflector" 2>/dev/null || true
    wait "$reflector" 2>/dev/null || true
    reflector=""
}
clean_up() {
    stop_reflector
    # Only what this script made: a pair that was there before is somebody's.
    for name in $made; do ip netns del "$name" 2>/dev/null || true; done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

for name in tp-a tp-b; do
    ip netns add "$name" || { echo "$0: is somebody measuring? if not: ip netns del tp-a; ip netns del tp-b" >&2; exit 2; }
    made+=" $name"
done
ip link add tp-va netns tp-a type veth peer name tp-vb netns tp-b
set_up() { # HOST NUMBER
    ip -n "tp-$1" addr add "10.77.0.$2/24" dev "tp-v$1"
    ip -n "tp-$1" link set lo up
    ip -n "tp-$1" link set "tp-v$1" up
}
set_up a 1
set_up b 2
# Static neighbours: no ARP in the measured path.
address() { ip netns exec "tp-$1" cat "/sys/class/net/tp-v$1/address"; }
ip -n tp-a neigh replace 10.77.0.2 lladdr "$(address b)" dev tp-va nud permanent
ip -n tp-b neigh replace 10.77.0.1 lladdr "$(address a)" dev tp-vb nud permanent

make -s -C "$here/floor" OUT="$work" all
key=$work/key
(umask 077 && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >"$key")

# Starts a reflector in tp-b and waits until it listens: reflect u|t PORT COMMAND…
reflect() {
    local kind=$1 port=$2 try
    shift 2
    ip netns exec tp-b "$@" >"$work/reflector.log" 2>&1 9>&- &
    reflector=$!
    for try in $(seq 100); do
        [ -z "$(ip netns exec tp-b ss -Hln"$kind" "sport = :$port")" ] || return 0
        kill -0 "$reflector" 2>/dev/null || break
        sleep 0.05
    done
    echo "no reflector on port $port: $*" >&2
    tail -n 5 "$work/reflector.log" >&2
    return 1
}

# How long the next run of tickpong takes.
lasting=$seconds

# Plays one run and keeps what it printed, what it complained of and how it ended: play ROUND PROGRAM CASE COMMAND…
play() {
    local name status=0
    name=$results/$(printf '%03d' "$1").$2.$3
    shift 3
    timeout --kill-after=5 $((lasting + 60)) ip netns exec tp-a "$@" >"$name.out" 2>"$name.err" 9>&- || status=$?
    echo "$status" >"$name.status"
    stop_reflector
}

# A reflector that does not start is a failed run like any other.
unplayed() { # ROUND PROGRAM CASE
    stop_reflector
    echo "the reflector did not start" >"$results/$(printf '%03d' "$1").$2.$3.err"
    echo 2 >"$results/$(printf '%03d' "$1").$2.$3.status"
}

floor_closed() { # ROUND
    reflect u 9000 taskset -c 1 "$work/closed_loop" s 10.77.0.2 9000 spin || { unplayed "$1" floor closed; return 0; }
    play "$1" floor closed taskset -c 0 "$work/closed_loop" c 10.77.0.2 9000 spin 264 "$seconds"
}

floor_open() { # ROUND CASE RATE
    reflect u 9100 taskset -c 1 "$work/open_loop" r 10.77.0.2 9100 spin || { unplayed "$1" floor "$2"; return 0; }
    play "$1" floor "$2" taskset -c 0 "$work/open_loop" p 10.77.0.2 9100 spin 264 "$3" "$seconds"
}

ours() { # ROUND CASE FLAGS…
    local round=$1 case=$2
    shift 2
    [ "$what" = all ] || return 0
    reflect t 7410 "$tickpong" reflect --listen 10.77.0.2 --cpu 1 --once --key-file "$key" ||
        { unplayed "$round" tickpong "$case"; return 0; }
    play "$round" tickpong "$case" "$tickpong" ping 10.77.0.2 "$@" --size 264 --duration "${lasting}s" --warm-up 1s \
        --cpu 0 --key-file "$key" -o "$work/run.$round.$case" --format json
    rm -rf "$work/run.$round.$case"
}

peer_closed() { # ROUND
    command -v sockperf >/dev/null || return 0
    reflect u 11111 taskset -c 1 sockperf sr -i 10.77.0.2 -p 11111 --nonblocked ||
        { unplayed "$1" sockperf closed; return 0; }
    play "$1" sockperf closed \
        taskset -c 0 sockperf pp -i 10.77.0.2 -p 11111 -m 264 -t "$seconds" --nonblocked --full-rtt
}

for round in $(seq "$rounds"); do
    echo "round $round of $rounds" >&2
    floor_closed "$round"
    ours "$round" closed --closed
    peer_closed "$round"
    for case in 100k 200k 10k; do
        floor_open "$round" "$case" "${case%k}000"
        ours "$round" "$case" --rate "$case"
    done
done

# Once each: what a run takes of memory must not depend on how long it is.
for lasting in 10 60; do
    [ "$what" = all ] || break
    echo "memory over $lasting s" >&2
    ours 1 "100k-${lasting}s" --rate 100k
done

python3 "$here/summarise.py" "$results" --of "$what"
