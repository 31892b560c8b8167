// Package beats has the page of the beats that the keys of a site expect, and what other pages show of
// them.
package beats

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/sending"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Pages shows the beats of a site.
type Pages struct{ API *httpapi.API }

// maxListed is how many beats the page lists.
const maxListed = 200

// The query parameters of the page.
const (
	keyQuery   = "key"
	stateQuery = "state"
)

// ServePage lists the beats of the site, the worst first, or shows the one that the query names.
func (p Pages) ServePage(w http.ResponseWriter, r *http.Request, _ *httpapi.Route) error {
	query := r.URL.Query()
	name := query.Get(httpapi.BeatParameter)
	out := view.BeatsPage{
		Root: api.RootOf(r.URL.Path), Address: httpapi.AddressOf(r, httpapi.RouteConsoleBeats), Key: query.Get(keyQuery),
		State: view.BeatState(query.Get(stateQuery)), Lacks: lacks,
	}
	for _, k := range p.API.Resolved.Keys {
		if len(k.Expects) == 0 || out.Key != "" && k.Name != out.Key {
			continue
		}
		some, err := p.list(r, k)
		if err != nil {
			out.Problem = httpapi.ErrQueueUnread
		}
		for i := range some {
			if name == "" || some[i].Name == name {
				out.Beats = append(out.Beats, some[i])
			}
		}
		out.Texts = k.Inbox > 0
	}
	if name != "" {
		if out.One = len(out.Beats) == 1; !out.One && out.Problem == "" {
			return api.Errorf(http.StatusNotFound, "the key %s expects no beat %s", out.Key, name)
		}
	} else {
		tally(&out)
	}
	slices.SortFunc(out.Beats, worstFirst)
	out.More = max(len(out.Beats)-maxListed, 0)
	out.Beats = out.Beats[:len(out.Beats)-out.More]
	return p.API.WritePage(w, r, http.StatusOK, httpapi.RouteConsoleBeats, out)
}

// worstFirst compares beats: by state, those with the newest problem first, and then by key and name.
func worstFirst(a, b view.Beat) int {
	return cmp.Or(
		cmp.Compare(slices.Index(view.BeatStates, a.State), slices.Index(view.BeatStates, b.State)), b.Since.Compare(a.Since),
		cmp.Compare(a.Key, b.Key), cmp.Compare(a.Name, b.Name),
	)
}

// tally counts the beats by state, and leaves those in the state of the page.
func tally(p *view.BeatsPage) {
	counts := map[view.BeatState]int{}
	for i := range p.Beats {
		counts[p.Beats[i].State]++
	}
	for _, s := range view.BeatStates {
		t := view.BeatTally{State: s, Count: counts[s]}
		if t.Count == 0 {
			continue
		}
		if s != p.State {
			query := url.Values{stateQuery: {string(s)}}
			if p.Key != "" {
				query.Set(keyQuery, p.Key)
			}
			t.Address = p.Address + "?" + query.Encode()
		}
		p.Tallies = append(p.Tallies, t)
	}
	if p.State != "" {
		p.Beats = slices.DeleteFunc(p.Beats, func(b view.Beat) bool { return b.State != p.State })
	}
}

// lacks has the line of the Caddyfile that brings a beat.
var lacks = []view.CopiedLine{{
	Name: "a beat of a key", Text: "expect nightly every 24h grace 2h", Note: "A line in the block of a key:",
}}

// OfKey returns the beats that a key expects, and a command that sends one of them. If the queue cannot
// be read, there are none, and the queue's part of the page says why.
func (p Pages) OfKey(r *http.Request, k *site.Key) (out []view.Beat, line *view.CopiedLine) {
	if len(k.Expects) == 0 {
		return nil, nil
	}
	out, err := p.list(r, k)
	if err != nil || len(out) == 0 {
		return nil, nil
	}
	slices.SortFunc(out, worstFirst)
	for i := range out {
		out[i].Key = "" // the page is that of the key
	}
	if k.CheckSource(site.SourceDirect) == nil {
		line = beatLine(r, k, p.API.NeedsLogin(r, k))
	}
	return out, line
}

// list returns the beats of a key, with what jobs posted if the client may read it.
func (p Pages) list(r *http.Request, k *site.Key) ([]view.Beat, error) {
	q, err := p.API.App.Open(k)
	if err != nil || q == nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	all, err := p.statuses(ctx, q, k)
	if err != nil {
		return nil, err
	}
	_, err = p.API.Inboxes.MayRead(r, p.API.Lookup(k.Name))
	mayRead, now := err == nil, q.Outbox.Queue.Now()
	out := make([]view.Beat, 0, len(all))
	for i := range all {
		b := newBeat(&all[i], now, mayRead)
		b.Key, b.KeyAddress = k.Name, httpapi.ConsoleKey(r, k.Name)
		query := url.Values{keyQuery: {k.Name}, httpapi.BeatParameter: {b.Name}}
		b.Address = httpapi.AddressOf(r, httpapi.RouteConsoleBeats) + "?" + query.Encode()
		out = append(out, b)
	}
	return out, nil
}

