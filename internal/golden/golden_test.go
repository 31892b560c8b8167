package golden

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file.txt")
	t.Setenv("UPDATE_GOLDEN", "1")
	Check(t, file, "one\ntwo\n")
	if text, err := os.ReadFile(file); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("%q, %v", text, err)
	}
	t.Setenv("UPDATE_GOLDEN", "")
	Check(t, file, "one\ntwo\n")
	var failed failure
	Check(&failed, file, "one\nthree\n")
	if !failed {
		t.Error("a difference is no failure")
	}
}

// failure records whether a test has failed.
type failure bool

func (f *failure) Helper()               {}
func (f *failure) Fatal(...any)          { *f = true }
func (f *failure) Errorf(string, ...any) { *f = true }

func TestFirstDifference(t *testing.T) {
	for _, c := range []struct {
		a, b     string
		line     int
		ofA, ofB string
	}{
		{"one\ntwo\nthree", "one\n2\nthree", 2, "two\nthree", "2\nthree"},
		{"one\n", "one\ntwo", 2, "", "two"},
		{"one", "one\ntwo", 2, "", "two"},
	} {
		if line, ofA, ofB := firstDifference(c.a, c.b); line != c.line || ofA != c.ofA || ofB != c.ofB {
			t.Errorf("%q, %q: %d, %q, %q", c.a, c.b, line, ofA, ofB)
		}
	}
}
