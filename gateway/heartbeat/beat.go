package heartbeat

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// The kinds of records of beats.
var (
	// The record of a beat is due when the beat is late, so that one of the gateways that share a
	// queue tells it. Another record, the uptime, says when a gateway last ran; each change of a
	// beat reads it. Only expect of a key makes a beat.
	KindBeat   = outbox.ConfiguredKind('B', "beats")
	KindUptime = outbox.OwnKind('U', "uptime")

	KindWatchdog = outbox.OwnKind('W', "watchdog") // due when a gateway calls the watchdog
)

// ExpectedBeat is a beat that a key of the configuration expects.
type ExpectedBeat struct {
	Site     string // the ID of the site that defines the key; "" for the app
	Settings *site.Site
	Key      *site.Key
	*site.ExpectedBeat
}

// place returns the place of the key, which is unique among all sites.
func (x *ExpectedBeat) place() string { return x.Key.Place(x.Site).String() }

// expectedBeats returns the beats that the keys of a configuration expect.
func expectedBeats(a *site.Directory) (out []ExpectedBeat) {
	add := func(siteID string, r *site.Site, ofSite bool) {
		for _, k := range r.Keys {
			for i := range k.Expects {
				if k.OfSite == ofSite {
					out = append(out, ExpectedBeat{siteID, r, k, &k.Expects[i]})
				}
			}
		}
	}
	add("", a.Global, false)
	for _, r := range a.Sites {
		add(a.SiteID(r), r, true)
	}
	return out
}

// Expects reports whether a key of the configuration expects beats.
func Expects(a *site.Directory) bool {
	return slices.ContainsFunc(a.All(), (*site.Site).ExpectsBeats)
}

// expectedBeatOf returns the expected beat of a record, or nil if the configuration does not expect
// it.
func expectedBeatOf(a *site.Directory, b *rules.Beat) *ExpectedBeat {
	for _, r := range a.SitesWithID(b.Site) {
		if k := r.Keys[b.Key]; k != nil && k.OfSite == (b.Site != "") && k.Expect(b.Name) != nil {
			return &ExpectedBeat{b.Site, r, k, k.Expect(b.Name)}
		}
	}
	return nil
}

// beatName returns the name of the record of a beat.
func (m *Monitor) beatName(x *ExpectedBeat) queue.Hash {
	return m.outbox.Queue.Hash("beat\x00" + x.place() + "\x00" + x.Name)
}

// uptimeName returns the name of the record of the [rules.Uptime].
func (m *Monitor) uptimeName() queue.Hash { return m.outbox.Queue.Hash("uptime") }

// The records of beats and of the uptime. A damaged beat is read as one that is not armed.
var (
	beats   = outbox.Typed[rules.Beat]{Kind: KindBeat, Fields: (*rules.Beat).Fields}
	uptimes = outbox.Typed[rules.Uptime]{Kind: KindUptime, Fields: (*rules.Uptime).Fields}
)

// lateCheck is how long after a beat was told to be late it is looked at again: the configuration
// may no longer expect it.
const lateCheck = 10 * time.Minute

// putUptime stores the uptime.
func (m *Monitor) putUptime(tx *queue.Tx, u *rules.Uptime) {
	uptimes.Put(tx, m.uptimeName(), u, u.Seen.Add(time.Duration(m.seeEvery.Load())), queue.Hash{})
}

// BeatChange is a change of a beat and of the [rules.Uptime].
type BeatChange struct {
	monitor *Monitor
	name    queue.Hash
	change  func(now time.Time, b *rules.Beat, u *rules.Uptime) (remove, ok bool)

	Beat    rules.Beat // after the change
	Uptime  rules.Uptime
	refused bool // change returned false, and nothing has changed
}

