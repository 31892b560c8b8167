package view

import (
	"slices"
	"strings"
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

// TestFilterLine checks that the line above the filter says what is set, and that a filter that is set is open.
func TestFilterLine(t *testing.T) {
	for _, tt := range []struct {
		page Page
		want string
	}{
		{MessagesPage{Root: "../"}, `<details><summary>Filter</summary></details>`},
		{MessagesPage{Root: "../", Filter: MessageFilter{Key: "ops", State: "queued", Since: "24h"}}, `<details open><summary>Filter: key ops, ` +
			`waiting, last 24 hours</summary></details>` + "\n" + `<a href="../notify/console/messages">Remove the filter</a>`},
		{IncidentsPage{Root: "../"}, `<details><summary>Filter</summary></details>`},
		{
			IncidentsPage{Root: "../", Filter: IncidentFilter{State: IncidentOpen}},
			`<details open><summary>Filter: open</summary></details>` + "\n" +
				`<a href="../notify/console/incidents">Remove the filter</a>`,
		},
		{InboxPage{Since: InboxSince}, `<details><summary>Filter</summary></details>`},
		{
			InboxPage{Since: "7d"},
			`<details open><summary>Filter: since 7d</summary></details>` + "\n" + `<a href="./messages">Remove the filter</a>`,
		},
	} {
		html, _, err := Render(Frame{}, tt.page)
		if err != nil || !strings.Contains(string(html), tt.want) {
			t.Errorf("%v; %+v lacks %s", err, tt.page, tt.want)
		}
	}
}
