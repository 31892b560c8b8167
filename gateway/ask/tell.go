package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/internal/standardwebhook"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// errTold is returned when another gateway has told an outcome.
var errTold = errors.New("the outcome was told")

// tell stores the messages about the outcome of a question; the queue sends them. The transaction
// of each also notes that it was told.
func (q *Questions) tell(ctx context.Context, conf *outbox.Configuration, x *Question) error {
	settings := conf.Global
	if all := conf.SitesWithID(x.Site); len(all) > 0 {
		settings = all[0]
	}
	if x.ToCall {
		d := q.callback(x, settings)
		if err := q.accept(ctx, x, d, func(x *Question) *bool { return &x.ToCall }); err != nil {
			return err
		}
	}
	if !x.ToTell {
		return nil
	}
	return q.accept(ctx, x, q.outcome(ctx, conf, x), func(x *Question) *bool { return &x.ToTell })
}

// accept stores a message about a question, and notes that in the question. d is nil if there is
// nobody left to tell.
func (q *Questions) accept(ctx context.Context, x *Question, d *dispatch.Delivery, pending func(*Question) *bool) error {
	u := q.usage.Ruled(x.Place.String(), false, q.ruled(q.name(x.ID), func(x *Question, _ time.Time) (*Question, error) {
		if x == nil || !*pending(x) {
			return nil, errTold
		}
		*pending(x) = false
		return x, nil
	}))
	var err error
	if d == nil {
		err = q.outbox.Queue.Records.Apply(ctx, u)
	} else {
		d.With = u
		e, stored := q.outbox.Entry(d)
		e.Unlimited = true
		if err = q.outbox.Queue.Accept(ctx, e); err == nil {
			stored()
		}
	}
	if errors.Is(err, errTold) {
		return nil
	}
	return err
}

// outcome returns the message about the outcome to the destinations that were asked, or nil if none
// is left.
func (q *Questions) outcome(ctx context.Context, conf *outbox.Configuration, x *Question) *dispatch.Delivery {
	k, settings, siteID := conf.FindPlace(ctx, x.Place)
	if k == nil {
		return nil
	}
	targets := slices.DeleteFunc(slices.Clone(k.Targets), func(t notifier.Target) bool {
		return !slices.ContainsFunc(x.Targets, func(o Target) bool { return o.Hash == t.Hash() })
	})
	if len(targets) == 0 {
		return nil
	}
	for i := range targets {
		targets[i].Chain, targets[i].Number = "", 0
	}
	m := &notifier.Message{
		Title: markup.OneLine(x.Title), Body: x.Summary(), Type: notifier.Info, Format: markup.Text, Time: time.Now(),
		Foreign: true, Thread: x.thread(),
	}
	d := dispatch.NewDelivery(settings, site.SourceAsk, siteID, m, &message.Selection{Targets: targets}).ToKey(k)
	d.Rules, d.Steps, d.Inbox = nil, nil, 0
	return &d
}

// Summary returns the outcome as one sentence.
func (x *Question) Summary() string {
	o := x.Outcome
	switch o.State {
	case Answered:
		by := o.By
		if by == "" {
			by = "somebody"
		}
		took := notifier.Incident{OpenFor: max(o.At.Sub(x.Created), time.Second)}
		return fmt.Sprintf("%s, by %s, after %s.", o.Answer, by, took.OpenTime())
	case Expired:
		if x.Default != "" {
			return "Nobody has answered in time, so “" + x.Default + "” is taken."
		}
		return "Nobody has answered in time; nothing is decided."
	case Cancelled:
		return "The question was withdrawn."
	case Open:
	}
	return "The question is open."
}

// callback returns the message to the address that the client has given.
func (q *Questions) callback(x *Question, settings *site.Site) *dispatch.Delivery {
	m := &notifier.Message{Body: x.ID.String(), Type: notifier.Info, Format: markup.Text, Time: time.Now()}
	d := dispatch.NewDelivery(settings, site.SourceCallback, x.Site, m,
		&message.Selection{Targets: []notifier.Target{{Destination: q.destination(x, settings.Limits.Egress)}}})
	d.Key = x.Key
	return &d
}

