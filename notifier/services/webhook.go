package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/standardwebhook"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// webhook has the parameters that json, form and xml share: the URL to send to, and
// the changes to the fields of the message.
type webhook struct {
	notifier.Server
	path    []string
	method  string
	header  map[string]string
	payload map[string]string
	slash   bool
	sign    string
	key     standardwebhook.Key // of sign
}

var webhookMethods = []string{"POST", "GET", "DELETE", "PUT", "HEAD", "PATCH", "UPDATE", "OPTIONS"}

// describe binds the parameters of a webhook. schemes is written as in a URL
// template. fields are the names of the message's fields, which may get new ones.
func (w *webhook) describe(s *notifier.Schema, schemes string, fields ...string) {
	s.URL(schemes + "://[{user}[:{password}]@]{host}[:{port}][/{path...}]")
	s.Attachments = true
	s.Server(&w.Server)
	s.Path(&w.path, "path", "path of the URL; parts of 16 or more characters are treated as secrets").
		SecretPart(webhookToken).Example("hooks", "alerts")
	s.TrailingSlash(&w.slash)
	s.Choice(&w.method, "method", "POST", webhookMethods, "HTTP method")
	s.Headers(&w.header, "headers", "HTTP header to add")
	s.String(&w.sign, "sign", "", "signature by Standard Webhooks: standard: and the secret of the receiver").
		Secret().Normalize(signature).Example("standard:whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	s.Map(&w.payload, ":", "payload", "field to add, or new name of a field of the message").Public(fields...)
}

// webhookToken treats a path segment of 16 or more characters as a secret: the URL of
// a webhook often has an access token in the path, and tokens are longer than words.
func webhookToken(segment string) (public, secret string) {
	if len(segment) >= 16 {
		return "", segment
	}
	return segment, ""
}

// request returns the request that sends body to the webhook.
func (w *webhook) request(body *notifier.Body) notifier.Request {
	address := w.URL(w.path...)
	if w.slash {
		address += "/"
	}
	return notifier.Request{Method: w.method, URL: address, Header: w.header, Login: &w.Server, Body: body}
}

// signStandard is before the secret in the parameter sign.
const signStandard = "standard:"

// signature checks the parameter sign.
func signature(s string) (string, error) {
	secret, ok := strings.CutPrefix(s, signStandard)
	if !ok {
		return "", errors.New("must be standard: and a secret")
	}
	if _, err := standardwebhook.ParseKey(secret); err != nil {
		return "", fmt.Errorf("has a secret that %w", err)
	}
	return s, nil
}

// Finish reads the key of the signatures.
func (w *webhook) Finish(*notifier.Schema) (err error) {
	if w.sign != "" {
		w.key, err = standardwebhook.ParseKey(strings.TrimPrefix(w.sign, signStandard))
	}
	return err
}

// do sends a request, and signs it if the URL asks for that.
func (w *webhook) do(ctx context.Context, c *notifier.Client, m *notifier.Message, q *notifier.Request) error {
	if w.key != nil {
		if err := w.signRequest(m, q); err != nil {
			return err
		}
	}
	_, err := c.Do(ctx, q)
	return err
}

// signRequest adds the headers of the signature to q. The ID is the same in all attempts to send the message, or this
// part of it; the time is the time of this attempt.
func (w *webhook) signRequest(m *notifier.Message, q *notifier.Request) error {
	id := cmp.Or(m.ID, uuid.NewString())
	if m.Part > 0 {
		id = fmt.Sprint(id, "-", m.Part+1)
	}
	signed, err := w.key.Sign(id, time.Now(), q.Body)
	if err != nil {
		return err
	}
	for name, value := range q.Header {
		if name = http.CanonicalHeaderKey(name); signed[name] == "" {
			signed[name] = value
		}
	}
	q.Header = signed
	return nil
}

// describeParams binds the query parameters of a webhook's URL.
func describeParams(s *notifier.Schema, v *map[string]string) {
	s.Map(v, "-", "params", "query parameter to add to the URL")
}

// field is one field of a webhook's message.
type field struct {
	name  string
	value any
}

// fields renames the standard fields of a message as the URL asks (an empty name
// drops a field), and adds the fields of the URL, sorted by name.
func (w *webhook) fields(standard ...field) (out []field) {
	if len(w.payload) == 0 {
		return standard
	}
	named := map[string]bool{}
	for _, f := range standard {
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

// values returns m as form values.
func values(m map[string]string) url.Values {
	if len(m) == 0 {
		return nil
	}
	v := make(url.Values, len(m))
	for name, value := range m {
		v.Set(name, value)
	}
	return v
}
