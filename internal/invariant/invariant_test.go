package invariant

import "testing"

func TestCheck(t *testing.T) {
	defer func() {
		if v := recover(); (v != nil) != Enabled {
			t.Errorf("Enabled is %v, panic is %v", Enabled, v)
		} else if v != nil && v != "invariant violated: 1 is not 2" {
			t.Errorf("panic is %v", v)
		}
	}()
	Check(true, "never")
	Check(false, "%d is not %d", 1, 2)
}
