package caddyhttp

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
)

var (
	errInboxWithoutQueue = errors.New("messages are kept in the queue, and there is none; " +
		"add queue to the global option notify, or remove the line")
	errInboxUnqueued = errors.New("messages are kept in the queue, which the key does not use; remove queue off, or this line")
	errInboxUnread   = errors.New("nobody can read it, because the key has no reader and " +
		"nobody may manage; add reader <secret> to the key, or console to the notify block")
	errInboxSavedUnread = errors.New("nobody can read it, because nobody may manage; add manage to configs, or remove the line")
	errInboxNoSite      = errors.New("nobody can read it, because no site has notify; add notify to a site, or remove the line")
)

// inboxName returns the name of the setting inbox of a key, or for "" of configs, in
// block.Info.Lines.
func inboxName(key string) string {
	if key == "" {
		return "configs, inbox"
	}
	return block.KeyPrefix + key + ", inbox"
}

// inboxError returns an error about inbox of a key, or for "" of configs, with its
// position.
func (s *Settings) inboxError(key string, err error) error {
	prefix := "configs"
	if key != "" {
		prefix = block.KeyPrefix + key
	}
	return s.Caddyfile.Locate(inboxName(key), errs.Prefix(prefix, errs.Prefix("inbox", err)))
}

// inboxes returns the names of the keys that have inbox.
func (s *Settings) inboxes() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Keys)), func(name string) bool { return s.Keys[name].Inbox == 0 })
}

// checkInboxes returns an error for inboxes without a queue.
func (s *Settings) checkInboxes(durable bool) error {
	for _, name := range s.inboxes() {
		switch k := s.Keys[name]; {
		case !durable:
			return s.inboxError(name, errInboxWithoutQueue)
		case k.Queue != nil && !*k.Queue:
			return s.inboxError(name, errInboxUnqueued)
		}
	}
	if s.Configs != nil && s.Configs.Inbox != 0 && !durable {
		return s.inboxError("", errInboxWithoutQueue)
	}
	return nil
}

// checkInboxReaders returns an error for an inbox of the site that nobody can read.
func (h *Handler) checkInboxReaders() error {
	if h.api.Resolved.Managers != nil {
		return nil
	}
	for _, name := range h.inboxes() {
		if len(h.Keys[name].Readers) == 0 {
			return h.inboxError(name, errInboxUnread)
		}
	}
	if h.Configs != nil && h.Configs.Inbox != 0 {
		return h.inboxError("", errInboxSavedUnread)
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
		return a.inboxError(names[0], errInboxNoSite)
	case len(a.gateway.Engine.Sites) == 0:
		return a.inboxError("", errInboxNoSite)
	}
	for _, name := range names {
		if len(a.Keys[name].Readers) == 0 {
			return a.inboxError(name, errInboxUnread)
		}
	}
	if saved {
		return a.inboxError("", errInboxSavedUnread)
	}
	return nil
}

// readInbox returns the subdirective inbox of a block. key is "" for saved keys.
func readInbox(to *caddy.Duration, key func() string, info func() *block.Info) block.Option {
	return block.Option{Usage: "inbox <duration>", Min: 1, Max: 1, At: func(d *caddyfile.Dispenser, args []string) error {
		info().Record(inboxName(key()), d)
		_ = block.Duration(to)(args) // what is no duration has the error of one that is too short
		return site.CheckInbox(max(time.Duration(*to), 1))
	}}
}
