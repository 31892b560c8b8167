package notifier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Sender sends messages to destinations: all of a request at once, within a
// bound for the process.
type Sender struct {
	pool    *egress.Pool
	slots   chan struct{}
	guests  chan struct{} // of the slots, those for transient destinations
	workers workers
	loaded  operators // destinations of the operator
	once    clients   // those of clients
}

// DefaultConcurrency is how many deliveries a [Sender] has under way at most,
// unless told otherwise.
const DefaultConcurrency = 1024

// NewSender makes a sender. concurrency is how many deliveries are under way
// at most; 0 stands for [DefaultConcurrency]. Half of them may be to transient
// destinations, and a quarter of that half to those of one message, so that
// clients who name dead ones in their requests cannot hold up the operator's
// messages, nor one client alone the other clients'.
func NewSender(pool *egress.Pool, concurrency int) *Sender {
	if concurrency <= 0 {
		concurrency = DefaultConcurrency
	}
	return &Sender{
		pool: pool, slots: make(chan struct{}, concurrency), guests: make(chan struct{}, (concurrency+1)/2),
		workers: newWorkers(),
	}
}

// Pool is what the sender's connections come from.
func (s *Sender) Pool() *egress.Pool { return s.pool }

// Close ends what the destinations of [Sender.Parse] keep. Deliveries under
// way finish, and the sender can still be used.
func (s *Sender) Close() { s.loaded.clear() }

// Parse is like the function [Parse], for a URL of the operator: it gives the
// same [Destination] for the same URL again, so that sessions, tokens and
// connections outlive a configuration. Whoever has no more use for the
// destination gives it back with [Sender.Release], once for each Parse.
func (s *Sender) Parse(text string, guard *egress.Policy) (*Destination, error) {
	return s.loaded.acquire(text, guard)
}

// Release gives back a destination of [Sender.Parse]. When nobody else has it,
// it is closed: at once, or where a message is under way, after that.
func (s *Sender) Release(d *Destination) { s.loaded.release(d) }

// ParseOnce is like the function [Parse], for a URL that a client brings for
// one message. Those of services that can keep nothing are not read anew when
// they come again, which the thousand that were used last are remembered for;
// sessions and connections are never shared. The destination is to be closed
// behind the message.
func (s *Sender) ParseOnce(text string, guard *egress.Policy) (*Destination, error) {
	return s.once.get(text, guard)
}

// Target is a destination of one message, with the tags that it was chosen by.
type Target struct {
	*Destination
	Tags []string
}

// Options are what a message is sent under.
type Options struct {
	// Timeout is for one destination, all tries together. Default: 30s.
	Timeout time.Duration
	// Transient says that the destinations serve this message alone, so that
	// services keep no session and sign out of those that they open.
	Transient bool
	// Logger gets a line for each delivery. nil for none.
	Logger *zap.Logger
	// Begin, where set, is called as each delivery begins, by several goroutines
	// at once. The delivery goes on under the context that it returns, and the
	// function that it returns gets the result.
	Begin func(ctx context.Context, t Target) (context.Context, func(Result))
	// Done, where set, is called as soon as the result of the i-th target is
	// known, by several goroutines at once.
	Done func(i int, r Result)
	// Header, where set, lists headers for each HTTP request of a delivery. Those
	// that the service sets itself win.
	Header func(ctx context.Context) map[string]string
}

// DefaultTimeout is the time that one destination has, unless told otherwise.
const DefaultTimeout = 30 * time.Second

// Status is what became of a message at one destination.
type Status string

// The statuses of a delivery.
const (
	Delivered Status = "delivered"
	Failed    Status = "failed"
	Skipped   Status = "skipped" // nothing was sent: it could not be tried, or the message asked for nothing
)

// Result tells what became of a message at one destination.
type Result struct {
	Service     string
	Destination string // the URL with its secrets masked
	Tags        []string
	Status      Status
	Optional    bool // a failure does not count
	Attempts    int
	Elapsed     time.Duration
	Err         error // its text is free of secrets; nil unless something went wrong
}

// OK says whether nothing is amiss: the destination has the message, or the
// message asked nothing of it, or its failure does not count.
func (r *Result) OK() bool { return r.Err == nil || r.Optional }

// Level is how serious a [Record] is, in the words of the log that clients of
// such gateways read.
type Level string

// The levels of records.
const (
	LevelInfo    Level = "INFO"
	LevelWarning Level = "WARNING"
	LevelError   Level = "ERROR"
)

// Record is one line about a delivery, for the answer to the client.
type Record struct {
	Time  time.Time
	Level Level
	Text  string // free of secrets
}

