package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
)

// Push lets phones and browsers subscribe to keys with Web Push. A device is a
// destination of its key, shown as `device://NAME`, with tags.
type Push struct {
	// How the services that deliver pushes reach the operator: `mailto:` with an address,
	// or an `https` URL. Example: `mailto:ops@example.com`. Default: `public_url`.
	Contact string `json:"contact,omitempty"`

	// Who can subscribe a device to a key. `invited`: who has an invitation, which `caddy
	// notify invite` makes. `users`: also users that an authentication handler before this
	// one has authenticated, and clients with a certificate. `open`: everybody who can send
	// the request. A key with `tokens` always needs an invitation. Default: `invited`.
	Devices string `json:"devices,omitempty"`

	// How many devices a key can have, from 1 to 500. Default: 20.
	MaxDevices int `json:"max_devices,omitempty"`

	// Hosts of push services besides the services of the known browsers, such as the server of a
	// UnifiedPush distributor. A name stands for its subdomains, too. Example:
	// `["push.example.com"]`. Default: none.
	Services []string `json:"services,omitempty"`
}

// Values of devices in push.
const (
	devicesOpen = "open"
)

// The bounds of max_devices.
const (
	defaultMaxDevices = 20
)

// resolve returns the settings with their defaults, or nil if c is nil.
func (c *Push) resolve() (*site.Push, error) {
	if c == nil {
		return nil, nil
	}
	s := &site.Push{Contact: c.Contact, Who: cmp.Or(c.Devices, device.DevicesInvited), Max: cmp.Or(c.MaxDevices, defaultMaxDevices)}
	if err := checkContact(c.Contact); c.Contact != "" && err != nil {
		return nil, errs.Prefix("contact", err)
	}
	if !slices.Contains([]string{device.DevicesInvited, device.DevicesUsers, devicesOpen}, s.Who) {
		return nil, errors.New("devices must be invited, users or open")
	}
	if s.Max < 1 || s.Max > device.MaxMaxDevices {
		return nil, fmt.Errorf("max_devices is %d; it must be from 1 to %d", s.Max, device.MaxMaxDevices)
	}
	for _, host := range c.Services {
		if err := device.CheckHost(host); err != nil {
			return nil, errs.Prefix("services", err)
		}
		s.Hosts = append(s.Hosts, strings.ToLower(host))
	}
	return s, nil
}

var errContact = errors.New("it must be mailto: with an e-mail address, such as mailto:ops@example.com, or an https URL")

// checkContact returns an error if push services refuse an address of the operator.
func checkContact(text string) error {
	if address, ok := strings.CutPrefix(text, "mailto:"); ok {
		if a, err := mail.ParseAddress(address); err != nil || a.Address != address {
			return errContact
		}
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return errContact
	}
	return nil
}

// Errors of settings that cannot work.
var (
	errPushWithoutQueue = errors.New("push: devices, and what they have received, " +
		"are kept in the queue's store, and there is no queue; add queue to the global option notify")
	errPushWithoutSite = errors.New("push: no site has notify, so that no phone can subscribe; add notify to a site, or remove push")
	errPushWithoutURL  = errors.New("push: phones must know the address of the gateway; add public_url " +
		"https://… with the address that they reach it at to this block or to the global option notify")
	errPushInsecure     = errors.New("push: browsers subscribe only at https addresses; write public_url with https")
	errPushWithoutPages = errors.New("push: a phone subscribes on the page of the key, " +
		"and page off turns the pages of all sites off; remove page off, or push")
)

// newKeyDevices returns the devices of the keys of a site, or nil if no device can
// subscribe.
func newKeyDevices(a *App, r *site.Site) *device.KeyDevices {
	if r.Push == nil {
		return nil
	}
	known := func() *device.Registry {
		if a.gateway.Rooms == nil {
			return nil
		}
		return a.gateway.Rooms.Devices
	}
	return device.NewKeyDevices(device.KeyOptions{
		Started: a.gateway.Started, Registry: known,
		Site: func() string { return a.gateway.Conf.SiteID(r) }, Settings: r,
	})
}

// checkPush returns an error if no device can subscribe. All sites must be known.
func (a *App) checkPush() error {
	if a.gateway.Conf.Global.Push == nil {
		return nil
	}
	at := func(err error) error { return a.Caddyfile.Locate("push", err) }
	switch {
	case a.Queue == nil:
		return at(errPushWithoutQueue)
	case len(a.handlers) == 0:
		return at(errPushWithoutSite)
	case !slices.ContainsFunc(a.handlers, func(h *Handler) bool { return h.api.Resolved.Page }):
		return at(errPushWithoutPages)
	}
	for _, h := range a.handlers {
		if !h.api.Resolved.Page {
			continue
		}
		err := error(nil)
		switch u, parseErr := url.Parse(h.api.Resolved.PublicURL); {
		case h.api.Resolved.PublicURL == "":
			err = errPushWithoutURL
		case parseErr == nil && u.Scheme != "https" && !isLocal(u.Hostname()):
			err = errPushInsecure
		}
		if err != nil {
			return h.Caddyfile.Locate(block.Begin, err)
		}
	}
	return nil
}

// isLocal reports whether a host is this machine, where browsers need no https.
func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// readPush reads the subdirective push of the global option.
func (b *settingsBlock) readPush(d *caddyfile.Dispenser, _ []string) error {
	if b.app == nil {
		return d.Err("push belongs into the global option notify, because all sites share it: { notify { push } }")
	}
	p := &Push{}
	b.app.Push = p
	b.to.Caddyfile.Record("push", d)
	return block.ReadOptional(d, "push", block.Options{
		"contact": {Usage: "contact <address>", Min: 1, Max: 1, Line: block.Text(&p.Contact, checkContact)},
		"devices": {Usage: "devices invited|users|open", Min: 1, Max: 1, Line: block.Text(&p.Devices, func(string) error {
			_, err := p.resolve()
			return err
		})},
		"max_devices": {Usage: "max_devices <n>", Min: 1, Max: 1, Line: block.Number(&p.MaxDevices, 1, device.MaxMaxDevices)},
		"services": {
			Usage: "services <host...>", Min: 1, Max: math.MaxInt, Repeat: true,
			Line: block.List(&p.Services, func(hosts []string) error {
				for _, host := range hosts {
					if err := device.CheckHost(host); err != nil {
						return err
					}
				}
				return nil
			}),
		},
	})
}