// statuses returns what is known of the beats of a key.
func (p Pages) statuses(ctx context.Context, q *gateway.Rooms, k *site.Key) ([]heartbeat.BeatStatus, error) {
	var expected []heartbeat.ExpectedBeat
	for i := range k.Expects {
		expected = append(expected, *p.API.Beats.ExpectedBeat(k, &k.Expects[i]))
	}
	return q.Beats.Beats(ctx, expected)
}

// newBeat returns a beat as pages show it. mayRead means that the client may read what jobs posted.
func newBeat(s *heartbeat.BeatStatus, now time.Time, mayRead bool) view.Beat {
	e := s.Expected.ExpectedBeat
	out := view.Beat{
		Name: e.Name, How: e.How(), Grace: rules.FormatTime(e.Grace), State: stateOf(s, now), Now: now, Exit: s.Beat.Exit,
		Started: s.Beat.Started, RunEnds: s.RunEnds, Last: s.Beat.Last, Ran: ranText(s.Beat.Ran), Due: s.Due, Late: s.Late,
	}
	if s.Beat.State != rules.BeatOK {
		out.Since = s.Beat.Since
	}
	for i := range s.Runs {
		r := &s.Runs[i]
		x := view.Run{
			At: r.At, Outcome: view.RunOutcome(cmp.Or(string(r.Outcome), string(view.RunOnTime))), Took: r.Took, Ran: ranText(r.Took),
			Exit: r.Exit, Due: r.Due,
		}
		if mayRead {
			x.Output = r.Output
		}
		out.Runs = append(out.Runs, x)
	}
	return out
}

// ranText returns how long a run took as text; "" if unknown.
func ranText(ran time.Duration) string {
	if ran == 0 {
		return ""
	}
	return heartbeat.FormatRun(ran)
}

// stateOf returns the state of a beat.
func stateOf(s *heartbeat.BeatStatus, now time.Time) view.BeatState {
	state := s.State(now)
	switch {
	case state == heartbeat.StateInGrace && s.Beat.Started.IsZero():
		return view.BeatInGrace
	case state != heartbeat.StateOnTime && state != heartbeat.StateInGrace:
		return view.BeatState(state)
	case !s.Beat.Started.IsZero():
		return view.BeatRunning
	case s.Beat.Last.IsZero():
		return view.BeatNew
	}
	return view.BeatOnTime
}

// beatLine returns a command with which a job sends the first beat of a key.
func beatLine(r *http.Request, k *site.Key, login bool) *view.CopiedLine {
	l := &view.CopiedLine{Name: "a beat", Note: "Behind the command of the job, which also tells whether it has failed."}
	if len(k.Tokens) > 0 {
		l.Note += " $TOKEN stands for a token of the key."
	}
	var options string
	options, l.Log = sending.CurlOptions(k, login)
	l.Text = "backup.sh; curl -fsS -m 10 --retry 5" + options + ` "` + sending.KeyURL(r, k) + "?beat=" + k.Expects[0].Name + `&exit=$?"`
	return l
}

// Troubles returns the beats of a key that are late or have failed, in order of time. If the
// queue cannot be read, which pages report elsewhere, it returns nil.
func (p Pages) Troubles(ctx context.Context, q *gateway.Rooms, k *site.Key) (out []view.Trouble) {
	if len(k.Expects) == 0 {
		return nil
	}
	all, err := p.statuses(ctx, q, k)
	if err != nil {
		return nil
	}
	for i := range all {
		b := &all[i]
		switch b.Beat.State {
		case rules.BeatLate:
			out = append(out, view.Trouble{What: "The beat " + b.Expected.ExpectedBeat.Name + " is late", Since: b.Beat.Since})
		case rules.BeatFailed:
			out = append(out, view.Trouble{What: "The beat " + b.Expected.ExpectedBeat.Name + " has failed", Since: b.Beat.Since})
		case rules.BeatTooLong:
			out = append(out, view.Trouble{What: "The beat " + b.Expected.ExpectedBeat.Name + " takes too long", Since: b.Beat.Since})
		case rules.BeatOK:
		}
	}
	slices.SortStableFunc(out, func(a, b view.Trouble) int { return a.Since.Compare(b.Since) })
	return out
}

// WatchdogTrouble returns what is wrong with the watchdog, or nil.
func WatchdogTrouble(ctx context.Context, m *heartbeat.Monitor) *view.Trouble {
	w, err := m.Watchdog(ctx)
	if err != nil || w == nil || w.FailingSince.IsZero() {
		return nil
	}
	return &view.Trouble{What: "The watchdog is not told that the gateway works", Since: w.FailingSince, Cause: w.LastError}
}
