package caddyhttp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// migratedKey is a key of the Caddyfile.
type migratedKey struct {
	name       string
	urls       []migratedURL
	includes   []string // addresses of configuration files
	defaultTag string
	comment    string // on the URLs that a message without a tag goes to, or ""
}

// migratedURL is a notification URL that a Caddyfile can have.
type migratedURL struct {
	url   string
	label string // for the reader: scheme and host, without secrets
	tags  []string
}

// keyLabel names a key in the report.
func keyLabel(key string) string {
	if isKeyName(key) {
		return "key " + key
	}
	return fmt.Sprintf("key %q", key)
}

// addKey adds the key of a saved configuration.
func (m *migration) addKey(ctx context.Context, s savedConfig) {
	if err := checkKeyName(s.key); err != nil {
		m.skip("%s: %v", keyLabel(s.key), err)
		return
	}
	k := migratedKey{name: s.key}
	entries, includes, err := m.loadSaved(s)
	if err != nil {
		m.skip("%s", keyPosition(err.Error()))
		return
	}
	withTag, without := false, false
	for _, e := range entries {
		at := fmt.Sprintf("key %s, line %d", s.key, e.Line)
		tags, err := m.tags(at, e.Tags)
		if err != nil {
			m.skip("%s: %v", at, err)
			continue
		}
		if u, ok := m.url(at, e.URL); ok {
			u.tags = tags
			k.urls = append(k.urls, u)
			withTag, without = withTag || len(tags) > 0, without || len(tags) == 0
		}
	}
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	for i, location := range includes {
		included, err := m.checkInclude(ctx, location)
		if err != nil {
			m.skip("key %s, include %d: %v", s.key, i+1, err)
			continue
		}
		k.includes = append(k.includes, location)
		for _, e := range included {
			withTag, without = withTag || len(e.Tags) > 0, without || len(e.Tags) == 0
		}
	}
	if !withTag && !without {
		m.skip("key %s: it has no URL that can be used", s.key)
		return
	}
	m.setDefaultTag(&k, withTag, without)
	m.keys = append(m.keys, k)
}

// setDefaultTag makes a message without a tag go where Apprise API sends it: to
// the URLs without tags.
func (m *migration) setDefaultTag(k *migratedKey, withTag, without bool) {
	switch {
	case withTag && without:
		k.defaultTag = untagged
		k.comment = "As with Apprise API, a message without a tag goes to the URLs without\ntags. Take the line away, and it goes to every URL."
	case withTag:
		k.comment = "Every URL has a tag. Here a message without a tag goes to all of them;\nApprise API refuses it. Choose other URLs with default_tag."
		m.note("key %s: every URL has a tag, so Apprise API refuses a message without a tag; here it goes to every URL, unless you set default_tag", k.name)
	}
}

// loadSaved returns the entries of a saved configuration, and the addresses that
// it includes. Lines of a text file that cannot be understood are left out.
func (m *migration) loadSaved(s savedConfig) (entries []appriseconfig.Entry, includes []string, err error) {
	name := "key " + s.key
	location := "file://" + url.PathEscape(name) + "?format=" + s.format
	var all []string // locations of includes
	reads := 0
	entries, warnings, err := appriseconfig.Load(context.Background(), location, func(_ context.Context, location string) ([]byte, error) {
		if reads++; reads > 1 {
			all = append(all, location)
			return nil, nil // an empty file, so that Load goes on
		}
		return s.text, nil
	})
	mistakes, _ := errors.AsType[appriseconfig.Errors](err)
	if len(mistakes) >= appriseconfig.MaxErrors {
		return nil, nil, fmt.Errorf("%s: %d lines or more cannot be understood", name, appriseconfig.MaxErrors)
	}
	for _, e := range mistakes {
		if s.format != "text" || e.File != name || e.Line == 0 {
			return nil, nil, e
		}
		m.skip("%s", keyPosition(e.Error()))
	}
	for _, w := range warnings {
		if text := keyPosition(w.String()); strings.HasPrefix(text, name+", line ") {
			m.note("%s", text)
		}
	}
	for _, location := range all {
		if strings.Contains(location, "://") {
			includes = append(includes, location)
		} else {
			m.skip("%s: it includes a local file, which Apprise API does not read either; copy its lines", name)
		}
	}
	return entries, includes, nil
}

var positionPattern = lazyregexp.New(`^(key [A-Za-z0-9_-]+):(\d+): `)

// keyPosition returns the text of an error or warning of package appriseconfig
// with "key ops, line 4" for "key ops:4".
func keyPosition(text string) string {
	return positionPattern.ReplaceAllString(text, "$1, line $2: ")
}

// tags returns the tags that a url line can have.
func (m *migration) tags(at string, tags []string) (out []string, err error) {
	for _, tag := range tags {
		if _, name := notifier.SplitTag(tag); strings.EqualFold(name, "all") {
			m.note("%s: the tag all is left out, because it stands for every URL", at)
			continue
		}
		if err := checkTag(tag); err != nil {
			return nil, err
		}
		out = append(out, tag)
	}
	return out, nil
}

// url checks a notification URL and returns it as a Caddyfile can have it. at
// is its position, for the report.
func (m *migration) url(at, text string) (u migratedURL, ok bool) {
	if m.noRedirects && !hasRedirect.MatchString(text) {
		separator := "?"
		if strings.Contains(text, "?") {
			separator = "&"
		}
		text += separator + "redirect=no"
	}
	d, err := notifier.Parse(text, nil)
	if err != nil {
		m.skip("%s: %v", at, notifier.WithSuggestion(text, err))
		return u, false
	}
	if !m.services.permits(d.Schemes()) {
		reason := "APPRISE_DENY_SERVICES denies it"
		if len(m.services.Allow) > 0 {
			reason = "APPRISE_ALLOW_SERVICES does not allow it"
		} else if _, ok := m.env["APPRISE_DENY_SERVICES"]; !ok {
			reason = "Apprise API denies it, unless APPRISE_DENY_SERVICES is set"
		}
		m.skip("%s: the service %s may not be used: %s", at, d.Service(), reason)
		return u, false
	}
	if mistake := d.Mistake(); mistake != "" || checkURLText(text) != nil {
		// The canonical form has the value that Apprise uses instead.
		text = d.URL()
		if d, err = notifier.Parse(text, nil); err == nil {
			err = errors.Join(rejectMistake(d), checkURLText(text))
		}
		if err != nil {
			m.skip("%s: %v", at, err)
			return u, false
		}
		if mistake != "" {
			m.note("%s: the URL is corrected: %s", at, mistake)
		}
	}
	return migratedURL{url: text, label: label(d)}, true
}

// label returns scheme and host of the URL of d, with secrets masked. The path of
// a webhook can be a secret, too, so it is left out.
func label(d *notifier.Destination) string {
	scheme, rest, _ := strings.Cut(d.String(), "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return markup.OneLine(scheme + "://" + rest)
}

var hasRedirect = lazyregexp.New(`(?i)[?&]redirect=`)

// checkInclude returns the entries of a configuration file on a server, or an
// error if the gateway could not load it.
func (m *migration) checkInclude(ctx context.Context, location string) ([]appriseconfig.Entry, error) {
	entries, _, err := appriseconfig.Load(ctx, location, readImport)
	if err != nil {
		return nil, err
	}
	l := keyLoader{parse: parseUnshared, services: m.services, log: zap.NewNop()}
	for _, e := range entries {
		if _, err := l.importEntry(e); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", e.File, e.Line, err)
		}
	}
	if len(entries) == 0 {
		return nil, errors.New("it has no URL")
	}
	return slices.Clip(entries), nil
}
