package notifier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// delivery is the sending of one message to one destination.
type delivery struct {
	*sending
	index    int // of the target
	target   *Target
	progress *Progress
	start    time.Time
	ctx      context.Context // as the observers return it
	taken    bool            // it has a slot of each of sending.slots
	slot     slot            // under the lock of the sender's slots
	waited   time.Duration   // for its slot
	client   Client
	form     form   // of the message
	parts    []part // of the message
	skipped  bool   // set by attempts

	mu      sync.Mutex
	ending  bool // the result is about to be set
	known   bool // the result is set, and later records are dropped
	records []Record
	result  [1]Result // an array, so that the report of one delivery can be a part of it

	rendered Message // in the format of the destination

	// Most deliveries have one part and one record.
	oneMessage [1]*Message
	onePart    [1]part
	oneRecord  [1]Record

	ownProgress Progress // if the target has none
}

// record adds a record after masking the secrets in its text.
func (d *delivery) record(level Level, text string) { d.add(level, d.masked(text)) }

// text returns the text of err for clients: without details of this machine,
// and with the destination's secrets masked.
func (d *delivery) text(err error) string { return d.masked(errs.PublicText(err)) }

// masked returns text with the secrets masked, cut to maxErrorText.
func (d *delivery) masked(text string) string {
	return markup.TruncateBytes(d.redact(text), maxErrorText)
}

// redact masks the secrets of the destination and the link of the message: anybody with the link
// can act on its page, and some services repeat it in their errors.
func (d *delivery) redact(text string) string {
	return d.message.Link.mask(d.target.redact(text))
}

// add is like record for a text that cannot contain a secret.
func (d *delivery) add(level Level, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.known {
		if d.records == nil {
			d.records = d.oneRecord[:0]
		}
		d.records = append(d.records, Record{time.Now(), level, text, d.target.Optional()})
	}
}

// abandonAfter is how long a service may run after its time is over. Then the delivery ends without
// it.
const abandonAfter = 2 * time.Second

// begin tells the observers of the delivery.
func (d *delivery) begin(ctx context.Context) {
	for _, o := range d.options.Observers {
		if o.Begin != nil {
			ctx = o.Begin(ctx, d.index, *d.target)
		}
	}
	d.ctx = ctx
}

// run delivers. It returns when the service does, which may be after the end of the delivery.
func (d *delivery) run() {
	d.end(d.attempts(d.ctx))
}

var errNoRoom = errors.New("there was no room for the delivery within the timeout")

// end ends the delivery and reports to the observers. Only the first call has an effect: a service
// that ignores its context may return after the delivery has ended without it.
func (d *delivery) end(attempts int, err error) {
	d.mu.Lock()
	first := !d.ending
	d.ending = true
	d.mu.Unlock()
	if !first {
		return
	}
	d.finish(attempts, err)
	if attempts > 0 {
		d.target.noteHanging(err != nil && d.result[0].Elapsed-d.waited >= hangTime)
	}
	d.sender.slots.end(d)
	if d.taken {
		releaseSlots(d.slots)
	}
	for _, o := range d.options.Observers {
		if o.End != nil {
			o.End(d.ctx, d.index, d.result[0])
		}
	}
	d.sending.ended()
}

// finish sets the result and writes the records and the log entry.
func (d *delivery) finish(attempts int, err error) {
	t := d.target
	r := Result{
		Service: t.Service(), Destination: t.String(), Name: t.Destination.Name(), Tags: t.Tags, Optional: t.Optional(),
		Status: Delivered, Attempts: attempts, Elapsed: time.Since(d.start),
	}
	if err != nil || t.Progress != nil {
		d.progress.release()
	}
	switch {
	case err == nil && d.skipped:
		r.Status = Skipped // the service has recorded why
	case err == nil:
		d.add(LevelInfo, "Sent to "+t.Name()+".")
	default:
		r.Status = Failed
		r.Err = &DeliveryError{text: d.text(err), err: err}
		r.Temporary, r.RetryAfter, r.Progress = temporary(err), askedToWait(err), d.progress
		r.Unclear = unclear(err) || d.progress.any()
		d.add(LevelError, "Failed to send to "+t.Name()+": "+r.Err.Error())
		if r.Optional {
			d.add(LevelInfo, t.Name()+" is optional, so its failure is ignored.")
		}
	}
	d.mu.Lock()
	d.known = true
	d.result[0] = r
	d.mu.Unlock()
	d.log(&d.result[0])
}

