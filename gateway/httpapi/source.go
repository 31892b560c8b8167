package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// sources accepts messages in the formats of other programs: /notify/{KEY}/{SOURCE}.
type sources struct {
	*Base
	sender *Sender
	beats  *Beats
}

// serveSource handles a request to the address of a source. It returns nil if it
// has written the response.
func (h *sources) serveSource(w http.ResponseWriter, r *http.Request, a *Route) *api.Response {
	o := source.Outcome{Time: time.Now()}
	s, err := h.Sources.Get(a.Source)
	var methods []string
	if s != nil {
		o.Request = sourceRequest(r, a, o.Time)
		o.Request.TakeTickets(&h.Shared.Tickets, h.Site(), a.Key, a.Source)
		methods = s.Methods(a.Rest)
	}
	if err == nil && s == nil {
		err = SourceError(h.Sources.Missing(a.Source, h.Resolved.Protected(r.Context())))
	} else if err == nil && methods == nil {
		err, s = errNoSource, nil
	}
	if err != nil && a.Source != site.SourceRuler && source.IsRulerPath(r.URL.Path) {
		err = api.Errorf(http.StatusNotFound, "there is no such source; %s", source.RulerHint(keyAddress(r, a)))
	}
	if err == nil && s.Format.Handshake && r.Method == http.MethodOptions && r.Header.Get(originHeader) != "" {
		if err = h.allowSender(r, a, s); err == nil {
			w.Header().Set("Allow", "POST, PUT")
			w.Header().Set("WebHook-Allowed-Origin", r.Header.Get(originHeader))
			w.Header().Set("WebHook-Allowed-Rate", "*")
			w.WriteHeader(http.StatusOK)
			return nil
		}
	} else if err == nil && !slices.Contains(methods, r.Method) {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		err = api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; messages are sent with POST", r.Method)
	}
	resp := &api.Response{}
	if err == nil {
		if reply := s.PublicReply(o.Request); reply != nil {
			resp.WriteAs(w, reply.Status, reply.ContentType, reply.Body)
			return nil
		}
		resp, err = h.deliverSource(w, r, a, s, &o)
	}
	if err != nil {
		resp = h.sender.notSent(r, a, err)
	}
	if s == nil {
		return resp
	}
	a.setOutcome(resp)
	o.Status, o.Error, o.ID, o.Took = resp.Status, resp.Error, resp.ID, time.Since(o.Time)
	if e, ok := errors.AsType[*source.Error](err); ok {
		o.Code = e.Code
	}
	reply := s.Reply(o)
	if reply == nil {
		return resp
	}
	if reply.Status == http.StatusUnauthorized {
		askForSecret(w, accessSender)
	}
	resp.WriteAs(w, reply.Status, reply.ContentType, reply.Body)
	return nil
}

// sourceRequest returns a request to a source, without its body.
func sourceRequest(r *http.Request, a *Route, now time.Time) *source.Request {
	req := source.NewRequest(r)
	req.Address, req.Path, req.RawPath, req.Time = SourceAddress(r, a), a.Rest, rawRest(r.URL), now
	return req
}

// rawRest returns the encoded part of the path of u after the address of a source.
func rawRest(u *url.URL) string {
	segments := strings.SplitN(u.EscapedPath(), "/", strings.Count(RouteSource, "/")+1)
	return segments[len(segments)-1]
}

// SourceAddress returns the address of a source as the client of r knows it, even if Caddy has
// rewritten the path. Its scheme may come from a proxy, because only the client sees the address.
func SourceAddress(r *http.Request, a *Route) string {
	u := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		u.Scheme = "https"
	}
	path, ok := strings.CutSuffix(strings.TrimSuffix(environment.URL(r).Path, "/"), a.Rest)
	if !ok {
		path = StrippedPrefix(r) + site.PathOf(site.RouteNotifyKey, a.Key) + "/" + a.Source
	}
	u.Path = strings.TrimRight(path, "/")
	return u.String()
}

// originHeader is the header in which a sender of webhooks names itself when it asks for
// permission. See https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md,
// section 4.
const originHeader = "WebHook-Request-Origin"

