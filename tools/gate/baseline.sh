# The rules of perf/BASELINE, for tools/benchstat.sh; docs/GATE.md says why each
# is there. It uses $module, prefix, git, die, commit, reason, anew and or_itself of its caller.
# shellcheck shell=bash

baseline_file=perf/BASELINE history_file=perf/history.jsonl

# accepted prints the commits that the lines of the history name, oldest first.
accepted() {
	[ ! -f "$module/$history_file" ] || sed -nE 's/^\{"commit":"([0-9a-f]{40,64})".*/\1/p' "$module/$history_file"
}

has_commit() { "${git[@]}" cat-file -e "$1^{commit}" 2>/dev/null; }

shallow() { [ "$("${git[@]}" rev-parse --is-shallow-repository)" = true ]; }

# baseline prints the commit in perf/BASELINE. It fails, and says why, unless it
# came there by an acceptance as far as the clone can tell: it is what the last
# line of the history names, and one commit brought both and nothing else.
baseline() {
	local rev moved files parents lines
	wrong() {
		echo "benchstat: $*; --accept moves it, and puts it right" >&2
		return 1
	}
	[ -f "$module/$baseline_file" ] || { wrong "there is no $baseline_file; name a revision with --base" || return; }
	rev=$(sed -E 's/[[:space:]]*(#.*)?$//' "$module/$baseline_file" | grep . || true)
	[[ $rev =~ ^[0-9a-f]{40,64}$ ]] || { wrong "$baseline_file does not hold the hash of a commit" || return; }
	[ "$rev" = "$(accepted | tail -n 1)" ] || { wrong "$baseline_file is not what the last line of $history_file names" || return; }
	"${git[@]}" diff --quiet HEAD -- "$baseline_file" "$history_file" || { wrong "$baseline_file or $history_file was changed by hand" || return; }
	moved=$("${git[@]}" log -1 --format=%H -- "$baseline_file")
	[ -n "$moved" ] || { wrong "$baseline_file is in no commit" || return; }
	[ "$moved" = "$("${git[@]}" log -1 --format=%H -- "$history_file")" ] ||
		{ wrong "$history_file was changed by a commit that did not move $baseline_file" || return; }
	parents=$("${git[@]}" log -1 --format=%P "$moved")
	# Where the history begins, all files come at once.
	if [ -n "$parents" ]; then
		[[ $parents != *" "* ]] || { wrong "the merge $moved moved $baseline_file" || return; }
		files=$("${git[@]}" diff-tree -r --no-commit-id --name-status --no-renames "$moved")
		lines=$("${git[@]}" diff-tree -r --no-commit-id --numstat --no-renames "$moved" -- "$history_file" | cut -f 1,2)
		[ "$lines" = "1	0" ] || { wrong "commit $moved does not add one line to $history_file" || return; }
		if [ "$(cut -f 2 <<<"$files" | sort)" != "$(printf '%s\n' "$prefix$baseline_file" "$prefix$history_file" | sort)" ] &&
			# The very first one may come with other files.
			[ "$("${git[@]}" log --format=%H -- "$baseline_file" | wc -l)$(accepted | wc -l)" != 11 ]; then
			wrong "commit $moved moved $baseline_file along with other files" || return
		fi
	fi
	if has_commit "$rev" && ! shallow && ! "${git[@]}" merge-base --is-ancestor "$rev" HEAD; then
		wrong "$rev in $baseline_file is not in the history of HEAD" || return
	fi
	echo "$rev"
}

# default_base prints what to compare with if nothing is said.
default_base() {
	local rev known=""
	rev=$(baseline) || exit 2
	if has_commit "$rev"; then
		echo "$rev"
		return
	fi
	# A clone that has any of the commits that the history names, and all that
	# comes before them, should have this one.
	if ! shallow; then
		while read -r known; do
			! has_commit "$known" || die "the commit $rev of $baseline_file is not in this clone, although $known before it is"
		done < <(grep -oE '"(commit|base)":"[0-9a-f]+"' "$module/$history_file" | cut -d '"' -f 4)
	fi
	[ -n "$or_itself" ] || die "the commit $rev of $baseline_file is not in this clone; a shallow clone has to fetch the history"
	echo "benchstat: THIS CLONE LACKS THE HISTORY: the baseline is not in it, so HEAD is judged against itself" >&2
	commit HEAD
}

# accept_base prints what an acceptance is judged against: the baseline, HEAD if
# there never was one, or where it did not come there by an acceptance, the last
# one in the history of HEAD that was accepted.
accept_base() {
	local rev known
	if [ -n "$anew" ]; then
		echo "benchstat: HEAD IS JUDGED AGAINST ITSELF, and becomes a baseline that nothing was compared with" >&2
		commit HEAD
		return
	fi
	if rev=$(baseline 2>/dev/null) && has_commit "$rev"; then
		echo "$rev"
		return
	fi
	if [ -z "$("${git[@]}" log -1 --format=%H -- "$baseline_file" "$history_file")" ]; then
		commit HEAD
		return
	fi
	# Again, for what it says.
	baseline >&2 || true
	while read -r known; do
		if has_commit "$known" && "${git[@]}" merge-base --is-ancestor "$known" HEAD; then
			[ -n "$reason" ] || die "the last good baseline is $known: to accept HEAD against it, say with --reason how that came"
			echo "benchstat: HEAD is judged against the last good baseline, $known" >&2
			echo "$known"
			return
		fi
	done < <(accepted | tac)
	die "no line of $history_file names a commit in the history of HEAD; restore both files, or fetch the history"
}
