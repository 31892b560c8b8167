package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/postgres"
)

// Queue keeps messages that cannot be delivered at once, and delivers them
// later: when a destination works again, and also after a crash, a power cut or
// a restart. A message is delivered at least once; order is not kept.
type Queue struct {
	// The connection string of a PostgreSQL database, which several gateways with
	// the same configuration can share. Placeholders are replaced. Example:
	// `{env.DATABASE_URL}`. Default: none; the queue is in a folder of this
	// machine.
	Postgres string `json:"postgres,omitempty"`

	// The folder of the queue. Only one process can use it at a time. Placeholders
	// are replaced. Default: `notify/queue` in Caddy's data directory.
	Path string `json:"path,omitempty"`

	// The secret that encrypts the content of the queue: 16 or more characters. It
	// cannot be changed while messages wait. Placeholders are replaced. Example:
	// `{file./run/secrets/queue}`. Default: the content of the file `key` in the
	// folder, which the gateway creates. It is required with `postgres`.
	Secret string `json:"secret,omitempty"`

	// The maximum age of a message. A delivery that has not succeeded by then is
	// given up. A duration such as `"36h"`, or a number of nanoseconds. Default:
	// 24h.
	MaxAge caddy.Duration `json:"max_age,omitempty"`

	// The maximum size of all waiting messages and of what rules remember (incidents,
	// silences, beats), in bytes. Messages with notification URLs of clients may take half
	// of it. If the queue is full, messages that would have to wait and new silences are
	// answered with 503. Default: 1073741824 (1 GiB).
	MaxSize int64 `json:"max_size,omitempty"`

	// How long a request waits for its results before it is answered with
	// `queued`. A duration such as `"5s"`, or a number of nanoseconds. Default: 3s.
	Wait caddy.Duration `json:"wait,omitempty"`

	// How long the results of messages can be read, and how long deliveries that
	// were given up can be tried again. A duration such as `"30d"`, or a number of
	// nanoseconds. Default: 7d.
	Keep caddy.Duration `json:"keep,omitempty"`

	// Calls a watchdog outside while the queue works. Default: none.
	Beat *QueueBeat `json:"beat,omitempty"`
}

// defaultQueueWait is the default time that a request waits for its results.
const defaultQueueWait = 3 * time.Second

// minQueueSecret is the minimum length of the secret in bytes.
const minQueueSecret = 16

var (
	errQueuePath   = errors.New("path has no effect with postgres; remove one of them")
	errQueueSecret = fmt.Errorf("secret: it must have %d or more characters", minQueueSecret)
	errNoSecret    = errors.New("a queue in postgres needs a secret that all gateways share; add secret with 16 or more characters")
)