// ruled returns the change for the queue.
func (c *BeatChange) ruled() *queue.Ruled {
	return &queue.Ruled{Names: []queue.Hash{c.name, c.monitor.uptimeName()}, Decide: func(tx *queue.Tx) error {
		now := c.monitor.outbox.Queue.Now()
		b, u := beats.GetOrNew(tx, c.name), uptimes.GetOrNew(tx, c.monitor.uptimeName())
		c.monitor.see(u, now)
		remove, ok := c.change(now, b, u)
		c.Beat, c.Uptime, c.refused = *b, *u, !ok
		if !ok {
			return ErrBeatUnchanged
		}
		c.monitor.putUptime(tx, u)
		if remove {
			tx.Delete(c.name)
		} else {
			beats.Put(tx, c.name, b, b.NextLook(now, u, lateCheck), queue.Hash{})
		}
		return nil
	}}
}

// Apply makes the change without a message.
func (c *BeatChange) Apply(ctx context.Context) error {
	err := c.monitor.outbox.Queue.Records.Apply(ctx, c.ruled())
	if err == nil {
		c.monitor.seen.Store(true)
	}
	if c.refused {
		return ErrBeatUnchanged
	}
	return err
}

// see notes that this gateway runs. If the store is not shared, no gateway ran until this one
// began, however late that is stored.
func (m *Monitor) see(u *rules.Uptime, now time.Time) {
	every := time.Duration(m.seeEvery.Load())
	if !m.outbox.Shared && !m.seen.Load() {
		m.began.CompareAndSwap(0, now.UnixNano())
		u.See(time.Unix(0, m.began.Load()), every, true)
	}
	u.See(now, every, false)
}

// Ahead reports whether a record is an uptime that was stored when the clock was ahead. Beats need
// no check: they are armed again after each change of the clock.
func (m *Monitor) Ahead(record []byte, now time.Time) bool {
	return outbox.KindOf(record) == KindUptime && queue.WrittenAhead(uptimes.DecodeOrNew(record).Seen, now)
}

// Kinds returns the kinds of beats, of the uptime and of the watchdog.
func (m *Monitor) Kinds() []*outbox.Kind { return []*outbox.Kind{KindBeat, KindUptime, KindWatchdog} }

// Punctual returns a function that reports whether a beat or the watchdog may be due: always if the
// configuration has one.
func (m *Monitor) Punctual(conf *outbox.Configuration) func() bool {
	if conf.QueueSettings.Watchdog != nil || Expects(&conf.Directory) {
		return outbox.Always
	}
	return nil
}

// Turn returns the turn of a beat: one of its key.
func (m *Monitor) Turn(name queue.Hash, record []byte) string {
	if outbox.KindOf(record) != KindBeat {
		return outbox.Spread(name, "")
	}
	b := beats.DecodeOrNew(record)
	return outbox.Spread(name, b.Site+"\x00"+b.Key)
}

// Due does the work that is due in a record of this package.
func (m *Monitor) Due(ctx context.Context, conf *outbox.Configuration, name queue.Hash, data []byte, crowded bool) error {
	switch kind := outbox.KindOf(data); {
	case crowded:
		return nil
	case kind == KindBeat:
		return m.dueBeat(ctx, conf, name, data)
	case kind == KindWatchdog:
		return m.watchdog.due(ctx, conf)
	}
	return m.dueUptime(ctx, conf, name)
}

// dueUptime notes that this gateway runs. If nobody needs the uptime, it removes the record when no
// other gateway has renewed it for uptimeKept.
func (m *Monitor) dueUptime(ctx context.Context, conf *outbox.Configuration, name queue.Hash) (err error) {
	expects := Expects(&conf.Directory)
	if !expects && m.Needed != nil {
		if expects, err = m.Needed(ctx); err != nil {
			return err
		}
	}
	err = m.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
		now := m.outbox.Queue.Now()
		if u := uptimes.GetOrNew(tx, name); expects {
			m.SeeUptime(tx, now)
		} else if now.Sub(u.Seen) < uptimeKept {
			m.putUptime(tx, u)
		} else {
			tx.Delete(name)
		}
		return nil
	}})
	if err == nil && expects {
		m.seen.Store(true)
	}
	return err
}

// uptimeKept is how long the record of the [rules.Uptime] is kept without being renewed.
const uptimeKept = time.Hour

