package queue

import (
	"reflect"
	"testing"

	"github.com/google/uuid"
)

// TestStoredLine checks that the order of an incident which earlier versions have stored can
// be read, and that this one stores the same.
func TestStoredLine(t *testing.T) {
	const stored = "\n\x1c\n\x10\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x03\x18\x01\"\x04note" +
		"\n\x12\n\x10\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x12.\n\x10\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x03\"\x06missed*" +
		"\x10\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x12&\n\x10\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00*\x10\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x000\x03" +
		"\x12\x12\n\x10\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x18\a"
	a, b := JobID{uuid.UUID{1}, 3}, JobID{uuid.UUID{2}, 0}
	want := &line{
		jobs:    []linedJob{{id: a, newState: true, note: []byte("note")}, {id: b}},
		missed:  []missedJob{{id: a, by: b, note: []byte("missed")}, {id: b, by: a}, {id: b}},
		omitted: 7,
	}
	if got := want.encode(); string(got) != stored {
		t.Errorf("it is stored as\n%q\nbut queues that exist have\n%q", got, stored)
	}
	if got, err := decodeLine([]byte(stored)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("it is read as %+v, %v, want %+v", got, err, want)
	}
	for n := range len(stored) {
		_, _ = decodeLine([]byte(stored[:n])) // without a panic
	}
	if _, err := decodeLine([]byte(stored[:len(stored)-1])); err == nil {
		t.Error("a damaged one is read")
	}
	if b := new(line).encode(); len(b) != 0 {
		t.Errorf("one of nothing is stored as %q", b)
	}
}
