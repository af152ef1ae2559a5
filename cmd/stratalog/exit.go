package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/perf"
)

// The exit codes of every command.
const (
	exitFine    = 0
	exitFinding = 1 // the command ran, and found damage or a difference
	exitFailed  = 2 // the command could not run to its end
)

// errFinding is the error of a command that has told its findings already.
var errFinding = errors.New("finding")

// exitCode returns the code for what a command returned. Damage is a finding
// whichever command meets it.
func exitCode(err error) int {
	var wrong *perf.WrongError
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errFinding), errors.Is(err, contract.ErrCorrupt), errors.As(err, &wrong):
		return exitFinding
	}
	return exitFailed
}

// finish writes err as one line and returns the exit code.
func finish(err error, errOut io.Writer) int {
	if err != nil && !errors.Is(err, errFinding) {
		fmt.Fprintln(errOut, "stratalog:", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return exitCode(err)
}

// usage is an error about the way a command was called.
func usage(format string, args ...any) error {
	return contract.NewError(contract.KindInvalid, contract.OpAdmin, contract.ComponentConfig, fmt.Sprintf(format, args...), nil)
}