// allowSender returns an error if the sender of r, which asks for permission, may not post to the
// address of a source.
func (h *sources) allowSender(r *http.Request, a *Route, s *source.Source) error {
	req := sourceRequest(r, a, time.Now())
	if err := s.Authenticate(r.Context(), req, h.fetchSource); err != nil {
		return SourceError(err)
	}
	k, err := newSourceKey(r.Context(), a, s, req)
	if err != nil {
		return err
	}
	return k.check()
}

// sourceKey is the key of a request to a source, with the key's token in the request.
type sourceKey struct {
	*site.Key
	exists bool
	name   string // name of the source
	source *source.Source
	token  string // its hash; "" if the request has none or needs none
}

// newSourceKey returns the key of a request to s. If keys are protected, the key may not exist.
func newSourceKey(ctx context.Context, a *Route, s *source.Source, req *source.Request) (k sourceKey, err error) {
	k.name, k.source = a.Source, s
	if k.Key, k.exists, err = a.Lookup().open(ctx); err == nil {
		k.findToken(req)
	}
	return k, err
}

// findToken looks for a token of the key in req, in the places of the format. A source with its own
// token or signature needs none.
func (k *sourceKey) findToken(req *source.Request) {
	if len(k.Tokens) > 0 && !k.source.ChecksSender() {
		k.token = k.source.Format.TokenSum(req, k.Tokens)
	}
}

// hasToken reports whether the request has the token that the key requires at its source.
func (k *sourceKey) hasToken() bool {
	return len(k.Tokens) == 0 || k.source.ChecksSender() || k.token != ""
}

// check returns an error if the request, which the source has authenticated, may not be sent to the
// key.
func (k *sourceKey) check() error {
	if !k.hasToken() || !k.exists {
		return site.ErrNoToken
	}
	return k.CheckSource(k.name)
}

// onlyReads reports whether the addresses at which ntfy's clients read accept no messages. A
// matcher opens these addresses to the readers of a key, so a key without a token would accept
// messages of everybody there.
func (k *sourceKey) onlyReads() bool {
	return k.exists && len(k.Readers) > 0 && len(k.Tokens) == 0 && !k.source.ChecksSender()
}

// isNtfyReading reports whether ntfy's clients read at a path, in any case and with any empty
// segments, as Caddy's path matcher compares it.
func (at *Route) isNtfyReading() bool {
	topics, verb, ok := strings.Cut(at.Rest, "/")
	return at.Source == "ntfy" && ok && topics != "" && site.ContainsFold(NtfyVerbs, verb)
}

// deliverSource handles a request in the format of s: it admits the request, reads it, and sends
// its message. It sets o.Message.
func (h *sources) deliverSource(w http.ResponseWriter, r *http.Request, a *Route, s *source.Source,
	o *source.Outcome,
) (*api.Response, error) {
	k, verified, err := h.admit(w, r, a, s, o.Request)
	if err != nil {
		return nil, err
	}
	e, err := h.enterSource(r, verified)
	if err != nil {
		return nil, err
	}
	defer e.Leave()
	beat, isBeat := beatOf(r, s, o.Request)
	p, err := h.readPayload(w, r, &k, o.Request, verified, isBeat)
	if err != nil {
		return nil, err
	}
	defer o.Request.Release()
	if !verified {
		if err := h.verify(r, p, &k); err != nil {
			o.Anonymous = !s.Format.HasToken(p.req, func(string) bool { return true })
			p.q.Close()
			return nil, err
		}
		e.Verified()
		p.q.Memory().Trust()
	}
	p.req.OpenFor = func(incident string) string { return h.openTime(r.Context(), a, k.Key, incident) }
	p.req.AlertTitle = func(incident string) string {
		return h.Shared.Alerts.Get(dispatch.IncidentAt(k.Place(h.Site()), sourceIncident(a, k.Key, incident).ID))
	}
	o.Message, err = h.readSource(r, p.q, a, s, p.req)
	if isBeat {
		if err != nil {
			p.q.Warn("The payload cannot be read: " + errs.PublicText(err))
			p.q.SetText(o.Request.Body)
			o.Message = &source.Message{Beat: beat}
		}
		return h.beats.takeBeat(r, p.q, a, beat, p.hops, o.Message.Partial)
	}
	if err != nil {
		p.q.Close()
		return nil, err
	}
	return h.sendSource(w, r, a, &k, p, o.Message)
}