// Report is what became of a message.
type Report struct {
	Results []Result // one for each target, in their order
	Records []Record // in the order of time
}

// OK says whether all results are.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Results, func(x Result) bool { return !x.OK() })
}

// DeliveryError is a failure of a delivery. Its text is free of secrets;
// errors.As finds the [*StatusError], [*egress.BlockedError] or [*PanicError] behind
// it.
type DeliveryError struct {
	text string
	err  error
}

func (e *DeliveryError) Error() string { return e.text }
func (e *DeliveryError) Unwrap() error { return e.err }

// Send sends the message to all targets at once and returns when the last is
// done. It does not stop when ctx ends, since what was begun is finished;
// each target has the time of o.Timeout.
func (s *Sender) Send(ctx context.Context, m *Message, targets []Target, o Options) *Report {
	ctx = context.WithoutCancel(ctx)
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	m = m.prepared()
	texts := &renderings{m: m}
	var share chan struct{}
	if o.Transient {
		share = make(chan struct{}, max(cap(s.guests)/4, 1))
	}
	deliveries := make([]*delivery, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		d := &delivery{sender: s, target: t, message: m, texts: texts, options: o, share: share}
		deliveries[i] = d
		deliver := func() {
			d.run(ctx)
			if o.Done != nil {
				o.Done(i, d.result)
			}
		}
		if i == len(targets)-1 {
			deliver() // there is nothing left to start
		} else {
			wg.Go(deliver)
		}
	}
	wg.Wait()
	report := &Report{Results: make([]Result, len(targets))}
	for i, d := range deliveries {
		report.Results[i] = d.result
		report.Records = append(report.Records, d.records...)
	}
	slices.SortStableFunc(report.Records, func(a, b Record) int { return a.Time.Compare(b.Time) })
	return report
}

// prepared is a copy of m with its defaults filled in.
func (m *Message) prepared() *Message {
	c := *m
	c.Type = cmp.Or(c.Type, Info)
	c.Format = cmp.Or(c.Format, Text)
	c.Source = c.Format
	if c.Identity == nil {
		id := DefaultIdentity()
		c.Identity = &id
	}
	if c.Time.IsZero() {
		c.Time = time.Now()
	}
	return &c
}

// renderings are the texts of one message in each form that its destinations
// want, made once for all of them.
type renderings struct {
	m  *Message
	mu sync.Mutex
	by map[rendering][2]string
}

type rendering struct {
	format Format
	emojis bool
	merged bool // the title becomes part of the body
}

func (r *renderings) get(key rendering) (title, body string) {
	if key.format == r.m.Format && !key.emojis {
		return r.m.Title, r.m.Body
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t, ok := r.by[key]; ok {
		return t[0], t[1]
	}
	title, body = r.m.Title, markup.Convert(r.m.Body, r.m.Format, key.format)
	if key.merged {
		title = markup.Convert(title, r.m.Format, key.format)
	}
	if key.emojis {
		title, body = markup.ReplaceEmojis(title), markup.ReplaceEmojis(body)
	}
	if r.by == nil {
		r.by = map[rendering][2]string{}
	}
	r.by[key] = [2]string{title, body}
	return title, body
}

// delivery is one message on its way to one destination.
type delivery struct {
	sender  *Sender
	target  Target
	message *Message
	texts   *renderings
	options Options
	share   chan struct{} // what one message may take of the room for transient destinations

	mu      sync.Mutex
	closed  bool // the result is out; what comes later is not recorded
	records []Record
	result  Result

	skipped bool // the message asked for nothing; to be read when the attempts are over
}

func (d *delivery) record(level Level, text string) {
	d.add(level, markup.TruncateBytes(d.target.redact(text), maxErrorText))
}

// add is record for a text that holds no secret for certain.
func (d *delivery) add(level Level, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.records = append(d.records, Record{time.Now(), level, text})
	}
}

// abandonAfter is how long a service may go on when its time is over, before
// its delivery is given up with it still running.
const abandonAfter = 2 * time.Second

