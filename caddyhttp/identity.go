package caddyhttp

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var (
	errBraces     = errors.New("it has braces, but placeholders are not replaced here; write the text itself")
	errIconBraces = errors.New("it has braces, but only the placeholders {type} and {size} are replaced here")
	errAddress    = errors.New("it is not an address; write one that begins with http:// or https:// and a host")
)

// fields returns the settings by name, in the order of the struct.
func (id *Identity) fields() []identityField {
	return []identityField{
		{"name", &id.Name, checkIdentityText},
		{"description", &id.Description, checkIdentityText},
		{"url", &id.URL, checkIdentityURL},
		{"icon", &id.Icon, checkIcon},
		{"logo", &id.Logo, checkIdentityURL},
	}
}

type identityField struct {
	name  string
	value *string
	check func(string) error
}

// validate returns an error that begins with the name of the invalid field.
func (id *Identity) validate() error {
	for _, f := range id.fields() {
		if err := f.check(*f.value); err != nil {
			return errs.Prefix(f.name, err)
		}
	}
	return nil
}

func checkIdentityText(text string) error {
	if strings.ContainsAny(text, "{}") {
		return errBraces
	}
	return nil
}

func checkIdentityURL(text string) error {
	if err := checkIdentityText(text); err != nil {
		return err
	}
	return checkAddress(text)
}

func checkIcon(text string) error {
	example := exampleIcon.Replace(text)
	if strings.ContainsAny(example, "{}") {
		return errIconBraces
	}
	return checkAddress(example)
}

// checkAddress returns an error if text is neither empty nor a web address.
func checkAddress(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errAddress
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
