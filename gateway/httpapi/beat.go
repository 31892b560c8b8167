package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Beats takes the beats that keys expect.
type Beats struct {
	*Base
	sender *Sender
}

// BeatParameter is the query parameter with the name of a beat.
const BeatParameter = "beat"

// beatQuery returns the name of the beat that a request is, and reports whether it is
// one.
func beatQuery(r *http.Request) (name string, ok bool) {
	if !strings.Contains(r.URL.RawQuery, BeatParameter) {
		return "", false
	}
	query := r.URL.Query()
	return query.Get(BeatParameter), query.Has(BeatParameter)
}

var (
	errBeatWithoutKey = api.Errorf(http.StatusBadRequest, "a beat belongs to a key; send it to /notify/{KEY}?beat=NAME")
	errBeatMethod     = api.Errorf(http.StatusMethodNotAllowed, "a beat is sent with GET or POST")
)

// errNoBeat returns the error for a beat that a key does not expect.
func errNoBeat(key string) *api.Error {
	return api.Errorf(http.StatusNotFound, "the key %s expects no beat of this name; add expect <name> every <duration> to the key, or correct the name", key)
}

// serveBeat answers a beat to a key.
func (h *Beats) serveBeat(w http.ResponseWriter, r *http.Request, at *Route, beat string) *api.Response {
	err := h.sender.mayNameKey(r, at)
	var resp *api.Response
	if err == nil {
		resp, err = h.acceptBeat(w, r, at, beat)
	}
	if err != nil {
		resp = h.sender.notSent(r, at, err)
	}
	return resp
}

// acceptBeat reads a beat in the gateway's own format. Who may send to the key may send a
// beat. As a GET changes something here, one from a page of another origin is refused,
// too.
func (h *Beats) acceptBeat(w http.ResponseWriter, r *http.Request, at *Route, beat string) (*api.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, POST")
		return nil, errBeatMethod
	}
	if at.Key == "" {
		return nil, errBeatWithoutKey
	}
	if err := h.sender.CheckRoute(r, at.Lookup()); err != nil {
		return nil, err
	}
	e, err := h.sender.Enter(r, true)
	if err != nil {
		return nil, err
	}
	defer e.Leave()
	k, err := at.Lookup().Key(r.Context())
	if err != nil {
		return nil, err
	}
	if err := k.CheckSource(site.SourceDirect); err != nil {
		return nil, err
	}
	if err := h.Resolved.CheckOrigin(asPost(r)); err != nil {
		return nil, err
	}
	hops, err := api.Hops(r, version.AgentComment)
	if err != nil {
		return nil, err
	}
	if k.Expect(beat) == nil {
		return nil, errNoBeat(at.Key)
	}
	q, err := api.Read(w, r, h.sender.Limits(false))
	if err != nil {
		return nil, err
	}
	return h.takeBeat(r, q, at, beat, hops)
}

// beatTries is how often a beat is taken that others change meanwhile.
const beatTries = 10

// takeBeat takes a beat that has been read and may be sent to the key. It closes q.
func (h *Beats) takeBeat(r *http.Request, q *api.Request, at *Route, beat string, hops int) (*api.Response, error) {
	k, err := at.Lookup().Key(r.Context())
	if err != nil {
		q.Close()
		return nil, err
	}
	e := k.Expect(beat)
	if e == nil {
		q.Close()
		return nil, errNoBeat(at.Key)
	}
	m, err := q.Beat()
	if err == nil && m.Type == notifier.Failure {
		m.Hops = hops
		m.Attachments, err = h.sender.attachments(r, q, true)
	}
	if err != nil {
		q.Close()
		return nil, err
	}
	store, err := h.App.Open(k)
	if err != nil {
		q.Close()
		return nil, err
	}
	ctx := context.WithoutCancel(r.Context())
	x := h.ExpectedBeat(k, e)
	if m.Type == notifier.Failure {
		return h.failBeat(ctx, store, x, q, m)
	}
	q.Close()
	for range beatTries {
		resp, err := h.beatCame(ctx, store, x)
		if !errors.Is(err, heartbeat.ErrBeatUnchanged) {
			return resp, err
		}
	}
	return nil, outbox.ErrQueueUnavailable(heartbeat.ErrBeatUnchanged)
}

