package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/stratalog/stratalog"
)

// The test binary runs itself in other roles, in a process of its own.
const (
	roleVar = "STRATALOG_CONFORMANCE_ROLE"
	dirVar  = "STRATALOG_CONFORMANCE_DIR"
	runVar  = "STRATALOG_CONFORMANCE_RUN"
)

func runRole(role string) error {
	switch role {
	case "appender":
		return appender()
	}
	return fmt.Errorf("there is no role %s", role)
}

const (
	streamTopic  = "stream"
	streamQueues = 4
)

// streamBody is the i-th body of a queue in a run, as the Java driver makes it
// too: "run queue i " and filling.
func streamBody(run, queue, i int) string {
	b := fmt.Appendf(nil, "%d %d %d ", run, queue, i)
	for n := (run*31 + queue*17 + i*7) % 1500; len(b) < n; {
		b = append(b, byte('a'+(len(b)+i)%26))
	}
	return string(b)
}

// streamSetup is how the stores are configured that are killed.
func streamSetup(run int) setup {
	s := usual()
	if run%4 >= 2 {
		s.path = stratalog.WriteMmap
	}
	return s
}

// appender appends from several goroutines until it is killed, and writes a line
// for each ack.
func appender() error {
	ctx := context.Background()
	run, err := strconv.Atoi(os.Getenv(runVar))
	if err != nil {
		return err
	}
	fmt.Println("opening")
	store, err := openOurs(ctx, streamSetup(run).options(os.Getenv(dirVar)))
	if err != nil {
		return err
	}
	fmt.Println("started")
	var wg sync.WaitGroup
	errs := make([]error, streamQueues)
	for q := range streamQueues {
		wg.Go(func() {
			for i := 0; errs[q] == nil; i++ {
				d := []stratalog.Durability{stratalog.Memory, stratalog.Sync, stratalog.Interval}[(i+q)%3]
				m := stratalog.Message{Topic: streamTopic, QueueID: int32(q), BornTimestamp: born, Body: []byte(streamBody(run, q, i))}
				var r stratalog.Receipt
				if r, errs[q] = store.Append(ctx, &m, d); errs[q] != nil {
					return
				}
				place, _ := r.Range()
				// One write: a line is whole or not there.
				_, errs[q] = os.Stdout.WriteString(fmt.Sprintf("%d %d %d %d %d\n", run, q, i, r.QueueOffset(), place.Start))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ack is what one side said about one append.
type ack struct {
	Run    int   `json:"run"`
	Queue  int   `json:"queue"`
	I      int   `json:"i"`
	Offset int64 `json:"offset"`
	Phy    int64 `json:"phy"`
}

// child is this test binary in another role.
type child struct {
	cmd    *exec.Cmd
	out    *bufio.Reader
	stderr strings.Builder
}

func startChild(role, dir string, run int) (*child, error) {
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), roleVar+"="+role, dirVar+"="+dir, runVar+"="+strconv.Itoa(run))
	c.cmd.Stderr = &c.stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	return c, c.cmd.Start()
}

// expect reads a line and compares it.
func (c *child) expect(want string) error {
	line, err := c.out.ReadString('\n')
	if strings.TrimSpace(line) != want {
		_ = c.cmd.Wait()
		return fmt.Errorf("the child said %q, want %q: %w: %s", line, want, err, c.stderr.String())
	}
	return nil
}

// kill ends the child and returns its acks.
func (c *child) kill() ([]ack, error) {
	if err := c.cmd.Process.Kill(); err != nil {
		return nil, err
	}
	var acks []ack
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			break
		}
		var a ack
		if n, _ := fmt.Sscanf(line, "%d %d %d %d %d", &a.Run, &a.Queue, &a.I, &a.Offset, &a.Phy); n == 5 {
			acks = append(acks, a)
		}
	}
	_ = c.cmd.Wait()
	if c.cmd.ProcessState.Exited() {
		return nil, fmt.Errorf("the child ended by itself: %s", c.stderr.String())
	}
	return acks, nil
}
