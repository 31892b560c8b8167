// Package golden compares the output of tests with files of the repository.
package golden

import (
	"os"
	"strings"
)

// T is the part of [testing.TB] that [Check] needs.
type T interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

// Update reports whether tests write their golden files instead of comparing with
// them, because UPDATE_GOLDEN is set.
func Update() bool { return os.Getenv("UPDATE_GOLDEN") != "" }

// Check compares a text with a golden file, or writes the file if [Update] is true.
func Check(t T, file, got string) {
	t.Helper()
	if Update() {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	n, gotLines, wantLines := firstDifference(got, string(want))
	t.Errorf("%s:%d: got\n%s\nwant\n%s\nif the output is right, write the file with UPDATE_GOLDEN=1", file, n, gotLines, wantLines)
}

// shownLines is the number of different lines that [Check] shows.
const shownLines = 20

// firstDifference returns the number of the first line in which two texts differ,
// from 1 on, and what each has from there.
func firstDifference(a, b string) (line int, ofA, ofB string) {
	la, lb := strings.Split(a, "\n"), strings.Split(b, "\n")
	n := 0
	for n < len(la) && n < len(lb) && la[n] == lb[n] {
		n++
	}
	from := func(lines []string) string { return strings.Join(lines[n:min(n+shownLines, len(lines))], "\n") }
	return n + 1, from(la), from(lb)
}
