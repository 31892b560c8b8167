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
	errInboxUnread = errors.New("nobody can read it, because the key has no reader and " +
		"nobody may manage; add reader <secret> to the key, or console to the notify block")
	errInboxSavedUnread = errors.New("nobody can read it, because nobody may manage; add manage to configs, or remove the line")
	errInboxNoSite      = errors.New("nobody can read it, because no site has notify; add notify to a site, or remove the line")

	errReaderWithout = errors.New("reader: it has no effect, because only an inbox, " +
		"/json/urls/{KEY} and, with a queue, the alerts of Prometheus ask for it; " +
		"add inbox 7d to the key or configs to the notify block, or remove reader")
	errReaderNowhere = errors.New("reader: it has no effect, because only an inbox, /json/urls/{KEY} and, " +
		"with a queue, the alerts of Prometheus ask for it, the key has none of them, and no site has configs; " +
		"add inbox 7d to the key or configs to a site, or remove reader")
)

// checkReaders returns an error if a key of the site has readers and nothing asks for them.
func (h *Handler) checkReaders() error {
	if h.api.Saved != nil {
		return nil
	}
	return h.checkAsked(h.app.Queue != nil, errReaderWithout)
}

// checkReaders checks the readers of the app's keys, as a handler does for its own. All sites
// must be known.
func (a *App) checkReaders() error {
	if slices.ContainsFunc(a.gateway.Conf.Sites, func(r *site.Site) bool { return r.Saved.On() }) {
		return nil
	}
	return a.checkAsked(a.Queue != nil, errReaderNowhere)
}

// checkAsked returns err with its place if a key has readers and nothing asks for them. durable
// means that there is a queue, in which Prometheus can post alerts that a reader can read.
func (s *Settings) checkAsked(durable bool, err error) error {
	for _, name := range slices.Sorted(maps.Keys(s.Keys)) {
		if k := s.Keys[name]; len(k.Readers) > 0 && k.Inbox == 0 && (!durable || k.unqueued()) {
			return s.Caddyfile.Locate(block.KeyPrefix+name, errs.Prefix(block.KeyPrefix+name, err))
		}
	}
	return nil
}

// checkInboxReaders returns an error for an inbox of the site that nobody can read.
func (h *Handler) checkInboxReaders() error {
	if h.api.Resolved.Managers != nil {
		return nil
	}
	return h.checkRead(true, errInboxUnread, errInboxSavedUnread)
}

// checkInboxReaders checks the inboxes of the app's keys, as a handler does for its own. All
// sites must be known.
func (a *App) checkInboxReaders() error {
	sites := a.gateway.Conf.Sites
	switch {
	case len(sites) == 0:
		return a.checkRead(false, errInboxNoSite, errInboxNoSite)
	case slices.ContainsFunc(sites, func(r *site.Site) bool { return r.Managers != nil }):
		return nil
	}
	return a.checkRead(true, errInboxUnread, errInboxSavedUnread)
}

// checkRead returns an error for an inbox of a key, or of saved keys, that nobody can read. readers
// means that clients with a reader of the key can read it.
func (s *Settings) checkRead(readers bool, ofKey, ofSaved error) error {
	for _, name := range slices.Sorted(maps.Keys(s.Keys)) {
		if k := s.Keys[name]; k.Inbox != 0 && (!readers || len(k.Readers) == 0) {
			return s.optionError(name, "inbox", ofKey)
		}
	}
	if s.Configs != nil && s.Configs.Inbox != 0 {
		return s.optionError("", "inbox", ofSaved)
	}
	return nil
}

// checkSecrets checks the secrets without placeholders.
func checkSecrets(secrets []string) error {
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