func (d *delivery) log(r *Result) {
	level, text := zapcore.DebugLevel, "delivered"
	switch {
	case r.Status == Skipped:
		level, text = zapcore.WarnLevel, "nothing was sent"
	case r.Err != nil && r.Temporary && d.options.Repeated != nil:
		text = "delivery failed; it is tried again"
		level = d.options.Repeated(d.index, r)
	case r.Err != nil:
		level, text = zapcore.ErrorLevel, "delivery failed"
	}
	if d.options.Logger == nil {
		return
	}
	if c := d.options.Logger.Check(level, text); c != nil {
		c.Write(d.logFields(r)...)
	}
}

// logFields returns the fields of the log entry.
func (d *delivery) logFields(r *Result) []zap.Field {
	fields := []zap.Field{
		zap.String("service", r.Service), zap.String("destination", r.Destination), zap.String("name", NameWithTags(r.Name, r.Tags)),
		zap.Int("attempts", r.Attempts), zap.Duration("elapsed", r.Elapsed),
	}
	if r.Err != nil {
		fields = append(fields, zap.String("error", r.Err.Error()))
		if cause := errs.Private(r.Err); cause != "" {
			fields = append(fields, zap.String("cause", d.masked(cause)))
		}
		if p, ok := errors.AsType[*PanicError](r.Err); ok {
			fields = append(fields, zap.String("panic", d.redact(p.Value)), zap.String("stack", d.redact(p.Stack)))
		}
	}
	if d.options.ID != nil {
		fields = append(fields, zap.Stringer("id", d.options.ID))
	}
	return fields
}

// maxWaits is the maximum number of times in a row that a destination may ask to wait.
const maxWaits = 10

// attempts sends the message until it has arrived, the attempts are used up or
// the time is over. It returns the number of attempts.
func (d *delivery) attempts(ctx context.Context) (n int, err error) {
	defer recovered(&err)
	t, err := d.destination()
	if err != nil {
		return 0, err
	}
	if t != d.target.Destination {
		defer t.Close()
	}
	d.prepare(t)
	attempts, wait := d.retries(t)
	waits := 0
	for {
		if err := d.mayBegin(ctx, err); err != nil {
			return n, err
		}
		n++
		before := unfinished(d.parts)
		if err = sendParts(ctx, t.service, &d.client, d.parts); err == nil {
			return n, d.arrived()
		}
		if unfinished(d.parts) < before {
			waits = 0
		}
		if isOver(ctx) {
			return n, outOfTime(ctx, err)
		}
		pause, again := wait, n-waits < attempts
		if asked := askedToWait(err); asked > 0 && waits < maxWaits {
			pause, again = asked, true
			waits++
		}
		if !again || !mayRetry(err) {
			return d.sendDegraded(ctx, t, n, err)
		}
		if err := d.pause(ctx, n, pause, err); err != nil {
			return n, err
		}
	}
}

// destination returns the destination to send with: the target's or, if its service must keep
// nothing, a copy, which the caller closes.
func (d *delivery) destination() (*Destination, error) {
	t := d.target.Destination
	if u, ok := t.service.(*unusable); ok {
		return nil, u.err
	}
	if t.options.store {
		return t, nil
	}
	return t.copy()
}

