package rules

import (
	"bytes"
	"cmp"
	"errors"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Expect says when a beat has to come: at most Every after the last one, or at the times of
// Calendar. A beat that is more than Grace later is late.
type Expect struct {
	Name     string
	Every    time.Duration // 0 with a Calendar
	Calendar Calendar      // the zero value with Every
	Grace    time.Duration
	MaxRun   time.Duration // the longest time from a start to its end; 0 for any
}

// The bounds of the times of an [Expect].
const (
	maxEvery     = 400 * 24 * time.Hour
	graceShare   = 10 // the default grace is one in so many of the time between two beats
	beatNameSize = 64
)

// CheckBeatName returns an error if a beat cannot have the name.
func CheckBeatName(name string) error {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.') {
			name = ""
			break
		}
	}
	if name == "" || len(name) > beatNameSize {
		return errors.New("the name of a beat must be 1 to 64 letters, digits, _, - and .")
	}
	return nil
}

// DefaultGrace returns the grace of an expectation that sets none.
func DefaultGrace(every time.Duration) time.Duration { return max(every/graceShare, minTime) }

// DefaultGrace returns the grace of e if none is set: a share of the shortest time between two
// beats.
func (e *Expect) DefaultGrace() time.Duration {
	if e.Calendar.IsZero() {
		return DefaultGrace(e.Every)
	}
	return DefaultGrace(e.Calendar.shortest())
}

// Check returns an error if the expectation is malformed.
func (e *Expect) Check() error {
	if err := CheckBeatName(e.Name); err != nil {
		return err
	}
	switch inBounds := func(d time.Duration) bool { return minTime <= d && d <= maxEvery }; {
	case e.Every != 0 && !e.Calendar.IsZero():
		return errors.New("every and cron exclude each other; remove one")
	case e.Calendar.IsZero() && !inBounds(e.Every):
		return errors.New("every: the time must be from 1s to 400d")
	case !inBounds(e.Grace):
		return errors.New("grace: the time must be from 1s to 400d")
	case e.MaxRun != 0 && !inBounds(e.MaxRun):
		return errors.New("max_run: the time must be from 1s to 400d")
	}
	return nil
}

// How returns the schedule as text, such as "every 1d" or "cron 15 3 * * 1-5 UTC".
func (e *Expect) How() string {
	if e.Calendar.IsZero() {
		return "every " + FormatTime(e.Every)
	}
	return "cron " + e.Calendar.String()
}

// wallTime is the minimum interval that is also measured in wall-clock time.
const wallTime = 6 * time.Hour

// next returns when the beat after one at t is due. With a calendar, it is the calendar's first
// time after t.
//
// With an interval, it is the later of two times, t plus the interval and the same by the wall
// clock of t's zone: a job that runs at 02:30 each day takes 25 hours when the clock is put back,
// and a job that waits 24 hours still takes 24 when it is put forward.
func (e *Expect) next(t time.Time) time.Time {
	if !e.Calendar.IsZero() {
		return e.Calendar.Next(t)
	}
	due := t.Add(e.Every)
	if e.Every < wallTime {
		return due
	}
	_, before := t.Zone()
	_, after := due.Zone()
	return due.Add(max(time.Duration(before-after)*time.Second, 0))
}

// Uptime records the times in which no gateway ran or could write. Beats that could not come in
// these gaps are not late. The zero value has no gaps.
//
// A gateway notes only now and then that it runs, so that there seems to be a gap after a crash
// even if another one starts at once. For a beat, a gap counts only if it is longer than half of
// the grace or than a minute, whichever is less. Otherwise the deadline would never come if the
// gateway is restarted again and again.
type Uptime struct {
	Seen time.Time     // when a gateway last ran
	Down time.Duration // the gaps that are longer than maxGap, together

	// Short has the sums of the other gaps by length: gaps of at most one gapStep, of at most two,
	// and so on.
	Short []time.Duration

	// Back is when the last of the gaps of Down ended, and ShortBack has the same for Short.
	Back      time.Time
	ShortBack []ended

	// Every is how often the gateway of Seen calls See; 0 for a version without this field.
	Every time.Duration
}

// ended is when a time without a gateway ended.
type ended struct{ at time.Time }

