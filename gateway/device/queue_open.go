package device

import (
	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
)

// Registry are the devices.
type Registry struct {
	*outbox.Outbox
	Alerts        *alerting.Engine
	Devices       deviceCache
	Vapid         pushKeyCache
	Registrations Limiter
}
