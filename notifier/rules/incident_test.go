package rules

import "testing"

// TestIncidentID checks that public IDs have 128 random bits, and which texts are none.
func TestIncidentID(t *testing.T) {
	a, b := NewIncidentID(), NewIncidentID()
	if a == b || !IsIncidentID(a) || len(a) != 26 {
		t.Errorf("%q and %q", a, b)
	}
	for _, s := range []string{"", a[:25], a + "a", "A" + a[1:], "1" + a[1:], "\n" + a[1:], a[:25] + "="} {
		if IsIncidentID(s) {
			t.Errorf("%q is an ID", s)
		}
	}
}