func (e *ended) fields(c *wire.Codec) { wire.Time(c, 1, &e.at) }

const (
	maxGap  = time.Minute
	gapStep = minTime / 2
)

// The bounds of the time after which a gateway calls [Uptime.See] again.
const (
	maxSeeEvery = 10 * time.Second
	seesInGrace = 4               // so that the gap after a crash is less than half of the grace
	seeLate     = 5 * time.Second // the maximum delay of a gateway that can write
)

// SeeEvery returns how often gateways call [Uptime.See]. grace is the shortest grace of a beat.
func SeeEvery(grace time.Duration) time.Duration { return min(grace/seesInGrace, maxSeeEvery) }

// See notes that a gateway runs, which calls See again after every. started means that it has just
// started and may be the only one, so that even a short gap counts.
func (u *Uptime) See(now time.Time, every time.Duration, started bool) {
	gap := now.Sub(u.Seen)
	first := u.Seen.IsZero()
	if queue.WrittenAhead(u.Seen, now) && u.Back.After(now) { // the last gap was also a jump of the clock
		u.Down, u.Back = max(u.Down+gap, 0), now
	}
	unseen := cmp.Or(u.Every, maxSeeEvery) + seeLate
	u.Seen, u.Every = now, every
	switch {
	case first || gap <= 0 || gap <= unseen && !started:
	case gap > maxGap:
		u.Down += gap
		u.Back = now
	default:
		i := int((gap - 1) / gapStep)
		u.Short = append(u.Short, make([]time.Duration, max(i+1-len(u.Short), 0))...)
		u.Short[i] += gap
		u.ShortBack = append(u.ShortBack, make([]ended, max(i+1-len(u.ShortBack), 0))...)
		u.ShortBack[i].at = now
	}
}

// Same reports whether u and v move deadlines in the same way.
func (u *Uptime) Same(v *Uptime) bool {
	x, y := *u, *v
	x.Seen, x.Every, y.Seen, y.Every = time.Time{}, 0, time.Time{}, 0
	return bytes.Equal(wire.Append(nil, &x, (*Uptime).Fields), wire.Append(nil, &y, (*Uptime).Fields))
}

// shortest returns the index in Short of the shortest gaps that count for a grace.
func shortest(grace time.Duration) int { return int(min(grace/2, maxGap) / gapStep) }

// down returns the total of the gaps that count for a grace.
func (u *Uptime) down(grace time.Duration) time.Duration {
	sum := u.Down
	for _, d := range u.Short[min(shortest(grace), len(u.Short)):] {
		sum += d
	}
	return sum
}

// back returns the end of the last gap that counts for a grace.
func (u *Uptime) back(grace time.Duration) time.Time {
	last := u.Back
	for _, e := range u.ShortBack[min(shortest(grace), len(u.ShortBack)):] {
		if e.at.After(last) {
			last = e.at
		}
	}
	return last
}

// BeatState is what was told about a beat.
type BeatState string

// The states of a beat.
const (
	BeatOK     BeatState = ""       // nothing, or that it came again
	BeatLate   BeatState = "late"   // it did not come in time
	BeatFailed BeatState = "failed" // it came with the type failure, or an exit code other than 0

	// BeatTooLong means that a run began and did not end within [Expect.MaxRun].
	BeatTooLong BeatState = "too_long"
)

// Beat is the state of an [Expect].
type Beat struct {
	// Site and Key are where the expectation is defined, and Name is its name. The rules do
	// not read them.
	Site, Key, Name string

	// Gone is since when the configuration does not have the expectation; zero if it does.
	Gone time.Time

	Last  time.Time // when the last one came; zero for never
	State BeatState
	Since time.Time // when State was told

	// Missed means that the next beat was told to be missing, which is told once.
	Missed bool

	Started time.Time     // when the present run began; zero for none
	Ran     time.Duration // how long the last run took; 0 if its start is not known
	Exit    string        // the exit code of the last beat; "" for 0 or none
	overran bool          // it was told that the present run takes too long

	Runs []Run // the last ones, the latest last, at most MaxRuns

	armed armed         // the expectation with which due was set
	due   time.Time     // when the next one is due, as if a gateway ran all the time
	down  time.Duration // the part of the [Uptime] that counted when due was set or, by a calendar, reached

	// reached means that a gateway ran when the beat was due by a calendar. Only later gaps move
	// the deadline.
	reached bool

	startDown time.Duration // the part of the [Uptime] that counted when the run began
}