// openTime returns how long the incident with a name has been open in a key, as in "14 min", or ""
// if unknown.
func (h *sources) openTime(ctx context.Context, a *Route, k *site.Key, name string) string {
	if k.Rules.Empty() {
		return ""
	}
	rooms, err := h.App.Open(k)
	if err != nil || rooms == nil {
		return ""
	}
	i := sourceIncident(a, k, name)
	i.OpenFor = rooms.Alerts.Incidents.OpenFor(ctx, k.Place(h.Site()).String(), i.ID)
	return i.OpenTime()
}

// sourceIncident returns the incident with the name in a source's payload.
func sourceIncident(a *Route, k *site.Key, name string) notifier.Incident {
	stored, _, err := notifier.IncidentName(name)
	if err != nil {
		stored = notifier.HashIncidentName(name) // as in Request.SetContent
	}
	return notifier.Incident{Name: stored}.For(k.FirstName(), a.Source)
}

// admit returns the key of a request to s before its body is read. verified reports whether its
// token and its signature need no further check.
func (h *sources) admit(w http.ResponseWriter, r *http.Request, a *Route, s *source.Source, req *source.Request) (k sourceKey,
	verified bool, err error,
) {
	if verified, err = s.AuthenticateHeader(req); err != nil {
		return k, false, SourceError(err)
	}
	if k, err = newSourceKey(r.Context(), a, s, req); err != nil {
		return k, false, err
	}
	if !k.hasToken() {
		if !s.Format.TakesTokenInBody() {
			return k, false, site.ErrNoToken
		}
		verified = false
	}
	if verified {
		if err := k.check(); err != nil {
			return k, false, err
		}
	}
	if a.isNtfyReading() && k.onlyReads() {
		w.Header().Set("Allow", http.MethodGet)
		return k, false, errOnlyReads
	}
	if beat, ok := beatOf(r, s, req); ok && verified && k.Expect(beat) == nil {
		return k, false, errNoBeat(a.Key)
	}
	return k, verified, nil
}

// payload is a request to a source whose body has been read.
type payload struct {
	q    *api.Request
	req  *source.Request
	hops int
}

// readPayload reads the body of a request. Until the token or the signature is verified, the
// request counts as one of a client with URLs, so that strangers leave room for others. A beat is
// read as far as possible, unless it is verified by its body.
func (h *sources) readPayload(w http.ResponseWriter, r *http.Request, k *sourceKey, req *source.Request, verified,
	isBeat bool,
) (p payload, err error) {
	if err := h.CheckOrigin(asPost(r)); err != nil {
		return p, err
	}
	p.req = req
	if p.hops, err = api.Hops(r, version.AgentComment); err != nil {
		return p, err
	}
	limits := h.sender.Limits(!verified)
	if h.Resolved.Limits.DefaultFiles {
		limits.MaxFiles = max(limits.MaxFiles, k.source.Format.MaxFiles)
	}
	if isBeat && verified {
		p.q = api.ReadSignalPayload(w, r, limits)
	} else if p.q, err = api.ReadPayload(w, r, limits); err != nil {
		return p, err
	}
	req.Body, req.Form, req.Files = p.q.Payload()
	return p, nil
}

// verify checks a request by its body. A stranger must not learn which keys exist and what they
// accept.
func (h *sources) verify(r *http.Request, p payload, k *sourceKey) error {
	if err := k.source.Authenticate(r.Context(), p.req, h.fetchSource); err != nil {
		return SourceError(err)
	}
	if !k.hasToken() {
		k.findToken(p.req)
	}
	return k.check()
}

// beatOf returns the name of the beat in a request to a source, and reports whether its address
// makes it a beat.
func beatOf(r *http.Request, s *source.Source, req *source.Request) (name string, ok bool) {
	if name = s.Beat(req); name != "" {
		return name, true
	}
	return beatQuery(r)
}

