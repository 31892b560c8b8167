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

// growl shows messages on desktops that run Growl or a program which takes its
// protocol, GNTP 1.0. With a password the requests are signed. The messages
// can be read on their way, since no Growl that was released decrypts them.
type growl struct {
	notifier.Server
	priority, version int
	image, sticky     bool

	mu         sync.Mutex
	registered map[string]bool // the applications that the desktop knows
}

func (g *growl) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Growl", "https://growl.github.io/growl/"
	s.URL("growl://[{password}@]{host}[:{port}]")
	s.Server(&g.Server)
	s.Limits.Lines = 2
	s.Enum(&g.priority, "priority", "normal", pushPriorities, "priority of the message").Lenient()
	s.Int(&g.version, "version", 2, "2 sends the icon's address, 1 the icon itself").Range(1, 2).Lenient()
	s.Bool(&g.image, "image", true, "show the icon of the message's type")
	s.Bool(&g.sticky, "sticky", true, "show the message until it is dismissed")
	s.Param("host").Example("desktop.local")
}

// growlKind is what messages are called in the desktop's list of what an
// application sends.
const growlKind = "New Messages"

func (g *growl) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	app := cmp.Or(growlLine(m.Identity.Name), "Caddy")
	if err := g.register(ctx, c, app); err != nil {
		return err
	}
	notice := g.notice(ctx, c, m, app)
	err := g.exchange(ctx, c, notice)
	if refusal, ok := errors.AsType[*growlRefusal](err); ok && refusal.forgotten() {
		g.know(app, false)
		if err := g.register(ctx, c, app); err != nil {
			return err
		}
		err = g.exchange(ctx, c, notice)
	}
	return err
}

// register tells the desktop who is going to send what, unless it knows.
func (g *growl) register(ctx context.Context, c *notifier.Client, app string) error {
	g.mu.Lock()
	known := g.registered[app]
	g.mu.Unlock()
	if known {
		return nil
	}
	r := newGrowlRequest("REGISTER", g.Password)
	r.header("Application-Name", app)
	r.header("Notifications-Count", "1")
	r.end()
	r.header("Notification-Name", growlKind)
	r.header("Notification-Enabled", "True")
	r.end()
	if err := g.exchange(ctx, c, r); err != nil {
		return err
	}
	g.know(app, true)
	return nil
}

func (g *growl) know(app string, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.registered == nil {
		g.registered = map[string]bool{}
	}
	g.registered[app] = known
}

// notice is the request that shows the message.
func (g *growl) notice(ctx context.Context, c *notifier.Client, m *notifier.Message, app string) *growlRequest {
	r := newGrowlRequest("NOTIFY", g.Password)
	r.header("Application-Name", app)
	r.header("Notification-Name", growlKind)
	r.header("Notification-Title", cmp.Or(growlLine(m.Title), app))
	r.header("Notification-Text", m.Body)
	r.header("Notification-Priority", strconv.Itoa(g.priority))
	if g.sticky {
		r.header("Notification-Sticky", "True")
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
			c.Warn("the icon cannot be fetched, and the message goes without it: %v", err)
			r.end()
			break
		}
		r.resource("Notification-Icon", answer.Body)
	}
	return r
}
