package rules

import (
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// RulerAlert is an alert as a ruler, such as Prometheus, posts it again and again while it
// fires.
type RulerAlert struct {
	Fingerprint string

	// Labels and Annotations are names and values, one after the other, in the order of the
	// names.
	Labels, Annotations []string

	Generator    string // the address of the rule; "" if it is not known
	Starts, Ends time.Time

	At       time.Time // when the latest post came
	Resolved bool      // the latest post says that the alert is over

	told bool          // destinations know that it fires
	lost bool          // destinations know that it is no longer reported
	down time.Duration // the part of the [Uptime] that counted when the latest post was stored

	number int // in the order in which the alerts of the group came; 0 if no piece had it yet
	piece  int // the number of its piece, from 1; 0 for none
}

// GroupTimes say how long the changes of a group are collected.
type GroupTimes struct {
	Wait     time.Duration // of a new group
	Interval time.Duration // of alerts that join or leave an open group
}

// AlertGroup is a group of a ruler's alerts that are one incident. Changes are collected for a
// time; then the state at that moment is told.
type AlertGroup struct {
	// Site, Home and Key name the key that got the alerts, Name is the incident, and Labels are the
	// labels that all alerts have, as in [RulerAlert]. The rules do not read them.
	Site, Home, Key, Name string
	Labels                []string

	// Gone is since when the configuration does not have the key; zero if it does.
	Gone time.Time

	Alerts []RulerAlert

	opened bool      // something was told
	since  time.Time // when it was; zero in a record of an early version
	next   time.Time // when changes are told; zero for no changes

	changed time.Time // the last time; zero in a record of an early version

	pieces     int   // of the stored group; 0 if it is one record
	pieceBytes int64 // of all pieces
	numbers    int   // the last one of an alert
}

// IsAhead reports whether the group was stored when the clock was ahead.
func (g *AlertGroup) IsAhead(now time.Time) bool {
	return queue.WrittenAhead(g.changed, now) || slices.ContainsFunc(g.Alerts, func(a RulerAlert) bool {
		return queue.WrittenAhead(a.At, now)
	})
}

// Begin begins a change of the group; Post calls it, too. It corrects alerts that were posted when
// the clock was ahead: their times start again now.
func (g *AlertGroup) Begin(now time.Time, u *Uptime) {
	g.changed = now
	for _, at := range []*time.Time{&g.since, &g.Gone} {
		if at.After(now) {
			*at = now
		}
	}
	for i := range g.Alerts {
		g.Alerts[i].correct(now, u)
	}
}

// correct moves an alert that was posted when the clock was ahead to now.
func (a *RulerAlert) correct(now time.Time, u *Uptime) {
	if queue.WrittenAhead(a.At, now) {
		a.Ends, a.At, a.down = a.Ends.Add(now.Sub(a.At)), now, downOfAlerts(u)
	}
}

// postAgain is how long a ruler has to post an alert again after a time in which no gateway
// ran.
const postAgain = time.Minute

// downOfAlerts returns the time without a gateway that counts for alerts: all of it, because some
// alerts end half a minute after each post. A gateway that is restarted again and again does not
// put off the end forever, because postAgain is added once.
func downOfAlerts(u *Uptime) time.Duration { return u.down(0) }

// deadline returns when an alert ends unless it is posted again.
func (a *RulerAlert) deadline(u *Uptime) time.Time {
	return moved(a.Ends, max(downOfAlerts(u)-a.down, 0), postAgain)
}

// maxKept is how long an alert is kept without another post, however far away its end is. A ruler
// posts an alert that still fires much more often.
const maxKept = 24 * time.Hour

// forgotten returns when an alert is forgotten unless it is posted again.
func (a *RulerAlert) forgotten(u *Uptime) time.Time {
	return moved(a.At.Add(maxKept), max(downOfAlerts(u)-a.down, 0), postAgain)
}

// Forget removes firing alerts that were not posted for a day, and returns how many. No destination
// is told, because the ruler has not resolved them. If one is posted again, it is told as a new
// alert.
func (g *AlertGroup) Forget(now time.Time, u *Uptime) int {
	n := len(g.Alerts)
	g.Alerts = slices.DeleteFunc(g.Alerts, func(a RulerAlert) bool { return a.fires(now, u) && !a.forgotten(u).After(now) })
	return n - len(g.Alerts)
}

// fires reports whether an alert fires.
func (a *RulerAlert) fires(now time.Time, u *Uptime) bool {
	return !a.Resolved && a.deadline(u).After(now)
}

// index returns the positions of the alerts by their fingerprints.
func (g *AlertGroup) index() map[string]int {
	out := make(map[string]int, len(g.Alerts))
	for i := range g.Alerts {
		out[g.Alerts[i].Fingerprint] = i
	}
	return out
}

// Repeats reports whether posts say nothing new. If so, they need not be stored before until: then
// half of the time to the end of the alerts has passed.
func (g *AlertGroup) Repeats(now time.Time, u *Uptime, posts []RulerAlert) (until time.Time, ok bool) {
	at := g.index()
	for i := range posts {
		p := &posts[i]
		known, ok := at[p.Fingerprint]
		if !ok {
			if p.Resolved {
				continue
			}
			return until, false
		}
		a := &g.Alerts[known]
		if p.Resolved && a.Resolved {
			continue
		}
		half := a.At.Add(min(a.deadline(u).Sub(a.At), maxKept) / 2)
		if p.Resolved || !a.fires(now, u) || p.Ends.Before(half) {
			return until, false
		}
		if until.IsZero() || half.Before(until) {
			until = half
		}
	}
	return until, until.IsZero() || until.After(now)
}

// Grows reports whether posts have a firing alert that is not in the group.
func (g *AlertGroup) Grows(posts []RulerAlert) bool {
	at := g.index()
	return slices.ContainsFunc(posts, func(p RulerAlert) bool {
		_, known := at[p.Fingerprint]
		return !known && !p.Resolved
	})
}

// MaxGroup is the maximum size of the alerts of a group, in bytes. Each change of a group reads all
// of it.
const MaxGroup = 8 << 20

// size returns the approximate size of an alert, in bytes.
func (a *RulerAlert) size() int {
	n := 64 + len(a.Fingerprint) + len(a.Generator)
	for _, texts := range [][]string{a.Labels, a.Annotations} {
		for _, text := range texts {
			n += 2 + len(text)
		}
	}
	return n
}

// size returns the approximate size of all alerts, in bytes.
func (g *AlertGroup) size() (n int) {
	for i := range g.Alerts {
		n += g.Alerts[i].size()
	}
	return n
}

// Post adds posts to the group. The latest post of a fingerprint counts. Alerts that are not in
// posts stay unchanged. If [MaxGroup] is exceeded, Post leaves out new alerts, whose number it
// returns, and new texts of present alerts.
func (g *AlertGroup) Post(now time.Time, u *Uptime, posts []RulerAlert, times GroupTimes) (left int) {
	g.Begin(now, u)
	at, size := g.index(), g.size()
	for _, p := range posts {
		p.correct(now, u)
		p.told, p.lost, p.down, p.number, p.piece = false, false, downOfAlerts(u), 0, 0
		i, known := at[p.Fingerprint]
		switch {
		case known && p.At.Before(g.Alerts[i].At):
		case known:
			old := &g.Alerts[i]
			p.told, p.lost, p.number, p.piece = old.told, old.lost && !p.Resolved, old.number, old.piece
			if p.size() > old.size() && size+p.size()-old.size() > MaxGroup {
				p.Annotations, p.Generator = old.Annotations, old.Generator
			}
			size += p.size() - old.size()
			*old = p
		case p.Resolved:
		case size+p.size() > MaxGroup:
			left++
		default:
			at[p.Fingerprint] = len(g.Alerts)
			g.Alerts = append(g.Alerts, p)
			size += p.size()
		}
	}
	g.Look(now, u, times)
	return left
}

// Look begins to wait if there is something to tell, at most as long as times say.
func (g *AlertGroup) Look(now time.Time, u *Uptime, times GroupTimes) {
	longest := times.Wait
	if g.opened {
		longest = times.Interval
	}
	if g.next.IsZero() && g.hasNews(now, u) || g.next.Sub(now) > longest {
		g.next = now.Add(longest)
	}
}

// hasNews reports whether destinations do not know the state of an alert.
func (g *AlertGroup) hasNews(now time.Time, u *Uptime) bool {
	return slices.ContainsFunc(g.Alerts, func(a RulerAlert) bool { return a.fires(now, u) != a.told })
}

// GroupState is the state of a group that a message tells.
type GroupState struct {
	Firing   []RulerAlert
	Resolved []RulerAlert // since the last message
	Lost     []RulerAlert // no longer reported; if the group ends, all since it was opened

	OpenFor time.Duration // how long a group that ends was open; 0 if unknown
}

// Tell returns the state to tell now, and notes that it is told. ok is false if there is nothing to
// tell.
func (g *AlertGroup) Tell(now time.Time, u *Uptime) (s GroupState, ok bool) {
	if g.next.IsZero() || g.next.After(now) {
		return s, false
	}
	g.next = time.Time{}
	ok = g.hasNews(now, u)
	var known []RulerAlert // told as lost earlier
	stay := g.Alerts[:0:0]
	for _, a := range g.Alerts {
		switch {
		case a.fires(now, u):
			s.Firing = append(s.Firing, a)
			a.told, a.lost = true, false
		case a.told && a.Resolved:
			s.Resolved = append(s.Resolved, a)
			continue
		case a.told:
			s.Lost = append(s.Lost, a)
			a.told, a.lost = false, true
		case a.lost:
			known = append(known, a)
		default:
			continue // it came and went meanwhile
		}
		stay = append(stay, a)
	}
	if ok && !g.opened {
		g.opened, g.since = true, now
	}
	g.Alerts = stay
	if len(s.Firing) == 0 {
		s.Lost = append(s.Lost, known...)
		if !g.since.IsZero() {
			s.OpenFor = max(now.Sub(g.since), 0)
		}
	}
	return s, ok
}

// Open returns the alerts that fire.
func (g *AlertGroup) Open(now time.Time, u *Uptime) (open []RulerAlert) {
	for _, a := range g.Alerts {
		if a.fires(now, u) {
			open = append(open, a)
		}
	}
	return open
}

// Over reports whether nothing fires and no destination has to be told.
func (g *AlertGroup) Over(now time.Time, u *Uptime) bool {
	return g.next.IsZero() && len(g.Open(now, u)) == 0 && !g.hasNews(now, u)
}

// Due returns when the group has to be looked at; zero for never.
func (g *AlertGroup) Due(u *Uptime) (due time.Time) {
	if !g.next.IsZero() {
		return g.next
	}
	for i := range g.Alerts {
		a := &g.Alerts[i]
		if a.Resolved {
			continue
		}
		end := a.forgotten(u)
		if deadline := a.deadline(u); a.told && deadline.Before(end) {
			end = deadline
		}
		if due.IsZero() || end.Before(due) {
			due = end
		}
	}
	return due
}

func (a *RulerAlert) fields(c *wire.Codec) {
	wire.Text(c, 1, &a.Fingerprint)
	wire.Texts(c, 2, &a.Labels)
	wire.Texts(c, 3, &a.Annotations)
	wire.Text(c, 4, &a.Generator)
	wire.Time(c, 5, &a.Starts)
	wire.Time(c, 6, &a.Ends)
	wire.Time(c, 7, &a.At)
	wire.True(c, 8, &a.Resolved)
	wire.True(c, 9, &a.told)
	wire.True(c, 10, &a.lost)
	wire.Number(c, 11, &a.down)
	wire.Number(c, 12, &a.number)
}

// Fields names the fields of a record.
func (g *AlertGroup) Fields(c *wire.Codec) {
	wire.Text(c, 1, &g.Site)
	wire.Text(c, 2, &g.Home)
	wire.Text(c, 3, &g.Key)
	wire.Text(c, 4, &g.Name)
	wire.Texts(c, 5, &g.Labels)
	wire.Time(c, 6, &g.Gone)
	wire.Records(c, 7, &g.Alerts, (*RulerAlert).fields)
	wire.True(c, 8, &g.opened)
	wire.Time(c, 9, &g.next)
	wire.Time(c, 10, &g.since)
	wire.Number(c, 11, &g.pieces)
	wire.Number(c, 12, &g.pieceBytes)
	wire.Number(c, 13, &g.numbers)
	wire.Time(c, 14, &g.changed)
}
