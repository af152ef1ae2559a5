package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/perf/load"
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
	var wrong *load.WrongError
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errFinding), errors.Is(err, contract.ErrCorrupt), errors.As(err, &wrong):
		return exitFinding
	}
	return exitFailed
}

// finish writes err as one line, with what can be done about it, and returns
// the exit code.
func (a *app) finish(err error) int {
	if err != nil && !errors.Is(err, errFinding) {
		fmt.Fprintln(a.errOut, "stratalog:", oneLine(err.Error()+a.hint(err)))
	}
	return exitCode(err)
}

// hint says what can be done about err.
func (a *app) hint(err error) string {
	switch {
	case errors.Is(err, contract.ErrNewerFormat):
		side := filepath.Join(a.dir, "stratalog")
		return "; " + side + " was written by a newer version: use that one, or move " + side +
			" aside, and the whole log is read without it (docs/DURABILITY.md)"
	case errors.Is(err, contract.ErrDiskFull):
		return "; make room, or see --disk-floor, the free space that is left alone, and --segment-size"
	}
	return ""
}

// oneLine makes text fit one line, with no byte that a terminal would obey.
func oneLine(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c == '\n':
			b.WriteString("; ")
		case unicode.IsControl(c):
			b.WriteString(strings.Trim(strconv.QuoteRune(c), "'"))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// plain is s as it is, or quoted if it holds what does not print.
func plain(s string) string {
	if q := strconv.Quote(s); q[1:len(q)-1] != s {
		return q
	}
	return s
}

// queueName is topic/queue for people.
func queueName(topic string, queue int32) string { return fmt.Sprintf("%s/%d", plain(topic), queue) }

// usageError is an error about the way a command was called.
type usageError string

// Error returns the text.
func (e usageError) Error() string { return string(e) }

// usage returns a usageError.
func usage(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// atMost refuses more than n arguments, and names the first that is too many.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		what := "argument"
		if cmd.HasSubCommands() {
			what = "command"
		}
		return usage("unexpected %s %q; see %s --help", what, args[n], cmd.CommandPath())
	}
}

// detail is what err says, without the words for programs.
func detail(err error) string {
	var e *contract.Error
	if errors.As(err, &e) {
		return e.Detail
	}
	return err.Error()
}

// flagText is what to say about err, an error of the flags: of a number it says
// what is wrong with it, not which function found that.
func flagText(err error) string {
	number, isNumber := errors.AsType[*strconv.NumError](err)
	value, isValue := errors.AsType[*pflag.InvalidValueError](err)
	if !isNumber || !isValue {
		return err.Error()
	}
	text, what := value.GetValue(), "a whole number"
	switch {
	case number.Func == "ParseFloat":
		what = "a number"
	case number.Func == "ParseUint":
		what = "a whole number of at least 0"
	case number.Func == "ParseBool":
		what = "true or false"
	}
	why := "is not " + what
	if errors.Is(number.Err, strconv.ErrRange) {
		why = "is too large"
		if strings.HasPrefix(text, "-") {
			why = "is too small"
		}
	}
	return fmt.Sprintf("invalid argument %q for %q flag: %q %s", text, "--"+value.GetFlag().Name, text, why)
}
