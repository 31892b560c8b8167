package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"path"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/planned"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Sender reads the messages of requests and sends them. All resources that send use it.
type Sender struct{ *Base }

// notifications answers requests for a key or, without one, for messages with URLs:
// /notify and /notify/{KEY}.
type notifications struct {
	*Base
	sender *Sender
	beats  *Beats
}

// notify handles a POST with a message for the key of at or, without one, for the URLs in
// the request.
func (h *notifications) notify(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	resp, err := h.accept(w, r, at)
	if err != nil {
		resp = h.sender.notSent(r, at, err)
	}
	if h.Resolved.Page && api.PrefersHTML(r) && h.sender.CheckRoute(r, at.Lookup()) == nil {
		resp.FormURL = FormAddress(r)
	}
	return resp
}

// ToManager lets the client of the request, which may manage, send to the key without a token. The
// request must come from the site's own origin.
func (l *Lookup) ToManager() { l.managed = true }

// SendManaged sends the message of a request from a client that may manage.
func (h *API) SendManaged(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	at.Lookup().ToManager()
	return h.notifications.notify(w, r, at)
}

// accept reads a message and sends it.
func (h *notifications) accept(w http.ResponseWriter, r *http.Request, at *Route) (*api.Response, error) {
	// A client that may not send is answered at once and takes no room.
	if err := h.sender.CheckRoute(r, at.Lookup()); err != nil {
		return nil, err
	}
	e, err := h.sender.Enter(r, at.Key != "")
	if err != nil {
		return nil, err
	}
	d, err := h.read(w, r, at)
	if err != nil {
		e.Leave()
		return nil, err
	}
	return h.answerEntered(w, r, d, e, at)
}

// answerEntered sends a message that has entered, and leaves.
func (h *notifications) answerEntered(w http.ResponseWriter, r *http.Request, d dispatch.Delivery, e site.Admission,
	at *Route,
) (*api.Response, error) {
	if at.Key == "" {
		// A message with a client's URLs counts until its last delivery has ended, which may be
		// after the response.
		d.Resources = thenLeave(d.Resources, e)
	} else {
		defer e.Leave()
	}
	k, _ := at.Lookup().Key(r.Context()) // the one that the message was read for, or nil
	return h.sender.answer(w, r, k, d)
}

// thenLeave returns what closes resources and then leaves.
func thenLeave(resources dispatch.Closer, e site.Admission) dispatch.Closer {
	return dispatch.CloseFunc(func() { resources.Close(); e.Leave() })
}

// read reads a request that CheckRoute has accepted. The caller calls Release of the delivery.
func (h *notifications) read(w http.ResponseWriter, r *http.Request, at *Route) (dispatch.Delivery, error) {
	if at.Key != "" {
		k, err := at.Lookup().Key(r.Context())
		if err != nil {
			return dispatch.Delivery{}, err
		}
		if err := k.CheckSource(site.SourceDirect); err != nil {
			return dispatch.Delivery{}, err
		}
	}
	q, hops, err := h.sender.readRequest(w, r, at.Key == "")
	if list, ok := errors.AsType[*api.ListError](err); ok && list.Labels {
		err = api.Errorf(http.StatusBadRequest, "%w; %s", err, source.RulerHint(keyAddress(r, at)))
	}
	if err != nil {
		return dispatch.Delivery{}, err
	}
	return h.sender.readDelivery(r, q, at, hops, at.Lookup().Token(r))
}

// notSent records that a message was refused because of err, and returns the answer.
func (h *Sender) notSent(r *http.Request, at *Route, err error) *api.Response {
	resp := h.ErrorResponse(r, err)
	h.Shared.Metrics.NotSent(h.Resolved.ConfiguredName(at.Key), api.Outcome(resp.Status))
	h.Refuse(r, at.Lookup(), resp.Status, resp.Error, err)
	return resp
}

// readRequest reads a request to send a message, and the number of gateways it has passed through.
// client means that it may have URLs.
func (h *Sender) readRequest(w http.ResponseWriter, r *http.Request, client bool) (q *api.Request, hops int, err error) {
	if err := h.CheckOrigin(r); err != nil {
		return nil, 0, err
	}
	if hops, err = api.Hops(r, version.AgentComment); err != nil {
		return nil, 0, err
	}
	q, err = api.Read(w, r, h.Limits(client))
	return q, hops, err
}

// readDelivery returns the message and the destinations of a request that has been read. It closes
// q if there is an error; otherwise the delivery's Release does. token is the hash of the key's
// token in the request, or "".
func (h *Sender) readDelivery(r *http.Request, q *api.Request, at *Route, hops int, token string) (dispatch.Delivery, error) {
	d, err := h.readMessage(r, q, at, hops, token)
	if err != nil {
		q.Close()
		return dispatch.Delivery{}, err
	}
	d.Resources = q
	return d, nil
}

