package services

import (
	"maps"
	"net/url"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// webhook is what the services have in common that post a message to an
// address of the user's own, in a shape that the user can adjust.
type webhook struct {
	notifier.Server
	path    []string
	method  string
	header  map[string]string
	payload map[string]string
	slash   bool
}

var webhookMethods = []string{"POST", "GET", "DELETE", "PUT", "HEAD", "PATCH", "UPDATE", "OPTIONS"}

// describe binds the parameters of a webhook whose schemes are written as in
// a template.
func (w *webhook) describe(s *notifier.Schema, schemes string) {
	s.URL(schemes + "://[{user}[:{password}]@]{host}[:{port}][/{path...}]")
	s.Attachments = true
	s.Server(&w.Server)
	s.Path(&w.path, "path", "path of the address; a long part of it counts as a secret").SecretPart(webhookToken).Example("hooks", "alerts")
	s.TrailingSlash(&w.slash)
	s.Choice(&w.method, "method", "POST", webhookMethods, "HTTP method")
	s.Headers(&w.header, "header", "HTTP header to add")
	s.Map(&w.payload, ":", "field", "field of the message to add, or new name of one")
}

// webhookToken treats a long segment of the path as a secret: in addresses of
// webhooks, what gives access is often in the path, and longer than words are.
func webhookToken(segment string) (public, secret string) {
	if len(segment) >= 16 {
		return "", segment
	}
	return segment, ""
}

// request sends the body to the webhook's address.
func (w *webhook) request(body *notifier.Body) *notifier.Request {
	address := w.URL(w.path...)
	if w.slash {
		address += "/"
	}
	return &notifier.Request{Method: w.method, URL: address, Header: w.header, Login: &w.Server, Body: body}
}

// describeParams binds the query parameters that go along with a webhook's
// address.
func describeParams(s *notifier.Schema, v *map[string]string) {
	s.Map(v, "-", "param", "query parameter of the address to add")
}

// field is one part of a webhook's message.
type field struct {
	name  string
	value any
}

// fields puts the message's own fields under the names that the user gave
// them (an empty name leaves one out) and adds the user's fields, in a fixed
// order.
func (w *webhook) fields(own ...field) (out []field) {
	if len(w.payload) == 0 {
		return own
	}
	named := map[string]bool{}
	for _, f := range own {
		if name, renamed := w.payload[f.name]; renamed {
			named[f.name] = true
			f.name = name
		}
		if f.name != "" {
			out = append(out, f)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(w.payload)) {
		if named[k] {
			continue
		}
		if i := slices.IndexFunc(out, func(f field) bool { return f.name == k }); i >= 0 {
			out[i].value = w.payload[k]
		} else {
			out = append(out, field{k, w.payload[k]})
		}
	}
	return out
}

// values makes form values of a map.
func values(m map[string]string) url.Values {
	v := make(url.Values, len(m))
	for name, value := range m {
		v.Set(name, value)
	}
	return v
}
