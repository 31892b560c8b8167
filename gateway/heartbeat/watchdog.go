package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// MaxWatchdog is the longest interval of a watchdog.
const MaxWatchdog = 24 * time.Hour

// The errors of the settings of a watchdog.
var (
	ErrWatchdogInterval = errors.New("beat: the interval must be from 1s to 24h")
	ErrWatchdogURL      = errors.New("beat: the address must begin with http:// or https:// and have a host")
)

// watchdog calls the address of a service that notices when no gateway runs.
type watchdog struct {
	outbox  *outbox.Outbox
	failing atomic.Bool // the last call has failed
}

// name returns the name of the record with the [WatchdogState].
func (d *watchdog) name() queue.Hash { return d.outbox.Queue.Hash("watchdog") }

// watchdogKept is how long the record is kept unchanged after the configuration lost its watchdog.
const watchdogKept = time.Hour

// take reports whether this gateway makes a call now, and stores when the next call is due. w is
// nil if there is no watchdog.
func (d *watchdog) take(ctx context.Context, w *outbox.Watchdog) (take bool, err error) {
	err = d.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Names: []queue.Hash{d.name()}, Decide: func(tx *queue.Tx) error {
		now, s := d.outbox.Queue.Now(), WatchdogStates.GetOrNew(tx, d.name())
		take = w != nil && (!s.Next.After(now) || s.Next.Sub(now) > w.Interval)
		switch {
		case take:
			s.Next = now.Add(w.Interval)
			WatchdogStates.Put(tx, d.name(), s, s.Next, queue.Hash{})
		case w == nil && now.Sub(s.Next) >= watchdogKept:
			tx.Delete(d.name())
		}
		return nil
	}})
	return take && err == nil, err
}

// due calls the watchdog, unless another gateway does. It stores the time of the next call first,
// so that a call also shows that the store can be written.
func (d *watchdog) due(ctx context.Context, conf *outbox.Configuration) error {
	take, err := d.take(ctx, conf.QueueSettings.Watchdog)
	if !take || err != nil {
		return err
	}
	if !d.outbox.Dispatcher.Background.Add(func() { d.call(conf.QueueSettings) }) {
		d.watched(outbox.ErrQueueFull)
	}
	return nil
}

// watchdogTimeout bounds a call.
const watchdogTimeout = 10 * time.Second

// errWaitsTooLong is returned when a delivery has waited for more than half of max_age.
var errWaitsTooLong = errors.New("a delivery has waited for more than half of max_age, so the watchdog is not called")

// call calls the watchdog of settings, unless something waits for too long.
func (d *watchdog) call(s *outbox.Settings) {
	ctx, cancel := context.WithTimeout(context.Background(), watchdogTimeout)
	defer cancel()
	late, err := d.waitsTooLong(ctx, s.MaxAge)
	if err == nil && late {
		err = errWaitsTooLong
	}
	if err == nil {
		err = get(ctx, s.Watchdog, d.outbox.Dispatcher.Sender.Pool())
	}
	d.watched(err)
	d.note(context.WithoutCancel(ctx), err)
}

// get calls the address. Errors do not show the address, which is a secret.
func get(ctx context.Context, w *outbox.Watchdog, pool *egress.Pool) error {
	resp, err := pool.Get(ctx, w.URL, egress.Options{FollowRedirects: true})
	if err != nil {
		return fmt.Errorf("the watchdog cannot be called: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the watchdog answers with status %d", resp.StatusCode)
	}
	return nil
}

// watched counts a call, and logs the first failure of several and the success after
// them.
func (d *watchdog) watched(err error) {
	outcome := metrics.BeatOK
	switch {
	case errors.Is(err, errWaitsTooLong):
		outcome = metrics.BeatWithheld
	case err != nil:
		outcome = metrics.BeatFailed
	}
	d.outbox.Dispatcher.Metrics.Queue.Watchdog.WithLabelValues(outcome).Inc()
	failing := err != nil
	if d.failing.Swap(failing) == failing {
		return
	}
	if failing {
		d.outbox.Log.Error("the watchdog of queue beat is not told that the gateway works", zap.Error(err))
	} else {
		d.outbox.Log.Info("the watchdog of queue beat is told again that the gateway works")
	}
}

// watchdogPage is the number of deliveries that are looked at, at once.
const watchdogPage = 500

// waitsTooLong reports whether a delivery has waited for more than half of max_age since it came in
// or a rule released it. Deliveries to URLs of clients do not count, because a client must not be
// able to raise the alarm.
func (d *watchdog) waitsTooLong(ctx context.Context, maxAge time.Duration) (bool, error) {
	now := d.outbox.Queue.Now()
	var after queue.JobID
	for {
		jobs, err := d.outbox.Queue.List(ctx, after, watchdogPage, queue.Queued, queue.Sending)
		if err != nil {
			return false, err
		}
		for _, j := range jobs {
			if !j.Client && j.Expires.Sub(now) < maxAge/2 {
				return true, nil
			}
		}
		if len(jobs) < watchdogPage {
			return false, nil
		}
		after = jobs[len(jobs)-1].JobID
		if seconds, nanoseconds := after.Message.Time().UnixTime(); now.Sub(time.Unix(seconds, nanoseconds)) < maxAge/2 {
			return false, nil // the others came in later
		}
	}
}
