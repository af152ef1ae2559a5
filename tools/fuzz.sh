#!/usr/bin/env bash
# Runs each fuzz target of some packages for a time, as many at once as there are
# processors. An input that fails is kept in the testdata of its package, what is
# interesting in the cache of go, both as go test -fuzz does.
#
#   tools/fuzz.sh TIME [DIR ...]    the folders that have targets
set -euo pipefail
cd "$(dirname "$0")/.."

time=${1:?fuzz: for how long?}
shift
dirs=("$@")
[ $# -gt 0 ] || mapfile -t dirs < <(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$(go env GOCACHE)/fuzz

# one DIR PACKAGE PROGRAM NAME runs a target, which must do so for the whole time.
# Left alone, go may spend all of it on making one input smaller.
one() {
	local log=$work/$4.log try
	for try in 1 2 3; do
		if once "$@" "$log"; then
			echo "$1 $4: $(grep '^fuzz: elapsed' "$log" | tail -n 1)"
			return
		fi
		# Go takes the end of its own time for a failure now and then: it says just
		# this and has no input to show. The target is then run again.
		if ! grep -q '^    context deadline exceeded$' "$log" || grep -q 'Failing input' "$log"; then
			break
		fi
		echo "fuzz: $1 $4: go missed its own deadline (try $try)" >&2
	done
	echo "fuzz: $1 $4 failed" | cat - "$log" >&2
	return 1
}

# once DIR PACKAGE PROGRAM NAME LOG is a try.
once() {
	(cd "$1" && "$3" -test.run='^$' -test.fuzz="^$4\$" -test.fuzztime="$time" -test.fuzzminimizetime=100x -test.parallel=1 \
		-test.fuzzcachedir="$cache/$2") >"$5" 2>&1 && grep -q '^fuzz: elapsed.* execs: [1-9]' "$5"
}

ran=0 running=0 failed=0
for dir in "${dirs[@]}"; do
	program=$work/$ran.test
	package=$(cd "$dir" && go list . && go test -c -fuzz=. -o "$program" .) # one build for all targets
	for name in $(grep -h '^func Fuzz' "$dir"/*_test.go | sed -E 's/^func (Fuzz[A-Za-z0-9_]*).*/\1/' | sort); do
		if [ "$running" -ge "$(nproc)" ]; then
			wait -n || failed=1
			running=$((running - 1))
		fi
		one "$dir" "$package" "$program" "$name" &
		running=$((running + 1)) ran=$((ran + 1))
	done
	while [ "$running" -gt 0 ]; do
		wait -n || failed=1
		running=$((running - 1))
	done
done
if [ "$ran" -eq 0 ] || [ "$failed" -ne 0 ]; then
	echo "fuzz: a target failed, or there was none" >&2
	exit 1
fi
echo "$ran fuzz targets ran for $time each"
