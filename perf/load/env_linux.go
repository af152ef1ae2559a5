package load

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// describeSystem reads /proc and the mount table.
func describeSystem(e *Env, dir string) {
	e.CPU = cpuModel()
	e.Memory = fields("/proc/meminfo")["MemTotal"] << 10
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		e.Kernel = "Linux " + unix.ByteSliceToString(u.Release[:])
	}
	e.FileSystem = fileSystem(dir)
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		// "model name" on x86; arm64 names an implementer and a part only.
		if name, value, ok := strings.Cut(s.Text(), ":"); ok {
			if name = strings.TrimSpace(name); name == "model name" || name == "CPU part" {
				return strings.TrimSpace(value)
			}
		}
	}
	return ""
}

// fileSystem returns type and options of what dir is mounted from, found by its
// device number in the mount table (proc_pid_mountinfo(5)); the path of the
// device stays out.
func fileSystem(dir string) string {
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		var st unix.Stat_t
		if unix.Stat(dir, &st) == nil {
			return mounted(strconv.Itoa(int(unix.Major(st.Dev))) + ":" + strconv.Itoa(int(unix.Minor(st.Dev))))
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

func mounted(device string) string {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		mount, super, ok := strings.Cut(s.Text(), " - ")
		left, right := strings.Fields(mount), strings.Fields(super)
		if ok && len(left) >= 6 && left[2] == device && len(right) >= 1 {
			return fmt.Sprintf("%s (%s)", right[0], left[5])
		}
	}
	return ""
}
