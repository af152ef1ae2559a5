package conformance

import "fmt"

// The test binary runs itself in other roles, in a process of its own.
const roleVar = "STRATALOG_CONFORMANCE_ROLE"

func runRole(role string) error { return fmt.Errorf("there is no role %s", role) }
