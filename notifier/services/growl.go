package services

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[growl]()

// growl shows messages on desktops that run Growl or another program with its
// protocol, GNTP 1.0. With a password the requests are signed. They are not
// encrypted, because no release of Growl can decrypt messages.
type growl struct {
	notifier.Server
	priority, version int
	image, sticky     bool

	mu         sync.Mutex
	registered map[string]bool // names of applications that are registered with the desktop
}

func (g *growl) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Growl", "https://growl.github.io/growl/"
	s.Setup = "Growl or another program with GNTP must run on the host and accept " +
		"notifications from the network; the password is the one in its settings."
	s.Groups(notifier.GroupPhone)
	s.NoWeb()
	s.Words("mac", "macos", "windows", "snarl", "gntp")
	s.URL("growl://[{password}@]{host}[:{port}]")
	s.Server(&g.Server)
	s.Limits.Lines = 2
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.Enum(&g.priority, "priority", "normal", pushPriorities, "priority of the message").Lenient()
	s.Int(&g.version, "version", 2, "2 sends the icon's address, 1 the icon itself").Range(1, 2).Lenient()
	s.Bool(&g.image, "image", true, "show the icon of the message type")
	s.Bool(&g.sticky, "sticky", true, "show the message until it is dismissed")
	s.Param("host").Example("desktop.local")
}

// growlNotificationName is the name of the kind of notification that the gateway
// registers. Growl lists it in the settings of the application.
const growlNotificationName = "New Messages"

func (g *growl) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	app := cmp.Or(growlLine(m.Identity.Name), "Caddy")
	if err := g.register(ctx, c, app); err != nil {
		return err
	}
	notification := g.notification(ctx, c, m, app)
	err := g.exchange(ctx, c, notification)
	if refused, ok := errors.AsType[*growlError](err); ok && refused.notRegistered() {
		g.setRegistered(app, false)
		if err := g.register(ctx, c, app); err != nil {
			return err
		}
		err = g.exchange(ctx, c, notification)
	}
	return err
}

// register registers app with the desktop, once.
func (g *growl) register(ctx context.Context, c *notifier.Client, app string) error {
	g.mu.Lock()
	registered := g.registered[app]
	g.mu.Unlock()
	if registered {
		return nil
	}
	r := newGrowlRequest("REGISTER", g.Password)
	r.header("Application-Name", app)
	r.header("Notifications-Count", "1")
	r.end()
	r.header("Notification-Name", growlNotificationName)
	r.header("Notification-Enabled", "True")
	r.end()
	if err := g.exchange(ctx, c, r); err != nil {
		return err
	}
	g.setRegistered(app, true)
	return nil
}

func (g *growl) setRegistered(app string, registered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.registered == nil {
		g.registered = map[string]bool{}
	}
	g.registered[app] = registered
}

// notification returns the request that shows the message.
func (g *growl) notification(ctx context.Context, c *notifier.Client, m *notifier.Message, app string) *growlRequest {
	r := newGrowlRequest("NOTIFY", g.Password)
	r.header("Application-Name", app)
	r.header("Notification-Name", growlNotificationName)
	r.header("Notification-Title", cmp.Or(growlLine(m.Title), app))
	r.header("Notification-Text", m.Body)
	r.header("Notification-Priority", strconv.Itoa(g.priority))
	if g.sticky {
		r.header("Notification-Sticky", "True")
	}
	if id := m.NotificationID(); id != "" {
		// A notification replaces the one whose ID it names.
		r.header("Notification-ID", id)
		r.header("Notification-Coalescing-ID", id)
	}
	icon := m.Icon(72)
	switch {
	case !g.image || icon == "":
		r.end()
	case g.version > 1:
		r.header("Notification-Icon", icon)
		r.end()
	default:
		answer, err := c.Do(ctx, &notifier.Request{URL: icon})
		if err != nil {
			c.Warn("the icon cannot be fetched; the message is sent without it: %v", err)
			r.end()
			break
		}
		r.resource("Notification-Icon", answer.Body)
	}
	return r
}
