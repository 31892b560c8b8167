package caddyhttp

import (
	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/notifier"
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
	e := &engine{sender: notifier.NewSender(notifier.NewPool(userAgent), notifier.DefaultConcurrency)}
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

// engineRef is one use of the engine. The zero value is none.
type engineRef struct {
	*engine
	loaded bool
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

// release gives the use back, if there is one: a module is also cleaned up
// when its provisioning has failed. The engine remains, for requests that
// outlive their configuration.
func (r *engineRef) release() error {
	if !r.loaded {
		return nil
	}
	r.loaded = false
	_, err := engines.Delete(engineName)
	return err
}