// armed has the fields of the [Expect] with which a [Beat] was armed.
type armed struct {
	every, grace time.Duration
	calendar     string // "" for none
	maxRun       time.Duration
}

func armedOf(e *Expect) armed { return armed{e.Every, e.Grace, e.Calendar.String(), e.MaxRun} }

// same reports whether the deadline of the next beat is the same with b.
func (a armed) same(b armed) bool {
	a.maxRun = b.maxRun
	return a == b
}

// arm begins to wait for the next beat.
func (b *Beat) arm(now time.Time, u *Uptime, e *Expect) {
	if b.armed.grace != e.Grace {
		b.startDown = u.down(e.Grace)
	}
	b.armed, b.due, b.down, b.reached = armedOf(e), e.next(now), u.down(e.Grace), false
}

// Arm begins to wait for a beat, unless it is expected already. It does so again if the
// expectation has changed, or if the clock was wrong when it was armed. If no gateway ran
// when the beat was due by a calendar, the one after that time is expected.
func (b *Beat) Arm(now time.Time, u *Uptime, e *Expect) {
	b.Gone = time.Time{}
	if b.Started.After(now) {
		b.Started = now // the clock was wrong
	}
	const changes = 3 * time.Hour // of the clock on the wall
	byCalendar := !e.Calendar.IsZero()
	switch {
	case !b.armed.same(armedOf(e)),
		!byCalendar && b.Deadline(u).Sub(now) > e.Every+2*e.Grace+changes,
		byCalendar && b.due.After(now) && b.due.After(e.next(now)):
		b.arm(now, u, e)
	}
	b.armed.maxRun = e.MaxRun
	for byCalendar && !b.reached && !b.due.After(now) {
		if back := u.back(e.Grace); back.After(b.due) {
			b.due = e.next(back)
		} else {
			b.reached, b.down = true, u.down(e.Grace)
		}
	}
}

// away returns the gaps since the beat was armed or, by a calendar, was due.
func (b *Beat) away(u *Uptime) time.Duration {
	if b.armed.calendar != "" && !b.reached {
		return 0
	}
	return max(u.down(b.armed.grace)-b.down, 0)
}

// Due returns when the next beat is due. A time in which no gateway ran moves it, unless it
// is due by a calendar.
func (b *Beat) Due(u *Uptime) time.Time {
	if b.armed.calendar != "" {
		return b.due
	}
	return b.due.Add(b.away(u))
}

// Deadline returns when the next beat is late. After a time in which no gateway ran, it
// has the grace once more, so that all jobs can run again before one is missed.
func (b *Beat) Deadline(u *Uptime) time.Time {
	return moved(b.due.Add(b.armed.grace), b.away(u), b.armed.grace)
}

// moved returns a deadline after a time in which no gateway ran.
func moved(deadline time.Time, away, grace time.Duration) time.Time {
	if away > 0 {
		return deadline.Add(away + grace)
	}
	return deadline
}

// RunDeadline returns when the present run takes too long, or the zero time if none does. A
// time in which no gateway ran moves it as it moves [Beat.Deadline].
func (b *Beat) RunDeadline(u *Uptime) time.Time {
	if b.Started.IsZero() || b.armed.maxRun == 0 {
		return time.Time{}
	}
	return moved(b.Started.Add(b.armed.maxRun), max(u.down(b.armed.grace)-b.startDown, 0), b.armed.grace)
}

// NextLook returns when something may have to be told if no beat comes. again is how long to wait
// before looking again at a beat that was told to be late, or that is no longer expected.
func (b *Beat) NextLook(now time.Time, u *Uptime, again time.Duration) time.Time {
	if !b.Gone.IsZero() {
		return now.Add(again)
	}
	look := b.Deadline(u)
	switch {
	case b.Missed:
		look = now.Add(again)
	case b.armed.calendar != "" && !b.reached:
		look = b.due
	}
	if run := b.RunDeadline(u); !b.overran && !run.IsZero() && run.Before(look) {
		look = run
	}
	return look
}

