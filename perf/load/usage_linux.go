package load

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// countSystem reads getrusage and /proc/self/io (proc_pid_io(5)).
func countSystem(c *counters) {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) == nil {
		c.user, c.system = time.Duration(r.Utime.Nano()), time.Duration(r.Stime.Nano())
		c.minor, c.major, c.switches = r.Minflt, r.Majflt, r.Nvcsw+r.Nivcsw
	}
	io := fields("/proc/self/io")
	c.readCalls, c.writeCalls = io["syscr"], io["syscw"]
	c.diskRead, c.diskWrite = io["read_bytes"], io["write_bytes"]
}

// resetPeak makes the kernel forget the peak of resident memory (proc(5),
// clear_refs).
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peakRSS returns the peak of resident memory in bytes.
func peakRSS() int64 { return fields("/proc/self/status")["VmHWM"] << 10 }

// fields reads lines "name: number ..." of a file below /proc.
func fields(path string) map[string]int64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	all := map[string]int64{}
	for line := range bytes.Lines(data) {
		name, rest, ok := strings.Cut(string(line), ":")
		if words := strings.Fields(rest); ok && len(words) > 0 {
			if n, err := strconv.ParseInt(words[0], 10, 64); err == nil {
				all[name] = n
			}
		}
	}
	return all
}
