package caddyhttp

import (
	"errors"
	"maps"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

var (
	errInboxUnread = errors.New("nobody can read it, because the key has no reader and " +
		"nobody may manage; add reader <secret> to the key, or console to the notify block")
	errInboxSavedUnread = errors.New("nobody can read it, because nobody may manage; add manage to configs, or remove the line")
	errInboxNoSite      = errors.New("nobody can read it, because no site has notify; add notify to a site, or remove the line")
)

// inboxes returns the names of the keys that have inbox.
func (s *Settings) inboxes() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Keys)), func(name string) bool { return s.Keys[name].Inbox == 0 })
}

// checkInboxReaders returns an error for an inbox of the site that nobody can read.
func (h *Handler) checkInboxReaders() error {
	if h.api.Resolved.Managers != nil {
		return nil
	}
	for _, name := range h.inboxes() {
		if len(h.Keys[name].Readers) == 0 {
			return h.optionError(name, "inbox", errInboxUnread)
		}
	}
	if h.Configs != nil && h.Configs.Inbox != 0 {
		return h.optionError("", "inbox", errInboxSavedUnread)
	}
	return nil
}

// checkInboxReaders checks the inboxes of the app's keys, as a handler does for its own. All
// sites must be known.
func (a *App) checkInboxReaders() error {
	names := a.inboxes()
	saved := a.Configs != nil && a.Configs.Inbox != 0
	managed := slices.ContainsFunc(a.gateway.Engine.Sites, func(r *site.Site) bool { return r.Managers != nil })
	switch {
	case len(names) == 0 && !saved || managed:
		return nil
	case len(a.gateway.Engine.Sites) == 0 && len(names) > 0:
		return a.optionError(names[0], "inbox", errInboxNoSite)
	case len(a.gateway.Engine.Sites) == 0:
		return a.optionError("", "inbox", errInboxNoSite)
	}
	for _, name := range names {
		if len(a.Keys[name].Readers) == 0 {
			return a.optionError(name, "inbox", errInboxUnread)
		}
	}
	if saved {
		return a.optionError("", "inbox", errInboxSavedUnread)
	}
	return nil
}
