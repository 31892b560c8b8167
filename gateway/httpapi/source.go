package httpapi

import (
	"cmp"
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

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// serveSource handles a request to the address of a source. It returns nil if it
// has written the response.
func (h *API) serveSource(w http.ResponseWriter, r *http.Request, a *Route) *api.Response {
	o := source.Outcome{Time: time.Now()}
	s, err := h.Resolved.Source(a.Source)
	var methods []string
	if s != nil {
		o.Request = sourceRequest(r, a, o.Time)
		methods = s.Methods(a.Rest)
	}
	if err == nil && methods == nil {
		err, s = ErrNoSource, nil
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
		resp = h.ErrorResponse(err)
		if resp.Status == http.StatusUnauthorized {
			askForSecret(w, accessSender)
		}
		h.Shared.Metrics.NotSent(h.Resolved.ConfiguredName(a.Key), resp.Status)
		h.Refuse(r, a.Key, resp.Status, resp.Error, err)
	}
	if s == nil {
		return resp
	}
	o.Status, o.Error, o.ID, o.Took = resp.Status, resp.Error, resp.ID, time.Since(o.Time)
	if e, ok := errors.AsType[*source.Error](err); ok {
		o.Code = e.Code
	}
	reply := s.Reply(o)
	if reply == nil {
		return resp
	}
	resp.WriteAs(w, reply.Status, reply.ContentType, reply.Body)
	return nil
}

// sourceRequest returns a request to a source, without its body.
func sourceRequest(r *http.Request, a *Route, now time.Time) *source.Request {
	return &source.Request{Method: r.Method, Address: SourceAddress(r, a), Header: r.Header, Query: percent.ParseForm(r.URL.RawQuery), Path: a.Rest, Time: now}
}

// SourceAddress returns the address of a source as the client of r knows it, also if
// Caddy has rewritten the path. The scheme may be that of a proxy: only the client sees
// the address.
func SourceAddress(r *http.Request, a *Route) string {
	u := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		u.Scheme = "https"
	}
	path, ok := strings.CutSuffix(strings.TrimSuffix(clientURL(r).Path, "/"), a.Rest)
	if !ok {
		path = StrippedPrefix(r) + site.PathOf(site.RouteNotifyKey, a.Key) + "/" + a.Source
	}
	u.Path = strings.TrimRight(path, "/")
	return u.String()
}

// originHeader is the header in which a sender of webhooks names itself when it asks
// for permission. See
// https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md, section 4.
const originHeader = "WebHook-Request-Origin"

// allowSender returns an error if the sender of r, which asks for permission, may not
// post to the address of a source.
func (h *API) allowSender(r *http.Request, a *Route, s *source.Source) error {
	req := sourceRequest(r, a, time.Now())
	if err := s.Authenticate(r.Context(), req, h.fetchSource); err != nil {
		return SourceError(err)
	}
	k, err := h.sourceKey(r.Context(), a, s)
	if err != nil {
		return err
	}
	if err := k.check(req); err != nil {
		return err
	}
	return k.CheckSource(a.Source)
}

// sourceKey is the key that a request to a source addresses.
type sourceKey struct {
	*site.Key
	exists bool
	source *source.Source
}

// sourceKey returns the key of a request to s. Where keys are protected, it may not
// exist.
func (h *API) sourceKey(ctx context.Context, a *Route, s *source.Source) (k sourceKey, err error) {
	k.source = s
	k.Key, k.exists, err = h.Resolved.OpenKey(ctx, a.Key)
	return k, err
}

// hasToken reports whether req has what the key requires of requests to its source.
// The token or the signature of the source takes the place of the key's tokens.
func (k sourceKey) hasToken(req *source.Request) bool {
	return len(k.Tokens) == 0 || k.source.ChecksSender() || k.source.Format.HasToken(req, k.Tokens.Has)
}

