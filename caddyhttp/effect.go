package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/caddy-notify/caddy-notify/caddyhttp/smtp"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/similar"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The checks of this file reject settings that are well-formed but can have no effect,
// such as mails for keys that nobody has. Where configs is set, a key that the
// configuration does not have may be a saved one.

// checkEffects returns an error if a setting of the app can have no effect.
func (a *App) checkEffects() error {
	if err := a.checkQueue(a.gateway.Conf.Global, a.Queue != nil); err != nil {
		return err
	}
	if a.SMTP != nil {
		if err := a.checkMailKeys(); err != nil {
			return err
		}
	}
	for key, name := range a.accepted() {
		switch {
		case name == site.SourceSMTP && a.SMTP == nil:
			return a.acceptError(key, name,
				errors.New("no mails come in, because the global option notify has no smtp; add smtp <address> to it, or remove smtp from accept"))
		case !hasSource(a.settled.sources, name):
			a.unknownSources = append(a.unknownSources, unknownSource{
				name, a.acceptError(key, name, errAcceptUnknown(a.settled.sources, name)),
			})
		}
	}
	return nil
}

// unknownSource is a source that a key of the app accepts and the app does not have. A
// site, which is provisioned later, may have it.
type unknownSource struct {
	name string
	err  error // the error if no site has it
}

// checkSources returns an error if a key of the app accepts a source that neither the
// app nor a site has. It is called when all sites are provisioned.
func (a *App) checkSources() error {
	for _, u := range a.unknownSources {
		if !slices.ContainsFunc(a.handlers, func(h *Handler) bool { return hasSource(h.api.Sources, u.name) }) {
			return u.err
		}
	}
	return nil
}

// checkEffects returns an error if a setting of the site can have no effect.
func (h *Handler) checkEffects() error {
	if err := cmp.Or(h.checkQueue(h.api.Resolved, h.app.Queue != nil), h.checkInboxReaders()); err != nil {
		return err
	}
	for key, name := range h.accepted() {
		switch {
		case name == site.SourceSMTP:
			return h.acceptError(key, name,
				errors.New("mails reach only the keys of the global option notify; move the key there, or remove smtp from accept"))
		case !hasSource(h.api.Sources, name):
			return h.acceptError(key, name, errAcceptUnknown(h.api.Sources, name))
		}
	}
	return nil
}

// checkQueue returns an error for settings that have no effect without a queue. durable means that
// there is one. r is s in use.
func (s *Settings) checkQueue(r *site.Site, durable bool) error {
	for _, name := range slices.Sorted(maps.Keys(r.Keys)) {
		if err := outbox.CheckFallback(r.Keys, r.Keys[name], durable); err != nil {
			return s.optionError(name, "fallback", err)
		}
	}
	if s.Titles != nil && *s.Titles && !durable {
		return s.Caddyfile.Locate("titles", errors.New("titles: the queue keeps them with the results of messages, and there is none; "+
			"add queue to the global option notify, or remove the line"))
	}
	return cmp.Or(s.checkQueued(durable), s.checkRuler(durable))
}

// accepted returns the keys of s that have accept, each with every name in it.
func (s *Settings) accepted() iter.Seq2[string, string] {
	return func(yield func(key, name string) bool) {
		for _, key := range slices.Sorted(maps.Keys(s.Keys)) {
			for _, name := range s.Keys[key].Accept {
				if !yield(key, name) {
					return
				}
			}
		}
	}
}

// acceptError returns an error about a name in accept of a key, with its position.
func (s *Settings) acceptError(key, name string, err error) error {
	return s.Caddyfile.Locate(optionName(key, "accept "+name), fmt.Errorf("key %s: accept: %w", key, err))
}

// hasSource reports whether messages can come in by a name in accept other than smtp.
func hasSource(s source.Set, name string) bool {
	return name == site.SourceDirect || name == site.SourceSMTP ||
		name == site.SourceRuler || s.Has(name)
}

// errAcceptUnknown returns the error for a name in accept that is no source of s.
func errAcceptUnknown(s source.Set, name string) error {
	known := append(s.Names(), site.SourceDirect, site.SourceSMTP)
	slices.Sort(known)
	return fmt.Errorf("there is no source %s; %s", markup.TruncateBytes(name, 64),
		similar.Hint(name, known, "write direct, smtp, a source of a from block, or a built-in one"))
}

// checkMailKeys returns an error if no key takes mails, if an account of smtp names a
// key that takes none, or if a key accepts mails and can get none.
func (a *App) checkMailKeys() error {
	named := func(key string) bool {
		return slices.ContainsFunc(a.SMTP.Accounts, func(u smtp.Account) bool { return slices.Contains(u.Keys, key) })
	}
	accepts := func(k *site.Key) bool { return k.CheckSource(site.SourceSMTP) == nil }
	takesMails := func(k *site.Key) bool { return accepts(k) && (len(k.Tokens) == 0 || named(k.Name)) }
	keys := a.gateway.Conf.Global.Keys
	for name, source := range a.accepted() {
		if source == site.SourceSMTP && !takesMails(keys[name]) {
			return a.acceptError(name, source,
				errors.New("every mail would be refused, because the key has a token and no account of smtp names "+
					"the key; write the key after the password of an account in auth, or remove smtp from accept"))
		}
	}
	if a.settled.configs == nil && !slices.ContainsFunc(slices.Collect(maps.Values(keys)), takesMails) {
		err := errors.New("every mail would be refused, because the global option notify has no key; add key " +
			"<name> { … } to it, because mails do not reach the keys of sites, or add configs for saved keys")
		switch {
		case slices.ContainsFunc(slices.Collect(maps.Values(keys)), accepts):
			err = errors.New("every mail would be refused, because the keys of the global " +
				"option notify have tokens and no account of smtp names one of them; " +
				"write a key after the password of an account in auth")
		case len(keys) > 0:
			err = errors.New("every mail would be refused, because no key of the global option notify accepts mails; add smtp to accept of a key")
		}
		return a.Caddyfile.Locate("smtp", errs.Prefix("smtp", err))
	}
	for _, account := range a.SMTP.Accounts {
		for _, name := range account.Keys {
			var err error
			switch k := keys[name]; {
			case k != nil && !accepts(k):
				err = fmt.Errorf("the key %s does not accept mails; add smtp to accept of the key, "+
					"or remove the key from the account %s", name, account.Username)
			case k == nil && a.settled.configs == nil:
				err = fmt.Errorf("the account %s names the key %s, but the global option notify has no such key; "+
					"add it there, or correct the name", account.Username, name)
			}
			if err != nil {
				return a.Caddyfile.Locate(smtp.AccountName(account.Username), errs.Prefix("smtp: auth", err))
			}
		}
	}
	return nil
}