// readMessage returns the message and the destinations of a request.
func (h *Sender) readMessage(r *http.Request, q *api.Request, at *Route, hops int, token string) (d dispatch.Delivery, err error) {
	m, err := q.Message()
	if err != nil {
		return d, h.withSource(r, q, at, err)
	}
	m.Hops = hops
	to, k, err := h.destinations(r, q, at)
	if err != nil {
		return d, err
	}
	if m.Incident.Name != "" {
		name := at.Key
		if k != nil {
			name = k.FirstName() // an incident goes on when its key is moved
		}
		m.Incident = m.Incident.For(name, at.Source)
	}
	d = dispatch.NewDelivery(h.Resolved, site.SourceHTTP, h.Site(), m, to)
	d.Format = at.Source
	if d.Logger, d.Memory = h.Log, q.Memory(); k != nil {
		d = d.ToKey(k)
	}
	if err := h.question(q, at, k, &d); err != nil {
		return d, err
	}
	if err := h.later(q, at, k, &d); err != nil {
		return d, err
	}
	if err := to.Check(m); err != nil {
		return d, err
	}
	if d.Idempotency, err = h.idempotency(r, q, at, token); err != nil {
		return d, err
	}
	if m.Attachments, err = h.attachments(r, q, at.Key != ""); err != nil {
		return d, err
	}
	missing := q.LinkFiles(m)
	to.Warn(missing...)
	if len(m.Attachments)+len(missing) > 0 {
		return d, to.Check(m)
	}
	return d, nil
}

// withSource returns err, the reason why r is no message. If the payload looks like a source's, it
// adds the address of the source.
func (h *Sender) withSource(r *http.Request, q *api.Request, at *Route, err error) error {
	e, ok := api.ErrorOf(err)
	if !ok || e.Status != http.StatusBadRequest || at.Source != "" {
		return err
	}
	body, form := q.Raw()
	header := r.Header.Clone()
	header.Del("Content-Type") // the body has been decoded
	f := source.Guess(&source.Request{Header: header, Body: body, Form: form})
	if f == nil {
		return err
	}
	return api.Errorf(e.Status, "%w; it looks like a payload of %s, so post it to %s%s", e.Err, f.Program, keyAddress(r, at), f.Name)
}

// keyAddress returns the path of the key of a request, with a slash at its end.
func keyAddress(r *http.Request, at *Route) string {
	key := cmp.Or(at.Key, "{KEY}")
	if key == "api" && source.IsRulerPath(r.URL.Path) { // /notify/api/v2/alerts names no key
		key = "{KEY}"
	}
	return StrippedPrefix(r) + site.PathOf(site.RouteNotifyKey, key) + "/"
}

// idempotency returns the idempotency key of a request, if a queue keeps it. It is shared by the
// clients with the token hash, or without a token for "", so that another client that guesses it
// gets a separate one. For a saved key, it ends with the key.
func (h *Sender) idempotency(r *http.Request, q *api.Request, at *Route, token string) (i dispatch.Idempotency, err error) {
	if h.App.Conf.QueueSettings == nil {
		return i, nil
	}
	text, err := api.IdempotencyKey(r)
	if err != nil || text == "" {
		return i, err
	}
	parts := []string{h.Site(), at.Key, at.Source, environment.User(r), text}
	if token != "" {
		i.EarlierKey = strings.Join(parts, "\x00") // an early version did not store the owner
		parts = append(parts, token)
	}
	if k, _, err := at.Lookup().open(r.Context()); err == nil && k.ID != "" {
		parts = append(parts, "saved "+k.ID)
	}
	i.Key = strings.Join(parts, "\x00")
	i.Request, err = q.Fingerprint()
	return i, err
}

// Limits returns the limits of a request. client means that it may have URLs.
func (h *Sender) Limits(client bool) message.Limits {
	l := h.Resolved.Limits.Limits
	l.Memory = h.Shared.Memory.Allocation(h.Resolved.Limits.Memory, client)
	return l
}

// Enter counts the message of r in: a message for a key, or one that may have URLs.
func (h *Sender) Enter(r *http.Request, toKey bool) (site.Admission, error) {
	if hasEntered(r) {
		return site.Admission{}, nil
	}
	if !toKey {
		return h.Shared.InFlight.EnterClient(h.Resolved.Limits.InFlight, ClientAddress(r))
	}
	return h.Shared.InFlight.Enter(h.Resolved.Limits.InFlight)
}

// attachments returns the attachments of q. While files are fetched from a client's addresses, a
// message for a key counts like one with URLs.
func (h *Sender) attachments(r *http.Request, q *api.Request, toKey bool) ([]*notifier.Attachment, error) {
	if toKey && q.FetchesFiles() {
		e, err := h.Shared.InFlight.EnterFetch(h.Resolved.Limits.InFlight, ClientAddress(r))
		if err != nil && !q.SkipFetches(err) {
			return nil, err
		}
		if err == nil {
			defer e.Leave()
		}
	}
	return q.Attachments(r.Context(), h.Shared.Sender.Pool())
}

