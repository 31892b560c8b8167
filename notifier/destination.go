package notifier

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/internal/urlsyntax"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// Destination is a parsed notification URL: a service and the parameters that it sends with. It
// holds the service's state between messages, such as a session. It is safe for use by several
// goroutines.
//
// A configuration may have many thousands of destinations, and most are rarely used. So a
// destination shares as much as possible with its entry, and makes the rest when it is first
// needed.
type Destination struct {
	entry      *entry
	schema     *Schema // the entry's, unless Finish has changed it
	service    Service
	options    *options // the entry's, unless the URL sets one
	template   *urlsyntax.Template
	scheme     *urlsyntax.Scheme
	text       string // the URL as given, for a copy that keeps nothing
	policy     *egress.Policy
	files      *filesRead // nil if the URL names none of this machine
	location   *time.Location
	warnings   *warnings // nil for none
	recipients uint16
	read       uint16 // items of all lists in the URL, including those left out
	uses       int32  // of sharedDestinations, under its lock

	printed atomic.Pointer[printed]       // nil until it is needed or the destination hangs
	masks   atomic.Pointer[redact.Masker] // of the secrets; nil until it is needed
}

// printed holds printed forms of a destination, and whether it hangs: whether its last delivery has
// failed, after hangTime or more. A destination that is not used has none. A form is empty until it is
// needed.
type printed struct {
	redacted, hash, name, host string
	hangs                      bool
}

// with returns a copy that set has changed. p may be nil.
func (p *printed) with(set func(*printed)) *printed {
	var out printed
	if p != nil {
		out = *p
	}
	set(&out)
	return &out
}

// hangs reports whether the destination hangs.
func (d *Destination) hangs() bool {
	p := d.printed.Load()
	return p != nil && p.hangs
}

// noteHanging notes whether the destination hangs.
func (d *Destination) noteHanging(hangs bool) {
	for d.hangs() != hangs {
		p := d.printed.Load()
		d.printed.CompareAndSwap(p, p.with(func(p *printed) { p.hangs = hangs }))
	}
}

// copy returns the destination without its service's state.
func (d *Destination) copy() (*Destination, error) {
	if d.entry.private {
		return d.withPolicy(d.policy), nil
	}
	var files Files
	if d.files != nil {
		files.Dir = d.files.dir
	}
	return ParseWithFiles(d.text, d.policy, files)
}

// Policy returns the policy that says where messages to the destination may go.
func (d *Destination) Policy() *egress.Policy { return d.policy }

// WithPolicy returns a destination of the same URL with another policy, which the
// caller closes. It shares nothing with d.
func (d *Destination) WithPolicy(policy *egress.Policy) (*Destination, error) {
	if d.entry.private {
		return d.withPolicy(policy), nil
	}
	if u, ok := d.service.(*unusable); ok {
		return newUnusable(d.text, policy, u), nil
	}
	return Parse(d.text, policy)
}

// Retry returns the value of the parameter retry: how many times a delivery that
// fails is repeated.
func (d *Destination) Retry() int { return d.options.retry }

// CheckHost returns an error if the URL names its server by an address that the
// policy of the destination blocks. The addresses of a host name are checked
// when it is dialled.
func (d *Destination) CheckHost() error {
	s := d.server()
	if s == nil || s.Host == "" {
		return nil
	}
	return d.policy.CheckHost(s.Host)
}

// Host returns the server that a message to the destination is sent to, in lower case and with the
// port if the URL has one, for example "push.example.org:8443". If the service has no server in the
// URL, it is the service's name.
func (d *Destination) Host() string {
	p := d.printed.Load()
	if p == nil || p.host == "" {
		p = p.with(func(p *printed) { p.host = d.findHost() })
		d.printed.Store(p)
	}
	return p.host
}

// findHost returns what Host keeps.
func (d *Destination) findHost() (host string) {
	for _, p := range d.schema.params {
		if !p.dialled {
			continue
		}
		if texts := d.texts(p); len(texts) > 0 && texts[0] != "" {
			host = strings.ToLower(texts[0])
		}
	}
	if host == "" {
		return d.Service()
	}
	if p := d.schema.byName["port"]; p != nil {
		if texts := d.texts(p); len(texts) > 0 && texts[0] != "" && texts[0] != "0" {
			host += ":" + texts[0]
		}
	}
	return host
}

// Close closes the service's state between messages, such as a connection. The destination can
// still be used and opens what it needs.
func (d *Destination) Close() {
	if c, ok := d.service.(io.Closer); ok {
		_ = protect(c.Close)
	}
}

// Service returns the name of the destination's service, for example "Discord".
func (d *Destination) Service() string { return d.schema.Name }

// Schemes returns all schemes of the destination's service.
func (d *Destination) Schemes() []string { return d.entry.schemes }

