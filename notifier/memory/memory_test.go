package memory

import "testing"

// TestMemory checks that files can take half of the memory, and so can requests
// with URLs of clients.
func TestMemory(t *testing.T) {
	var m Budget
	key, other := m.Allocation(100, false), m.Allocation(100, true)
	for _, tt := range []struct {
		what string
		a    *Allocation
		file bool
		n    int64
		ok   bool
	}{
		{"a file of a client", &other, true, 40, true},
		{"a text of a client beyond half", &other, false, 20, false},
		{"a text of a client", &other, false, 10, true},
		{"a file beyond half", &key, true, 20, false},
		{"a file", &key, true, 10, true},
		{"a text beyond all", &key, false, 50, false},
		{"a text", &key, false, 40, true},
		{"a byte", &key, false, 1, false},
	} {
		if got := tt.a.take(tt.n, tt.file); got != tt.ok {
			t.Errorf("%s: %t", tt.what, got)
		}
	}
	other.free(40, true)
	if !key.take(10, true) {
		t.Error("what is freed cannot be taken")
	}
	key.Free(5)
	if n := m.Held(); n != 65 {
		t.Errorf("%d bytes are held, want 65", n)
	}
	key.Close()
	other.Close()
	other.Close()
	if m.held != 0 || m.files != 0 || m.client != 0 {
		t.Errorf("after the end: %d, %d, %d", m.held, m.files, m.client)
	}
	verified := m.Allocation(100, true)
	if !verified.take(30, true) || !verified.Take(20) || verified.Take(1) {
		t.Error("an allocation of a client takes another part than half")
	}
	verified.Trust()
	if !verified.Take(50) || m.client != 0 {
		t.Errorf("a trusted allocation cannot take the other half; clients have %d", m.client)
	}
	verified.Close()
	if m.held != 0 || m.files != 0 || m.client != 0 {
		t.Errorf("after the end of a trusted allocation: %d, %d, %d", m.held, m.files, m.client)
	}
	others := m.Allocation(100, true)
	found := m.Allocation(100, false)
	if !others.Take(40) || !found.take(5, true) || !found.Take(6) || found.Distrust() {
		t.Error("what clients hold becomes more than half")
	}
	found.Free(1)
	for range 2 { // the second time changes nothing
		if !found.Distrust() {
			t.Error("what clients hold has no room for half")
		}
	}
	if m.client != 50 || found.Take(1) {
		t.Errorf("a distrusted allocation is not in the half for clients, which have %d", m.client)
	}
	others.Close()
	found.Close()
	if m.held != 0 || m.files != 0 || m.client != 0 {
		t.Errorf("after the end of a distrusted allocation: %d, %d, %d", m.held, m.files, m.client)
	}
	var none *Allocation
	none.Trust()
	none.Distrust()
	if zero := (Allocation{}); !none.Take(1<<40) || !zero.Take(1<<40) {
		t.Error("without a memory there is a limit")
	}
	none.Free(1)
	none.Close()
}
