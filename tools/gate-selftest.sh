#!/usr/bin/env bash
# Proves that the gate works: twenty times quiet where nothing changed, and
# twenty times each planted regression found and named. SHORT=1 tries each once.
set -euo pipefail
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' INT TERM

export GOFLAGS=-buildvcs=false GOWORK=off
cd "$tools"
for program in ./gate ./gate/selftest golang.org/x/perf/cmd/benchstat; do
	go build -o "$work/" "$program"
done
short=()
if [ -n "${SHORT:-}" ]; then
	short=(-short)
fi
"$work/selftest" -gate "$work/gate" -benchstat "$work/benchstat" -script "$tools/benchstat.sh" "${short[@]}" "$@"
