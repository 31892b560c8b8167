package console

import (
	"context"
	"net/http"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/console/sending"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// setBeats sets the beats that a key expects. If the queue cannot be read, there are none, and the
// queue's part of the page says why.
func (h *keyPages) setBeats(r *http.Request, p *view.KeyPage, k *site.Key) {
	if len(k.Expects) == 0 {
		return
	}
	q, err := h.App.Open(k)
	if err != nil || q == nil {
		return
	}
	var expected []heartbeat.ExpectedBeat
	for i := range k.Expects {
		expected = append(expected, *h.api.Beats.ExpectedBeat(k, &k.Expects[i]))
	}
	beats, err := q.Beats.Beats(r.Context(), expected)
	if err != nil {
		return
	}
	for _, b := range beats {
		e := b.Expected.ExpectedBeat
		x := view.Beat{
			Name: e.Name, How: e.How(), Grace: rules.FormatTime(e.Grace), Outcome: view.Delivered, Exit: b.Beat.Exit, Started: b.Beat.Started,
			RunEnds: b.RunEnds,
			Last:    b.Beat.Last, Due: b.Due, Late: b.Late, Overdue: b.State(q.Outbox.Queue.Now()) == heartbeat.StateInGrace,
		}
		if b.Beat.Ran > 0 {
			x.Ran = heartbeat.FormatRun(b.Beat.Ran)
		}
		if b.Beat.State != rules.BeatOK {
			x.Outcome, x.Since = view.Failed, b.Beat.Since
			x.Problem = map[rules.BeatState]string{rules.BeatLate: "Late", rules.BeatFailed: "Failed", rules.BeatTooLong: "Not ended"}[b.Beat.State]
		}
		p.Beats = append(p.Beats, x)
	}
	if k.CheckSource(site.SourceDirect) == nil {
		p.BeatLine = beatLine(r, k)
	}
}

// beatLine returns a command with which a job sends the first beat of a key.
func beatLine(r *http.Request, k *site.Key) *view.CopiedLine {
	l := &view.CopiedLine{Name: "a beat", Note: "Behind the command of the job, which also tells whether it has failed."}
	header := ""
	if len(k.Tokens) > 0 {
		header = ` -H "Authorization: Bearer $TOKEN"`
		l.Note += " $TOKEN stands for a token of the key."
	}
	l.Text = "backup.sh; curl -fsS -m 10 --retry 5" + header + ` "` + sending.KeyURL(r, k) + "?beat=" + k.Expects[0].Name + `&exit=$?"`
	return l
}

// beatTroubles returns the beats of a key that are late or have failed, in order of time. If the
// queue cannot be read, which pages report elsewhere, it returns nil.
func (h *shared) beatTroubles(ctx context.Context, q *gateway.Rooms, k *site.Key) (out []view.Trouble) {
	var expected []heartbeat.ExpectedBeat
	for i := range k.Expects {
		expected = append(expected, *h.api.Beats.ExpectedBeat(k, &k.Expects[i]))
	}
	if len(expected) == 0 {
		return nil
	}
	beats, err := q.Beats.Beats(ctx, expected)
	if err != nil {
		return nil
	}
	for _, b := range beats {
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

// watchdogTrouble returns what is wrong with the watchdog, or nil.
func watchdogTrouble(ctx context.Context, m *heartbeat.Monitor) *view.Trouble {
	w, err := m.Watchdog(ctx)
	if err != nil || w == nil || w.FailingSince.IsZero() {
		return nil
	}
	return &view.Trouble{What: "The watchdog is not told that the gateway works", Since: w.FailingSince, Cause: w.LastError}
}
