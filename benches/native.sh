#!/usr/bin/env bash
# Our default build against peers compiled for this CPU alone (`-C target-cpu=native`), as their users may do.
#
#   benches/native.sh [WORD] [ROUNDS]
#
# Both builds of the limits take turns on the jobs whose name contains the word. A line a round and peer, and at the end the
# median: our time in the default build as a share of the peer's in the native one.
set -euo pipefail
cd "$(dirname "$0")/.."
word=${1:-kdtree/knn-sorted/1000000x3/f32}
rounds=${2:-5}

build() { cargo bench --bench limits --no-run "$@" 2>&1 | sed -n 's/.*limits\/main.rs (\(.*\))$/\1/p'; }
default=$(build)
native=$(RUSTFLAGS="-C target-cpu=native" build --target-dir target/native)

field() { tr ' ' '\n' <<<"$1" | sed -n "s/^$2=//p"; }
results=$(mktemp)
trap 'rm -f "$results"' EXIT
for round in $(seq "$rounds"); do
    ours=$("$default" "$word" | grep '^PEER')
    theirs=$("$native" "$word" | grep '^PEER')
    paste -d'|' <(echo "$ours") <(echo "$theirs") | while IFS='|' read -r our their; do
        ours_ms=$(field "$our" ours_ms)
        peer_ms=$(field "$their" peer_ms)
        share=$(awk "BEGIN { printf \"%.3f\", $ours_ms / $peer_ms }")
        echo "$(field "$our" job) $(field "$our" peer) $share" >>"$results"
        echo "round $round: $(field "$our" job) ours $ours_ms ms, $(field "$our" peer) native $peer_ms ms, $share"
    done
done
cut -d' ' -f1,2 "$results" | sort -u | while read -r job peer; do
    echo "$job $peer median $(grep -F "$job $peer " "$results" | cut -d' ' -f3 | sort -g | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }')"
done