// run delivers within the timeout, even where the service does not heed it.
func (d *delivery) run(ctx context.Context) {
	start := time.Now()
	r := Result{
		Service:     d.target.Service(),
		Destination: d.target.String(),
		Tags:        d.target.Tags,
		Optional:    d.target.Optional(),
	}
	if d.options.Begin != nil {
		var end func(Result)
		ctx, end = d.options.Begin(ctx, d.target)
		defer func() { end(d.result) }()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.options.Timeout, fmt.Errorf("not done within %s (timeout)", d.options.Timeout))
	defer cancel()
	leave, ok := d.enter(ctx)
	if !ok {
		d.finish(r, start, 0, errors.New("the gateway had no room for the delivery within the timeout"))
		return
	}
	defer leave()
	var attempts int // written before done is closed, unless abandoned
	var err error
	done := make(chan struct{})
	d.sender.workers.do(func() {
		defer close(done)
		if e := protect(func() error { attempts, err = d.attempts(ctx); return nil }); e != nil {
			err = e
		}
	})
	select {
	case <-done:
		d.finish(r, start, attempts, err)
		return
	case <-ctx.Done():
	}
	// The time is over; a service that heeds its context is about to return.
	t := time.NewTimer(abandonAfter)
	defer t.Stop()
	select {
	case <-done:
		d.finish(r, start, attempts, err)
	case <-t.C:
		d.finish(r, start, 1, context.Cause(ctx))
	}
}

// enter waits for room for the delivery. Whoever has entered must leave.
func (d *delivery) enter(ctx context.Context) (leave func(), ok bool) {
	rooms := []chan struct{}{d.sender.slots}
	if d.options.Transient {
		rooms = []chan struct{}{d.share, d.sender.guests, d.sender.slots}
	}
	leave = func() {
		for _, r := range rooms {
			<-r
		}
	}
	for i, r := range rooms {
		if !take(ctx, r) {
			rooms = rooms[:i]
			leave()
			return nil, false
		}
	}
	return leave, true
}

// take takes one of the slots, even for a context that is over if there is one.
func take(ctx context.Context, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
	}
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// finish writes the result, the record and the log line.
func (d *delivery) finish(r Result, start time.Time, attempts int, err error) {
	r.Attempts, r.Elapsed = attempts, time.Since(start)
	r.Status = Delivered
	switch {
	case err == nil && d.skipped:
		r.Status = Skipped // why has been recorded
	case err == nil:
		d.add(LevelInfo, "Sent "+r.Service+" notification.")
	default:
		r.Status = Failed
		r.Err = &DeliveryError{text: markup.TruncateBytes(d.target.redact(err.Error()), maxErrorText), err: err}
		d.record(LevelError, "Failed to send "+r.Service+" notification: "+r.Err.Error())
		if r.Optional {
			d.record(LevelInfo, "Optional service "+r.Service+" failed; its failure is ignored.")
		}
	}
	d.mu.Lock()
	d.closed = true
	d.result = r
	d.mu.Unlock()
	d.log(r)
}

// maxErrorText is how long the text of a delivery's error may be, in bytes.
const maxErrorText = 4 << 10

func (d *delivery) log(r Result) {
	if d.options.Logger == nil {
		return
	}
	level, text := zapcore.DebugLevel, "delivered"
	switch {
	case r.Status == Skipped:
		level, text = zapcore.WarnLevel, "nothing was sent"
	case r.Err != nil:
		level, text = zapcore.ErrorLevel, "delivery failed"
	}
	c := d.options.Logger.Check(level, text)
	if c == nil {
		return
	}
	fields := []zap.Field{
		zap.String("service", r.Service), zap.String("destination", r.Destination),
		zap.Int("attempts", r.Attempts), zap.Duration("elapsed", r.Elapsed),
	}
	if r.Err != nil {
		fields = append(fields, zap.String("error", r.Err.Error()))
		var p *PanicError
		if errors.As(r.Err, &p) {
			fields = append(fields, zap.String("panic", d.target.redact(p.Value)), zap.String("stack", d.target.redact(p.Stack)))
		}
	}
	c.Write(fields...)
}

// maxWaits is how often a destination may ask to be waited for.
const maxWaits = 10

// attempts sends until it succeeds, the tries are used up or the time is over.
func (d *delivery) attempts(ctx context.Context) (n int, err error) {
	t := d.target.Destination
	if !t.options.store {
		if t, err = t.copy(); err != nil {
			return 0, err
		}
		defer t.Close()
	}
	parts, err := d.parts(t)
	if err != nil {
		return 0, err
	}
	pending := allOf(parts)
	client := &Client{pool: d.sender.pool, options: t.options, guard: t.guard, log: d.record, redact: d.target.redact, transient: d.options.Transient, hops: d.message.Hops, header: d.options.Header}
	tries, waits := t.options.retry+1, 0
	for {
		n++
		before := len(pending)
		if err = pending.send(ctx, t.service, client); err == nil {
			d.skipped = client.skips == len(parts)
			return n, nil
		}
		if len(pending) < before {
			waits = 0
		}
		if ctx.Err() != nil {
			return n, outOfTime(ctx, err)
		}
		pause, again := seconds(t.options.wait), n-waits < tries
		if asked := askedToWait(err); asked > 0 && waits < maxWaits {
			pause, again = asked, true
			waits++
		}
		if !again || !mayRetry(err) {
			return d.rescue(ctx, t, client, pending, n, err)
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < pause {
			return n, fmt.Errorf("%w (the next try, in %s, would be after the timeout)", err, pause.Round(time.Millisecond))
		}
		d.record(LevelWarning, fmt.Sprintf("%s: try %d failed, next in %s: %v", t.Service(), n, pause.Round(time.Millisecond), err))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return n, outOfTime(ctx, err)
		}
	}
}

