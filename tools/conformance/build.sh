#!/usr/bin/env bash
# Builds the Java driver of the conformance run for each version named, by
# default all of them, into out/conformance/<version>. What is up to date is left
# alone; once Maven has the artifacts it needs no network.
set -euo pipefail
cd "$(dirname "$0")"
out=../../out/conformance
versions=("$@")
if [ ${#versions[@]} -eq 0 ]; then
	versions=(5.5.1 5.3.3)
fi

for program in java javac mvn unzip; do
	if ! command -v "$program" >/dev/null; then
		echo "conformance: $program is missing; tools/setup.sh installs it" >&2
		exit 1
	fi
done

want=$(find pom.xml build.sh src -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum)
for version in "${versions[@]}"; do
	dir=$out/$version
	if [ -f "$dir/built" ] && [ "$(cat "$dir/built")" = "$want" ]; then
		continue
	fi
	echo "conformance: building the driver for rocketmq-store $version"
	mkdir -p "$dir"
	rm -rf "$dir/built" "$dir/classes"
	build=(mvn -q -B -ntp "-Drocketmq.version=$version" compile)
	if ! timeout 300 "${build[@]}" -o >"$dir/build.log" 2>&1 &&
		! timeout 500 "${build[@]}" >"$dir/build.log" 2>&1; then
		cat "$dir/build.log" >&2
		exit 1
	fi
	# The native library once for all runs: RocksDB else unpacks it anew for each
	# process.
	case $(uname -m) in
	x86_64) native=librocksdbjni-linux64.so ;;
	aarch64) native=librocksdbjni-linux-aarch64.so ;;
	esac
	mkdir -p "$dir/native"
	for jar in "$dir"/lib/rocksdbjni-*.jar "$dir"/lib/rocketmq-rocksdb-*.jar; do
		if [ -e "$jar" ]; then
			unzip -qo "$jar" "$native" -d "$dir/native"
		fi
	done
	printf '%s' "$want" >"$dir/built"
done
