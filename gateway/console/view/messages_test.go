package view

import (
	"slices"
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
	got := Group([]ListedMessage{
		failed(0, "503"), failed(1, "401"), failed(2, "503"),
		{Outcome: Delivered},
		{Outcome: Delivered},
		failed(9, "503"),
	}, 3)
	if len(got) != 3 || got[0].Count != 3 || got[0].First == nil || !got[0].First.Equal(at.Add(-9*time.Minute)) || got[1].Count != 0 ||
		got[2].Outcome != Delivered {
		t.Errorf("%+v", got)
	}
}

// TestGroupDelivered checks that consecutive messages that have arrived are one line if they have
// the same title, first words or incident.
func TestGroupDelivered(t *testing.T) {
	t.Parallel()
	about := func(title, words, incident string) ListedMessage {
		return ListedMessage{Outcome: Delivered, Title: title, Words: words, Incident: incident}
	}
	got := Group([]ListedMessage{
		about("Disk", "", ""), about("Disk", "", ""), about("", "full", ""), about("", "full", ""), about("", "", "db1"), about("", "", "db1"),
		about("", "", "db1"),
		about("", "", ""), about("", "", ""), about("Disk", "", ""),
	}, 20)
	var counts []int
	for _, m := range got {
		counts = append(counts, m.Count)
	}
	if want := []int{2, 2, 3, 0, 0, 0}; !slices.Equal(counts, want) {
		t.Errorf("the lines count %v, want %v", counts, want)
	}
}