// String returns the URL with every secret masked.
func (d *Destination) String() string {
	p := d.printed.Load()
	if p == nil || p.redacted == "" {
		p = p.with(func(p *printed) { p.redacted = d.print(true) })
		d.printed.Store(p)
	}
	return p.redacted
}

// URL returns the URL in its canonical form, with its secrets.
func (d *Destination) URL() string {
	if _, ok := d.service.(*unusable); ok || d.entry.private {
		return d.text
	}
	return d.print(false)
}

// Hash returns a text that identifies the URL and does not reveal it: the SHA-256
// of what [Destination.URL] returns, as base64url (RFC 4648).
func (d *Destination) Hash() string {
	p := d.printed.Load()
	if p == nil || p.hash == "" {
		sum := sha256.Sum256([]byte(d.URL()))
		p = p.with(func(p *printed) { p.hash = base64.RawURLEncoding.EncodeToString(sum[:]) })
		d.printed.Store(p)
	}
	return p.hash
}

// masker returns the masker of the destination's secrets.
func (d *Destination) masker() *redact.Masker {
	if masks := d.masks.Load(); masks != nil {
		return masks
	}
	masks := redact.NewMasker(d.secrets())
	d.masks.Store(masks)
	return masks
}

// redact masks the destination's secrets in a text.
func (d *Destination) redact(text string) string { return d.masker().Mask(text) }

// Recipients returns how many recipients a message to the destination has, such
// as chats or telephone numbers: see [Schema.Recipients].
func (d *Destination) Recipients() int { return int(d.recipients) }

// countRecipients returns the number of items in the lists of d, except paths,
// and at least 1.
func (d *Destination) countRecipients() (n int) {
	for _, p := range d.schema.params {
		if p.kind == KindList && !p.list.repeats {
			n += d.countItems(p)
		}
	}
	return max(n, 1)
}

// Optional reports whether a failure of the destination does not count.
func (d *Destination) Optional() bool { return d.options.optional }

// Warnings returns the parts of the URL that have no effect or may not mean what their author
// expects, one sentence each, without secrets. A program that loads URLs of an operator should log
// them.
func (d *Destination) Warnings() []string {
	if d.warnings == nil {
		return nil
	}
	return d.warnings.texts
}

// Mistake returns the first mistake in the URL that Warnings names, without its replacement, or ""
// if there is none. A program that loads URLs of an operator may refuse a URL for it. Parameters
// that Apprise itself writes into its URLs are not mistakes.
func (d *Destination) Mistake() string {
	if d.warnings == nil {
		return ""
	}
	return d.warnings.mistake
}

// warnings are the warnings about a URL.
type warnings struct {
	texts    []string // those about mistakes first
	mistakes int      // how many of them
	mistake  string   // the first of them, without its replacement
}

// warn adds a warning about a mistake in the URL.
func (d *Destination) warn(format string, args ...any) {
	d.warnOf(d.warning(format, args...), "")
}

// warnOf adds a warning about a mistake and its replacement, which matters only if the URL is used.
func (d *Destination) warnOf(mistake, instead string) {
	if d.warnings == nil {
		d.warnings = new(warnings)
	}
	if d.warnings.mistakes == 0 {
		d.warnings.mistake = mistake
	}
	d.warnings.texts = slices.Insert(d.warnings.texts, d.warnings.mistakes, mistake+instead)
	d.warnings.mistakes++
}

// note adds a warning about something that is not a mistake.
func (d *Destination) note(format string, args ...any) {
	if d.warnings == nil {
		d.warnings = new(warnings)
	}
	d.warnings.texts = append(d.warnings.texts, d.warning(format, args...))
}

func (d *Destination) warning(format string, args ...any) string {
	return d.schema.Name + ": " + fmt.Sprintf(format, args...)
}

// print returns the URL in its canonical form. With mask, secrets are masked.
func (d *Destination) print(mask bool) string {
	return d.printWith(func(p *Param, v string) string {
		if mask {
			return p.masked(v)
		}
		return v
	})
}

// printWith is like print. shown returns how a value of a parameter is shown.
func (d *Destination) printWith(shown func(p *Param, v string) string) string {
	s, t, server, slash := d.schema, d.template, d.server(), d.slash()
	values := func(name string) []string {
		p := s.byName[name]
		texts := d.texts(p)
		for i, v := range texts {
			texts[i] = shown(p, v)
		}
		return texts
	}
	out := t.Print(d.scheme.Name, values, server != nil && server.hasPassword)
	if slash != nil && *slash && !strings.HasSuffix(out, "/") {
		out += "/"
	}
	var query []string
	for _, p := range s.params {
		if t.Has(p.name) {
			continue
		}
		if p.kind == KindMap {
			m := *d.entries(p)
			for _, key := range slices.Sorted(maps.Keys(m)) {
				value := m[key]
				if p.hides(key) {
					value = shown(p, value)
				}
				query = append(query, p.dict.prefix+urlsyntax.Escape(key)+"="+urlsyntax.Escape(value))
			}
			continue
		}
		texts := d.texts(p)
		if len(texts) > 0 && !(p.kind != KindList && texts[0] == s.defaultOf(p)) {
			query = append(query, p.name+"="+urlsyntax.Escape(strings.Join(values(p.name), ",")))
		}
	}
	if len(query) > 0 {
		out += "?" + strings.Join(query, "&")
	}
	return out
}

