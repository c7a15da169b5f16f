#!/usr/bin/env bash
# Builds the edge example for this machine, and prints its size and the memory it holds while it idles below a broker (Linux).
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
cargo build --locked --quiet --profile edge --no-default-features -p enroute-examples --bin edge
cargo build --locked --quiet -p enroute-cli
edge=$target/edge/edge
printf 'size, stripped:     %s bytes\n' "$(stat --format %s "$edge")"

said=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}"; rm -r "$said"' EXIT
# Waits for a line of a program's output, at most a minute.
line() {
    for _ in $(seq 600); do
        if grep -m 1 "$2" "$1"; then return; fi
        sleep 0.1
    done
    echo "$1: nothing with '$2'" >&2
    exit 1
}
"$target/debug/enroute" run --listen /ip4/127.0.0.1/tcp/0 > "$said/broker" 2> /dev/null &
pids+=($!)
address=$(line "$said/broker" '^listening ' | cut -d ' ' -f 2)
"$edge" "$address" > "$said/edge" &
pids+=($!)
line "$said/edge" '^nobody wants to know' > /dev/null
# A while, in which it only renews its lease and shows signs of life.
sleep "${IDLE_SECONDS:-20}"
memory() { awk -v what="$1:" '$1 == what {print $2}' "/proc/${pids[1]}/status"; }
printf 'memory when idle:   %s KiB resident, %s KiB of them its own, %s KiB at most so far\n' \
    "$(memory VmRSS)" "$(memory RssAnon)" "$(memory VmHWM)"
