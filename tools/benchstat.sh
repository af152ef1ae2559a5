#!/usr/bin/env bash
# The gate: is HEAD worse than BASE in the benchmarks? docs/GATE.md says how it
# judges.
#
#   tools/benchstat.sh [--base REV] [--head REV] [flags]
#   tools/benchstat.sh --accept [--reason TEXT]
#   tools/benchstat.sh --repo DIR --base REV --bench RE    any other Go module
#
#   --repo DIR         the module (default: this one)
#   --base REV         what to compare with (default: the commit in perf/BASELINE)
#   --head REV         what to judge (default: the work tree as it is)
#   --pkg PATTERNS     packages with benchmarks (default ./...)
#   --bench RE         which benchmarks (default: all)
#   --instructions RE  the benchmarks, by folder.Name, whose instructions are
#                      counted by callgrind (default: none)
#   --count N          pairs of samples (default 12; time takes 10)
#   --sample TIME      how long a sample takes (default 20ms)
#   --slower PERCENT   how much slower is a regression (default 10)
#   --hard UNITS       the units with a hard limit, separated by commas
#   --quick            --count 10 --sample 10ms
#   --keep DIR         where samples and reports are kept (default out/gate/TIME)
#   --accept           judge HEAD against perf/BASELINE, then make it the baseline,
#                      in a commit of its own; a regression needs --reason
#   --reason TEXT      why a regression is accepted
#   -- FLAGS           everything behind it goes to the program (tools/gate run -h)
#
# Lines of perf/gate/flags in the module stand in front of these flags.
#
# Exit 0: no regression. 1: a regression. 2: it could not be run or judged.
set -euo pipefail

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
trap 'exit 2' INT TERM

die() {
	echo "benchstat: $*" >&2
	exit 2
}

repo=$tools/.. base="" head="" pkgs=./... keep="" accept="" reason="" pass=()

# parse FLAG VALUE takes one flag; anything unknown is refused.
parse() {
	case $1 in
	--repo) repo=$2 ;;
	--base) base=$2 ;;
	--head) head=$2 ;;
	--pkg) pkgs=$2 ;;
	--keep) keep=$2 ;;
	--reason) reason=$2 ;;
	--bench | --instructions | --count | --sample | --slower | --hard) pass+=("$1=$2") ;;
	*) die "unknown argument $1; see --help" ;;
	esac
}

arguments=("$@") extra=()
while [ $# -gt 0 ]; do
	case $1 in
	--help | -h)
		sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
		exit 0
		;;
	--accept | --quick) shift ;;
	--)
		shift
		extra=("$@")
		break
		;;
	*)
		[ $# -ge 2 ] || die "$1 needs a value, or is unknown; see --help"
		if [ "$1" = --repo ]; then
			repo=$2
		fi
		shift 2
		;;
	esac
done

# The module's own flags first, then those of the call.
module=$(cd "$repo" 2>/dev/null && pwd -P) || die "there is no folder $repo"
[ -f "$module/go.mod" ] || die "$module has no go.mod"
if [ -f "$module/perf/gate/flags" ]; then
	while read -r flag value || [ -n "$flag" ]; do
		[[ -z $flag || $flag == \#* ]] || parse "$flag" "$value"
	done <"$module/perf/gate/flags"
fi
set -- "${arguments[@]}"
while [ $# -gt 0 ]; do
	case $1 in
	--accept) accept=1 ;;
	--quick) pass+=(--count=10 --sample=10ms) ;;
	--) break ;;
	*) parse "$1" "$2" && shift ;;
	esac
	shift
done

git=(git -C "$module")
prefix=$("${git[@]}" rev-parse --show-prefix 2>/dev/null) || die "$module is in no git repository"
work=$(mktemp -d) || die "no temporary folder"
cleanup() {
	for side in base head; do
		if [ -e "$work/$side.tree" ]; then
			"${git[@]}" worktree remove --force "$work/$side.tree" || echo "benchstat: git worktree prune is needed" >&2
		fi
	done
	rm -rf "$work"
}
trap cleanup EXIT

# commit REV prints the hash of a commit.
commit() { "${git[@]}" rev-parse --verify --quiet "$1^{commit}" || die "there is no revision $1 here"; }