// Name returns the name that people use for the destination: its service and a distinguishing part,
// for example "Slack #ops" or "JSON web.example". See [NameOf].
func (d *Destination) Name() string {
	shown, p := d.String(), d.printed.Load()
	if p.name == "" {
		p = p.with(func(p *printed) { p.name = NameOf(d.Service(), shown) })
		d.printed.Store(p)
	}
	return p.name
}

// Name returns the name of the target with its tags, for example
// "JSON web.example (1:oncall)".
func (t Target) Name() string { return NameWithTags(t.Destination.Name(), t.Tags) }

// NameWithTags returns the name of a destination with the tags by which messages reach it.
func NameWithTags(name string, tags []string) string {
	if len(tags) == 0 {
		return name
	}
	return name + " (" + strings.Join(tags, ", ") + ")"
}

// NameOf returns the name of a destination of a service. shown is its URL with the secrets masked,
// as [Destination.String] returns it. The name contains nothing else, so it cannot contain a
// secret.
func NameOf(service, shown string) string {
	if !strings.ContainsAny(shown, ": ") { // the key of a message whose destinations are not known yet
		return strings.TrimSpace(service + " " + inName(shown))
	}
	detail := ""
	if u, err := splitURL(shown); err == nil {
		detail = telling(u)
	}
	return strings.TrimSpace(service + " " + detail)
}

// tellingParams are the parameters that distinguish destinations of a service, the best first. If a
// service has a server, the user is only a login.
var tellingParams = []string{
	"topic", "targets", "to", "events", "channels", "device", "organization", "routing_key", "host", "user",
	"device_id", "from_phone", "botname",
}

// telling returns the part of a masked URL that distinguishes the destination from others of its
// service, or "" if the URL does not show it.
func telling(u *urlsyntax.URL) string {
	e := registry.byScheme[u.Scheme]
	if e == nil { // no URL of a user, such as a device's URL
		return inName(percent.DecodeText(u.Authority))
	}
	m := e.schema.matchAny(u)
	for _, name := range tellingParams {
		detail := e.schema.firstShown(m, u, name)
		if detail == "" {
			continue
		}
		user, port := e.schema.firstShown(m, u, "user"), e.schema.firstShown(m, u, "port")
		switch mail := slices.Contains(e.schema.groups, GroupMail); {
		case name == "host" && mail && user != "" && !strings.Contains(detail+user, "@"):
			return user + "@" + detail
		case name == "host" && mail && strings.Contains(user, "@") && !strings.Contains(detail, "@"):
			return user
		case name == "host" && !mail && port != "":
			return detail + ":" + port
		}
		return detail
	}
	return ""
}

// matchAny returns what the first template finds in a masked URL that fits it.
func (d *description) matchAny(u *urlsyntax.URL) *urlsyntax.Match {
	for _, extra := range []bool{false, true} {
		for _, t := range d.templates {
			if _, ok := t.Scheme(u.Scheme); ok {
				if m, _ := t.Match(u, d.given(u), extra); m != nil {
					return m
				}
			}
		}
	}
	return &urlsyntax.Match{}
}

// firstShown returns the first value of a parameter that a masked URL shows, and the number of
// further values.
func (d *description) firstShown(m *urlsyntax.Match, u *urlsyntax.URL, name string) string {
	p := d.byName[name]
	if p == nil || p.name != name || p.secret || p.kind != KindString && p.kind != KindList && name != "port" {
		return ""
	}
	all := slices.Clone(m.Values.Of(name))
	for _, q := range u.Query {
		if d.byName[strings.ToLower(q.Key)] == p && q.Value != "" {
			all = append(all, q.Value)
		}
	}
	var items []string
	for _, text := range all {
		if p.kind != KindList {
			items = []string{text} // the query's value counts
			continue
		}
		items = append(items, p.list.split(text)...)
	}
	items = slices.DeleteFunc(items, func(item string) bool { return inName(item) == "" })
	if len(items) > 1 {
		return inName(items[0]) + " +" + strconv.Itoa(len(items)-1)
	}
	return inName(strings.Join(items, "")) // the only one, or none
}

// inName returns a value as a part of a name, in a few characters, or "" if it has a masked
// secret.
func inName(value string) string {
	if strings.Contains(value, redact.Mask) {
		return ""
	}
	return markup.Truncate(strings.TrimSpace(markup.Printable(value)), 47)
}