// prepare sets the form and the parts of the message, and the client.
func (d *delivery) prepare(t *Destination) {
	whole := d.render(t)
	d.form = d.progress.begin(d.target.Destination, d.message)
	d.parts = d.progress.divide(d.form, t.divide(d.oneMessage[:], whole, d.form), d.onePart[:0])
	d.client = Client{
		pool: d.sender.pool, headers: d.sender.headers, compute: &d.sender.compute, target: d.target.Destination, options: t.options, log: d,
		transient: d.options.Transient, hops: d.message.Hops, header: d.options.Header,
		requests: d.requests, bodies: d.bodies, states: d.states(t),
	}
}

// arrived is called when all parts have been sent. If an earlier delivery had to leave out part of
// the message, it returns the error for that.
func (d *delivery) arrived() error {
	d.skipped = allSkipped(d.parts)
	if d.form == (form{}) {
		return nil
	}
	return d.form.loss(Refused(errors.New(d.form.Refusal)))
}

// pause waits after the n-th attempt, which failed with err. It returns an error
// if there is no time for another attempt.
func (d *delivery) pause(ctx context.Context, n int, pause time.Duration, err error) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < pause {
		return fmt.Errorf("%w (the next attempt, in %s, would be after the timeout)", err, pause.Round(time.Millisecond))
	}
	d.record(LevelWarning,
		fmt.Sprintf("%s: attempt %d failed, next in %s: %s", d.target.Service(), n, pause.Round(time.Millisecond), d.text(err)))
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return outOfTime(ctx, err)
	}
}

// mayBegin returns an error if no attempt may begin: the time is over, or the caller no
// longer holds the message. last is the error of the attempt before, or nil.
func (d *delivery) mayBegin(ctx context.Context, last error) error {
	if isOver(ctx) {
		return outOfTime(ctx, last)
	}
	if d.options.Held == nil {
		return nil
	}
	switch err := d.options.Held(); {
	case err == nil || last == nil:
		return err
	default:
		return fmt.Errorf("%w; %w", err, last)
	}
}

// isOver reports whether ctx is done. In a process that was paused, a timer may be seen to end
// before the deadline of ctx.
func isOver(ctx context.Context) bool {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// retries returns how many attempts are made, and the time between them.
func (d *delivery) retries(t *Destination) (attempts int, wait time.Duration) {
	attempts, wait = t.options.retry+1, seconds(t.options.wait)
	if d.target.Attempts > 0 {
		attempts = d.target.Attempts
	}
	if l := d.options.Limits; l != nil {
		return min(attempts, l.Retry+1), max(wait, l.Wait)
	}
	return attempts, wait
}

// part is a part of a message, in the destination's format and within its
// limits, and the steps of sending it that are done.
type part struct {
	message *Message
	steps   *Steps
}

// sendParts sends each part that is not finished. An error of one part does not
// stop the others, unless the destination asks to wait.
func sendParts(ctx context.Context, s Service, c *Client, parts []part) error {
	var errs []error
	for _, p := range parts {
		if p.steps.finished() {
			continue
		}
		if isOver(ctx) {
			errs = append(errs, context.Cause(ctx))
			break
		}
		err := sendPart(ctx, s, c, p)
		if err == nil {
			continue
		}
		errs = append(errs, err)
		if askedToWait(err) > 0 { // the later parts have to wait as well
			break
		}
	}
	return join(errs)
}

func sendPart(ctx context.Context, s Service, c *Client, p part) (err error) {
	defer recovered(&err)
	c.Steps = p.steps
	if err := s.Send(ctx, c, p.message); err != nil {
		return err
	}
	p.steps.finish()
	return nil
}

// unfinished returns the number of parts that are not finished.
func unfinished(parts []part) (n int) {
	for _, p := range parts {
		if !p.steps.finished() {
			n++
		}
	}
	return n
}

func allSkipped(parts []part) bool {
	for _, p := range parts {
		if !p.steps.isSkipped() {
			return false
		}
	}
	return true
}

// outOfTime returns the error of a delivery that ran out of time: the cause of
// ctx, followed by err if err is about something else.
func outOfTime(ctx context.Context, err error) error {
	over := context.Cause(ctx)
	if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, over) {
		return over
	}
	return fmt.Errorf("%w; %w", over, err)
}
