package caddyhttp

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
)

var (
	errReaderWithout = errors.New("reader: it has no effect, because only an inbox, " +
		"/json/urls/{KEY} and, with a queue, the alerts of Prometheus ask for it; " +
		"add inbox 7d to the key or configs to the notify block, or remove reader")
	errReaderNowhere = errors.New("reader: it has no effect, because only an inbox, /json/urls/{KEY} and, " +
		"with a queue, the alerts of Prometheus ask for it, the key has none of them, and no site has configs; " +
		"add inbox 7d to the key or configs to a site, or remove reader")
)

// readSecrets reads secrets, and checks those without placeholders.
func readSecrets(to *[]string) func([]string) error {
	return func(secrets []string) error {
		*to = append(*to, secrets...)
		for _, secret := range secrets {
			if err := placeholder.Check(secret); err != nil {
				return err
			}
			if !strings.Contains(secret, "{") {
				if err := site.CheckSecret(secret); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// resolveSecret returns a secret of a key without placeholders.
func resolveSecret(text string) (string, error) { return placeholder.Resolve(text) }

// checkReaders returns an error if a key of the site has readers and nothing asks for
// them.
func (h *Handler) checkReaders() error {
	if h.api.Saved != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(h.Keys)) {
		if k := h.Keys[name]; len(k.Readers) > 0 && k.Inbox == 0 && !k.takesRulers(h.app.Queue != nil) {
			return h.Caddyfile.Locate(block.KeyPrefix+name, errs.Prefix(block.KeyPrefix+name, errReaderWithout))
		}
	}
	return nil
}

// checkReaders checks the readers of the app's keys, as a handler does for its own. All sites
// must be known.
func (a *App) checkReaders() error {
	if slices.ContainsFunc(a.gateway.Engine.Sites, func(r *site.Site) bool { return r.Saved.On() }) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(a.Keys)) {
		if k := a.Keys[name]; len(k.Readers) > 0 && k.Inbox == 0 && !k.takesRulers(a.Queue != nil) {
			return a.Caddyfile.Locate(block.KeyPrefix+name, errs.Prefix(block.KeyPrefix+name, errReaderNowhere))
		}
	}
	return nil
}