// check makes the checks that are possible before placeholders are replaced.
func (c *Queue) check() error {
	for _, p := range []struct {
		name, text string
	}{{"postgres", c.Postgres}, {"path", c.Path}, {"secret", c.Secret}} {
		if err := placeholder.Check(p.text); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	for _, d := range []struct {
		name  string
		value caddy.Duration
	}{{"max_age", c.MaxAge}, {"wait", c.Wait}, {"keep", c.Keep}} {
		if d.value < 0 {
			return fmt.Errorf("%s is negative; it must be a duration above 0", d.name)
		}
	}
	if err := c.Beat.check(); err != nil {
		return err
	}
	switch {
	case c.MaxSize < 0:
		return fmt.Errorf("max_size is %d; it must be a number of bytes above 0", c.MaxSize)
	case c.Postgres != "" && c.Path != "":
		return errQueuePath
	case c.Postgres != "" && c.Secret == "":
		return errNoSecret
	}
	return nil
}

// resolve returns the settings with placeholders replaced.
func (c *Queue) resolve() (*outbox.Settings, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &outbox.Settings{
		MaxAge:  cmp.Or(time.Duration(c.MaxAge), queue.DefaultMaxAge),
		MaxSize: cmp.Or(c.MaxSize, queue.DefaultMaxSize),
		Wait:    cmp.Or(time.Duration(c.Wait), defaultQueueWait),
		Keep:    cmp.Or(time.Duration(c.Keep), queue.DefaultKeep),
	}
	for _, p := range []struct {
		name, text string
		to         *string
	}{{"postgres", c.Postgres, &s.DSN}, {"path", c.Path, &s.Path}, {"secret", c.Secret, &s.Secret}} {
		if p.text == "" {
			continue
		}
		var err error
		if *p.to, err = placeholder.Resolve(p.text); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	var err error
	if s.Watchdog, err = c.Beat.resolve(); err != nil {
		return nil, err
	}
	if c.Secret != "" && len(s.Secret) < minQueueSecret {
		return nil, errQueueSecret
	}
	if s.DSN != "" {
		s.Name = "postgres " + s.DSN
		return s, postgres.Check(s.DSN)
	}
	if s.Path == "" {
		s.Path = filepath.Join(caddy.AppDataDir(), "notify", "queue")
	}
	path, err := filepath.Abs(s.Path)
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	s.Path, s.Name = path, "path "+path
	return s, nil
}

// readQueue reads the subdirective queue of the global option.
func (b *settingsBlock) readQueue(d *caddyfile.Dispenser, args []string) error {
	if b.app == nil {
		return d.Err("queue belongs into the global option notify, because all sites share it: { notify { queue } }")
	}
	q := &Queue{}
	b.app.Queue = q
	b.to.Caddyfile.Record("queue", d)
	if len(args) > 0 {
		if args[0] != "postgres" || len(args) != 2 {
			return d.Err("wrong arguments; expected queue [postgres <dsn>] [{ … }]")
		}
		q.Postgres = args[1]
	}
	start := *d
	text := func(name string, to *string) block.Option {
		return block.Option{Usage: name + " <text>", Min: 1, Max: 1, Line: func(args []string) error {
			if args[0] == "" {
				return block.ErrEmptyText
			}
			*to = args[0]
			return placeholder.Check(args[0])
		}}
	}
	err := block.ReadOptional(d, "queue", block.Options{
		"path":     text("path", &q.Path),
		"secret":   text("secret", &q.Secret),
		"max_age":  {Usage: "max_age <duration>", Min: 1, Max: 1, Line: block.Duration(&q.MaxAge)},
		"max_size": {Usage: "max_size <size>", Min: 1, Max: 1, Line: block.Size(&q.MaxSize)},
		"wait":     {Usage: "wait <duration>", Min: 1, Max: 1, Line: block.Duration(&q.Wait)},
		"beat": {Usage: "beat <url> <interval>", Min: 2, Max: 2, Line: func(args []string) error {
			q.Beat = &QueueBeat{URL: args[0]}
			return block.Duration(&q.Beat.Interval)(args[1:])
		}},
		"keep": {Usage: "keep <duration>", Min: 1, Max: 1, Line: block.Duration(&q.Keep)},
	})
	if err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return start.WrapErr(errs.Prefix("queue", err))
	}
	return nil
}

// QueueBeat calls a watchdog outside, which raises an alarm when the calls end: the
// gateway calls it while it can store messages and none has waited too long. Of several
// gateways that share a queue, one makes each call.
type QueueBeat struct {
	// The address, which begins with `http://` or `https://`. Placeholders are replaced. A
	// status from 200 to 299 is a success. Example: `{env.WATCHDOG_URL}`. Required.
	URL string `json:"url,omitempty"`

	// How often it is called. A duration such as `"1m"`, or a number of nanoseconds, from
	// 1s to 24h. Required.
	Interval caddy.Duration `json:"interval,omitempty"`
}

// check makes the checks that are possible before placeholders are replaced.
func (c *QueueBeat) check() error {
	if c == nil {
		return nil
	}
	if i := time.Duration(c.Interval); i < time.Second || i > heartbeat.MaxWatchdog {
		return heartbeat.ErrWatchdogInterval
	}
	if c.URL == "" {
		return heartbeat.ErrWatchdogURL
	}
	return placeholder.Check(c.URL)
}

// resolve returns the watchdog, or nil for none.
func (c *QueueBeat) resolve() (*outbox.Watchdog, error) {
	if c == nil {
		return nil, nil
	}
	text, err := placeholder.Resolve(c.URL)
	if err != nil {
		return nil, fmt.Errorf("beat: %w", err)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, heartbeat.ErrWatchdogURL // without the address, which is a secret
	}
	return &outbox.Watchdog{URL: u, Interval: time.Duration(c.Interval)}, nil
}
