package caddyhttp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Recipient says who gets the messages that begin inside Caddy, with an event
// or a log entry, instead of in a request.
type Recipient struct {
	// The name of a key of the notify app, which is the global option `notify`.
	// The keys of a site are that site's alone.
	Key string `json:"key,omitempty"`

	// A tag expression such as `ops,dev`, to choose among the key's URLs. It must
	// fit one of them at least. Default: what the key's `default_tag` says.
	Tag string `json:"tag,omitempty"`
}

// check does what can be done without the app.
func (r *Recipient) check() error {
	if err := checkKeyName(r.Key); err != nil {
		return err
	}
	_, err := r.expression()
	return err
}

func (r *Recipient) expression() (notifier.TagExpr, error) {
	e, err := notifier.ParseTags(r.Tag)
	if err == nil && r.Tag != "" && e.Empty() {
		err = errors.New("a tag expression is expected, such as ops,dev")
	}
	if err != nil {
		return e, fmt.Errorf("tag: %w", err)
	}
	return e, nil
}

// find looks the recipient up among the rules of an app.
func (r *Recipient) find(rules *rules) (*key, []notifier.Target, error) {
	k := rules.keys[r.Key]
	if k == nil {
		return nil, nil, fmt.Errorf("there is no key %s in the global option notify, whose keys events and logs use", r.Key)
	}
	e, err := r.expression()
	if err != nil {
		return nil, nil, err
	}
	targets := k.choose(e)
	if len(targets) == 0 {
		return nil, nil, fmt.Errorf("none of the %d destinations of the key %s has the tag %s", len(k.targets), r.Key, r.Tag)
	}
	return k, targets, nil
}

// unmarshal reads `notify <key>`.
func (r *Recipient) unmarshal(d *caddyfile.Dispenser) error {
	d.Next() // the module's name
	args := d.RemainingArgs()
	if len(args) != 1 {
		return d.Err("wrong number of arguments; expected notify <key> [{ … }]")
	}
	r.Key = args[0]
	if err := checkKeyName(r.Key); err != nil {
		return d.WrapErr(err)
	}
	return nil
}

func (r *Recipient) tagOption() option {
	return option{usage: "tag <expression>", least: 1, most: 1, line: func(args []string) error {
		if args[0] == "" {
			return errors.New("a tag expression is expected, such as ops,dev")
		}
		r.Tag = args[0]
		_, err := r.expression()
		return errors.Unwrap(err) // the option's name is in front of it already
	}}
}

// typeOption reads the type of a message.
func typeOption(to *string) option {
	return option{usage: "type info|success|warning|failure", least: 1, most: 1, line: func(args []string) error {
		kind, err := notifier.ParseType(args[0])
		*to = string(kind)
		return err
	}}
}

// wordsOption reads a text of the operator's, with the placeholders that it may
// have.
func wordsOption(name string, to *string, s scope) option {
	return option{usage: name + " <text>", least: 1, most: 1, line: func(args []string) error {
		if args[0] == "" {
			return errors.New("it must not be empty")
		}
		*to = args[0]
		return checkText(args[0], s)
	}}
}

// errFull is that so many messages wait that no other is taken.
var errFull = errors.New("too many messages wait to be sent")

// post sends a message to a key of the app without waiting for it. Where log
// is false, no log entry tells of the deliveries. after, if there is one, gets
// the report.
func (a *App) post(r *Recipient, m *notifier.Message, source string, log bool, after func(*notifier.Report)) error {
	k, targets, err := r.find(a.rules)
	if err != nil {
		return err
	}
	m.Identity = a.rules.identity
	var logger *zap.Logger
	if log {
		logger = k.log
	}
	o := a.rules.options(logger)
	ok := a.engine.outbox.add(func() {
		report := a.engine.send(context.Background(), m, selection{targets: targets}, o, origin{source, r.Key})
		if after != nil {
			after(report)
		}
	})
	if !ok {
		return errFull
	}
	return nil
}

// The bounds of an outbox.
const (
	maxPosting = 32  // messages that are being sent
	maxPosted  = 256 // messages that wait for their turn
)

// outbox sends the messages that begin inside Caddy, where nobody may be kept
// waiting: not the issuance of a certificate, nor a health check, nor whoever
// writes a log entry. Its zero value is ready for use.
type outbox struct {
	lost tally // messages that it had no room for

	mu    sync.Mutex
	queue []func()
	busy  int           // goroutines; each ends when the queue is empty
	idle  chan struct{} // closed when all is sent, where somebody waits for it
}

// add takes what sends one message, unless there is no room for it.
func (o *outbox) add(send func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy < maxPosting {
		o.busy++
		go o.work(send)
		return true
	}
	if len(o.queue) == maxPosted {
		return false
	}
	o.queue = append(o.queue, send)
	return true
}

func (o *outbox) work(send func()) {
	for send != nil {
		send()
		send = o.next()
	}
}

// next is nil when there is nothing to do any more.
func (o *outbox) next() func() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > 0 {
		send := o.queue[0]
		o.queue[0] = nil
		o.queue = o.queue[1:]
		return send
	}
	o.busy--
	if o.busy == 0 && o.idle != nil {
		close(o.idle)
		o.idle = nil
	}
	return nil
}

// wait returns when all is sent or the time is over, and says how many
// messages are not.
func (o *outbox) wait(most time.Duration) int {
	o.mu.Lock()
	if o.busy > 0 && o.idle == nil {
		o.idle = make(chan struct{})
	}
	idle := o.idle
	o.mu.Unlock()
	if idle != nil {
		t := time.NewTimer(most)
		defer t.Stop()
		select {
		case <-idle:
		case <-t.C:
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.busy + len(o.queue)
}

// drainTime is how long a Caddy that stops waits for its last messages.
const drainTime = 5 * time.Second

// drain sends what the log writers have gathered and waits for all that is
// under way, when no other configuration takes over from this app.
func (a *App) drain() {
	if a.engine.running.newest() != a {
		return
	}
	a.engine.logs.flush()
	if left := a.engine.outbox.wait(drainTime); left > 0 {
		a.log.Error("messages are not sent, since the time to stop is over", zap.Int("messages", left))
	}
}

// tally counts what may happen too often for each time to be told. It is told
// at once, and then once a minute how often it has happened meanwhile. Its zero
// value is ready for use.
type tally struct {
	mu    sync.Mutex
	n     int
	timer *time.Timer
}

const tallyTime = time.Minute

func (t *tally) add(n int, tell func(n int)) {
	t.mu.Lock()
	t.n += n
	if t.timer != nil {
		t.mu.Unlock()
		return
	}
	n = t.restart(tell)
	t.mu.Unlock()
	tell(n)
}

// restart begins a minute and returns what the last one had.
func (t *tally) restart(tell func(n int)) (n int) {
	n, t.n = t.n, 0
	t.timer = time.AfterFunc(tallyTime, func() {
		t.mu.Lock()
		t.timer = nil
		n := t.n
		if n > 0 {
			n = t.restart(tell)
		}
		t.mu.Unlock()
		if n > 0 {
			tell(n)
		}
	})
	return n
}