// CheckRoute returns an error if the key does not exist or cannot be read, or if the client has no
// token of it. Without a key, it returns an error if the site takes only messages to keys.
func (h *Sender) CheckRoute(r *http.Request, to *Lookup) error {
	switch {
	case to.Name != "":
		_, err := to.toSend(r)
		return err
	case !h.Resolved.Stateless:
		return statelessError(r)
	}
	return nil
}

// statelessError returns the error for a message without a key if the site takes none.
func statelessError(r *http.Request) *api.Error {
	return api.Errorf(http.StatusForbidden, "%w; post to %s/notify/{KEY}", errStatelessOff, StrippedPrefix(r))
}

var errStatelessOff = errors.New("messages without a key are turned off here")

// destinations returns the destinations of the message in q, and its key, or nil for a message with
// URLs.
func (h *Sender) destinations(r *http.Request, q *api.Request, at *Route) (*message.Selection, *site.Key, error) {
	if at.Key != "" {
		k, err := at.Lookup().Key(r.Context())
		if err != nil {
			return nil, nil, err
		}
		to, err := q.SelectTags(k.Choose)
		return to, k, err
	}
	to, err := q.SelectURLs(h.ParseClientURL, h.Resolved.DefaultTargets)
	return to, nil, err
}

// ParseClientURL returns the destination of a URL in a request.
func (h *Sender) ParseClientURL(url string) (*notifier.Destination, error) {
	d, err := h.Shared.Sender.ParseOnce(url, h.Resolved.Limits.Egress)
	if err != nil {
		return nil, err
	}
	if err := h.Resolved.Services.Check(d); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// ErrorResponse returns the response to r for an error. It logs an error that the client cannot correct.
func (h *Base) ErrorResponse(r *http.Request, err error) *api.Response {
	err = h.Advise(r, err)
	if e, ok := api.ErrorOf(err); ok {
		if e.Fault != nil {
			h.logFault(zap.Int("status", e.Status), zap.Error(e.Fault))
		}
		return e.Response()
	}
	h.logFault(zap.Error(err))
	return api.Errorf(http.StatusInternalServerError, "the gateway could not handle the request; its log has the reason").Response()
}

// logFault logs why a request failed. If a database is down, every request fails, so the lines are
// bounded.
func (h *Base) logFault(fields ...zap.Field) {
	h.faults.Write(h.Log, zap.ErrorLevel, "request failed", "more requests failed; their errors are logged at the level DEBUG", fields...)
}

// sourceNtfy is the only source whose messages can be sent later.
const sourceNtfy = "ntfy"

func errLater(text string) *api.Error {
	return &api.Error{Status: http.StatusBadRequest, Field: "send_at", Err: errors.New(text)}
}

// Errors for messages that cannot be sent later.
var (
	errLaterNoKey = errLater("the field send_at needs a key: post to /notify/{KEY}, because the destinations are looked up when the " +
		"message is due")
	errLaterNoQueue = errLater("the field send_at needs a queue, which keeps the message until it is due; the operator can add queue to " +
		"the global option notify, and the key must not have queue off")
	errLaterSource = errLater("the field send_at is not read in the format of another program; post to /notify/{KEY}")
)

// later sets when the message of a request is sent, if it is not sent now.
func (h *Sender) later(q *api.Request, at *Route, k *site.Key, d *dispatch.Delivery) error {
	clock := func() time.Time {
		if rooms, err := h.App.Open(nil); err == nil && rooms != nil {
			return rooms.Outbox.Queue.At(d.Message.Time)
		}
		return d.Message.Time
	}
	t, delay, passed, err := q.SendAt(clock, h.ParseDuration)
	if passed {
		d.To.Warn("The time of send_at has passed, so the message is sent now")
	}
	if err != nil || t.IsZero() {
		return err
	}
	switch {
	case at.Key == "":
		return errLaterNoKey
	case at.Source != "" && at.Source != sourceNtfy:
		return errLaterSource
	case h.App.Conf.QueueSettings == nil || k.Unqueued:
		return errLaterNoQueue
	}
	w, err := q.Wish()
	d.Later = planned.Later(t, &w, at.Source)
	d.Later.Delay = delay
	return err
}

// plan answers the request of a message that is sent later.
func (h *Sender) plan(r *http.Request, d *dispatch.Delivery, prefer api.Preference) (*api.Response, error) {
	defer d.Release()
	q, err := h.App.Open(nil)
	if err != nil {
		return nil, err
	}
	if d.Published != nil {
		d.Later.Published, d.Later.FromPublisher = *d.Published, true
	}
	report, id, err := q.Planned.Accept(r.Context(), d)
	if e, ok := errors.AsType[*queue.DuplicateError](err); ok {
		return h.repeated(r, e, prefer, d)
	}
	if err != nil {
		return nil, outbox.QueueError(err)
	}
	resp := responseOf(d, report)
	setQueued(resp, r, id, prefer)
	return resp, nil
}

// cancelSequence cancels the planned messages of a key with a sequence, except the message with the
// ID but. The sequence of a message planned without one is the ID by which its program knows it.
func (h *sources) cancelSequence(r *http.Request, k *sourceKey, sequence, but string) error {
	if sequence == "" {
		return nil
	}
	q, err := h.App.Open(k.Key)
	if q == nil || err != nil {
		return err
	}
	published := path.Base(sequence)
	return Answer(q.Planned.CancelOf(r.Context(), k.Place(h.Site()), func(x *planned.Message) bool {
		id := x.ID.String()
		return id != but && (x.Sequence == sequence || x.Sequence == "" && message.PublishedID(id, message.NtfyIDLength) == published)
	}))
}

// answer sends the message of a request to a key, which may be nil, and returns the response. With a
// queue, deliveries that are not final in time are stored and made later. answer calls d.Release when no delivery of the
// request is in progress any more, possibly after it returns.
//
// Nothing is stored before the response if there is no queue or all destinations are fast.
func (h *Sender) answer(w http.ResponseWriter, r *http.Request, k *site.Key, d dispatch.Delivery) (*api.Response, error) {
	if d.Question != nil {
		return h.ask(r, k, d)
	}
	prefer := api.ParsePrefer(r.Header)
	if d.Later != nil {
		return h.plan(r, &d, prefer)
	}
	var stream *api.Stream
	o := outbox.Options{Begun: func([]notifier.Target) func(int, notifier.Result) {
		stream = streamOf(&d, w, r)
		return d.Done
	}}
	if prefer.Async {
		if q := h.App.Conf.QueueSettings; q != nil && prefer.Wait > q.Wait {
			leave, err := h.Shared.Waiting.Enter(d.Place(), ClientAddress(r))
			if err != nil {
				prefer.Wait = q.Wait // it is a preference, and the client can ask for the results
			} else {
				defer leave()
			}
		}
		o.Wait = &prefer.Wait
	}
	report, id, err := h.App.Submit(r.Context(), k, d, o)
	if report == nil {
		d.Release()
		if e, ok := errors.AsType[*queue.DuplicateError](err); ok {
			return h.repeated(r, e, prefer, &d)
		}
		return nil, outbox.QueueError(err)
	}
	resp := responseOf(&d, report)
	if err == nil {
		if id != "" {
			setQueued(resp, r, id, prefer)
		}
	} else if failed := h.ErrorResponse(r, outbox.QueueError(err)); !d.Program || resp.Error != "" {
		failed.Records, failed.Results = report.Records, report.Results
		resp = failed
	}
	resp.Stream = stream
	return resp, nil
}

// responseOf returns the response to a request whose message was sent.
func responseOf(d *dispatch.Delivery, report *notifier.Report) *api.Response {
	if d.Program {
		return api.NewProgramResponse(report)
	}
	return api.NewResponse(report)
}

// streamOf begins a stream of results if the client asks for one.
func streamOf(d *dispatch.Delivery, w http.ResponseWriter, r *http.Request) *api.Stream {
	if d.Single {
		return nil
	}
	stream := api.NewStream(w, r, d.To.Targets)
	if stream != nil {
		d.Done = stream.Result
	}
	return stream
}

// setQueued makes resp the response to a request whose message has an ID.
func setQueued(resp *api.Response, r *http.Request, id string, p api.Preference) {
	resp.SetQueued(id, messageAddress(r, id), p)
}

// repeated returns the response to the request of d, whose idempotency key was used before.
func (h *Sender) repeated(r *http.Request, e *queue.DuplicateError, p api.Preference, d *dispatch.Delivery) (*api.Response, error) {
	q := h.App.Rooms.Outbox
	if !e.SameRequest {
		return nil, api.Errorf(http.StatusUnprocessableEntity,
			"the header %s was used for a different request; send another key with each message", api.IdempotencyHeader)
	}
	stored, err := q.Queue.Get(context.WithoutCancel(r.Context()), e.ID)
	if err != nil {
		return nil, outbox.QueueError(err)
	}
	if err := q.Follow(context.WithoutCancel(r.Context()), stored); err != nil {
		return nil, outbox.QueueError(err)
	}
	m := queued.Message(stored)
	report := &notifier.Report{Results: queued.Results(m), Records: m.Records()}
	resp := responseOf(d, report)
	setQueued(resp, r, m.ID, p)
	return resp, nil
}
