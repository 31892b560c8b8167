package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var (
	errBraces     = errors.New("it has braces, but placeholders are not replaced here; write the text itself")
	errIconBraces = errors.New("it has braces, but only the placeholders {type} and {size} are replaced here")
	errAddress    = errors.New("it is not an address; write one that begins with http:// or https:// and a host")
)

// validate returns an error that begins with the name of the invalid field.
func (id *Identity) validate() error {
	for _, p := range []struct{ name, value string }{{"name", id.Name}, {"description", id.Description}, {"url", id.URL}, {"logo", id.Logo}} {
		if strings.ContainsAny(p.value, "{}") {
			return fmt.Errorf("%s: %w", p.name, errBraces)
		}
	}
	if strings.ContainsAny(exampleIcon.Replace(id.Icon), "{}") {
		return fmt.Errorf("icon: %w", errIconBraces)
	}
	for _, p := range []struct{ name, value string }{{"url", id.URL}, {"icon", id.Icon}, {"logo", id.Logo}} {
		if p.value == "" {
			continue
		}
		u, err := url.Parse(exampleIcon.Replace(p.value))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("%s: %w", p.name, errAddress)
		}
	}
	return nil
}

// exampleIcon replaces the placeholders in the address of an icon with examples.
var exampleIcon = strings.NewReplacer("{type}", "info", "{size}", "72x72")

// resolve returns the identity with all defaults.
func (id *Identity) resolve() *notifier.Identity {
	out := notifier.DefaultIdentity()
	out.Name = cmp.Or(id.Name, out.Name)
	out.Description = cmp.Or(id.Description, out.Description)
	out.URL = cmp.Or(id.URL, out.URL)
	out.Icon, out.Logo = id.Icon, id.Logo
	return &out
}
