package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// asProgram makes the test binary be the program, so that what runs as a process
// of its own is instrumented like the tests.
const asProgram = "STRATALOG_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// answer is what a run of the program gave.
type answer struct {
	code        int
	out, errOut string
}

// cli runs the program within the test.
func cli(t testing.TB, in string, args ...string) answer {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(args, strings.NewReader(in), &out, &errOut)
	return answer{code, out.String(), errOut.String()}
}

// fine is cli for a run that must end well.
func fine(t testing.TB, in string, args ...string) string {
	t.Helper()
	a := cli(t, in, args...)
	if a.code != exitFine || a.errOut != "" {
		t.Fatalf("stratalog %s: code %d, stderr %q", strings.Join(args, " "), a.code, a.errOut)
	}
	return a.out
}

// process is a run of the program as a process of its own.
type process struct {
	*exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	errOut bytes.Buffer
}

// start runs the program as a process, which a test may not outlive.
func start(t testing.TB, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	p := &process{Cmd: exec.CommandContext(ctx, os.Args[0], args...)}
	p.Env = append(os.Environ(), asProgram+"=1")
	p.Stderr = &p.errOut
	var err error
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if p.out, err = p.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// end waits for the process and returns its exit code.
func (p *process) end() int {
	_ = p.Wait() // the code says it
	return p.ProcessState.ExitCode()
}

// eventually waits until ok, for something that another process does.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