// destination returns the destination of the callback. It shows only its host.
func (q *Questions) destination(x *Question, policy *egress.Policy) *notifier.Destination {
	host, parts := "", []string(nil)
	if u, err := url.Parse(x.Callback); err == nil {
		host, parts = u.Host, secretParts(u)
	}
	c := &callback{questions: q, id: x.ID, address: x.Callback, secret: x.Secret, host: host, parts: parts}
	return notifier.NewPrivate(c, "callback://"+host, "callback "+x.ID.String(), policy)
}

// secretParts returns the parts of an address that no error may show, even if the server repeats
// them: all but the scheme and the host. It returns longer texts and their parts, because the
// server may repeat a part alone.
func secretParts(u *url.URL) []string {
	parts := []string{u.RequestURI(), u.EscapedPath(), u.RawQuery, u.EscapedFragment()}
	parts = append(parts, strings.Split(u.EscapedPath(), "/")...)
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		_, value, _ := strings.Cut(pair, "=")
		parts = append(parts, pair, value)
	}
	for _, p := range slices.Clone(parts) {
		parts = append(parts, percent.DecodeText(p), percent.DecodeForm(p))
	}
	slices.Sort(parts)
	parts = slices.Compact(parts)
	return slices.DeleteFunc(parts, func(p string) bool { return p == "" || p == "/" })
}

// errCallbackGone is returned for a callback of a question that is forgotten.
var errCallbackGone = errors.New("the question is forgotten, so that nothing can be told of it")

// Callback returns the destination of a callback. See [outbox.Policy].
func (q *Questions) Callback(ctx context.Context, id string, policy *egress.Policy) (*notifier.Destination, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return nil, errCallbackGone
	}
	x, err := q.Get(ctx, parsed)
	if errors.Is(err, ErrNone) {
		return nil, errCallbackGone
	}
	if err != nil {
		return nil, outbox.ErrQueueUnavailable(err)
	}
	return q.destination(x, policy), nil
}

// callback is the service that posts the outcome of a question to its client.
type callback struct {
	questions *Questions
	id        uuid.UUID
	address   string
	secret    string
	host      string
	parts     []string // of the address; see secretParts
}

// Describe implements notifier.Service.
func (s *callback) Describe(x *notifier.Schema) {
	x.Name = "Callback"
	x.URL("callback://{host}")
	x.String(&s.host, "host", s.host, "the host of the address")
	x.String(&s.address, "address", s.address, "the address").Secret()
	parts := s.parts
	x.List(&s.parts, "parts", "the parts of the address").Secret() // Secret empties the list
	s.parts = parts
	x.String(&s.secret, "secret", s.secret, "the secret of the signature").Secret()
}

// StateJSON is the state of a question for its client, in a callback or a stream.
type StateJSON struct {
	ID  string            `json:"id"`
	Ask *message.AskState `json:"ask"`
}

// Send implements notifier.Service.
func (s *callback) Send(ctx context.Context, c *notifier.Client, _ *notifier.Message) error {
	x, err := s.questions.Get(ctx, s.id)
	if err != nil {
		return err
	}
	body, err := json.Marshal(StateJSON{x.ID.String(), x.JSON(true)})
	if err != nil {
		return err
	}
	header := map[string]string{}
	if s.secret != "" {
		key, err := standardwebhook.ParseKey(s.secret)
		if err != nil {
			return notifier.Refused(err)
		}
		if header, err = key.Sign("ask_"+x.ID.String(), time.Now(), bytes.NewReader(body)); err != nil {
			return err
		}
	}
	_, err = c.Do(ctx, &notifier.Request{Method: "POST", URL: s.address, Body: notifier.Bytes("application/json", body), Header: header})
	return err
}
