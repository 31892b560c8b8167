package view

import (
	"cmp"
	"html/template"
	"strconv"
	"time"
)

// RunOutcome is what became of a run.
type RunOutcome string

// The outcomes of runs.
const (
	RunOnTime  RunOutcome = "on_time"
	RunLate    RunOutcome = "late"
	RunFailed  RunOutcome = "failed"
	RunMissed  RunOutcome = "missed"
	RunTooLong RunOutcome = "too_long"
	RunRunning RunOutcome = "running"
)

// runOutcomes are the outcomes in the order in which they are counted.
var runOutcomes = []RunOutcome{RunFailed, RunMissed, RunTooLong, RunLate, RunRunning, RunOnTime}

// runWords are the words for the outcomes on a page.
var runWords = map[RunOutcome]string{
	RunFailed: "failed", RunMissed: "missed", RunTooLong: "too long", RunLate: "late", RunRunning: "running", RunOnTime: "on time",
}

// Word returns the word for the outcome on a page.
func (o RunOutcome) Word() string { return cmp.Or(runWords[o], string(o)) }

// runMarks are the marks of the outcomes. A mark has a form of its own, so that nobody has to tell
// colours apart. It is drawn around 0, 0.
var runMarks = map[RunOutcome]template.HTML{
	RunFailed:  `<path class="failed" d="M-3.5-3.5 3.5 3.5M3.5-3.5-3.5 3.5"/>`,
	RunMissed:  `<circle class="missed" r="3.25"/>`,
	RunTooLong: `<rect class="long" x="-3.5" y="-3.5" width="7" height="7"/>`,
	RunLate:    `<path class="late" d="M0-4 4.25 3.5h-8.5z"/>`,
	RunRunning: `<path class="running" d="M-2.5-3.5 3.5 0-2.5 3.5z"/>`,
	RunOnTime:  `<circle class="fine" r="3.5"/>`,
}

// Mark returns the mark of the outcome as a picture.
func (o RunOutcome) Mark() template.HTML {
	return `<svg class="run" viewBox="-5 -5 10 10" aria-hidden="true">` + runMarks[o] + `</svg>`
}

// Run is a run of a job.
type Run struct {
	At      time.Time // when its beat came; when it was due if it was missed, and when it began if it has not ended
	Outcome RunOutcome
	Took    time.Duration // 0 if unknown
	Ran     string        // the same as text; "" if unknown
	Exit    string        // the exit code; "" for 0 or none
	Due     time.Time     // when a late one was due; zero if unknown
	Output  string        // the end of what the job posted; "" if it is not shown
}

// ID returns the place of the run on the page of its beat.
func (r Run) ID() string { return "run-" + strconv.FormatInt(r.At.UnixMilli(), 10) }

// Bad reports whether people were told that something is wrong with the run.
func (r Run) Bad() bool {
	return r.Outcome != RunOnTime && r.Outcome != RunLate && r.Outcome != RunRunning
}

// words returns the run in words, with its time.
func (r Run) words() string {
	text := r.At.UTC().Format("2 Jan, 15:04 UTC") + ": " + r.Outcome.Word()
	if r.Exit != "" {
		text += ", exit code " + r.Exit
	}
	if r.Ran != "" {
		text += ", took " + r.Ran
	}
	return text
}

// Legend returns the outcomes of which the page explains the marks.
func (p BeatsPage) Legend() []RunOutcome { return runOutcomes }

// The measures of the picture of runs, in pixels: a mark each, and below it a column as high as its share
// of the longest run.
const (
	runsShown  = 30
	runStep    = 10
	runsHeight = 28
	runColumn  = 12 // height of the column of the longest run
	runWidth   = 4  // of a column
)

// RunDot is a run in the picture of a beat, or a place for one.
type RunDot struct {
	*Run              // nil for a place without a run
	X, Cell       int // the middle of its place, and where that begins
	TookX         int // its column
	TookY, Height int // 0 high for none
}

// Title says what the run was, as a tooltip.
func (d RunDot) Title() string { return d.words() }

// Form returns the mark of the run, around 0, 0.
func (d RunDot) Form() template.HTML { return runMarks[d.Outcome] }

// Dots returns the runs of the picture, the latest at the right.
func (b *Beat) Dots() []RunDot {
	runs, longest := b.Runs[max(len(b.Runs)-runsShown, 0):], time.Duration(1)
	for i := range runs {
		longest = max(longest, runs[i].Took)
	}
	out := make([]RunDot, runsShown)
	for i := range out {
		d := RunDot{X: i*runStep + runStep/2, Cell: i * runStep}
		if at := i - (runsShown - len(runs)); at >= 0 {
			d.Run = &runs[at]
			if d.Took > 0 {
				d.Height = max(int(d.Took*runColumn/longest), 1)
				d.TookX, d.TookY = d.X-runWidth/2, runsHeight-d.Height
			}
		}
		out[i] = d
	}
	return out
}