// check returns an error if req, which the source has authenticated, may not be sent
// to the key.
func (k sourceKey) check(req *source.Request) error {
	if !k.hasToken(req) || !k.exists {
		return site.ErrNoToken
	}
	return nil
}

// onlyReads reports whether the addresses at which ntfy's clients read take no message. A
// matcher leaves these addresses to the readers of a key, so that a key without a token
// would take messages of everybody there.
func (k sourceKey) onlyReads() bool {
	return k.exists && len(k.Readers) > 0 && len(k.Tokens) == 0 && !k.source.ChecksSender()
}

// isNtfyReading reports whether a path is one at which ntfy's clients read, in any case and
// with any empty segments, as Caddy's path matcher compares it.
func (at *Route) isNtfyReading() bool {
	topics, verb, ok := strings.Cut(at.Rest, "/")
	return at.Source == "ntfy" && ok && topics != "" && site.ContainsFold(NtfyVerbs, verb)
}

// deliverSource reads a request in the format of s and sends its message. It sets
// o.Message. Until the token or the signature is verified, the request
// counts as one of a client with URLs, so that strangers leave room for others.
func (h *API) deliverSource(w http.ResponseWriter, r *http.Request, a *Route, s *source.Source, o *source.Outcome) (*api.Response, error) {
	req := o.Request
	verified, err := s.AuthenticateHeader(req)
	if err != nil {
		return nil, SourceError(err)
	}
	k, err := h.sourceKey(r.Context(), a, s)
	if err != nil {
		return nil, err
	}
	if !k.hasToken(req) {
		if !s.Format.TakesTokenInBody() {
			return nil, site.ErrNoToken
		}
		verified = false
	}
	if verified {
		if err := cmp.Or(k.check(req), k.CheckSource(a.Source)); err != nil {
			return nil, err
		}
	}
	if a.isNtfyReading() && k.onlyReads() {
		w.Header().Set("Allow", http.MethodGet)
		return nil, errOnlyReads
	}
	if beat, ok := beatQuery(r); ok && verified && k.Expect(beat) == nil {
		return nil, errNoBeat(a.Key)
	}
	e, err := h.enterSource(r, verified)
	if err != nil {
		return nil, err
	}
	defer e.Leave()
	if err := h.Resolved.CheckOrigin(asPost(r)); err != nil {
		return nil, err
	}
	hops, err := api.Hops(r, version.AgentComment)
	if err != nil {
		return nil, err
	}
	q, err := api.ReadPayload(w, r, h.Limits(!verified))
	if err != nil {
		return nil, err
	}
	req.Body, req.Form, req.Files = q.Payload()
	if !verified {
		if err := s.Authenticate(r.Context(), req, h.fetchSource); err != nil {
			q.Close()
			return nil, SourceError(err)
		}
		// A stranger must not learn which keys exist and what they accept.
		if err := cmp.Or(k.check(req), k.CheckSource(a.Source)); err != nil {
			q.Close()
			return nil, err
		}
		e.Verified()
		q.Memory().Trust()
	}
	if o.Message, err = h.readSource(r, q, a, s, req); err != nil {
		q.Close()
		return nil, err
	}
	if o.Message.Skip {
		q.Close()
		text := fmt.Sprintf("The source %s has nothing to send.", a.Source)
		return &api.Response{Status: http.StatusOK, Records: []notifier.Record{{Time: time.Now(), Level: notifier.LevelInfo, Text: text}}}, nil
	}
	if beat, ok := beatQuery(r); ok {
		return h.takeBeat(r, q, a.Key, beat, hops)
	}
	d, err := h.readDelivery(r, q, a.Key, hops)
	if err != nil {
		return nil, err
	}
	if !s.ChecksSender() { // else the token is that of the source, which is part of the key
		bindKey(&d.Idempotency, tokenSum(k.Tokens, req, s.Format))
	}
	o.Message.Warnings = q.Warnings()
	if s.Format.HasAlerts() {
		h.Shared.Alerts.Tell(d.IncidentOf(), o.Message.Alert, d.Message)
	}
	d.Single, d.Program = s.Format.IsAPI(), true
	return h.answer(w, r, d)
}

