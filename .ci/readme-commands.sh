#!/bin/bash
# Runs the commands of README.md, so that what a reader copies works: readme-commands.sh TICKPONG [README]
#
# The convention: a block fenced ```sh is run; a block fenced ```console, or with any other word, is only shown.
# Blocks run in order, each in a bash of its own that stops at the first failure, all in one scratch directory, with
# `tickpong` on the PATH, in a network namespace that holds nothing but the loopback device and ends with the script. So
# a block may leave files for the next one and processes for itself, and needs no other host: use 127.0.0.1.
# What builds, installs or tests the project belongs in ```console: it has its own checks.
set -euo pipefail

binary=$(realpath "${1:?usage: $0 TICKPONG [README]}")
readme=$(realpath "${2:-$(dirname "$0")/../README.md}")
[ -x "$binary" ] || { echo "$binary: no such command" >&2; exit 2; }
[ -f "$readme" ] || { echo "$readme: no such file" >&2; exit 2; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/blocks" "$scratch/work"
ln -s "$binary" "$scratch/bin/tickpong"
export PATH="$scratch/bin:$PATH"

# One file a block, named by the line it begins at.
awk -v out="$scratch/blocks" '
    !inside && /^```/ { inside = 1; file = ($0 == "```sh") ? sprintf("%s/%05d", out, NR + 1) : ""; next }
    inside && /^```[[:space:]]*$/ { inside = 0; if (file != "") close(file); next }
    inside && file != "" { print > file }
' "$readme"

cd "$scratch/work"
# Root needs no user namespace, and where users may not make them that matters.
alone=(unshare --net --pid --fork --kill-child --mount-proc)
[ "$(id -u)" = 0 ] || alone+=(--map-root-user)
ran=0 failed=0
for block in "$scratch"/blocks/*; do
    [ -e "$block" ] || break
    line=$((10#$(basename "$block")))
    ran=$((ran + 1))
    printf -- '-- README line %d\n' "$line"
    sed 's/^/   $ /' "$block"
    if ! timeout --kill-after=5 120 "${alone[@]}" bash -euc 'ip link set lo up; exec bash -euo pipefail "$0"' "$block" \
        </dev/null >"$scratch/log" 2>&1; then
        failed=$((failed + 1))
        tail -n 40 "$scratch/log"
        echo "   FAILED"
    fi
done
echo "README: $ran blocks run, $failed failed"
[ "$ran" -gt 0 ] && [ "$failed" = 0 ]
