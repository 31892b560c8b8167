package device

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
)

// List has the devices of a key.
type List struct {
	site.Place

	All []Device
}

// Errors of changes of a list.
var (
	ErrNone    = message.Errorf(message.Unidentified, "there is no such device, or the secret is not its own; subscribe again")
	ErrUnknown = message.Errorf(message.NotFound, "the key has no such device; caddy notify devices list shows them")
	ErrTooMany = message.Errorf(message.Conflict,
		"the key has as many devices as it can have (push max_devices); revoke one of them with caddy notify devices revoke")
)

// Find returns the device with an ID, or nil. l may be nil.
func (l *List) Find(id string) *Device {
	if l == nil {
		return nil
	}
	for i := range l.All {
		if l.All[i].ID == id {
			return &l.All[i]
		}
	}
	return nil
}

// at returns the devices whose subscription has an endpoint. l may be nil.
func (l *List) at(endpoint string) (found []Device) {
	if l == nil {
		return nil
	}
	for _, d := range l.All {
		if d.Subscription.Endpoint == endpoint {
			found = append(found, d)
		}
	}
	return found
}

// add adds d with the settings in c. A browser has one subscription, so that a device that
// subscribes again replaces its earlier entry. The error is [ErrTooMany] if the list has limit
// other devices. urls has the tags of the key's URLs.
func (l *List) add(d *Device, c *Change, urls numbered, limit int) error {
	l.All = slices.DeleteFunc(l.All, func(o Device) bool { return o.Subscription.Endpoint == c.Subscription.Endpoint })
	if len(l.All) >= limit {
		return ErrTooMany
	}
	if err := l.apply(d, c, urls); err != nil {
		return err
	}
	l.All = append(l.All, *d)
	return nil
}

// change changes the device with an ID, and returns it. The error is [ErrNone] if there is
// none. urls has the tags of the key's URLs.
func (l *List) change(id string, c *Change, urls numbered) (*Device, error) {
	d := l.Find(id)
	if d == nil {
		return nil, ErrNone
	}
	if err := l.apply(d, c, urls); err != nil {
		return nil, err
	}
	return d, nil
}

// remove removes the device with an ID, and returns it. The error is [ErrUnknown] if there is none,
// or if allowed returns false for it.
func (l *List) remove(id string, allowed func(*Device) bool) (*Device, error) {
	found := l.Find(id)
	if found == nil || !allowed(found) {
		return nil, ErrUnknown
	}
	d := *found
	l.All = slices.DeleteFunc(l.All, func(o Device) bool { return o.ID == id })
	return &d, nil
}

// apply applies c to d.
func (l *List) apply(d *Device, c *Change, urls numbered) error {
	if c.Name != nil {
		d.Name = l.uniqueName(*c.Name, d.ID)
	}
	if c.Tags != nil {
		d.Own = slices.DeleteFunc(slices.Clone(*c.Tags), func(tag string) bool { return slices.Contains(d.Granted, tag) })
		if err := l.checkOwn(d, urls); err != nil {
			return err
		}
	}
	if c.Subscription != nil {
		d.Subscription = *c.Subscription
	}
	return nil
}

// uniqueName returns name, with a number appended if another device has it.
func (l *List) uniqueName(name, id string) string {
	out := name
	for n := 2; slices.ContainsFunc(l.All, func(d Device) bool { return d.ID != id && strings.EqualFold(d.Name, out) }); n++ {
		suffix := fmt.Sprintf(" %d", n)
		runes := []rune(name)
		out = strings.TrimSpace(string(runes[:min(len(runes), maxName-len(suffix))])) + suffix
	}
	return out
}

func (l *List) fields(c *wire.Codec) {
	wire.Text(c, 1, &l.Home)
	wire.Text(c, 2, &l.Key)
	wire.Records(c, 3, &l.All, (*Device).fields)
}

// decodeList decodes a stored list. If it is damaged, decodeList returns an error and the part of
// the list before the damage, which must not be stored.
func decodeList(b []byte) (*List, error) {
	l := new(List)
	if err := wire.Decode(b, l, (*List).fields); err != nil {
		return l, err
	}
	for i := range l.All {
		if err := l.All[i].Subscription.Parse(); err != nil {
			return l, fmt.Errorf("device %s: %w", l.All[i].ID, err)
		}
	}
	return l, nil
}
