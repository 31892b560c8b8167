package rules

import (
	"errors"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
)

// Expect says that a beat has to come again and again: at the latest Every, and then
// Grace, after the last one. Otherwise it is late.
type Expect struct {
	Name         string
	Every, Grace time.Duration
}

// The bounds of the times of an [Expect].
const (
	maxEvery     = 400 * 24 * time.Hour
	graceShare   = 10 // the default grace is one in so many of Every
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

// Check returns an error if the expectation is malformed.
func (e *Expect) Check() error {
	if err := CheckBeatName(e.Name); err != nil {
		return err
	}
	if e.Every < minTime || e.Every > maxEvery {
		return errors.New("every: the time must be from 1s to 400d")
	}
	if e.Grace < minTime || e.Grace > maxEvery {
		return errors.New("grace: the time must be from 1s to 400d")
	}
	return nil
}

// wallTime is the minimum interval that is also measured on the clock on the wall.
const wallTime = 6 * time.Hour

// next returns when the beat after one at a time is due. A job that runs at 02:30 each
// day runs 25 hours after the last time where the clock is put back in between, and one
// that waits 24 hours does not run earlier where it is put forward. So it is the later
// one of both times. The zone is that of t.
func (e *Expect) next(t time.Time) time.Time {
	due := t.Add(e.Every)
	if e.Every < wallTime {
		return due
	}
	_, before := t.Zone()
	_, after := due.Zone()
	return due.Add(max(time.Duration(before-after)*time.Second, 0))
}

// Uptime is the time in which no gateway ran or could write. Beats that could not come
// meanwhile are not late. The zero value knows of none.
//
// A gateway that ends without a word was last seen some time before, so that it seems to have
// been away for a moment even if another one starts at once. For a beat, only a gap that is
// longer than half of its grace counts, or than a minute if that is less. Otherwise the
// deadline of a gateway that is restarted again and again would never come.
type Uptime struct {
	Seen time.Time     // when a gateway last ran
	Down time.Duration // the gaps that are longer than maxGap, together

	// Short are the sums of the other gaps by their length: those that are at most a gapStep,
	// at most two, and so on.
	Short []time.Duration
}

const (
	maxGap  = time.Minute
	gapStep = minTime / 2
)

// The bounds of the time after which a gateway calls [Uptime.See] again.
const (
	maxSeeEvery = 10 * time.Second
	seesInGrace = 4 // so that what it missed when it ended is less than half of the grace

	// maxUnseen is how long a gateway that runs may not have called See.
	maxUnseen = maxSeeEvery + 5*time.Second
)

// SeeEvery returns how often the gateways call [Uptime.See] if the shortest grace of a beat
// is this long.
func SeeEvery(grace time.Duration) time.Duration { return min(grace/seesInGrace, maxSeeEvery) }

// See notes that a gateway runs. started reports whether it may have been the only one
// and has just started, so that even a short gap was a time without one.
func (u *Uptime) See(now time.Time, started bool) {
	gap := now.Sub(u.Seen)
	first := u.Seen.IsZero()
	u.Seen = now
	switch {
	case first || gap <= 0 || gap <= maxUnseen && !started:
	case gap > maxGap:
		u.Down += gap
	default:
		i := int((gap - 1) / gapStep)
		u.Short = append(u.Short, make([]time.Duration, max(i+1-len(u.Short), 0))...)
		u.Short[i] += gap
	}
}

// down returns the time in which no gateway ran that counts for e.
func (u *Uptime) down(e *Expect) time.Duration {
	sum := u.Down
	shortest := int(min(e.Grace/2, maxGap) / gapStep)
	for _, d := range u.Short[min(shortest, len(u.Short)):] {
		sum += d
	}
	return sum
}

// BeatState is what was told about a beat.
type BeatState string

// The states of a beat.
const (
	BeatOK     BeatState = ""       // nothing, or that it came again
	BeatLate   BeatState = "late"   // it did not come in time
	BeatFailed BeatState = "failed" // it came with the type failure
)

// Beat is what is known of the beats of an [Expect].
type Beat struct {
	// Site and Key are where the expectation is defined, and Name is its name. The rules do
	// not read them.
	Site, Key, Name string

	// Gone is since when the configuration does not have the expectation; zero if it does.
	Gone time.Time

	Last  time.Time // when the last one came; zero for never
	State BeatState
	Since time.Time // when State was told

	// Missed means that it was told that the next beat did not come, which is told once.
	Missed bool

	armed Expect        // with which due was set
	due   time.Time     // when the next one is due, as if a gateway ran all the time
	down  time.Duration // what of the [Uptime] counted when due was set
}

// arm begins to wait for the next beat.
func (b *Beat) arm(now time.Time, u *Uptime, e *Expect) {
	b.armed, b.due, b.down = *e, e.next(now), u.down(e)
}

// Arm begins to wait for a beat, unless it is expected already. It does so again if the
// expectation has changed, or if the clock was wrong when it was armed.
func (b *Beat) Arm(now time.Time, u *Uptime, e *Expect) {
	b.Gone = time.Time{}
	const changes = 3 * time.Hour // of the clock on the wall
	if b.armed != *e || b.Deadline(u).Sub(now) > e.Every+2*e.Grace+changes {
		b.arm(now, u, e)
	}
}

// away returns the time in which no gateway ran since the beat was armed.
func (b *Beat) away(u *Uptime) time.Duration { return max(u.down(&b.armed)-b.down, 0) }

// Due returns when the next beat is due. A time in which no gateway ran moves it.
func (b *Beat) Due(u *Uptime) time.Time { return b.due.Add(b.away(u)) }

// Deadline returns when the next beat is late. After a time in which no gateway ran, it
// has the grace once more, so that all jobs can run again before one is missed.
func (b *Beat) Deadline(u *Uptime) time.Time {
	deadline := b.Due(u).Add(b.armed.Grace)
	if b.away(u) > 0 {
		deadline = deadline.Add(b.armed.Grace)
	}
	return deadline
}

// Came notes that a beat came, and that it has failed or not. It reports whether a
// message tells that: each failure, and the first beat after a problem.
func (b *Beat) Came(now time.Time, u *Uptime, e *Expect, failed bool) (told bool) {
	b.arm(now, u, e)
	told = failed || b.State != BeatOK
	b.Gone, b.Last, b.Missed = time.Time{}, now, false
	if told {
		b.State, b.Since = BeatOK, now
	}
	if failed {
		b.State = BeatFailed
	}
	return told
}

// Late reports whether the next beat is late, and that was not told.
func (b *Beat) Late(now time.Time, u *Uptime) bool {
	return !b.Missed && !b.Deadline(u).After(now)
}

// Miss notes that a message tells that the next beat is late.
func (b *Beat) Miss(now time.Time) { b.State, b.Since, b.Missed = BeatLate, now, true }

func (b *Beat) fields(c *wire.Codec) {
	wire.Text(c, 1, &b.Site)
	wire.Text(c, 2, &b.Key)
	wire.Text(c, 3, &b.Name)
	wire.Time(c, 4, &b.Gone)
	wire.Time(c, 5, &b.Last)
	wire.Text(c, 6, &b.State)
	wire.Time(c, 7, &b.Since)
	wire.True(c, 8, &b.Missed)
	wire.Number(c, 9, &b.armed.Every)
	wire.Number(c, 10, &b.armed.Grace)
	wire.Time(c, 11, &b.due)
	wire.Number(c, 12, &b.down)
}

// Encode returns the beat as bytes.
func (b *Beat) Encode() []byte { return wire.Append(nil, b, (*Beat).fields) }

// DecodeBeat is the inverse of [Beat.Encode].
func DecodeBeat(data []byte) (*Beat, error) {
	b := new(Beat)
	err := wire.Decode(data, b, (*Beat).fields)
	b.armed.Name = b.Name
	return b, err
}

func (u *Uptime) fields(c *wire.Codec) {
	wire.Time(c, 1, &u.Seen)
	wire.Number(c, 2, &u.Down)
	wire.Numbers(c, 3, &u.Short)
}

// Encode returns the uptime as bytes.
func (u *Uptime) Encode() []byte { return wire.Append(nil, u, (*Uptime).fields) }

// DecodeUptime is the inverse of [Uptime.Encode].
func DecodeUptime(data []byte) (*Uptime, error) {
	u := new(Uptime)
	return u, wire.Decode(data, u, (*Uptime).fields)
}
