#!/usr/bin/env bash
# Installs the Debian packages that building and testing need and that are
# missing, with --java also those of the conformance run with Java's store. It says
# nothing when nothing is missing, and may be run at any time.
# Where it cannot install, it says what is missing and what follows, and ends
# well: the tests that need it are then skipped, and say so.
set -euo pipefail

# What a package is for stands beside it: command or file, package, purpose.
needs="
make make the Makefile
git git comparing two revisions with tools/benchstat.sh
gcc gcc the race detector
/usr/include/stdlib.h libc6-dev the race detector
strace strace counting system calls
chromium chromium looking at the report of the load generators in a browser
node nodejs reading our files with a decoder that is not ours
npm npm reading our files with a decoder that is not ours
flatc flatbuffers-compiler generating one of the codecs beside ours anew
valgrind valgrind counting instructions in tools/benchstat.sh
mkfs.ext4 e2fsprogs tests that pull the disk from under a real file system
mount mount tests on file systems of their own
losetup mount tests on file systems of their own
timeout coreutils deadlines of the test runs
"
if [ "${1:-}" = --java ]; then
	needs+="
javac openjdk-17-jdk-headless the conformance run with Java's store
mvn maven the conformance run with Java's store
unzip unzip the conformance run with Java's store
"
fi

if ! command -v go >/dev/null; then
	echo "setup: Go is missing; install the version that go.mod names, or a newer one" >&2
	exit 1
fi

present() {
	case $1 in
	/*) [ -e "$1" ] ;;
	*) PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ;;
	esac
}

packages=() reasons=()
while read -r what package purpose; do
	if [ -z "$what" ] || present "$what"; then
		continue
	fi
	packages+=("$package")
	reasons+=("  $package: $purpose")
done <<<"$needs"
if [ ${#packages[@]} -eq 0 ]; then
	exit 0
fi

root=()
if [ "$(id -u)" -ne 0 ]; then
	root=(sudo -n)
fi
give_up() {
	{
		echo "setup: $1. Missing are:"
		printf '%s\n' "${reasons[@]}"
		echo "setup: install them with: apt-get install -y ${packages[*]}"
		echo "setup: until then, tests that need them are skipped and say so"
	} >&2
	exit 0
}
command -v apt-get >/dev/null || give_up "this is not a Debian system"
if [ ${#root[@]} -gt 0 ] && ! { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; then
	give_up "installing needs root, or sudo without a password"
fi

echo "setup: installing ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
install=("${root[@]}" apt-get install -y -qq --no-install-recommends "${packages[@]}")
if ! "${install[@]}" </dev/null >/dev/null 2>&1; then
	# The lists of packages may be old, or not there at all.
	"${root[@]}" apt-get update -qq </dev/null >/dev/null || give_up "the lists of packages cannot be fetched"
	"${install[@]}" </dev/null >/dev/null || give_up "installing failed"
fi
