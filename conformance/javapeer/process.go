package javapeer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Versions are those that the conformance run covers, the newest first.
var Versions = []string{"5.5.1", "5.3.3"}

// Error is what the Java side answered instead of a result.
type Error struct {
	Op string
	// Kind is the class of the exception, without its package.
	Kind string
	Text string
}

// Error names the operation, the exception's class, and its message.
func (e *Error) Error() string { return fmt.Sprintf("java: %s: %s: %s", e.Op, e.Kind, e.Text) }

// ErrGone is the answer to every call once the process has ended.
var ErrGone = errors.New("javapeer: the process has ended")

// Process is one Java process. Its methods are safe for concurrent use.
type Process struct {
	Version string
	// PID is that of the process.
	PID int

	cmd     *exec.Cmd
	in      io.WriteCloser
	scratch string
	drained chan struct{} // closed when the last line was read

	mu      sync.Mutex
	last    int64
	waiting map[int64]*call
	gone    bool
}

// call is a request that waits for its answer.
type call struct {
	parts func(json.RawMessage)
	done  chan reply
}

type reply struct {
	ID    int64           `json:"id"`
	OK    json.RawMessage `json:"ok"`
	Part  json.RawMessage `json:"part"`
	Error *string         `json:"error"`
	Kind  string          `json:"kind"`
	Ready json.RawMessage `json:"ready"`
}

// Home returns the directory that tools/conformance/build.sh made for version,
// below root, the module's directory.
func Home(root, version string) (string, error) {
	home := filepath.Join(root, "out", "conformance", version)
	if _, err := os.Stat(filepath.Join(home, "built")); err != nil {
		return "", fmt.Errorf("javapeer: no driver for %s; tools/conformance/build.sh makes it: %w", version, err)
	}
	return filepath.Abs(home)
}

// Start runs a process for version. Whatever it writes beside the stores that it
// is told to open goes into scratch, its log first of all.
func Start(ctx context.Context, root, version, scratch string, jvm ...string) (*Process, error) {
	home, err := Home(root, version)
	if err != nil {
		return nil, err
	}
	if scratch, err = filepath.Abs(scratch); err != nil {
		return nil, err
	}
	args := []string{
		"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss512k", "-Xmx512m", "-XX:MaxDirectMemorySize=512m",
		"-XX:-UsePerfData", "-Xshare:auto",
	}
	if len(jvm) > 0 {
		args = jvm
	}
	args = append(args,
		"--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
		"--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
		"-Duser.home="+scratch, "-Djava.io.tmpdir="+scratch, "-Dpeer.log="+filepath.Join(scratch, "peer.log"),
		"-Djava.library.path="+filepath.Join(home, "native"),
		"-cp", filepath.Join(home, "classes")+string(os.PathListSeparator)+filepath.Join(home, "lib", "*"), "peer.Main")
	p := &Process{Version: version, scratch: scratch, waiting: map[int64]*call{}, drained: make(chan struct{})}
	p.cmd = exec.Command("java", args...)
	p.cmd.Dir = scratch
	// Topics are directory names, which Java encodes as the locale says.
	p.cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	stderr, err := os.Create(filepath.Join(scratch, "stderr"))
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	p.cmd.Stderr = stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.PID = p.cmd.Process.Pid
	ready := make(chan error, 1)
	go p.listen(bufio.NewReaderSize(out, 1<<16), ready)
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		_ = p.Kill()
		return nil, fmt.Errorf("javapeer: %s does not start: %w\n%s", version, err, p.Log())
	}
	return p, nil
}

// listen reads lines until there are no more.
func (p *Process) listen(out *bufio.Reader, ready chan<- error) {
	defer close(p.drained)
	defer p.end()
	for {
		line, err := out.ReadBytes('\n')
		if err != nil {
			ready <- ErrGone // only the first counts
			return
		}
		var r reply
		if err := json.Unmarshal(line, &r); err != nil {
			fmt.Fprintf(os.Stderr, "javapeer: not a reply: %.200s\n", line)
			continue
		}
		if r.Ready != nil {
			ready <- nil
			ready = make(chan error, 1)
			continue
		}
		p.mu.Lock()
		c := p.waiting[r.ID]
		if r.Part == nil {
			delete(p.waiting, r.ID)
		}
		p.mu.Unlock()
		switch {
		case c == nil:
		case r.Part != nil:
			c.parts(r.Part)
		default:
			c.done <- r
		}
	}
}

// end answers everybody who waits.
func (p *Process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	for _, c := range p.waiting {
		close(c.done)
	}
	p.waiting = nil
}

// Call runs op with args and puts its result into out, unless that is nil. The
// error is an *Error if Java threw, ErrGone if the process ended.
func (p *Process) Call(ctx context.Context, op string, args map[string]any, out any) error {
	return p.Stream(ctx, op, args, out, nil)
}

// Stream is Call for an op that answers in parts before its result.
func (p *Process) Stream(ctx context.Context, op string, args map[string]any, out any, parts func(json.RawMessage)) error {
	request := map[string]any{"op": op}
	for name, value := range args {
		request[name] = value
	}
	c := &call{parts: parts, done: make(chan reply, 1)}
	p.mu.Lock()
	if p.gone {
		p.mu.Unlock()
		return fmt.Errorf("%s: %w", op, ErrGone)
	}
	p.last++
	id := p.last
	request["id"] = id
	p.waiting[id] = c
	line, err := json.Marshal(request)
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	p.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w: %v", op, ErrGone, err)
	}
	select {
	case r, ok := <-c.done:
		switch {
		case !ok:
			return fmt.Errorf("%s: %w", op, ErrGone)
		case r.Error != nil:
			return &Error{Op: op, Kind: r.Kind, Text: *r.Error}
		case out == nil || r.OK == nil:
			return nil
		}
		return json.Unmarshal(r.OK, out)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", op, ctx.Err())
	}
}

// Kill ends the process at once, as signal 9 does, and returns when everything
// that it wrote to its stdout was taken up.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	<-p.drained
	_ = p.cmd.Wait()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Close ends the process; stores that are open stay as they are.
func (p *Process) Close() error {
	_ = p.in.Close()
	timer := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	<-p.drained
	return p.cmd.Wait()
}

// Log returns the end of what the process logged.
func (p *Process) Log() string {
	var b strings.Builder
	for _, name := range []string{"stderr", "peer.log"} {
		text, err := os.ReadFile(filepath.Join(p.scratch, name))
		if err != nil || len(text) == 0 {
			continue
		}
		text = text[max(0, len(text)-6000):]
		fmt.Fprintf(&b, "-- %s:\n%s\n", name, text)
	}
	return b.String()
}
