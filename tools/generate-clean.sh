#!/usr/bin/env bash
# Fails if go generate changes, adds or removes a file: what is checked in must
# be what the schemas give. What it changed is left for a look.
set -euo pipefail
cd "$(dirname "$0")/.."

state() {
	find . -path ./.git -prune -o -type f \( -name '*_gen.go' -o -name '*_gen_test.go' -o -path './docs/format/*' -o -name layouts.lock \) -print0 |
		sort -z | xargs -0 sha256sum
}

before=$(state)
go generate ./...
# Of the codecs that are measured beside others, only ours comes from here.
(cd perf/peers/codecs/plain && go run ../../../../gen/cmd/layoutgen -in record.layout -out . -package plain)
after=$(state)
if [ "$before" != "$after" ]; then
	echo "generate-clean: go generate changed these; check them in:" >&2
	diff <(echo "$before") <(echo "$after") | awk '/^[<>]/ { print "  " $3 }' | sort -u >&2
	exit 1
fi
