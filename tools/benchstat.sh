#!/usr/bin/env bash
# The gate: does HEAD do worse than BASE in the benchmarks?
#
#   tools/benchstat.sh --base REV [--head REV] [--pkg PKG] [--bench RE]
#                      [--count N] [--slower PERCENT] [--repo DIR]
#
#   --base    the revision to compare with (default HEAD~1)
#   --head    the revision to judge (default: the work tree as it is)
#   --pkg     packages with benchmarks (default ./...)
#   --bench   which benchmarks, a regular expression (default: all)
#   --count   samples of each benchmark on each side (default 10)
#   --slower  how much slower in percent is a regression (default 15)
#   --repo    the repository (default: this one)
#
# Exit 0: no regression. 1: a regression. 2: it could not be run or judged.
#
# Both sides are built once. Each benchmark is calibrated on BASE, and then runs
# the same fixed number of iterations on both sides, alternating in the order
# ABBA, so that a machine that changes its speed hits both alike.
#
# Allocations per operation are a hard limit: one more is a regression. Time is
# judged only with 6 samples or more, and is a regression if benchstat finds a
# significant difference, the median is slower by more than --slower, and the
# fastest sample is slower too, by half of it.
#
# This is a first form. Syncs, bytes and system calls per operation as hard
# limits, and paired statistics for the time, are to come.
set -uo pipefail
tools=$(cd "$(dirname "$0")" && pwd)

die() {
	echo "benchstat: $*" >&2
	exit 2
}

repo=$tools/.. base=HEAD~1 head="" pkgs=./... bench=. count=10 slower=15 self_test=""
while [ $# -gt 0 ]; do
	case $1 in
	--self-test) self_test=1 && shift && continue ;;
	--help | -h) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" && exit 0 ;;
	--repo | --bench | --base | --head | --count | --pkg | --slower) [ $# -ge 2 ] || die "$1 needs a value" ;;
	*) die "unknown argument $1; see --help" ;;
	esac
	case $1 in
	--repo) repo=$2 ;;
	--bench) bench=$2 ;;
	--base) base=$2 ;;
	--head) head=$2 ;;
	--count) count=$2 ;;
	--pkg) pkgs=$2 ;;
	--slower) slower=$2 ;;
	esac
	shift 2
done
[[ $count =~ ^[1-9][0-9]*$ ]] || die "--count $count is not a positive number"
[[ $slower =~ ^[0-9]+$ ]] || die "--slower $slower is not a number of percent"

