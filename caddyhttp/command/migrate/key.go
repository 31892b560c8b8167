package migrate

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/words"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
)

// migratedKey is a key of the Caddyfile.
type migratedKey struct {
	name       string
	urls       []migratedURL
	templates  []appriseconfig.Entry // URLs with variables
	file       string                // with templates; set when the Caddyfile is written
	includes   []string              // addresses of configuration files
	defaultTag string
	comment    string // on the URLs that a message without a tag goes to, or ""
}

// plainName matches the name of a key that needs no quotes.
var plainName = lazyregexp.New(`^[A-Za-z0-9_-]{1,128}$`)

// keyLabel names a key in the report.
func keyLabel(key string) string {
	if plainName.MatchString(key) {
		return "key " + key
	}
	return fmt.Sprintf("key %q", key)
}

// includesTimeout bounds how long reading all includes of a key takes, as when the
// Caddyfile loads.
const includesTimeout = 10 * time.Second

// converter makes the keys and notification URLs of a Caddyfile from the keys and URLs of an
// Apprise API.
type converter struct {
	settings *settings
	report   *report
}

// defaultURLs returns the URLs of messages without a key.
func (c *converter) defaultURLs() (out []migratedURL) {
	const name = "APPRISE_STATELESS_URLS"
	text := c.settings.env[name]
	if c.settings.noURLs {
		if text != "" {
			c.report.note("%s: APPRISE_STATELESS_MODE turns these URLs off", name)
		}
		return nil
	}
	for i, u := range notifier.SplitURLs(text) {
		if u, ok := c.url(fmt.Sprintf("%s, URL %d", name, i+1), u); ok {
			out = append(out, u)
		}
	}
	return out
}

// keys returns the keys of saved configurations.
func (c *converter) keys(ctx context.Context, saved []savedConfig) (out []migratedKey) {
	for _, s := range saved {
		k, ok := c.key(ctx, s)
		if !ok {
			continue
		}
		out = append(out, k)
		moved := fmt.Sprintf("key %s: %s", k.name, words.Count(len(k.urls)+len(k.templates), "URL"))
		if n := len(k.includes); n > 0 {
			moved += ", " + words.Count(n, "include")
		}
		c.report.moved = append(c.report.moved, moved)
	}
	return out
}

// key returns the key of a saved configuration. It is false if there is none.
func (c *converter) key(ctx context.Context, s savedConfig) (k migratedKey, ok bool) {
	if err := site.CheckKeyName(s.key); err != nil {
		c.report.skip("%s: %v", keyLabel(s.key), err)
		return k, false
	}
	k.name = s.key
	entries, includes := c.loadSaved(s)
	withTag, without := false, false
	for _, e := range entries {
		if e.Template != nil && c.settings.env.templates() {
			if e, ok := c.template(s.key, e); ok {
				k.templates = append(k.templates, e)
				withTag, without = withTag || len(e.Tags) > 0, without || len(e.Tags) == 0
			}
			continue
		}
		if u, ok := c.entry(s.key, e); ok {
			k.urls = append(k.urls, u)
			withTag, without = withTag || len(u.tags) > 0, without || len(u.tags) == 0
		}
	}
	ctx, cancel := context.WithTimeout(ctx, includesTimeout)
	defer cancel()
	for i, location := range includes {
		included, err := caddyhttp.ImportApprise(ctx, location, c.settings.services)
		if err != nil {
			c.report.skip("key %s, include %d: %v", s.key, i+1, err)
			continue
		}
		k.includes = append(k.includes, location)
		for _, e := range included {
			withTag, without = withTag || len(e.Tags) > 0, without || len(e.Tags) == 0
		}
	}
	if !withTag && !without {
		c.report.skip("key %s: it has no URL that can be used", s.key)
		return k, false
	}
	c.setDefaultTag(&k, withTag, without)
	return k, true
}

// entry returns the URL of a line of a configuration with its tags.
func (c *converter) entry(key string, e appriseconfig.Entry) (u migratedURL, ok bool) {
	at := fmt.Sprintf("key %s, line %d", key, e.Line)
	tags, err := c.tags(at, e.Tags)
	if err != nil {
		c.report.skip("%s: %v", at, err)
		return u, false
	}
	u, ok = c.url(at, e.URL)
	u.tags = tags
	return u, ok
}

// setDefaultTag makes a message without a tag go where Apprise API sends it: to
// the URLs without tags. If all have tags, it is refused.
func (c *converter) setDefaultTag(k *migratedKey, withTag, without bool) {
	if !withTag {
		return
	}
	k.defaultTag = "untagged"
	if without {
		k.comment = "As with Apprise API, a message without a tag goes to the URLs without\ntags. Take the line away, and it goes to every URL."
		c.report.note("key %s: default_tag untagged sends a message without a tag to the URLs without tags, as Apprise API does; "+
			"take the line away, and it goes to every URL", k.name)
		return
	}
	k.comment = "Every URL has a tag, so that a message without a tag is refused, as by\n" +
		"Apprise API. Take the line away, and it goes to every URL."
	c.report.note("key %s: every URL has a tag, so that default_tag untagged refuses a message without a tag, as Apprise API does; "+
		"take the line away, and it goes to every URL", k.name)
}

// maxListed bounds the mistakes of one key in the report.
const maxListed = 20

// loadSaved returns the entries of a saved configuration, and the addresses that
// it includes. It lists what cannot be understood.
func (c *converter) loadSaved(s savedConfig) (entries []appriseconfig.Entry, includes []string) {
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
	for i, e := range mistakes {
		if i == maxListed {
			c.report.skip("%s: it has more mistakes; correct those above, and move it again to see the others", name)
			break
		}
		c.report.skip("%s", keyPosition(e.Error()))
	}
	for _, w := range warnings {
		if text := keyPosition(w.String()); strings.HasPrefix(text, name+", line ") {
			c.report.note("%s", text)
		}
	}
	for _, location := range all {
		if strings.Contains(location, "://") {
			includes = append(includes, location)
		} else {
			c.report.skip("%s: it includes a local file, which Apprise API does not read either; copy its lines", name)
		}
	}
	return entries, includes
}

var positionPattern = lazyregexp.New(`^(key [A-Za-z0-9_-]+):(\d+): `)

// keyPosition returns the text of an error or warning of package appriseconfig
// with "key ops, line 4" for "key ops:4".
func keyPosition(text string) string {
	return positionPattern.ReplaceAllString(text, "$1, line $2: ")
}

// tags returns the tags that a url line can have.
func (c *converter) tags(at string, tags []string) (out []string, err error) {
	for _, tag := range tags {
		if _, name := notifier.SplitTag(tag); strings.EqualFold(name, "all") {
			c.report.note("%s: the tag all is left out, because it stands for every URL", at)
			continue
		}
		if err := site.CheckTag(tag); err != nil {
			return nil, err
		}
		out = append(out, tag)
	}
	return out, nil
}
