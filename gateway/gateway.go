package gateway

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Gateway takes messages with one configuration. Its rooms are set before Started is closed.
type Gateway struct {
	Conf    outbox.Configuration
	Started chan struct{} // closed when the queue is open, or failed to open
	Rooms   *Rooms        // nil if it is not open
	Checks  Checks
}

// Open returns the rooms for messages of a key, or nil if there is no queue or the key does not use
// it. For a nil key, it returns the rooms of the gateway. Open waits until the gateway has started,
// because messages may come in earlier. The error is a [*message.Error] of the kind Unavailable.
func (g *Gateway) Open(k *site.Key) (*Rooms, error) {
	if g.Conf.QueueSettings == nil || k != nil && k.Unqueued {
		return nil, nil
	}
	<-g.Started
	if g.Rooms == nil {
		return nil, outbox.ErrQueueUnavailable(errors.New("the queue is not open"))
	}
	return g.Rooms, nil
}

// Silences returns the silences, in which a caller lists, makes and ends silences of a key. The error is
// [alerting.ErrSilencesWithoutQueue], [alerting.ErrSilencesUnqueued], or comes from [Gateway.Open].
func (g *Gateway) Silences(k *site.Key) (*alerting.Silences, error) {
	q, err := g.Open(k)
	switch {
	case err != nil:
		return nil, err
	case q != nil:
		return q.Alerts.Silences, nil
	case g.Conf.QueueSettings == nil:
		return nil, alerting.ErrSilencesWithoutQueue
	}
	return nil, alerting.ErrSilencesUnqueued
}

// Questions returns the questions, with which a key of a site can ask. The error is [ask.ErrNoQueue],
// [ask.ErrNoURL], or comes from [Gateway.Open].
func (g *Gateway) Questions(s *site.Site, k *site.Key) (*ask.Questions, error) {
	q, err := g.Open(k)
	switch {
	case err != nil:
		return nil, err
	case q == nil:
		return nil, ask.ErrNoQueue
	case s.PublicURL == "":
		return nil, ask.ErrNoURL
	}
	return q.Questions, nil
}

// ForgetKey removes what the queue, if there is one, has for a deleted saved key.
func (g *Gateway) ForgetKey(ctx context.Context, at site.Place, name, user string) {
	if q, _ := g.Open(nil); q != nil {
		q.ForgetKey(ctx, at, name, user)
	}
}

// Submit sends a message to a key, or to none if k is nil. All messages of requests and mails pass
// here. It returns the report and, with a queue, the ID of the message. Without a queue, it waits
// for all results, and stores nothing.
//
// If the report is nil, nothing was sent, and the caller releases d: the error comes from
// [outbox.Outbox.Submit], or is a [*message.Error] if the queue is not open. Otherwise its resources
// are closed when the last delivery has ended, possibly after Submit
// returns. An error with a report means that some deliveries in progress could not be stored.
func (g *Gateway) Submit(ctx context.Context, k *site.Key, d dispatch.Delivery, o outbox.Options) (*notifier.Report, string, error) {
	g.Conf.Shared.Incidents.Note(&d)
	q, err := g.Open(k)
	if err != nil {
		return nil, "", err
	}
	if q != nil {
		if o.Wait == nil {
			o.Wait = &g.Conf.QueueSettings.Wait
		}
		return q.Outbox.Submit(ctx, d, o)
	}
	defer d.Release()
	if o.Begun != nil {
		d.Done = o.Begun(d.To.Targets)
	}
	return g.Conf.Shared.Send(ctx, d), "", nil
}

// errNoTarget is returned when no destination of a key has the tag any more. A removed device may
// have had it.
var errNoTarget = errors.New("no destination of the key has the tag now")

