package porttest

import "testing"

// TestFree checks that each port is returned once.
func TestFree(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		port := Free()
		if seen[port] {
			t.Fatalf("%s twice", port)
		}
		seen[port] = true
	}
}
