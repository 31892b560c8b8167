package notifier

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// maxWaits is the maximum number of times in a row that a destination may ask
// to wait.
const maxWaits = 10

// attempts sends the message until it has arrived, the attempts are used up or
// the time is over. It returns the number of attempts.
func (d *delivery) attempts(ctx context.Context) (n int, err error) {
	t := d.target.Destination
	if !t.options.store {
		if t, err = t.copy(); err != nil {
			return 0, err
		}
		defer t.Close()
	}
	whole, err := d.render(t)
	if err != nil {
		return 0, err
	}
	f := d.progress.begin(d.target.Destination, d.message)
	parts := d.progress.divide(f, t.divide(d.oneMessage[:], whole, f), d.onePart[:0])
	d.client = Client{
		pool: d.sender.pool, headers: d.sender.headers, compute: &d.sender.compute, target: d.target.Destination, options: t.options, log: d,
		transient: d.options.Transient, hops: d.message.Hops, header: d.options.Header, requests: d.requests, bodies: d.bodies, states: d.states(t),
	}
	attempts, wait := d.retries(t)
	waits := 0
	for {
		n++
		before := unfinished(parts)
		if err = sendParts(ctx, t.service, &d.client, parts); err == nil {
			d.skipped = allSkipped(parts)
			if f != (form{}) { // an earlier delivery was refused
				err = f.loss(Refused(errors.New(f.Refusal)))
			}
			return n, err
		}
		if unfinished(parts) < before {
			waits = 0
		}
		if ctx.Err() != nil {
			return n, outOfTime(ctx, err)
		}
		pause, again := wait, n-waits < attempts
		if asked := askedToWait(err); asked > 0 && waits < maxWaits {
			pause, again = asked, true
			waits++
		}
		if !again || !mayRetry(err) {
			return d.sendDegraded(ctx, t, f, parts, n, err)
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < pause {
			return n, fmt.Errorf("%w (the next attempt, in %s, would be after the timeout)", err, pause.Round(time.Millisecond))
		}
		d.record(LevelWarning, fmt.Sprintf("%s: attempt %d failed, next in %s: %s", t.Service(), n, pause.Round(time.Millisecond), d.text(err)))
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return n, outOfTime(ctx, err)
		}
	}
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
		if ctx.Err() != nil {
			errs = append(errs, context.Cause(ctx))
			break
		}
		c.Steps = p.steps
		err := protect(func() error { return s.Send(ctx, c, p.message) })
		if err == nil {
			p.steps.finish()
			continue
		}
		errs = append(errs, err)
		if askedToWait(err) > 0 { // the later parts have to wait as well
			break
		}
	}
	return join(errs)
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
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, over) {
		return over
	}
	return fmt.Errorf("%w; %w", over, err)
}
