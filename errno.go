package stratalog

import "syscall"

// errNoSpace is what the system says when the disk is full.
var errNoSpace error = syscall.ENOSPC