// beatCame notes a beat that has not failed. The first one after a problem is told.
func (h *Beats) beatCame(ctx context.Context, q *gateway.Rooms, x *heartbeat.ExpectedBeat) (*api.Response, error) {
	var before rules.Beat
	quiet := q.Beats.Came(x, false, false, &before)
	err := quiet.Apply(ctx)
	if err == nil {
		return beatResponse(x, quiet, nil), nil
	}
	if !errors.Is(err, heartbeat.ErrBeatUnchanged) {
		return nil, outbox.QueueError(err)
	}
	m := x.BackText(before.State, before.Since)
	told := q.Beats.Came(x, false, true, &before)
	report, id, err := q.Beats.TellBeat(ctx, x.Delivery(m, told), told)
	if err != nil {
		if errors.Is(err, heartbeat.ErrBeatUnchanged) {
			return nil, err
		}
		return nil, outbox.QueueError(err)
	}
	heartbeat.Emit(&h.App.Engine, event.BeatBack, x, &told.Beat)
	resp := beatResponse(x, told, report)
	resp.ID = id
	return resp, nil
}

// failBeat tells that a beat has failed. If the store is not available, the message is
// sent at once, like any other.
func (h *Beats) failBeat(ctx context.Context, q *gateway.Rooms, x *heartbeat.ExpectedBeat, request *api.Request, m *notifier.Message) (*api.Response, error) {
	heartbeat.FailedText(x.Name, m)
	var before rules.Beat
	c := q.Beats.Came(x, true, true, &before)
	d := x.Delivery(m, c)
	d.Memory, d.Release = request.Memory(), request.Close
	if err := d.To.Check(m); err != nil {
		request.Close()
		return nil, err
	}
	report, id, err := q.Beats.TellBeat(ctx, d, c)
	if err != nil {
		defer request.Close()
	}
	if _, unavailable := errors.AsType[*queue.UnavailableError](err); unavailable {
		q.Outbox.Log.Error("a beat that has failed cannot be stored; the message about it is sent once", zap.String("key", d.Key), zap.String("beat", x.Name), zap.Error(err))
		return api.NewResponse(h.Shared.Send(ctx, d)), nil
	}
	if err != nil {
		return nil, outbox.QueueError(err)
	}
	heartbeat.Emit(&h.App.Engine, event.BeatLate, x, &c.Beat)
	resp := beatResponse(x, c, report)
	resp.ID = id
	return resp, nil
}

// beatResponse returns the response to a beat that has been noted. report is that of the
// message about it, or nil for none.
func beatResponse(x *heartbeat.ExpectedBeat, c *heartbeat.BeatChange, report *notifier.Report) *api.Response {
	resp := &api.Response{Status: http.StatusOK, Title: "Beat " + x.Name}
	text := "Beat " + x.Name + " has come. The next one is due by " + heartbeat.BeatTime(c.Beat.Due(&c.Uptime)) + "."
	resp.Records = []notifier.Record{{Time: time.Now(), Level: notifier.LevelInfo, Text: text}}
	if report != nil {
		resp.Results, resp.Records = report.Results, append(resp.Records, report.Records...)
	}
	return resp
}

// ExpectedBeat returns the beat of an expectation of a key of the site.
func (h *Beats) ExpectedBeat(k *site.Key, e *site.ExpectedBeat) *heartbeat.ExpectedBeat {
	if !k.OfSite {
		return &heartbeat.ExpectedBeat{Site: "", Settings: h.App.Engine.Global, Key: k, ExpectedBeat: e}
	}
	return &heartbeat.ExpectedBeat{Site: h.Site(), Settings: h.Resolved, Key: k, ExpectedBeat: e}
}