// asPost returns r as a POST for the check of its origin, because some clients send
// with GET.
func asPost(r *http.Request) *http.Request {
	if r.Method == http.MethodPost {
		return r
	}
	post := *r
	post.Method = http.MethodPost
	return &post
}

// enterSource counts the request of a source in. verified reports whether its token
// and its signature need no further check.
func (h *API) enterSource(r *http.Request, verified bool) (site.Admission, error) {
	if verified {
		return h.Shared.InFlight.Enter(h.Resolved.Limits.InFlight)
	}
	return h.Shared.InFlight.EnterUnverified(h.Resolved.Limits.InFlight, ClientAddress(r))
}

// readSource reads the message of an authenticated request and sets it as the content
// of q. If the request asks to confirm a subscription, readSource confirms it and
// returns a message to skip.
func (h *API) readSource(r *http.Request, q *api.Request, a *Route, s *source.Source, req *source.Request) (*source.Message, error) {
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
	var files []api.RemoteFile
	for _, f := range m.Attach {
		files = append(files, api.RemoteFile(f))
	}
	return m, q.SetContent(api.Content{
		Title: m.Title, Body: m.Body, Type: m.Type, Format: m.Format, Foreign: m.Foreign, Dialect: m.Dialect, Attach: files, Images: m.Images, Preferred: m.Tags, OwnTags: m.OwnTags, Warnings: m.Warnings,
		Incident: m.Incident, Alerts: m.Alerts, Acknowledged: m.Acknowledged,
		File: m.File, ContentType: fileType(r), DropFiles: !s.TakesFiles(),
	})
}

// fileType returns the media type of a body that is a file, or "" if the client has not
// set one: curl and others call each body a form.
func fileType(r *http.Request) string {
	if t := r.Header.Get("Content-Type"); !strings.HasPrefix(t, "application/x-www-form-urlencoded") {
		return t
	}
	return ""
}

// ConfirmationError returns the error for a subscription that could not be confirmed:
// 503 if it can when the sender asks again, and otherwise 424.
func ConfirmationError(err error) *api.Error {
	status := http.StatusServiceUnavailable
	if _, ok := errors.AsType[*egress.BlockedError](err); ok {
		status = http.StatusFailedDependency
	}
	return api.Errorf(status, "the subscription could not be confirmed: %w", err)
}

// SourceError returns an error of package source as an [*api.Error]. It returns any
// other error as it is.
func SourceError(err error) error {
	if e, ok := errors.AsType[*source.Error](err); ok {
		return api.Errorf(e.Status, "%w", err)
	}
	return err
}

// The limits of a fetch for a source: of a certificate or a confirmation.
const (
	maxSourceFetch     = 64 << 10 // bytes
	sourceFetchTimeout = 10 * time.Second
)

// fetchSource returns the content at an address that a request names. The egress
// rules apply.
func (h *API) fetchSource(ctx context.Context, address string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address is malformed")
	}
	ctx, cancel := context.WithTimeout(ctx, sourceFetchTimeout)
	defer cancel()
	resp, err := h.Shared.Sender.Pool().Get(ctx, u, egress.Options{Policy: h.Resolved.Limits.Egress})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers with status %d", resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxSourceFetch))
}

var (
	ErrNoSource  = api.Errorf(http.StatusNotFound, "there is no such source; the address of a source is /notify/{KEY}/{SOURCE}, such as /notify/ops/grafana")
	errOnlyReads = api.Errorf(http.StatusMethodNotAllowed, "messages are only read at this address, because the key has a reader and no token; post to /notify/{KEY}/ntfy/{TOPIC}, or add token to the key")
)
