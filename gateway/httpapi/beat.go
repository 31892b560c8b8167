package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Beats accepts the beats that keys expect.
type Beats struct {
	*Base
	sender *Sender
}

// BeatParameter is the query parameter with the name of a beat.
const BeatParameter = "beat"

// beatQuery returns the name of the beat in a request, and reports whether the request is a beat.
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
	return api.Errorf(http.StatusNotFound,
		"the key %s expects no beat of this name; add expect <name> every <duration> to the key, or correct the name", key)
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

// acceptBeat reads a beat in the gateway's own format. A client that may send to the key may send a
// beat. As even a GET changes something here, it is refused if it comes from a page of another
// origin.
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
	if err := h.CheckOrigin(asPost(r)); err != nil {
		return nil, err
	}
	hops, err := api.Hops(r, version.AgentComment)
	if err != nil {
		return nil, err
	}
	if k.Expect(beat) == nil {
		return nil, errNoBeat(at.Key)
	}
	return h.takeBeat(r, api.ReadSignal(w, r, h.sender.Limits(false)), at, beat, hops, false)
}

// takeBeat accepts a beat that has been read and may be sent to the key. partial means that its
// payload may leave out failures. It closes q.
func (h *Beats) takeBeat(r *http.Request, q *api.Request, at *Route, beat string, hops int, partial bool) (*api.Response, error) {
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
	m, err := q.Signal()
	var signal heartbeat.Signal
	if err == nil {
		signal, err = heartbeat.ReadSignal(r.URL.Query(), m, partial)
	}
	if err == nil && m.Type == notifier.Failure {
		m.Hops = hops
		h.attach(r, q, m)
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
	warnings := q.Warnings()
	taken, err := store.Beats.Take(context.WithoutCancel(r.Context()), h.ExpectedBeat(k, e), signal, m, q.Memory(), q.Close)
	if err != nil {
		return nil, err
	}
	resp := beatResponse(taken)
	resp.Warn(warnings)
	return resp, nil
}

// beatResponse returns the response to a beat.
func beatResponse(t *heartbeat.Taken) *api.Response {
	resp := &api.Response{Status: http.StatusOK, ID: t.ID, Records: t.Report.Records, Results: t.Report.Results}
	if t.Refused == nil {
		resp.Title = "Beat " + t.Beat
		return resp
	}
	e, _ := api.ErrorOf(t.Refused)
	resp.Status, resp.Error, resp.RetryAfter = e.Status, e.Error(), e.RetryAfter
	return resp
}

// attach adds the files of a failed beat to its message, or a line for each file that cannot be
// fetched.
func (h *Beats) attach(r *http.Request, q *api.Request, m *notifier.Message) {
	var err error
	if m.Attachments, err = h.sender.attachments(r, q, true); err != nil {
		q.Warn("The files are left out: " + errs.PublicText(err))
	}
	q.LinkFiles(m)
}

// ExpectedBeat returns the beat that a key of the site expects.
func (h *Beats) ExpectedBeat(k *site.Key, e *site.ExpectedBeat) *heartbeat.ExpectedBeat {
	if !k.OfSite {
		return &heartbeat.ExpectedBeat{Site: "", Settings: h.App.Conf.Global, Key: k, ExpectedBeat: e}
	}
	return &heartbeat.ExpectedBeat{Site: h.Site(), Settings: h.Resolved, Key: k, ExpectedBeat: e}
}
