package rules

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/wire"
)

// RunOutcome is what became of a run of a job that sends beats.
type RunOutcome string

// The outcomes of runs.
const (
	RunOnTime  RunOutcome = ""
	RunLate    RunOutcome = "late"     // it came after the grace
	RunFailed  RunOutcome = "failed"   // it came with the type failure, or an exit code other than 0
	RunMissed  RunOutcome = "missed"   // it did not come before the next one was due, or has not come yet
	RunTooLong RunOutcome = "too_long" // it ended after [Expect.MaxRun], or has not ended yet
	RunRunning RunOutcome = "running"  // it has begun; such a run is never stored
)

// Run is a run that a [Beat] remembers.
type Run struct {
	At      time.Time // when its beat came; when it was due if it was missed, and when it began if it has not ended
	Outcome RunOutcome
	Took    time.Duration // 0 if its start is not known
	Exit    string        // the exit code; "" for 0 or none
	Due     time.Time     // when a late one was due; zero if unknown
	Output  string        // the end of what the job posted; "" if it is not kept
}

// Bounds of what a beat remembers.
const (
	MaxRuns    = 30
	maxOutput  = 2 << 10 // of a run, in bytes
	maxOutputs = 8 << 10 // of all runs
)

func (r *Run) fields(c *wire.Codec) {
	wire.Time(c, 1, &r.At)
	wire.Text(c, 2, &r.Outcome)
	wire.Number(c, 3, &r.Took)
	wire.Text(c, 4, &r.Exit)
	wire.Time(c, 5, &r.Due)
	wire.Text(c, 6, &r.Output)
}

// addRuns remembers runs, the latest last.
func (b *Beat) addRuns(runs ...Run) { b.Runs = lastRuns(append(b.Runs, runs...)) }

// lastRuns returns the last of the runs that a beat remembers.
func lastRuns(runs []Run) []Run { return runs[max(len(runs)-MaxRuns, 0):] }

// missed returns the runs that were missed before the one that a beat at the time now belongs to,
// and when that one was due; zero if unknown.
func (b *Beat) missed(now time.Time, u *Uptime, e *Expect) (runs []Run, due time.Time) {
	if due = b.Due(u); !b.Missed {
		return nil, due
	}
	early := time.Duration(0) // a run may come somewhat before an interval is over, but not before the time of a calendar
	if e.Calendar.IsZero() {
		early = min(e.Grace, e.Every/2)
		if many := e.Every * MaxRuns; now.Sub(due) > many {
			due = now.Add(-many - now.Sub(due)%e.Every)
		}
	}
	for next := e.next(due); !next.Add(-early).After(now); next = e.next(due) {
		if runs = append(runs, Run{At: due, Outcome: RunMissed}); len(runs) > MaxRuns {
			return runs, time.Time{}
		}
		due = next
	}
	return runs, due
}

// came returns the run of a beat that comes now, after those that were missed before.
func (b *Beat) came(now time.Time, u *Uptime, e *Expect, failed bool, exit string) []Run {
	missed, due := b.missed(now, u, e)
	run := Run{At: now, Took: b.Running(now), Exit: exit}
	switch {
	case failed:
		run.Outcome = RunFailed
	case b.overran:
		run.Outcome = RunTooLong
	case b.Missed && (len(missed) == 0 || !due.IsZero() && now.After(due.Add(e.Grace))):
		run.Outcome = RunLate
		if due.Before(now) { // otherwise the expectation has changed meanwhile
			run.Due = due
		}
	}
	return append(missed, run)
}

// Recent returns the last runs, the latest last, with those that are missed and the one that has not
// ended.
func (b *Beat) Recent(now time.Time, u *Uptime, e *Expect) []Run {
	missed, due := b.missed(now, u, e)
	if b.Missed && !due.IsZero() && (len(missed) == 0 || now.After(due.Add(e.Grace))) {
		missed = append(missed, Run{At: due, Outcome: RunMissed})
	}
	runs := append(slices.Clip(b.Runs), missed...)
	switch {
	case b.Started.IsZero():
	case b.overran:
		runs = append(runs, Run{At: b.Started, Outcome: RunTooLong, Took: b.Running(now)})
	default:
		runs = append(runs, Run{At: b.Started, Outcome: RunRunning, Took: b.Running(now)})
	}
	return lastRuns(runs)
}

// EndOf returns as much of what a job has posted as is remembered of a run: the end.
func EndOf(output string) string {
	const cut = "…"
	output = strings.TrimSpace(output)
	from := len(output) - maxOutput
	if from <= 0 {
		return strings.Clone(output) // it may be a part of a large request
	}
	for from += len(cut); !utf8.RuneStart(output[from]); from++ {
	}
	return cut + output[from:]
}

// Posted remembers the end of what the job has posted with its last beat. If there is too much of all
// runs, it forgets what the oldest of those have posted that did not fail, and then the oldest.
func (b *Beat) Posted(output string) {
	if output == "" || len(b.Runs) == 0 {
		return
	}
	last := len(b.Runs) - 1
	b.Runs[last].Output = EndOf(output)
	sum := 0
	for i := range b.Runs {
		sum += len(b.Runs[i].Output)
	}
	for _, failed := range []bool{false, true} {
		for i := range b.Runs[:last] {
			if r := &b.Runs[i]; sum > maxOutputs && (r.Outcome == RunFailed) == failed {
				sum -= len(r.Output)
				r.Output = ""
			}
		}
	}
}

// KeepOutputs forgets what jobs posted longer ago than keep.
func (b *Beat) KeepOutputs(now time.Time, keep time.Duration) {
	for i := range b.Runs {
		if r := &b.Runs[i]; now.Sub(r.At) >= keep {
			r.Output = ""
		}
	}
}
