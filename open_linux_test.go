package stratalog

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// TestOpenReadOnlyMount: an owner is refused, a Reader is not.
func TestOpenReadOnlyMount(t *testing.T) {
	dir := tmpfs(t, 16<<20)
	opt := testOptions(vfs.OS(), dir+"/store")
	s := start(t, opt)
	mustAppend(t, s, &Message{Topic: "t", Body: body(0)}, Sync)
	closeClean(t, s)
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	before := tree(t, opt.FS, dir)
	_, err := Open(context.Background(), opt)
	var e *contract.Error
	if !errors.As(err, &e) || e.Kind != contract.KindIO || e.Op != contract.OpOpen || !errors.Is(err, syscall.EROFS) {
		t.Errorf("open: %v", err)
	}
	sameTree(t, "a refused open", before, tree(t, opt.FS, dir))
	if report, found := verify(t, opt.FS, opt); report.Records != 1 || len(found) != 0 {
		t.Errorf("%+v, %+v", report, found)
	}
	ran(t)
}
