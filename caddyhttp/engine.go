package caddyhttp

import (
	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// engines holds the one engine of the process. It counts who uses it, so that
// a reload, during which the new configuration and the old one are alive side
// by side, keeps connections, sessions and tokens.
var engines = caddy.NewUsagePool()

const engineName = "notify"

// userAgent goes along with the gateway's own HTTP requests.
const userAgent = "caddy-notify (+https://github.com/caddy-notify/caddy-notify)"

// engine is what sends: the connections and the destinations in use; and what
// is known of what it has sent.
type engine struct {
	sender  *notifier.Sender
	traffic traffic
	metrics *metrics
	recent  recent
	running running
	outbox  outbox
	logs    logs
}

func newEngine() *engine {
	e := &engine{sender: notifier.NewSender(egress.NewPool(userAgent), notifier.DefaultConcurrency)}
	e.metrics = newMetrics(&e.traffic)
	return e
}

// Destruct implements caddy.Destructor. A request that has outlived the last
// configuration can still send; it opens connections of its own.
func (e *engine) Destruct() error {
	e.sender.Close()
	e.sender.Pool().Close()
	return nil
}

// engineRef is one use of the engine, and of destinations of it. The zero value
// is none.
type engineRef struct {
	*engine
	loaded bool
	held   []*notifier.Destination
}

// load takes a use of the engine.
func (r *engineRef) load() error {
	e, _, err := engines.LoadOrNew(engineName, func() (caddy.Destructor, error) {
		return newEngine(), nil
	})
	if err != nil {
		return err
	}
	r.engine, r.loaded = e.(*engine), true
	return nil
}

// parse makes a destination of a URL of the operator's, and holds it. On a
// reload the new configuration takes what it has in common with the old one
// before the old one lets go, so that only what nobody uses any more is closed.
func (r *engineRef) parse(url string) (*notifier.Destination, error) {
	d, err := r.sender.Parse(url, nil)
	if err == nil {
		r.held = append(r.held, d)
	}
	return d, err
}

// release gives the uses back, if there are any: a module is also cleaned up
// when its provisioning has failed. Engine and destinations remain, for
// requests that outlive their configuration.
func (r *engineRef) release() error {
	if !r.loaded {
		return nil
	}
	r.loaded = false
	for _, d := range r.held {
		r.sender.Release(d)
	}
	r.held = nil
	_, err := engines.Delete(engineName)
	return err
}
