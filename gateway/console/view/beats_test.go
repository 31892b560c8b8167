package view

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBeatSum checks the words that stand beside the picture of runs.
func TestBeatSum(t *testing.T) {
	t.Parallel()
	run := func(o RunOutcome, minutes int, ran string) Run {
		return Run{At: noon, Outcome: o, Took: time.Duration(minutes) * time.Minute, Ran: ran}
	}
	for want, runs := range map[string][]Run{
		"no run yet":                           nil,
		"1 on time":                            {run(RunOnTime, 0, "")},
		"1 failed, 1 missed, 1 late":           {run(RunLate, 0, ""), run(RunFailed, 0, ""), run(RunMissed, 0, "")},
		"2 on time; took 8m":                   {run(RunOnTime, 8, "8m"), run(RunOnTime, 8, "8m")},
		"1 too long, 1 on time; took 8m to 2h": {run(RunOnTime, 8, "8m"), run(RunTooLong, 120, "2h")},
		"1 running, 1 on time; took 8m":        {run(RunOnTime, 8, "8m"), run(RunRunning, 1, "1m")},
	} {
		if got := (&Beat{Runs: runs}).Sum(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestRunPicture checks that each outcome has a mark of its own form and a link to its run, and that
// the picture has the last runs only.
func TestRunPicture(t *testing.T) {
	t.Parallel()
	var forms []string
	for _, o := range runOutcomes {
		mark := string(runMarks[o])
		form, _, _ := strings.Cut(mark, " ")
		if _, d, ok := strings.Cut(mark, " d="); ok {
			form += d
		}
		if strings.Contains(mark, "missed") {
			form += " hollow"
		}
		if slices.Contains(forms, form) {
			t.Errorf("two outcomes have the form %s", form)
		}
		forms = append(forms, form)
	}
	b := Beat{Address: "beats?a&b", Runs: append(manyRuns(), Run{At: noon, Outcome: RunFailed, Exit: "3", Ran: "2m", Took: time.Minute})}
	html, _, err := Render(Frame{}, BeatsPage{Beats: []Beat{b}})
	if err != nil {
		t.Fatal(err)
	}
	_, picture, _ := strings.Cut(string(html), `<svg class="runs"`)
	picture, _, _ = strings.Cut(picture, "</svg>")
	if n := strings.Count(picture, "<a "); n != runsShown {
		t.Errorf("%d links", n)
	}
	for _, want := range []string{
		`href="beats?a&amp;b#` + b.Runs[len(b.Runs)-1].ID() + `"`, "<title>1 Mar, 12:00 UTC: failed, exit code 3, took 2m</title>",
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture has no %s: %s", want, picture)
		}
	}
}

// TestRunOutcomes checks that each outcome of a run has a word and a mark, and is counted.
func TestRunOutcomes(t *testing.T) {
	for _, o := range []RunOutcome{RunOnTime, RunLate, RunFailed, RunMissed, RunTooLong, RunRunning} {
		if runWords[o] == "" || runMarks[o] == "" || !slices.Contains(runOutcomes, o) {
			t.Errorf("%s: the word is %q, the mark %q", o, runWords[o], runMarks[o])
		}
	}
	if len(runOutcomes) != len(runWords) || len(runOutcomes) != len(runMarks) {
		t.Errorf("%d outcomes are counted, %d have words and %d marks", len(runOutcomes), len(runWords), len(runMarks))
	}
}
