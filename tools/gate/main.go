// Command gate measures two builds of a module's benchmarks against one another
// and judges them. tools/benchstat.sh is the way to call it; docs/GATE.md says
// how it judges.
//
//	gate build -dir MODULE -out DIR   compiles the benchmarks of a module
//	gate run -base DIR -head DIR      measures two such builds and judges
//	gate check                        only looks at the flags of a run
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitPass       = 0
	exitRegression = 1 // HEAD was judged, and is worse
	exitTrouble    = 2 // it could not be measured or judged
)

// errRegression ends a run that was judged, and found worse. What is worse has
// been printed.
var errRegression = errors.New("regression")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// parseFlags parses args. What is wrong is for the caller to print, in one line;
// all flags are printed if they are asked for.
func parseFlags(flags *flag.FlagSet, args []string, stderr io.Writer) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(stderr)
		flags.PrintDefaults()
	}
	return err
}

// command runs one subcommand and returns the exit code.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := errors.New("usage: gate build|run|check [flags]")
	if len(args) > 0 {
		switch args[0] {
		case "build":
			err = buildCommand(ctx, args[1:], stderr)
		case "run", "check":
			err = runCommand(ctx, args[0], args[1:], stdout, stderr)
		}
	}
	switch {
	case err == nil:
		return exitPass
	case errors.Is(err, errRegression):
		return exitRegression
	case errors.Is(err, flag.ErrHelp):
		return exitTrouble
	}
	fmt.Fprintf(stderr, "gate: %v\n", err)
	return exitTrouble
}