// Start notes that a run began. The deadline of the next beat stays the same. If another run has
// begun before, the time of the run starts again.
func (b *Beat) Start(now time.Time, u *Uptime, e *Expect) {
	b.Arm(now, u, e)
	if b.overran {
		b.addRuns(Run{At: b.Started, Outcome: RunTooLong}) // nobody will know when it ended
	}
	b.Started, b.startDown, b.overran = now, u.down(e.Grace), false
}

// Came notes that a beat came, and ends the run. exit is its exit code; "" for 0 or none. told
// reports whether a message has to be sent: for each failure, and for the first beat after a
// problem.
func (b *Beat) Came(now time.Time, u *Uptime, e *Expect, failed bool, exit string) (told bool) {
	b.addRuns(b.came(now, u, e, failed, exit)...)
	b.arm(now, u, e)
	told = failed || b.State != BeatOK
	b.Ran = b.Running(now)
	b.Started, b.startDown, b.overran, b.Exit = time.Time{}, 0, false, exit
	b.Gone, b.Last, b.Missed = time.Time{}, now, false
	if told {
		b.State, b.Since = BeatOK, now
	}
	if failed {
		b.State = BeatFailed
	}
	return told
}

// Lives notes a partial beat after a failure: the failure stays, because the beat does not say
// whether all is well again. It reports whether a failure was told; if not, it changes nothing.
func (b *Beat) Lives(now time.Time, u *Uptime, e *Expect) bool {
	failure := *b
	if failure.State != BeatFailed {
		return false
	}
	b.Came(now, u, e, false, "")
	b.State, b.Since, b.Exit = failure.State, failure.Since, failure.Exit
	return true
}

// Running returns for how long the present run has taken; 0 for none.
func (b *Beat) Running(now time.Time) time.Duration {
	if b.Started.IsZero() {
		return 0
	}
	return max(now.Sub(b.Started), 0)
}

// Late reports whether the next beat is late and that has not been told.
func (b *Beat) Late(now time.Time, u *Uptime) bool {
	return !b.Missed && !b.Deadline(u).After(now)
}

// Miss notes that a message tells that the next beat is late.
func (b *Beat) Miss(now time.Time) { b.State, b.Since, b.Missed = BeatLate, now, true }

// TooLong reports whether the present run takes too long and that has not been told.
func (b *Beat) TooLong(now time.Time, u *Uptime) bool {
	deadline := b.RunDeadline(u)
	return !b.overran && !deadline.IsZero() && !deadline.After(now)
}

// Overrun notes that a message tells that the present run takes too long.
func (b *Beat) Overrun(now time.Time) { b.State, b.Since, b.overran = BeatTooLong, now, true }

// Fields names the fields of a record.
func (b *Beat) Fields(c *wire.Codec) {
	wire.Text(c, 1, &b.Site)
	wire.Text(c, 2, &b.Key)
	wire.Text(c, 3, &b.Name)
	wire.Time(c, 4, &b.Gone)
	wire.Time(c, 5, &b.Last)
	wire.Text(c, 6, &b.State)
	wire.Time(c, 7, &b.Since)
	wire.True(c, 8, &b.Missed)
	wire.Number(c, 9, &b.armed.every)
	wire.Number(c, 10, &b.armed.grace)
	wire.Time(c, 11, &b.due)
	wire.Number(c, 12, &b.down)
	wire.Text(c, 13, &b.armed.calendar)
	wire.Number(c, 14, &b.armed.maxRun)
	wire.True(c, 15, &b.reached)
	wire.Time(c, 16, &b.Started)
	wire.Number(c, 17, &b.startDown)
	wire.True(c, 18, &b.overran)
	wire.Number(c, 19, &b.Ran)
	wire.Text(c, 20, &b.Exit)
	wire.Records(c, 21, &b.Runs, (*Run).fields)
}

// Fields names the fields of a record.
func (u *Uptime) Fields(c *wire.Codec) {
	wire.Time(c, 1, &u.Seen)
	wire.Number(c, 2, &u.Down)
	wire.Numbers(c, 3, &u.Short)
	wire.Time(c, 4, &u.Back)
	wire.Records(c, 5, &u.ShortBack, (*ended).fields)
	wire.Number(c, 6, &u.Every)
}
