package view

import (
	"testing"
	"time"
)

// TestGroup checks that equal messages that have not arrived are counted.
func TestGroup(t *testing.T) {
	t.Parallel()
	at := time.Now()
	failed := func(minutes int, reason string) ListedMessage {
		return ListedMessage{Time: at.Add(-time.Duration(minutes) * time.Minute), Outcome: Failed, Lines: []string{reason}}
	}
	got := Group([]ListedMessage{failed(0, "503"), failed(1, "401"), failed(2, "503"), {Outcome: Delivered}, {Outcome: Delivered}, failed(9, "503")}, 3)
	if len(got) != 3 || got[0].Count != 3 || got[0].First == nil || !got[0].First.Equal(at.Add(-9*time.Minute)) || got[1].Count != 0 || got[2].Outcome != Delivered {
		t.Errorf("%+v", got)
	}
}