// Post sends a message to targets of a key of the global option in the background, so that the code
// that emits an event or writes to a log does not wait for a destination. With a queue, the message
// is stored first; if that fails, it is sent once. If log is false, the deliveries are not logged.
// done, if not nil, is called with the report, unless the queue takes the message.
func (g *Gateway) Post(k *site.Key, targets []notifier.Target, m *notifier.Message, source string, log bool,
	done func(*notifier.Report),
) error {
	if len(targets) == 0 && k.Inbox == 0 {
		_, err := k.Choose(notifier.TagExpr{})
		return cmp.Or(err, errNoTarget)
	}
	d := dispatch.NewDelivery(g.Conf.Global, source, "", m, &message.Selection{Targets: targets}).ToKey(k)
	if !log {
		d.Logger = nil
	}
	ok := g.Conf.Shared.Background.Add(func() {
		ctx := context.Background()
		if q, err := g.Open(k); err == nil && q != nil {
			_, _, err := q.Outbox.Submit(ctx, d, outbox.Options{Background: true})
			if err == nil {
				return
			}
			q.Outbox.Log.Error("message not stored; it is sent once instead", zap.String("key", d.Key), zap.String("source", d.Source),
				zap.Error(err))
		}
		report := g.Conf.Shared.Send(ctx, d)
		if done != nil {
			done(report)
		}
	})
	if !ok {
		return outbox.ErrQueueFull
	}
	return nil
}

// SendTest sends a test message at once, without the queue. A success is reported to the queue: the
// destination is no longer failing, and gets the messages that wait for it. A failed test changes
// nothing, because somebody looks at its result.
func (g *Gateway) SendTest(ctx context.Context, k *site.Key, d dispatch.Delivery) *notifier.Report {
	report := g.Conf.Shared.Send(ctx, d)
	q, err := g.Open(k)
	if q == nil || err != nil {
		return report
	}
	for i, at := range d.To.Positions() {
		t := d.To.Targets[i]
		ofKey := slices.ContainsFunc(k.Targets, func(o notifier.Target) bool { return o.Hash() == t.Hash() })
		if r := &report.Results[at]; ofKey && r.Status == notifier.Delivered {
			q.Outbox.Observe(&d, t, r)
		}
	}
	return report
}

// SendTests sends a message to each definition of a key, with the settings of its site, and
// returns the reports as one.
func (g *Gateway) SendTests(ctx context.Context, m *notifier.Message, definitions []site.Definition,
	tag notifier.TagExpr,
) *notifier.Report {
	reports := make([]*notifier.Report, len(definitions))
	var wg sync.WaitGroup
	for i, d := range definitions {
		targets := d.Key.Select(tag)
		if len(targets) == 0 {
			continue
		}
		c := *m
		wg.Go(func() {
			to := &message.Selection{Targets: targets}
			reports[i] = g.SendTest(ctx, d.Key, dispatch.NewDelivery(d.Site, site.SourceTest, g.Conf.SiteID(d.Site), &c, to).ToKey(d.Key))
		})
	}
	wg.Wait()
	all := new(notifier.Report)
	for _, r := range reports {
		if r != nil {
			all.Results, all.Records = append(all.Results, r.Results...), append(all.Records, r.Records...)
		}
	}
	return all
}

// Unavailable returns why the gateway cannot take messages, or "". Anybody may read the text:
// addresses and paths are only in the log.
func (g *Gateway) Unavailable(ctx context.Context) string {
	if g.Conf.QueueSettings == nil {
		return ""
	}
	select {
	case <-g.Started:
	default:
		return "the gateway is starting"
	}
	if g.Rooms == nil {
		return "the queue is not open"
	}
	switch err := g.Rooms.Outbox.Writable(ctx); {
	case err == nil:
		return ""
	case errors.Is(err, outbox.ErrStoreHangs):
		return "the queue's store does not answer"
	}
	return "the queue cannot be written; the log of the gateway has the reason"
}

// New returns the dispatcher of a process. agent is its User-Agent, newest returns its newest
// gateway, or nil, and queue the state of its open queue, or nil.
func New(agent string, newest func() *Gateway, queue func(context.Context) *metrics.QueueState) *dispatch.Dispatcher {
	s := &dispatch.Dispatcher{
		Sender: notifier.NewSender(egress.NewPool(agent), notifier.DefaultConcurrency),
		EmitEvent: func(name string, data func() map[string]any) {
			if g := newest(); g != nil {
				g.Conf.Emit(name, data)
			}
		},
		Subscribed: func(name string) bool {
			g := newest()
			return g != nil && g.Conf.Subscribed(name)
		},
	}
	s.Metrics = metrics.New(&s.InFlight, &s.Memory, queue)
	return s
}

// CloseDispatcher closes the connections. A request that outlives the last configuration can still
// send, over new connections.
func CloseDispatcher(s *dispatch.Dispatcher) {
	s.Sender.Close()
	s.Sender.Pool().Close()
}