// sendSource sends the message of a request to a source.
func (h *sources) sendSource(w http.ResponseWriter, r *http.Request, a *Route, k *sourceKey, p payload,
	m *source.Message,
) (*api.Response, error) {
	if m.Skip {
		p.q.Close()
		if err := h.cancelSequence(r, k, m.Sequence, ""); err != nil {
			return nil, err
		}
		text := fmt.Sprintf("The source %s has nothing to send.", a.Source)
		return &api.Response{Status: http.StatusOK, Records: []notifier.Record{{Time: time.Now(), Level: notifier.LevelInfo, Text: text}}}, nil
	}
	d, err := h.sender.readDelivery(r, p.q, a, p.hops, k.token)
	if err != nil {
		return nil, err
	}
	m.Warnings, d.Published, d.Priority = p.q.Warnings(), m.Published, m.Priority
	format := k.source.Format
	if format.HasAlerts() {
		if !m.Named {
			h.Shared.Alerts.Note(d.IncidentOf(), d.Message)
		}
		if n, repeats := h.countRepeat(r.Context(), k.Key, &d, m); repeats {
			d.Release()
			if n > 0 {
				m.Untold = "the alert is open, and nothing about it is new"
				h.Log.Info("an open alert is opened again, and nobody is told", zap.String("key", a.Key), zap.String("source", a.Source),
					zap.String("incident", m.Incident), zap.Int("count", n))
				h.Shared.Metrics.Repeated(h.Resolved.ConfiguredName(a.Key))
			}
			return &api.Response{Status: http.StatusOK}, nil
		}
	}
	d.Single, d.Program = format.IsAPI(), true
	if d.Later != nil {
		d.Later.Sequence = m.Sequence
	}
	resp, err := h.sender.answer(w, r, k.Key, d)
	if err == nil {
		m.Untold = resp.Untold()
		err = h.cancelSequence(r, k, m.Sequence, resp.ID)
	}
	return resp, err
}

// countRepeat reports whether d repeats an open alert without a change, so that nobody has to be
// told. n is how many such messages there were since the last message that was told. With the rules
// dedupe and escalate, it is false, because these decide themselves.
func (h *sources) countRepeat(ctx context.Context, k *site.Key, d *dispatch.Delivery, m *source.Message) (n int, repeats bool) {
	if rules := d.Rules; d.IncidentOf() == "" || !rules.Empty() && (rules.Dedupe != nil || rules.Escalate != nil) {
		return 0, false
	}
	rooms, err := h.App.Open(k)
	if err != nil {
		return 0, false // it cannot be sent
	}
	alerts := &h.Shared.OpenAlerts
	if rooms != nil {
		alerts = rooms.Outbox.OpenAlerts
	}
	if dispatch.StateOf(d.Message) == notifier.Open {
		resolved, quiet := stateForRepeat(ctx, rooms, d)
		n, repeats, err = alerts.Opens(ctx, d, resolved, quiet)
	} else {
		err = alerts.Note(ctx, d, m.Unacknowledged)
	}
	if err != nil {
		h.Log.Warn("what is known of an alert cannot be stored now; repetitions of it may be told", zap.String("key", d.Key), zap.Error(err))
	}
	return n, repeats
}

// stateForRepeat reports whether somebody has resolved the incident of d, so that d opens it again,
// if rules keep incidents. quiet reports whether a target learns nothing new: it is silenced, or
// somebody takes care of the incident.
func stateForRepeat(ctx context.Context, rooms *gateway.Rooms, d *dispatch.Delivery) (resolved bool, quiet func(notifier.Target) bool) {
	if rooms == nil {
		return false, func(notifier.Target) bool { return false }
	}
	acknowledged := false
	if !d.Rules.Empty() {
		var open bool
		open, acknowledged = rooms.Alerts.Incidents.State(ctx, d)
		resolved = !open
	}
	return resolved, func(t notifier.Target) bool { return acknowledged || rooms.Alerts.Silences.Keeps(d, t) }
}

// asPost returns r as a POST for the check of its origin, because some clients send with GET.
func asPost(r *http.Request) *http.Request {
	if r.Method == http.MethodPost {
		return r
	}
	post := *r
	post.Method = http.MethodPost
	return &post
}

