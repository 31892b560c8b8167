package migrate

import (
	"errors"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// migratedURL is a notification URL that a Caddyfile can have.
type migratedURL struct {
	url   string
	label string // for the reader: scheme and host, without secrets
	tags  []string
}

// url checks a notification URL and returns it as a Caddyfile can have it. at
// is its position, for the report.
func (c *converter) url(at, text string) (u migratedURL, ok bool) {
	if c.settings.noRedirects && !hasRedirect.MatchString(text) {
		separator := "?"
		if strings.Contains(text, "?") {
			separator = "&"
		}
		text += separator + "redirect=no"
	}
	d, err := notifier.Parse(text, nil)
	if err != nil {
		c.report.skip("%s: %v", at, message.WithSuggestion(text, err))
		return u, false
	}
	if !c.settings.services.Permits(d.Schemes()) {
		reason := "APPRISE_DENY_SERVICES denies it"
		if len(c.settings.services.Allow) > 0 {
			reason = "APPRISE_ALLOW_SERVICES does not allow it"
		} else if _, ok := c.settings.env["APPRISE_DENY_SERVICES"]; !ok {
			reason = "Apprise API denies it, unless APPRISE_DENY_SERVICES is set"
		}
		c.report.skip("%s: the service %s may not be used: %s", at, d.Service(), reason)
		return u, false
	}
	if mistake := d.Mistake(); mistake != "" || placeholder.CheckURL(text) != nil {
		corrected := slices.Clone(d.Warnings())
		// The canonical form has the value that Apprise uses instead.
		text = d.URL()
		if d, err = notifier.Parse(text, nil); err == nil {
			err = placeholder.CheckURL(text)
			if mistake := d.Mistake(); mistake != "" {
				err = errors.New(mistake)
			}
		}
		if err != nil {
			c.report.skip("%s: %v", at, err)
			return u, false
		}
		if mistake != "" {
			c.report.note("%s: the URL is corrected: %s", at, corrected[0])
		}
	}
	for _, w := range d.Warnings() {
		c.report.note("%s: %s", at, w)
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
