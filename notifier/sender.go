package notifier

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
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

// DefaultConcurrency is the default maximum number of deliveries that a [Sender] has under way.
const DefaultConcurrency = egress.MaxIdleConns

// NewSender returns a sender with at most concurrency deliveries under way; 0 means [DefaultConcurrency].
//
// Each destination of the operator has a slot of its own, unless values of the message are part of
// its URL, or it hangs: its last delivery has failed, and only after three seconds. Three quarters of
// concurrency are for these slots. So the first delivery to a destination begins at once, however
// many others hang, and so does each further one to a destination that answers if no other to it is
// under way.
//
// All other deliveries share a quarter of concurrency. At most half of that are deliveries to
// transient destinations, and at most a quarter of this half belong to one message. Clients that
// name dead destinations in their requests can therefore hold up neither the operator's messages nor
// the messages of all other clients.
func NewSender(pool *egress.Pool, concurrency int) *Sender {
	if concurrency <= 0 {
		concurrency = DefaultConcurrency
	}
	return &Sender{pool: pool, headers: newCommonHeaders(pool.UserAgent()), slots: newSenderSlots(concurrency), compute: newComputeSlots()}
}

// Pool returns the pool that the sender's connections come from.
func (s *Sender) Pool() *egress.Pool { return s.pool }

// Close closes the destinations of [Sender.Parse]. Deliveries under way are finished, and the sender
// can still be used.
func (s *Sender) Close() {
	s.shared.clear()
	s.slots.workers.Close()
}

// Parse is like the function [Parse], for a URL of the operator. It returns the same [Destination]
// for the same URL again, so that sessions, tokens and connections outlive a configuration. The
// caller returns the destination with [Sender.Release], once for each call of Parse.
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
// order of their numbers, and returns when the last delivery has ended. Unless o.StopWithContext
// is set, it does not stop when ctx ends, because a message that is begun is finished. Each target
// has the time of o.Timeout.
//
// A destination gets one message of an incident at a time. The others wait, and a new state
// replaces earlier waiting ones.
//
// If a service does not return when its time is over, Send waits for it only if the message has no
// other target. Neither m nor targets may be changed afterwards: such a service may still use them.
func (s *Sender) Send(ctx context.Context, m *Message, targets []Target, o Options) *Report {
	return s.start(ctx, m, targets, o, len(targets) == 1).wait(nil)
}

// Start begins to send as [Sender.Send] does. The caller calls [Sending.Wait] until it returns the
// report.
func (s *Sender) Start(ctx context.Context, m *Message, targets []Target, o Options) Sending {
	return Sending{s.start(ctx, m, targets, o, false)}
}

