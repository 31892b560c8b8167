package caddyhttp

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/gateway"
)

// openQueue opens the queue of the configuration, or uses the one that is open
// already, and lets this app make its deliveries. It runs when the app starts,
// not earlier, so that a configuration can be validated while another process
// uses the queue.
func (a *App) openQueue() error {
	s := a.gateway.Conf.QueueSettings
	if s == nil {
		return nil
	}
	v, isOpen, err := queuePool.LoadOrNew(s.Name, func() (caddy.Destructor, error) { return gateway.OpenQueue(&a.gateway.Conf) })
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	q := v.(*gateway.Rooms)
	if err := q.SetSecrets(s); err != nil {
		_, _ = queuePool.Delete(s.Name) // the other configuration still uses it
		return fmt.Errorf("queue: secret: %w", err)
	}
	a.gateway.Rooms = q
	q.Begin(&a.gateway.Conf, !isOpen)
	return nil
}

// leaveQueue gives the queue back to the app that was started before, if this
// app is stopped because another part of its configuration failed.
func (a *App) leaveQueue() {
	if before := a.shared.Process.Gateways.Newest(); a.gateway.Rooms != nil && before != nil && before.Rooms == a.gateway.Rooms {
		a.gateway.Rooms.Use(&before.Conf)
	}
}

// releaseQueue ends the use of the queue by this app. The queue is closed when
// no app uses it.
func (a *App) releaseQueue() error {
	if a.gateway.Rooms == nil {
		return nil
	}
	_, err := queuePool.Delete(a.gateway.Conf.QueueSettings.Name)
	return err
}

// queuePool holds the open queues of the process by name. A reload that does not
// change the name keeps the queue open.
var queuePool = caddy.NewUsagePool()