# baseline prints the commit in perf/BASELINE, after a look at how it came there.
baseline() {
	local file=perf/BASELINE rev moved files
	[ -f "$module/$file" ] || die "there is no $file; name a revision with --base"
	rev=$(sed -E 's/[[:space:]]*(#.*)?$//' "$module/$file" | grep . || true)
	[[ $rev =~ ^[0-9a-f]{40,64}$ ]] || die "$file does not hold the hash of a commit"
	"${git[@]}" cat-file -e "$rev^{commit}" 2>/dev/null ||
		die "the commit $rev of $file is not in this clone; a shallow clone has to fetch the history"
	moved=$("${git[@]}" log -1 --format=%H -- "$file")
	if [ -n "$moved" ]; then
		"${git[@]}" diff --quiet HEAD -- "$file" || die "$file was changed by hand; --accept moves it"
		files=$("${git[@]}" show --format= --name-status --relative "$moved")
		if ! grep -qx "A	$file" <<<"$files" && grep -qvE '	perf/(BASELINE|history\.jsonl)$' <<<"$files"; then
			die "commit $moved moved $file along with other files; --accept moves it, in a commit of its own"
		fi
	fi
	echo "$rev"
}

if [ -n "$accept" ]; then
	[ -z "$base$head" ] || die "--accept compares HEAD with perf/BASELINE; it takes no --base and no --head"
	[ -z "$("${git[@]}" status --porcelain)" ] || die "--accept needs a clean work tree"
	head=$(commit HEAD)
	if [ ! -f "$module/perf/BASELINE" ]; then
		base=$head # the first one
	fi
fi
[ -n "$base" ] || base=$(baseline)
base=$(commit "$base")
label="$(commit HEAD) and the changes of the work tree"
if [ -n "$head" ]; then
	label=$(commit "$head")
elif [ -z "$("${git[@]}" status --porcelain)" ]; then
	label=$(commit HEAD)
fi

if [ -z "$keep" ]; then
	keep=$module/out/gate/$(date -u +%Y%m%dT%H%M%SZ)
	mkdir -p "$keep"
	"${git[@]}" check-ignore -q "$keep" || echo '*' >"$module/out/gate/.gitignore"
fi
mkdir -p "$keep"
keep=$(cd "$keep" && pwd)

# The stamp of the repository would make two builds of one source differ.
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
(cd "$tools" && export GOWORK=off GOFLAGS=-buildvcs=false && go build -o "$work/gate" ./gate && go build -o "$work/benchstat" golang.org/x/perf/cmd/benchstat) ||
	die "the gate itself does not build"

# build SIDE REV DIR LABEL compiles the benchmarks of a revision; without one,
# those in the folder as it is.
build() {
	local dir=$3
	if [ -n "$2" ]; then
		"${git[@]}" worktree add --quiet --detach "$work/$1.tree" "$2" >&2 || die "$2 cannot be checked out"
		dir=$work/$1.tree/$prefix
		# A revision may be older than the module.
		[ -d "$dir" ] || die "$2 has no folder $prefix"
	fi
	"$work/gate" build -dir "$dir" -out "$work/$1" -pkg "$pkgs" -commit "$4" || die "$4 does not build"
}
build base "$base" "" "$base"
build head "$head" "$module" "$label"
limits=$module/perf/LIMITS
if [ -n "$head" ]; then
	limits=$work/head.tree/${prefix}perf/LIMITS
fi

rc=0
"$work/gate" run -base "$work/base" -head "$work/head" -out "$keep" -benchstat "$work/benchstat" -limits "$limits" \
	-reason "$reason" "${pass[@]}" "${extra[@]}" | tee "$keep/report.txt" || rc=$?
echo "samples and report: $keep"
[ -n "$accept" ] || exit "$rc"

case $rc in
0) ;;
1) [ -n "$reason" ] || die "HEAD is worse: to accept it nevertheless, say why with --reason" ;;
*) die "HEAD was not judged; the baseline stays" ;;
esac
[ "$(commit HEAD)" = "$head" ] && [ -z "$("${git[@]}" status --porcelain)" ] ||
	die "the work tree changed meanwhile; the baseline stays"
mkdir -p "$module/perf"
echo "$head" >"$module/perf/BASELINE"
cat "$keep/history.json" >>"$module/perf/history.jsonl"
"${git[@]}" add -- perf/BASELINE perf/history.jsonl
"${git[@]}" commit --quiet --file="$keep/message.txt" -- perf/BASELINE perf/history.jsonl || die "git commit failed"
echo "perf/BASELINE is $head"