// part is one part of a message that has not arrived, with what of it has.
type part struct {
	message *Message
	done    map[string]any
}

// outstanding are the parts that have not arrived.
type outstanding []part

func allOf(messages []*Message) outstanding {
	o := make(outstanding, len(messages))
	for i, m := range messages {
		o[i].message = m
	}
	return o
}

// send sends each part, whatever becomes of those before it, unless the
// service asks to wait, and keeps those that fail for the next try.
func (o *outstanding) send(ctx context.Context, s Service, c *Client) error {
	var left outstanding
	var errs []error
	for i, p := range *o {
		if ctx.Err() != nil {
			left = append(left, (*o)[i:]...)
			errs = append(errs, context.Cause(ctx))
			break
		}
		c.done = p.done
		if err := protect(func() error { return s.Send(ctx, c, p.message) }); err != nil {
			left = append(left, part{p.message, c.done})
			errs = append(errs, err)
			if askedToWait(err) > 0 { // which counts for those behind it, too
				left = append(left, (*o)[i+1:]...)
				break
			}
		}
	}
	*o = left
	return join(errs)
}

// Statuses are the refusals among what an error is made of: of several targets,
// each may have its own.
func Statuses(err error) (out []*StatusError) {
	switch e := err.(type) {
	case *StatusError:
		return []*StatusError{e}
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			out = append(out, Statuses(err)...)
		}
	case interface{ Unwrap() error }:
		return Statuses(e.Unwrap())
	}
	return out
}

// askedToWait is the longest time for which one of the service's answers asks.
func askedToWait(err error) (most time.Duration) {
	for _, s := range Statuses(err) {
		if s.Code == http.StatusTooManyRequests || s.Code == http.StatusServiceUnavailable {
			most = max(most, s.RetryAfter)
		}
	}
	return most
}

// outOfTime says that the time is over, and what the matter was until then.
func outOfTime(ctx context.Context, err error) error {
	over := context.Cause(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, over) {
		return over
	}
	return fmt.Errorf("%w; %w", over, err)
}

// mayRetry says whether another try can turn out differently, for one target
// at least.
func mayRetry(err error) bool {
	switch e := err.(type) {
	case *egress.BlockedError, *PanicError:
		return false
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), mayRetry)
	case interface{ Unwrap() error }:
		return mayRetry(e.Unwrap())
	}
	return err != errLongAnswer
}

// parts are what the service is to send: the message in the destination's
// format and cut to its limits.
func (d *delivery) parts(t *Destination) ([]*Message, error) {
	m, s := d.message, t.schema
	if m.Body == "" && !s.Attachments && len(m.Attachments) > 0 {
		return nil, errors.New("the service cannot send files, and the message has no text")
	}
	if len(m.Attachments) > 0 && !s.Attachments {
		d.record(LevelWarning, fmt.Sprintf("%s cannot send files; the message goes without them", s.Name))
	}
	format := cmp.Or(Format(t.options.format), s.Format)
	title, body := d.texts.get(rendering{format, t.options.emojis, s.Limits.Title <= 0})
	c := *m
	c.Title, c.Body, c.Format = title, body, format
	c.Time = m.Time.In(t.location)
	if !s.Attachments {
		c.Attachments = nil
	}
	return s.fit(&c, markup.Overflow(t.options.overflow)), nil
}

// fit makes messages of one that are within the limits. The last has the files.
func (s *Schema) fit(m *Message, mode markup.Overflow) []*Message {
	texts := s.Limits.Fit(m.Title, m.Body, m.Format, m.Source, mode)
	parts := make([]*Message, len(texts))
	for i, text := range texts {
		c := *m
		c.Title, c.Body = text.Title, text.Body
		if i < len(texts)-1 {
			c.Attachments = nil
		}
		parts[i] = &c
	}
	return parts
}
