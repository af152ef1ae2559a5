// Command stratalog writes, reads, inspects, checks and measures message stores.
//
// It ends with 0 if all is well, with 1 if what it looked at is damaged or not
// as it should be, and with 2 if it could not do what it was asked.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the program with its surroundings as arguments. It returns the exit
// code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once

	a := &app{in: in, out: out, errOut: errOut}
	cmd := newRoot(a)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("interrupted: %w", err)
	}
	return a.finish(err)
}
