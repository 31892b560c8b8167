package caddyhttp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/caddyhttp/queuestore"
	"github.com/caddy-notify/caddy-notify/gateway/heartbeat"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Queue keeps messages that cannot be delivered at once, and delivers them
// later: when a destination works again, and also after a crash, a power cut or
// a restart. A message is delivered at least once; order is not kept.
type Queue struct {
	// Where the queue is kept: a module of the namespace `notify.queue`. Default: `bolt`, which is
	// a folder of this machine.
	StoreRaw json.RawMessage `json:"store,omitempty" caddy:"namespace=notify.queue inline_key=module"`

	// The secret that encrypts the content of the queue: 16 or more characters. Placeholders are
	// replaced. Example: `{file./run/secrets/queue}`. Default: the content of the file `key` in the
	// folder, which the gateway creates. It is required with any other store than `bolt`.
	Secret string `json:"secret,omitempty"`

	// Secrets that were used before. What was encrypted with one of them can be read, and is
	// encrypted again. Placeholders are replaced. Default: none.
	OldSecrets []string `json:"old_secrets,omitempty"`

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

	store caddy.Module
}

// defaultQueueWait is the default time that a request waits for its results.
const defaultQueueWait = 3 * time.Second

// minQueueSecret is the minimum length of the secret in bytes.
const minQueueSecret = 16

var (
	errQueueStores = errors.New("the store is set twice: queue has one of postgres, path and store; remove the others")
	errQueueSecret = fmt.Errorf("secret: it must have %d or more characters", minQueueSecret)
	errOldSecrets  = errors.New("old_secrets has no effect without secret; set the new secret, too")
)

// noSecretError is returned if a store needs a secret.
type noSecretError struct{ store string }

func (e *noSecretError) Error() string {
	return "a queue in " + e.store + " needs a secret that all gateways share; add secret with 16 or more characters"
}

// check makes the checks that are possible before placeholders are replaced.
func (c *Queue) check() error {
	for _, text := range c.secrets() {
		if err := placeholder.Check(text); err != nil {
			return fmt.Errorf("secret: %w", err)
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
	case c.Secret == "" && len(c.OldSecrets) > 0:
		return errOldSecrets
	}
	return nil
}

// secrets returns the secrets, the present one first.
func (c *Queue) secrets() []string {
	if c.Secret == "" {
		return nil
	}
	return append([]string{c.Secret}, c.OldSecrets...)
}

// provision loads the module of the store.
func (c *Queue) provision(ctx caddy.Context) error {
	if c.StoreRaw == nil {
		c.StoreRaw = json.RawMessage(`{"module":"bolt"}`)
		defer func() { c.StoreRaw = nil }()
	}
	m, err := ctx.LoadModule(c, "StoreRaw")
	if err != nil {
		return err
	}
	c.store = m.(caddy.Module)
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
	for i, text := range c.secrets() {
		secret, err := placeholder.Resolve(text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("secret: %w", err)
		case len(secret) < minQueueSecret:
			return nil, errQueueSecret
		case i == 0:
			s.Secret = secret
		default:
			s.OldSecrets = append(s.OldSecrets, secret)
		}
	}
	var err error
	if s.Watchdog, err = c.Beat.resolve(); err != nil {
		return nil, err
	}
	return s, c.setStore(s)
}

// setStore sets where the queue is.
func (c *Queue) setStore(s *outbox.Settings) error {
	name := c.store.CaddyModule().ID.Name()
	switch m := c.store.(type) {
	case *queuestore.Bolt:
		s.Path, s.Name = m.Folder(), "path "+m.Folder()
		return nil
	case *queuestore.Postgres:
		s.DSN, s.Name = m.Address(), "postgres "+m.Address()
	case queuestore.Guest:
		s.Module, s.Open, s.Name = name, m.Open, "module "+name+" "+m.Name()
	default:
		return fmt.Errorf("the module %s is no store: it lacks the methods of queuestore.Guest", c.store.CaddyModule().ID)
	}
	if s.Secret == "" {
		return &noSecretError{name}
	}
	return nil
}

// readQueue reads the subdirective queue of the global option.
func (b *settingsBlock) readQueue(d *caddyfile.Dispenser, args []string) error {
	if b.app == nil {
		return d.Err("queue belongs into the global option notify, because all sites share it: { notify { queue } }")
	}
	q := &Queue{}
	b.app.Queue = q
	b.to.Caddyfile.Record("queue", d)
	stores := 0
	set := func(m caddyfile.Unmarshaler, name string) {
		stores++
		q.StoreRaw = caddyconfig.JSONModuleObject(m, "module", name, nil)
	}
	if len(args) > 0 {
		if args[0] != "postgres" || len(args) != 2 {
			return d.Err("wrong arguments; expected queue [postgres <dsn>] [{ … }], or store <name> in the block")
		}
		if err := placeholder.Check(args[1]); err != nil {
			return d.WrapErr(fmt.Errorf("queue: postgres: %w", err))
		}
		set(&queuestore.Postgres{DSN: args[1]}, "postgres")
	}
	start := *d
	err := block.ReadOptional(d, "queue", block.Options{
		"path": {Usage: "path <text>", Min: 1, Max: 1, Line: func(args []string) error {
			if args[0] == "" {
				return block.ErrEmptyText
			}
			set(&queuestore.Bolt{Path: args[0]}, "bolt")
			return placeholder.Check(args[0])
		}},
		"store": {Usage: "store <name> [<args...>] [{ … }]", Min: 1, Max: math.MaxInt, Block: func(d *caddyfile.Dispenser, args []string) error {
			for range args[1:] {
				d.Prev()
			}
			m, err := caddyfile.UnmarshalModule(d, queuestore.Namespace+"."+args[0])
			if err == nil {
				set(m, args[0])
			}
			return err
		}},
		"secret": {Usage: "secret <secret> [<old secrets...>]", Min: 1, Max: math.MaxInt, Line: func(args []string) error {
			if slices.Contains(args, "") {
				return block.ErrEmptyText
			}
			q.Secret, q.OldSecrets = args[0], args[1:]
			return nil
		}},
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
	err = q.check()
	if stores > 1 {
		err = errQueueStores
	}
	if err != nil {
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
