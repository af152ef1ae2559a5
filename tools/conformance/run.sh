#!/usr/bin/env bash
# Runs the conformance tests with Java's store, short or full, and prints what
# failed and the table of all cases. With CONFORMANCE_LOG set, everything that the
# tests print goes there too. CONFORMANCE_RUN names a part, as go test -run does.
set -euo pipefail
cd "$(dirname "$0")/../.."
mode=${1:-short}
case $mode in
short) limit=15m ;;
full) limit=90m ;;
*)
	echo "usage: tools/conformance/run.sh short|full" >&2
	exit 2
	;;
esac

tools/conformance/build.sh
log=${CONFORMANCE_LOG:-out/conformance/$mode.log}
mkdir -p "$(dirname "$log")"
echo "conformance: $mode, log in $log"
rc=0
# A run of everything must have at least so many cases that pass, for each version.
[ -n "${CONFORMANCE_RUN:-}" ] || export STRATALOG_CONFORMANCE_LEAST=60
# Most of the time the cases wait for a Java store to shut down, which takes it
# three seconds: so many of them run side by side.
STRATALOG_CONFORMANCE=$mode go test ./conformance -count=1 -v -timeout "$limit" -parallel 16 -run "${CONFORMANCE_RUN:-.}" >"$log" 2>&1 || rc=$?
if [ "$rc" -ne 0 ]; then
	echo "-- what failed:"
	grep -E '^ *--- FAIL|^panic:|_test.go:[0-9]+:' "$log" | cut -c1-1000 | head -n 200 || true
fi
sed -n '/^case  /,$p' "$log"
exit "$rc"
