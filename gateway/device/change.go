package device

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

// The bounds of a device.
const (
	maxName = 64 // characters
	maxTags = 20
	maxTag  = 64 // bytes
)

// Change has the settings of a device that its client chooses when it subscribes, and can change
// later. A nil field leaves its setting unchanged.
type Change struct {
	Name         *string               `json:"name"`
	Tags         *[]string             `json:"tags"`
	Subscription *webpush.Subscription `json:"subscription"`
}

// Check returns an error if a setting is invalid. It removes the space around the name, and decodes
// the keys of the subscription. services are the hosts of push services besides the known ones, and
// checkTag returns an error if no URL of a key can have a tag.
func (c *Change) Check(services []string, checkTag func(string) error) error {
	if c.Name != nil {
		if err := CheckName(*c.Name); err != nil {
			return err
		}
		*c.Name = strings.TrimSpace(*c.Name)
	}
	if c.Tags != nil {
		if err := CheckTags(*c.Tags, false, checkTag); err != nil {
			return err
		}
	}
	if c.Subscription == nil {
		return nil
	}
	err := c.Subscription.Parse()
	if err == nil {
		err = c.Subscription.CheckAuth()
	}
	if err != nil {
		return message.Errorf(message.Invalid, "subscription: %w", err)
	}
	return checkEndpoint(c.Subscription.Endpoint, services)
}

// CheckName returns an error if name cannot be the name of a device.
func CheckName(name string) error {
	switch {
	case !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxName || strings.TrimSpace(name) == "":
		return message.Errorf(message.Invalid, "name: a device needs a name of 1 to %d characters, such as Jo's phone", maxName)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return message.Errorf(message.Invalid, "name: it has a character that is not shown, such as a line break; remove it")
	}
	return nil
}

// CheckTags returns an error if a device cannot have the tags. granted means that an invitation
// grants them. check returns an error if no URL of a key can have a tag.
func CheckTags(tags []string, granted bool, check func(string) error) error {
	if len(tags) > maxTags {
		return message.Errorf(message.Invalid, "tags: there are %d; a device can have %d", len(tags), maxTags)
	}
	for _, tag := range tags {
		_, name := notifier.SplitTag(tag)
		switch err := check(tag); {
		case err != nil:
			return message.Errorf(message.Invalid, "tags: %w", err)
		case len(tag) > maxTag:
			return message.Errorf(message.Invalid, "tags: a tag has more than %d characters; shorten it", maxTag)
		case granted:
		case strings.EqualFold(name, "always"):
			return message.Errorf(message.Invalid, "tags: always is for invitations; remove it, or ask for an invitation with it")
		case name != tag: // also 0:ops, which would be number 0 of a chain
			return message.Errorf(message.Invalid, "tags: a number is for invitations; remove it, or ask for an invitation with it")
		}
	}
	return nil
}