// start begins to send. here means that the only delivery is made by the caller's goroutine, unless
// it has to wait.
func (s *Sender) start(ctx context.Context, m *Message, targets []Target, o Options, here bool) *sending {
	if ctx.Done() != nil && !o.StopWithContext {
		ctx = context.WithoutCancel(ctx)
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	x := &sending{sender: s, options: o, here: here, slots: s.slots.forMessage(o.Transient, len(targets))}
	x.message = m.withDefaults()
	x.texts.m = x.message
	if n := len(m.Title) + len(m.Body); n > memory.SmallText {
		copies, free := takeCopies(o.Memory, n, len(targets))
		x.free = free
		x.slots, x.bodies = slices.Insert(x.slots, 0, copies), newSharedBodies()
	}
	if o.Limits != nil {
		x.requests = &requestCounter{limits: o.Limits.of(m)}
		x.options.Limits = &x.requests.limits
	}
	switch {
	case Chained(targets):
		x.startChains(ctx, targets)
	case x.message.Incident.ID != "":
		x.startOrdered(ctx, targets)
	default:
		x.start(ctx, targets)
	}
	return x
}

// Sending is a message on its way. [Sender.Start] returns it.
type Sending struct{ x *sending }

// Wait returns the report when the last delivery has ended, or nil if limit
// receives a value before. A nil limit means no limit.
func (s Sending) Wait(limit <-chan time.Time) *Report { return s.x.wait(limit) }

// Limits are the limits of one message to URLs of clients.
//
// Without Relay, a message that has passed through a gateway may be sent to one recipient, once.
// Otherwise a request with many URLs, each of which makes another gateway send to many URLs, would
// multiply.
type Limits struct {
	// Deliveries is the number of recipients of all destinations, see [Destination.Recipients]. A
	// recipient of a message in several parts counts once for each part.
	Deliveries int

	// Requests is the number of HTTP requests and connections. Deliveries count with their retries
	// before the message is sent. Requests and connections are counted again as they are made,
	// because services may need several. Each redirect that is followed counts as a request.
	Requests int

	// Bytes is the length of the text and the files, as often as they are
	// delivered, including retries. Bodies that are sent again because of
	// redirects have a separate limit of the same size.
	Bytes int64

	// Retry is the maximum of the parameter retry. A greater value is lowered.
	Retry int

	// Wait is the minimum of the parameter wait. A smaller value is raised.
	Wait time.Duration

	// Setting is what the limits are called where they are set, such as client_limits. Errors and
	// warnings name it; "" leaves it out.
	Setting string

	// Relay lets a message that has passed through a gateway cause as much as any other.
	Relay bool
}

// LimitError is returned when a message exceeds one of [Limits].
type LimitError struct {
	// Limit is [LimitDeliveries], [LimitRequests] or [LimitBytes].
	Limit string

	text, setting string
}

// Error implements error.
func (e *LimitError) Error() string { return e.text + inSetting(e.setting, e.Limit) }

// inSetting returns the name of a limit, and of the setting that it belongs to, as the end of a
// text, or "" if the setting has no name.
func inSetting(setting, limit string) string {
	if setting == "" {
		return ""
	}
	return " (" + setting + " " + limit + ")"
}

// The names of limits in a [LimitError].
const (
	LimitDeliveries = "deliveries"
	LimitRequests   = "requests"
	LimitBytes      = "bytes"
)

// relayedRequests is the maximum number of requests for a message that has
// passed through a gateway: enough to sign in and to send files.
const relayedRequests = 10

// of returns the limits of m.
func (l *Limits) of(m *Message) Limits {
	c := *l
	if m.Hops > 0 && !l.Relay {
		c.Deliveries, c.Requests, c.Retry = 1, min(relayedRequests, l.Requests), 0
	}
	return c
}

// Check returns a [*LimitError] if the message may cause more than l allows.
func (l *Limits) Check(m *Message, targets []Target) error {
	limits := l.of(m)
	text := int64(len(m.Title) + len(m.Body))
	var files int64
	for _, a := range m.Attachments {
		files += a.Size
	}
	var deliveries, attempts, bytes int64
	texts := &renderings{m: m}
	for _, t := range targets {
		n := int64(t.Recipients())
		each := int64(min(t.options.retry, limits.Retry) + 1)
		size := text
		if t.schema.Attachments {
			size += files
		}
		bytes += n * each * size
		n *= t.parts(texts)
		deliveries += n
		attempts += n * each
	}
	relayed := ""
	if m.Hops > 0 {
		relayed = " for a message that comes from another gateway"
	}
	switch {
	case deliveries > int64(limits.Deliveries):
		return &LimitError{
			LimitDeliveries,
			fmt.Sprintf("the message would make %d deliveries, one for each recipient and part; the limit is %d%s",
				deliveries, limits.Deliveries, relayed), l.Setting,
		}
	case attempts > int64(limits.Requests):
		return &LimitError{
			LimitRequests,
			fmt.Sprintf("the message would make %d requests, one for each delivery and retry; the limit is %d%s",
				attempts, limits.Requests, relayed), l.Setting,
		}
	case bytes > limits.Bytes:
		return &LimitError{
			LimitBytes,
			fmt.Sprintf("the message would send %s, which is its text and files for each recipient and retry; the limit is %s",
				humanize.IBytes(uint64(bytes)), humanize.IBytes(uint64(limits.Bytes))), l.Setting,
		}
	}
	return nil
}

// parts returns the number of parts in which the message of texts is sent to d.
func (d *Destination) parts(texts *renderings) int64 {
	limit := d.schema.Limits.Body
	if markup.Overflow(d.options.overflow) != markup.OverflowSplit || limit <= 0 || len(texts.m.Title)+len(texts.m.Body) == 0 {
		return 1
	}
	m := *texts.m
	texts.renderAll(&m, d)
	return int64(len(d.schema.fit(nil, &m, markup.OverflowSplit, form{})))
}

// Warnings returns the changes that l makes to the parameters of d, one sentence each.
func (l *Limits) Warnings(d *Destination) (warnings []string) {
	if d.options.retry > l.Retry {
		warnings = append(warnings,
			fmt.Sprintf("retry=%d is above the limit of %d%s; %[2]d is used", d.options.retry, l.Retry, inSetting(l.Setting, "retry")))
	}
	if d.options.retry > 0 && d.options.wait != defaultWait && seconds(d.options.wait) < l.Wait {
		warnings = append(warnings, fmt.Sprintf("wait=%s is below the limit of %s%s; %[2]s is used",
			strconv.FormatFloat(d.options.wait, 'f', -1, 64), l.Wait, inSetting(l.Setting, "wait")))
	}
	return warnings
}

// requestCounter counts the requests and connections of one message. nil has no limit.
type requestCounter struct {
	limits   Limits
	n        atomic.Int64
	repeated atomic.Int64 // bytes of bodies, because of redirects
}

// redirect counts the request that follows a redirect.
func (c *requestCounter) redirect(r *http.Request) error {
	if c.repeated.Add(max(r.ContentLength, 0)) > c.limits.Bytes {
		return &LimitError{
			LimitBytes,
			fmt.Sprintf("redirects would make the message send more than %s again", humanize.IBytes(uint64(c.limits.Bytes))), c.limits.Setting,
		}
	}
	return c.take()
}

// take counts one more, or returns a [*LimitError] if that is too many.
func (c *requestCounter) take() error {
	if c == nil || c.n.Add(1) <= int64(c.limits.Requests) {
		return nil
	}
	text := fmt.Sprintf("the message has made %d requests and may not make more", c.limits.Requests)
	return &LimitError{LimitRequests, text, c.limits.Setting}
}
