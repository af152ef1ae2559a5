package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stratalog/stratalog"
)

func newVerify(a *app) *cobra.Command {
	var appended bool
	cmd := &cobra.Command{
		Use:   "verify --dir DIR",
		Short: "Check every record and every queue entry, and both against each other",
		Long: `Verify reads everything and changes nothing. It prints each finding with its file
and the place in it, then a summary. Faults (damage, an entry that leads to the
wrong place) end it with exit code 1; notes (a torn tail, a lane that is behind)
do not.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.verify(cmd.Context(), appended)
		},
	}
	cmd.Flags().BoolVar(&appended, "appended", false, "go on beyond the published bound to the last valid record")
	return cmd
}

// verifyResult is what verify prints with --json.
type verifyResult struct {
	stratalog.VerifyReport
	OK       bool                `json:"ok"`
	Findings []stratalog.Finding `json:"findings"`
}

func (a *app) verify(ctx context.Context, appended bool) (err error) {
	r, err := a.openReader(ctx, stratalog.ReaderOptions{Appended: appended})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	res := verifyResult{Findings: []stratalog.Finding{}}
	res.VerifyReport, err = r.Verify(ctx, func(f stratalog.Finding) {
		if a.json {
			res.Findings = append(res.Findings, f)
			return
		}
		fmt.Fprintln(a.out, findingText(f))
	})
	if err != nil {
		return err
	}
	res.OK = res.Faults == 0
	if a.json {
		err = a.writeJSON(res)
	} else {
		_, err = fmt.Fprintf(a.out, "checked %d records (%d bytes, %d unverified) and %d queue entries up to %d: %d faults, %d notes\n",
			res.Records, res.Bytes, res.Unverified, res.Units, res.End, res.Faults, res.Notes)
	}
	if err == nil && !res.OK {
		err = errFinding
	}
	return err
}

// findingText is a finding as one line.
func findingText(f stratalog.Finding) string {
	text := fmt.Sprintf("%s: %s", f.Severity, f.Kind)
	if f.File != "" {
		text += fmt.Sprintf(": %s at %d", f.File, f.Offset)
	}
	return text + ": " + f.Text
}
