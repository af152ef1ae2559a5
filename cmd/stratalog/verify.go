package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stratalog/stratalog"
)

func newVerify(a *app) *cobra.Command {
	var appended, all bool
	cmd := &cobra.Command{
		Use:   "verify --dir DIR",
		Short: "Check every record, queue entry and key, and all against each other",
		Long: `Verify reads everything and changes nothing. It prints each finding with its file
and the place in it, then a summary. Faults (damage, an entry that leads to the
wrong place) end it with exit code 1; notes (a torn tail, a lane that is behind)
do not. Of each kind the first 100 are printed and the rest is counted.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.verify(cmd.Context(), appended, all)
		},
	}
	cmd.Flags().BoolVar(&appended, "appended", false, "go on beyond the published bound to the last valid record")
	cmd.Flags().BoolVar(&all, "all", false, "print every finding, not only the first 100 of each kind")
	return cmd
}

// shown is how many findings of one kind are printed without --all.
const shown = 100

// verifyResult is what verify prints with --json.
type verifyResult struct {
	stratalog.VerifyReport
	OK       bool                `json:"ok"`
	Findings []stratalog.Finding `json:"findings"`
	// Omitted counts, by kind, the findings that are not among Findings.
	Omitted map[string]int64 `json:"omitted,omitempty"`
}

func (a *app) verify(ctx context.Context, appended, all bool) (err error) {
	r, err := a.openReader(ctx, stratalog.ReaderOptions{Appended: appended, Salvage: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	res := verifyResult{Findings: []stratalog.Finding{}, Omitted: map[string]int64{}}
	counts := map[string]int64{}
	var wrote error
	res.VerifyReport, err = r.Verify(ctx, func(f stratalog.Finding) {
		counts[f.Kind]++
		if !all && counts[f.Kind] > shown {
			res.Omitted[f.Kind]++
			return
		}
		if a.json {
			res.Findings = append(res.Findings, f)
			return
		}
		if _, err := fmt.Fprintln(a.out, findingText(f)); err != nil && wrote == nil {
			wrote = err
		}
	})
	if !a.json {
		for _, kind := range slices.Sorted(maps.Keys(res.Omitted)) {
			fmt.Fprintf(a.out, "... and %d more of %s; --all prints them\n", res.Omitted[kind], kind)
		}
	}
	if err = errors.Join(err, wrote); err != nil {
		return err
	}
	res.OK = res.Faults == 0
	if a.json {
		err = a.writeJSON(res)
	} else {
		_, err = fmt.Fprintf(a.out, "checked %d records (%d bytes, %d unverified), %d queue entries and %d keys up to %d: %d faults, %d notes\n",
			res.Records, res.Bytes, res.Unverified, res.Units, res.Entries, res.End, res.Faults, res.Notes)
	}
	if err == nil && !res.OK {
		err = errFinding
	}
	return err
}

// findingText is a finding as one line, which names the file once.
func findingText(f stratalog.Finding) string {
	head, text := fmt.Sprintf("%s: %s", f.Severity, f.Kind), f.Text
	if f.File != "" {
		head += fmt.Sprintf(": %s at %d", f.File, f.Offset)
		text = strings.ReplaceAll(text, fmt.Sprintf("%s: damaged at offset %d", f.File, f.Offset), "damaged")
		text = strings.ReplaceAll(text, f.File+": ", "")
	}
	return oneLine(head + ": " + text)
}