// Arm begins to wait for beats, and to call the watchdog. If the uptime is needed, it stores that
// this gateway runs.
func (m *Monitor) Arm(ctx context.Context, conf *outbox.Configuration) error {
	if conf.QueueSettings.Watchdog != nil {
		if err := m.watchdog.due(ctx, conf); err != nil {
			return err
		}
	}
	if err := m.armBeats(ctx, conf); err != nil {
		return err
	}
	b, err := m.outbox.Queue.Records.Get(ctx, m.uptimeName())
	if err == nil && b != nil {
		_, err = m.Uptime(ctx)
	}
	return err
}

// armBeats begins to wait for the new and the changed beats of the configuration.
func (m *Monitor) armBeats(ctx context.Context, conf *outbox.Configuration) error {
	armed := map[queue.Hash]bool{}
	expected := expectedBeats(&conf.Directory)
	m.seeEvery.Store(int64(seeEvery(expected)))
	for _, x := range expected {
		name := m.beatName(&x)
		if armed[name] {
			continue // several handlers of a site define it
		}
		armed[name] = true
		c := &BeatChange{monitor: m, name: name, change: func(now time.Time, b *rules.Beat, u *rules.Uptime) (remove, ok bool) {
			b.Site, b.Key, b.Name = x.Site, x.Key.Name, x.Name
			b.Arm(now, u, &x.Expect)
			b.KeepOutputs(now, x.Key.Inbox)
			return false, true
		}}
		if err := c.Apply(ctx); err != nil {
			return err
		}
	}
	return nil
}

// seeEvery returns how often a gateway that expects these beats notes that it runs.
func seeEvery(expected []ExpectedBeat) time.Duration {
	every := rules.SeeEvery(math.MaxInt64)
	for i := range expected {
		every = min(every, rules.SeeEvery(expected[i].Grace))
	}
	return every
}

// BeatStatus is what is known of a beat, for people.
type BeatStatus struct {
	Expected ExpectedBeat
	Beat     rules.Beat
	Due      time.Time // when the next one is due; zero if unknown
	Late     time.Time // when it is late; zero if unknown
	RunEnds  time.Time // when the present run takes too long; zero for never or none

	Runs []rules.Run // the last ones with the present one, the latest last
}

// Beats returns what is known of beats.
func (m *Monitor) Beats(ctx context.Context, expected []ExpectedBeat) ([]BeatStatus, error) {
	record, err := m.outbox.Queue.Records.Get(ctx, m.uptimeName())
	if err != nil {
		return nil, err
	}
	u, now := uptimes.DecodeOrNew(record), m.outbox.Queue.Now()
	out := make([]BeatStatus, 0, len(expected))
	shown := map[queue.Hash]bool{}
	for _, x := range expected {
		name := m.beatName(&x)
		if shown[name] {
			continue // several handlers of a site define it
		}
		shown[name] = true
		record, err := m.outbox.Queue.Records.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		s := BeatStatus{Expected: x}
		if record != nil {
			b := beats.DecodeOrNew(record)
			s.Beat, s.Due, s.Late, s.RunEnds = *b, b.Due(u), b.Deadline(u), b.RunDeadline(u)
			b.KeepOutputs(now, x.Key.Inbox)
			s.Runs = b.Recent(now, u, &x.Expect)
		}
		out = append(out, s)
	}
	return out, nil
}

// AllBeats returns the beats of all keys, by key and name.
func (m *Monitor) AllBeats(ctx context.Context) ([]BeatStatus, error) {
	beats, err := m.Beats(ctx, expectedBeats(&m.outbox.Current().Directory))
	slices.SortFunc(beats, func(x, y BeatStatus) int {
		return strings.Compare(x.Expected.Key.Name+" "+x.Expected.ExpectedBeat.Name, y.Expected.Key.Name+" "+y.Expected.ExpectedBeat.Name)
	})
	return beats, err
}