// enterSource counts a request to a source in. verified reports whether its token and its signature
// need no further check.
func (h *sources) enterSource(r *http.Request, verified bool) (site.Admission, error) {
	if verified {
		return h.Shared.InFlight.Enter(h.Resolved.Limits.InFlight)
	}
	return h.Shared.InFlight.EnterUnverified(h.Resolved.Limits.InFlight, ClientAddress(r))
}

// readSource reads the message of an authenticated request and sets it as the content of q. If the
// request asks to confirm a subscription, readSource confirms it and returns a message with Skip.
func (h *sources) readSource(r *http.Request, q *api.Request, a *Route, s *source.Source, req *source.Request) (*source.Message, error) {
	if address := s.Confirmation(req); address != "" {
		if _, err := h.fetchSource(r.Context(), address); err != nil {
			return nil, ConfirmationError(err)
		}
		h.Log.Info("confirmed a subscription", zap.String("key", a.Key), zap.String("source", a.Source))
		return &source.Message{Skip: true}, nil
	}
	m, err := s.Read(r.Context(), req)
	if err != nil {
		return nil, SourceError(err)
	}
	if m.Skip {
		return m, nil
	}
	if s.Format.IsAPI() {
		if left := m.Cut(int(h.Resolved.Limits.MaxBody)); left > 0 {
			h.Log.Warn("the end of a text is left out, because it is longer than max_body", zap.String("key", a.Key), zap.String("source", a.Source),
				zap.Int("bytes", left))
		}
	}
	var files []api.RemoteFile
	for _, f := range m.Attach {
		files = append(files, api.RemoteFile(f))
	}
	return m, q.SetContent(api.Content{
		Title: m.Title, Body: m.Body, Type: m.Type, Format: m.Format, Foreign: m.Foreign, Dialect: m.Dialect, Attach: files, Images: m.Images,
		Preferred: m.Tags, OwnTags: m.OwnTags, Warnings: m.Warnings,
		Incident: m.Incident, Alerts: m.Alerts, Acknowledged: m.Acknowledged,
		SendAt: m.SendAt,
		File:   m.File, ContentType: fileType(r), DropFiles: !s.TakesFiles(),
	})
}

// fileType returns the media type of a body that is a file, or "" if the client has not set one:
// curl and other clients declare every body as a form.
func fileType(r *http.Request) string {
	if t := r.Header.Get("Content-Type"); !strings.HasPrefix(t, "application/x-www-form-urlencoded") {
		return t
	}
	return ""
}

// ConfirmationError returns the error for a subscription that could not be confirmed: 503 if a
// later request may succeed, and otherwise 424.
func ConfirmationError(err error) *api.Error {
	status := http.StatusServiceUnavailable
	if _, ok := errors.AsType[*egress.BlockedError](err); ok {
		status = http.StatusFailedDependency
	}
	return api.Errorf(status, "the subscription could not be confirmed: %w", err)
}

// SourceError returns an error of package source as an [*api.Error], and any other error as it is.
func SourceError(err error) error {
	e, ok := errors.AsType[*source.Error](err)
	if !ok {
		return err
	}
	out := api.Errorf(e.Status, "%w", err)
	if e.Status == http.StatusServiceUnavailable {
		out.RetryAfter = time.Second
	}
	return out
}

// The limits of fetching a certificate or a confirmation for a source.
const (
	maxSourceFetch     = 64 << 10 // bytes
	sourceFetchTimeout = 10 * time.Second
)

// fetchSource returns the content at an address from a request. The egress rules apply.
func (h *sources) fetchSource(ctx context.Context, address string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address is malformed")
	}
	ctx, cancel := context.WithTimeout(ctx, sourceFetchTimeout)
	defer cancel()
	body, err := h.Shared.Sender.Pool().Open(ctx, u, egress.Options{Policy: h.Resolved.Limits.Egress})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, maxSourceFetch))
}

var (
	errNoSource = api.Errorf(http.StatusNotFound,
		"there is no such source; the address of a source is /notify/{KEY}/{SOURCE}, such as /notify/ops/grafana")
	errOnlyReads = api.Errorf(http.StatusMethodNotAllowed,
		"messages are only read at this address, because the key has a reader and no token; post to /notify/{KEY}/ntfy/{TOPIC}, or add token "+
			"to the key")
)
