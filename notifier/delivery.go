package notifier

import (
	"context"
	"errors"
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
	target   Target
	progress *Progress
	start    time.Time
	ctx      context.Context // as the observers return it
	taken    bool            // it has its slots
	client   Client
	form     form   // of the message
	parts    []part // of the message
	skipped  bool   // set by attempts

	mu      sync.Mutex
	ending  bool // the result is about to be set
	known   bool // the result is set, and later records are dropped
	records []Record
	result  Result

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
			ctx = o.Begin(ctx, d.index, d.target)
		}
	}
	d.ctx = ctx
}

// run delivers. It returns when the service does, which may be after the end of
// the delivery.
func (d *delivery) run() {
	d.end(d.attempts(d.ctx))
}

var errNoRoom = errors.New("the gateway had no room for the delivery within the timeout")

// end ends the delivery and reports to the observers. Only the first call has
// an effect: a service that ignores its context may return after the delivery
// has ended without it.
func (d *delivery) end(attempts int, err error) {
	d.mu.Lock()
	first := !d.ending
	d.ending = true
	d.mu.Unlock()
	if !first {
		return
	}
	d.finish(attempts, err)
	if d.taken {
		releaseSlots(d.slots)
	}
	for _, o := range d.options.Observers {
		if o.End != nil {
			o.End(d.ctx, d.index, d.result)
		}
	}
	d.sending.ended()
}

// finish sets the result and writes the records and the log entry.
func (d *delivery) finish(attempts int, err error) {
	t := &d.target
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
	d.result = r
	d.mu.Unlock()
	d.log(&d.result)
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
	c := d.options.Logger.Check(level, text)
	if c == nil {
		return
	}
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
	c.Write(fields...)
}
