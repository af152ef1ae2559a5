package vfs

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// lockHelperEnv makes the test binary try the lock at the path that it holds,
// say what came of it, and end.
const lockHelperEnv = "VFS_TEST_LOCK_PATH"

func TestMain(m *testing.M) {
	if p := os.Getenv(lockHelperEnv); p != "" {
		l, err := OS().Lock(p)
		if err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		l.Close()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