work=$(mktemp -d) || die "no temporary folder"
trees=()
cleanup() {
	for tree in "${trees[@]}"; do
		git -C "$repo" worktree remove --force "$tree" >/dev/null 2>&1
	done
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 2' INT TERM

# self_test makes a small repository and demands each exit code.
self_test() {
	local dir=$work/repo failed=0
	git init -q "$dir" && cd "$dir" || die "git init"
	git config user.name gate && git config user.email gate@localhost
	printf 'module gate\n\ngo 1.24\n' >go.mod
	source() {
		printf 'package gate\n\nimport "testing"\n\nvar sink []byte\n\nfunc BenchmarkA(b *testing.B) {\n\tb.ReportAllocs()\n\tfor range b.N {\n%s\t}\n}\n' "$1" >gate_test.go
	}
	commit() { git add -A && git commit -qm "$1" && git tag "$1"; }
	source $'\t\tsink = make([]byte, 64)\n\t\tfor i := range 4000 { sink[i&63]++ }\n' && commit base
	source $'\t\tsink = make([]byte, 64)\n\t\tfor i := range 4001 { sink[i&63]++ }\n' && commit same
	source $'\t\tsink = make([]byte, 64)\n\t\tsink = make([]byte, 65)\n\t\tfor i := range 4000 { sink[i&63]++ }\n' && commit allocates
	source $'\t\tsink = make([]byte, 64)\n\t\tfor i := range 12000 { sink[i&63]++ }\n' && commit slow
	source $'\t\tdoes not compile\n' && commit broken
	source $'\t\tb.Fatal("fails")\n' && commit fails
	expect() {
		local want=$1 got=0
		shift
		"$tools/benchstat.sh" --repo "$dir" --base base --count 6 --slower 60 "$@" >"$work/out" 2>&1 || got=$?
		if [ "$got" -ne "$want" ]; then
			echo "benchstat: self-test: $*: exit $got, want $want" >&2
			cat "$work/out" >&2
			failed=1
		fi
	}
	expect 0 --head same
	expect 1 --head allocates
	expect 1 --head slow
	expect 2 --head broken
	expect 2 --head fails
	expect 2 --head nowhere
	expect 2 --head same --bench NoSuchBenchmark
	[ "$failed" -eq 0 ] || exit 2
	echo "benchstat: self-test passed"
	exit 0
}
[ -z "$self_test" ] || self_test

top=$(git -C "$repo" rev-parse --show-toplevel 2>&1) || die "$repo: $top"
repo=$top
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
(cd "$tools/.." && go build -modfile=tools/go.mod -o "$work/benchstat" golang.org/x/perf/cmd/benchstat) ||
	die "benchstat cannot be built"

# checkout REV NAME prints the folder that holds the revision.
checkout() {
	git -C "$repo" rev-parse --verify --quiet "$1^{commit}" >/dev/null || return 1
	git -C "$repo" worktree add --quiet --detach "$work/$2" "$1" >&2 || return 1
}
checkout "$base" base || die "no revision $base"
trees+=("$work/base")
base_dir=$work/base head_dir=$repo
if [ -n "$head" ]; then
	checkout "$head" head || die "no revision $head"
	trees+=("$work/head")
	head_dir=$work/head
fi

# build SIDE DIR builds the test binaries of the packages with benchmarks.
build() {
	local side=$1 dir=$2 list path folder id
	# shellcheck disable=SC2086 # several packages may be named
	list=$(cd "$dir" && go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' $pkgs) || return 1
	while read -r path folder; do
		[ -n "$path" ] && grep -qs '^func Benchmark' "$folder"/*_test.go || continue
		id=${path//\//_}
		(cd "$dir" && go test -c -o "$work/$side.$id.test" "$path") || return 1
		echo "$id $folder" >>"$work/$side.list"
	done <<<"$list"
}
: >"$work/base.list"
: >"$work/head.list"
echo "building $base and ${head:-the work tree}"
build base "$base_dir" || die "$base does not build"
build head "$head_dir" || die "${head:-the work tree} does not build"

# sample SIDE ID RE TIME runs benchmarks of one package; the result lines go to
# stdout.
sample() {
	local side=$1 id=$2 folder
	folder=$(awk -v id="$id" '$1 == id { print $2 }' "$work/$side.list")
	[ -n "$folder" ] || return 1
	(cd "$folder" && "$work/$side.$id.test" -test.run '^$' -test.bench "$3" -test.benchtime "$4" -test.benchmem \
		-test.timeout 10m </dev/null >"$work/out.txt" 2>&1) || { cat "$work/out.txt" >&2 && return 1; }
	grep -E '^Benchmark' "$work/out.txt" || true
}

# anchored turns a name into an expression that matches it alone.
anchored() { sed -E 's/-[0-9]+$//; s/[][().*+?^$|{}\\]/\\&/g; s#^#^#; s#$#$#; s#/#$/^#g' <<<"$1"; }

compared=0
while read -r id _; do
	plan=$(sample base "$id" "$bench" 100ms) || die "the benchmarks of $base fail"
	[ -n "$plan" ] || continue
	if ! grep -q "^$id " "$work/head.list"; then
		die "the package of $id has no benchmarks any more"
	fi
	# Only whole results count; a line of a log may begin with a name too.
	while read -r name iterations _ unit _; do
		[[ $iterations =~ ^[0-9]+$ && $unit == ns/op ]] || continue
		re=$(anchored "$name")
		for ((i = 1; i <= count; i++)); do
			order="base head"
			((i % 2)) || order="head base"
			for side in $order; do
				line=$(sample "$side" "$id" "$re" "${iterations}x") || die "$name fails in $side"
				[ -n "$line" ] || die "$name is not in $side"
				# The package goes into the name: two may have one of the same.
				sed "s#^Benchmark#Benchmark$id/#" <<<"$line" >>"$work/$side.txt"
			done
		done
		compared=$((compared + 1))
		echo "  $id ${name}: $count samples of $iterations iterations on each side"
	done <<<"$plan"
done <"$work/base.list"
[ "$compared" -gt 0 ] || die "no benchmark of $base matches $bench in $pkgs"

"$work/benchstat" base="$work/base.txt" head="$work/head.txt" || die "benchstat failed"

# Fewest allocations and fastest sample of each benchmark, per side.
least() {
	awk -v unit="$1" '{ for (i = 4; i <= NF; i++) if ($i == unit && (!($1 in least) || $(i-1)+0 < least[$1])) least[$1] = $(i-1)+0 }
		END { for (name in least) print name, least[name] }' "$2" | sort
}
regressions=$(
	join <(least allocs/op "$work/base.txt") <(least allocs/op "$work/head.txt") |
		awk '$3 > $2 { print $1 ": " $3 " allocs/op, " $2 " before" }'
	if [ "$count" -ge 6 ]; then
		# Names that are slower with significance, without prefix and GOMAXPROCS.
		"$work/benchstat" -format csv -filter '.unit:ns/op' "$work/base.txt" "$work/head.txt" 2>/dev/null |
			awk -F, -v max="$slower" 'NF >= 6 && $6 ~ /^\+/ && $1 != "geomean" { v = $6; gsub(/[+%]/, "", v); if (v+0 > max) print $1, v }' |
			while read -r name percent; do
				join <(least ns/op "$work/base.txt") <(least ns/op "$work/head.txt") |
					awk -v name="Benchmark$name" -v percent="$percent" -v max="$slower" '
						$1 == name && $3 > $2 * (1 + max / 200) { print $1 ": " percent "% slower" }'
			done
	fi
)
[ "$count" -ge 6 ] || echo "time is not judged: that takes 6 samples or more, --count is $count"
if [ -n "$regressions" ]; then
	echo "REGRESSION"
	echo "$regressions"
	exit 1
fi
echo "no regression in $compared benchmarks"