// AdminBeat is the JSON of a beat that a key expects.
type AdminBeat struct {
	Key    string    `json:"key"`
	Scope  string    `json:"scope"` // global or site
	Name   string    `json:"name"`
	Every  string    `json:"every,omitempty"`
	Cron   string    `json:"cron,omitempty"` // the five fields, instead of every
	Zone   string    `json:"zone,omitempty"` // of cron; none for the server's zone
	Grace  string    `json:"grace"`
	MaxRun string    `json:"max_run,omitempty"`
	State  string    `json:"state"`          // on_time, in_grace, late, failed or too_long
	Since  time.Time `json:"since,omitzero"` // it is late, has failed or takes too long
	Last   time.Time `json:"last,omitzero"`  // when the last one came
	Ran    string    `json:"ran,omitempty"`  // how long the last run took, if its start was sent
	Exit   int64     `json:"exit,omitempty"` // the exit code of the last one, if it was not 0
	Due    time.Time `json:"due,omitzero"`   // when the next one is due
	Late   time.Time `json:"late,omitzero"`  // when it is late

	Started time.Time `json:"started,omitzero"`  // when the present run started
	RunEnds time.Time `json:"run_ends,omitzero"` // when it takes too long

	Runs []AdminRun `json:"runs,omitempty"` // the last ones, the latest last
}

// AdminRun is the JSON of a run, without what the job has posted.
type AdminRun struct {
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"` // on_time, late, failed, missed, too_long or running
	Ran     string    `json:"ran,omitempty"`
	Exit    int64     `json:"exit,omitempty"`
	Due     time.Time `json:"due,omitzero"` // of a late one
}

// adminRuns returns the JSON of runs.
func adminRuns(runs []rules.Run) (out []AdminRun) {
	for i := range runs {
		r := &runs[i]
		x := AdminRun{At: r.At.UTC(), Outcome: cmp.Or(string(r.Outcome), StateOnTime), Due: r.Due.UTC()}
		x.Exit, _ = strconv.ParseInt(r.Exit, 10, 64)
		if r.Took > 0 {
			x.Ran = FormatRun(r.Took)
		}
		out = append(out, x)
	}
	return out
}

// Admin returns the JSON of a beat.
func (s *BeatStatus) Admin(now time.Time) AdminBeat {
	e := s.Expected.ExpectedBeat
	out := AdminBeat{
		Key: s.Expected.Key.Name, Scope: "global", Name: e.Name, Cron: e.Calendar.Fields(), Zone: e.Calendar.Zone(),
		Grace: rules.FormatTime(e.Grace),
		State: s.State(now), Last: s.Beat.Last.UTC(), Due: s.Due.UTC(), Late: s.Late.UTC(), Started: s.Beat.Started.UTC(),
		RunEnds: s.RunEnds.UTC(), Runs: adminRuns(s.Runs),
	}
	out.Exit, _ = strconv.ParseInt(s.Beat.Exit, 10, 64)
	if s.Expected.Key.OfSite {
		out.Scope = "site"
	}
	if e.Calendar.IsZero() {
		out.Every = rules.FormatTime(e.Every)
	}
	if e.MaxRun > 0 {
		out.MaxRun = rules.FormatTime(e.MaxRun)
	}
	if s.Beat.Ran > 0 {
		out.Ran = FormatRun(s.Beat.Ran)
	}
	if s.Beat.State != rules.BeatOK {
		out.Since = s.Beat.Since.UTC()
	}
	return out
}

// The states of beats without a problem, in the admin API and in metrics. Package rules has the
// other states.
const (
	StateOnTime  = "on_time"
	StateInGrace = "in_grace" // the next beat is due, and not late yet
)

// State returns the state of a beat for programs.
func (s *BeatStatus) State(now time.Time) string {
	switch {
	case s.Beat.State != rules.BeatOK:
		return string(s.Beat.State)
	case !s.Due.IsZero() && !s.Due.After(now):
		return StateInGrace
	}
	return StateOnTime
}

// AdminBeats is the JSON response about the expected beats and the calls of the watchdog.
type AdminBeats struct {
	Beats    []AdminBeat   `json:"beats"`
	Watchdog *WatchdogJSON `json:"watchdog,omitempty"`
}
