package notifier

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// Sender sends messages to destinations, to all destinations of a message at
// once and within a limit for the process.
type Sender struct {
	pool    *egress.Pool
	headers commonHeaders
	slots   senderSlots
	compute computeSlots
	order   incidentOrder
	shared  sharedDestinations         // of the operator
	recent  recentDestinations         // of clients
	states  atomic.Pointer[StateStore] // nil for none
}

// DefaultConcurrency is the default maximum number of deliveries that a
// [Sender] has under way.
const DefaultConcurrency = 1024

// NewSender returns a sender with at most concurrency deliveries under way;
// 0 means [DefaultConcurrency]. At most half of them are deliveries to
// transient destinations, and at most a quarter of that half belong to one
// message. Clients that name dead destinations in their requests can therefore
// hold up neither the operator's messages nor the messages of all other clients.
func NewSender(pool *egress.Pool, concurrency int) *Sender {
	if concurrency <= 0 {
		concurrency = DefaultConcurrency
	}
	return &Sender{pool: pool, headers: newCommonHeaders(pool.UserAgent()), slots: newSenderSlots(concurrency), compute: newComputeSlots()}
}

// Pool returns the pool that the sender's connections come from.
func (s *Sender) Pool() *egress.Pool { return s.pool }

// Close closes the destinations of [Sender.Parse]. Deliveries under way are
// finished, and the sender can still be used.
func (s *Sender) Close() { s.shared.clear() }

// Parse is like the function [Parse], for a URL of the operator. It returns the
// same [Destination] for the same URL again, so that sessions, tokens and
// connections outlive a configuration. The caller returns the destination with
// [Sender.Release], once for each call of Parse.
func (s *Sender) Parse(text string, policy *egress.Policy) (*Destination, error) {
	return s.shared.acquire(text, policy, Files{})
}

// Release returns a destination of [Sender.Parse]. The last release closes it,
// after the delivery if a message is under way.
func (s *Sender) Release(d *Destination) { s.shared.release(d) }

// ParseOnce is like the function [Parse], for a URL that a client sends with one message. It
// remembers the last thousand destinations, but only destinations of services that keep nothing
// between messages: clients never share sessions and connections. The caller closes the
// destination after the message.
func (s *Sender) ParseOnce(text string, policy *egress.Policy) (*Destination, error) {
	return s.recent.get(text, policy)
}

// Send sends the message to all targets at once, except that the targets of a chain get it in the
// order of their numbers, and returns when the last delivery has ended. It does not stop when ctx
// ends, because a message that is begun is finished; each target has the time of o.Timeout.
//
// A destination gets one message of an incident at a time. The others wait, and a new state
// replaces earlier waiting ones.
func (s *Sender) Send(ctx context.Context, m *Message, targets []Target, o Options) *Report {
	return s.Start(ctx, m, targets, o).Wait(nil)
}

// Start begins to send as [Sender.Send] does, and returns at once. The caller
// calls [Sending.Wait] until it returns the report.
func (s *Sender) Start(ctx context.Context, m *Message, targets []Target, o Options) Sending {
	ctx = context.WithoutCancel(ctx)
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	x := &sending{sender: s, options: o, slots: s.slots.forMessage(o.Transient, len(targets)), done: make(chan struct{})}
	x.own.message = m.withDefaults()
	x.message = &x.own.message
	x.texts.m = x.message
	if n := len(m.Title) + len(m.Body); n > memory.SmallText {
		copies, free := takeCopies(o.Memory, n, len(targets))
		x.free = free
		x.slots, x.bodies = slices.Insert(x.slots, 0, copies), newSharedBodies()
	}
	if o.Limits != nil {
		x.own.limits = o.Limits.of(m)
		x.own.requests.max, x.own.requests.maxRepeated = x.own.limits.Requests, x.own.limits.Bytes
		x.options.Limits, x.requests = &x.own.limits, &x.own.requests
	}
	switch {
	case Chained(targets):
		x.startChains(ctx, targets)
	case x.message.Incident.ID != "":
		x.startOrdered(ctx, targets)
	default:
		x.start(ctx, targets)
	}
	return Sending{x}
}

// Sending is a message on its way. [Sender.Start] returns it.
type Sending struct{ x *sending }

// Wait returns the report when the last delivery has ended, or nil if limit
// receives a value before. A nil limit means no limit.
func (s Sending) Wait(limit <-chan time.Time) *Report { return s.x.wait(limit) }
