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
#   --or-itself        for CI: where the clone lacks the baseline's commit since it
#                      is shallow, or its history was rewritten, say so and judge
#                      HEAD against itself
#   --keep DIR         where samples and reports are kept (default out/gate/TIME)
#   --accept           judge HEAD against perf/BASELINE, then make it the baseline,
#                      in a commit of its own; a regression needs --reason. It
#                      takes no flag that makes it look less closely
#   --anew             with --accept --reason: the baseline cannot be judged any
#                      more, say since it does not build with the Go of today;
#                      HEAD is measured against itself
#   --reason TEXT      why a regression is accepted
#   -- FLAGS           everything behind it goes to the program (tools/gate run -h)
#
# Lines of perf/gate/flags in the module stand in front of these flags: those of
# BASE, so that a change cannot switch off what judges it.
#
# Exit 0: no regression. 1: a regression. 2: it could not be run or judged.
set -euo pipefail

tools=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
trap 'exit 2' INT TERM

die() {
	echo "benchstat: $*" >&2
	exit 2
}

repo=$tools/.. base="" head="" pkgs="" keep="" accept="" reason="" or_itself="" anew="" narrow="" pass=() extra=()
while [ $# -gt 0 ]; do
	case $1 in
	--help | -h)
		sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
		exit 0
		;;
	--accept) accept=1 ;;
	--or-itself) or_itself=1 ;;
	--anew) anew=1 ;;
	--quick) pass+=(--count=10 --sample=10ms) narrow=$1 ;;
	--)
		shift
		extra=("$@") narrow=--
		break
		;;
	--repo | --base | --head | --pkg | --keep | --reason | --bench | --instructions | --count | --sample | --slower | --hard)
		[ $# -ge 2 ] || die "$1 needs a value"
		# An empty one is that of a command that failed inside an argument.
		[ -n "$2" ] || [ "$1" = --instructions ] || die "$1 is empty"
		case $1 in
		--repo) repo=$2 ;;
		--base) base=$2 ;;
		--head) head=$2 ;;
		--keep) keep=$2 ;;
		--reason) reason=$2 ;;
		--pkg) pkgs=$2 narrow=$1 ;;
		*) pass+=("$1=$2") narrow=$1 ;;
		esac
		shift
		;;
	*) die "unknown argument $1; see --help" ;;
	esac
	shift
done
[ -z "$anew" ] || { [ -n "$accept" ] && [ -n "$reason" ]; } || die "--anew goes with --accept, and with --reason"
[ -z "$reason" ] || [ -n "$accept" ] || die "--reason goes with --accept; the reason of a change stands in perf/LIMITS"
[ -z "$accept" ] || [ -z "$narrow" ] || die "--accept does not take $narrow: a baseline is judged by all there is"

module=$(cd "$repo" 2>/dev/null && pwd -P) || die "there is no folder $repo"
[ -f "$module/go.mod" ] || die "$module has no go.mod"
git=(git -C "$module")
prefix=$("${git[@]}" rev-parse --show-prefix 2>/dev/null) || die "$module is in no git repository"
work=$(mktemp -d) || die "no temporary folder"
# What ends the script on the way is no regression.
judged=""
cleanup() {
	local code=$?
	for side in base head; do
		if [ -e "$work/$side.tree" ]; then
			"${git[@]}" worktree remove --force "$work/$side.tree" || echo "benchstat: git worktree prune is needed" >&2
		fi
	done
	rm -rf "$work"
	[ "$code" != 1 ] || [ -n "$judged" ] || code=2
	exit "$code"
}
trap cleanup EXIT

# commit REV prints the hash of a commit.
commit() { "${git[@]}" rev-parse --verify --quiet "$1^{commit}" || die "there is no revision $1 here"; }

# shellcheck source=gate/baseline.sh
. "$tools/gate/baseline.sh"

if [ -n "$accept" ]; then
	[ -z "$base$head" ] || die "--accept compares HEAD with perf/BASELINE; it takes no --base and no --head"
	[ -z "$("${git[@]}" status --porcelain)" ] || die "--accept needs a clean work tree"
	head=$(commit HEAD)
	base=$(accept_base) || exit 2
elif [ -z "$base" ]; then
	base=$(default_base) || exit 2
fi
base=$(commit "$base")

# The module's own flags first, then those of the call. BASE's count: what is
# judged does not say how. Where BASE has none, those of HEAD do.
flags_of() {
	if [ -n "$1" ]; then
		"${git[@]}" show "$1:./perf/gate/flags" 2>/dev/null || true
	elif [ -f "$module/perf/gate/flags" ]; then
		cat "$module/perf/gate/flags"
	fi | sed -E 's/[[:space:]]+$//; /^(#|$)/d'
}
base_flags=$(flags_of "$base") head_flags=$(flags_of "$head") changed=""
used=$base_flags
if ! "${git[@]}" cat-file -e "$base:./perf/gate/flags" 2>/dev/null; then
	used=$head_flags
	[ -z "$used" ] || echo "benchstat: BASE has no perf/gate/flags, so those of HEAD are used" >&2
elif [ "$base_flags" != "$head_flags" ]; then
	changed=$({ diff <(echo "$base_flags") <(echo "$head_flags") || true; } | sed -nE 's/^< /BASE: /p; s/^> /HEAD: /p')
fi
own=() own_pkgs=./...
while read -r flag value; do
	case $flag in
	"") ;;
	--pkg) own_pkgs=$value ;;
	--bench | --instructions | --count | --sample | --slower | --hard) own+=("$flag=$value") ;;
	*) die "perf/gate/flags: unknown flag $flag" ;;
	esac
done <<<"$used"
pkgs=${pkgs:-$own_pkgs} pass=("${own[@]}" "${pass[@]}")

label="$(commit HEAD) and the changes of the work tree"
if [ -n "$head" ]; then
	label=$(commit "$head")
elif [ -z "$("${git[@]}" status --porcelain)" ]; then
	label=$(commit HEAD)
fi

# The stamp of the repository would make two builds of one source differ.
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
(cd "$tools" && export GOWORK=off GOFLAGS=-buildvcs=false && go build -o "$work/gate" ./gate && go build -o "$work/benchstat" golang.org/x/perf/cmd/benchstat) ||
	die "the gate itself does not build"
"$work/gate" check "${pass[@]}" "${extra[@]}" || exit 2

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

if [ -z "$keep" ]; then
	keep=$module/out/gate/$(date -u +%Y%m%dT%H%M%SZ)
	mkdir -p "$keep"
	"${git[@]}" check-ignore -q "$keep" || echo '*' >"$module/out/gate/.gitignore"
fi
mkdir -p "$keep"
keep=$(cd "$keep" && pwd)

limits=$module/perf/LIMITS
if [ -n "$head" ]; then
	limits=$work/head.tree/${prefix}perf/LIMITS
fi

set +e
"$work/gate" run -base "$work/base" -head "$work/head" -out "$keep" -benchstat "$work/benchstat" -limits "$limits" \
	-history "$module/perf/history.jsonl" -changed "$changed" -reason "$reason" "${pass[@]}" "${extra[@]}" | tee "$keep/report.txt"
status=("${PIPESTATUS[@]}")
set -e
[ "${status[1]}" = 0 ] || die "$keep/report.txt could not be written"
rc=${status[0]}
[ "$rc" -le 1 ] || rc=2
echo "samples and report: $keep"
[ -n "$accept" ] || { judged=1 && exit "$rc"; }

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
