package caddyhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

func init() {
	httpcaddyfile.RegisterDirective("notify", parseRoute)
	httpcaddyfile.RegisterDirectiveOrder("notify", httpcaddyfile.Before, "respond")
	httpcaddyfile.RegisterGlobalOption("notify", parseGlobalOption)
}

// parseRoute is like what httpcaddyfile.RegisterHandlerDirective makes of
// parseDirective, and refuses a matcher that keeps every message out.
func parseRoute(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	if !h.Next() {
		return nil, h.ArgErr()
	}
	at := *h.Dispenser
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err
	}
	var paths []string
	if raw := matchers["path"]; raw != nil {
		if err := json.Unmarshal(raw, &paths); err != nil {
			return nil, at.WrapErr(err)
		}
		if !slices.ContainsFunc(paths, mayBeOurs) {
			return nil, at.Err("the matcher lets nothing through that notify answers: its paths are /notify and /notify/{KEY}; for a prefix such as /alerts, write handle_path /alerts/* { notify { … } }")
		}
	}
	handler, err := parseDirective(h)
	if err != nil {
		return nil, err
	}
	return h.NewRoute(matchers, handler), nil
}

// mayBeOurs says whether a pattern of Caddy's path matcher, which are compared
// without case, may fit a path of the gateway's.
func mayBeOurs(pattern string) bool {
	pattern = strings.ToLower(pattern)
	i := strings.IndexAny(pattern, `*?[\{%`)
	if i < 0 {
		_, ok := route(pattern)
		return ok
	}
	beginning := pattern[:i]
	return strings.HasPrefix("/notify/", beginning) || strings.HasPrefix(beginning, "/notify/")
}

func parseDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	// The services of the global block hold for a site that sets none.
	var app App
	if global, ok := h.Option("notify").(httpcaddyfile.App); ok {
		if err := json.Unmarshal(global.Value, &app); err != nil {
			return nil, err
		}
	}
	return handler, handler.unmarshal(h.Dispenser, app.Services)
}

func parseGlobalOption(d *caddyfile.Dispenser, existing any) (any, error) {
	app := new(App)
	if existing != nil {
		d.Next()
		return nil, d.Err("there is a global notify block already; write all into one")
	}
	if err := app.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: "notify", Value: caddyconfig.JSON(app, nil)}, nil
}

// UnmarshalCaddyfile sets up the settings from Caddyfile tokens, for the
// directive and for the global option. Syntax:
//
//	notify [<matcher>] {
//		key <name> {
//			url <url> [<tags...>]
//			import_apprise <file|url...>
//			default_tag <expression>|untagged
//		}
//		stateless on|off
//		default_urls <url...>
//		services {
//			allow <schema...>
//			deny <schema...>
//		}
//		egress {
//			allow <cidr...>|private_ranges|all
//			deny <cidr...>|private_ranges
//		}
//		attachments {
//			max_size <size>
//			max_count <n>
//			remote on|off
//		}
//		max_body <size>
//		timeout <duration>
//		max_in_flight <n>
//		propagate_trace on|off
//		page on|off
//		trusted_origins <origin...>|*
//		identity {
//			name <text>
//			description <text>
//			url <url>
//			icon <url>
//			logo <url>
//		}
//	}
//
// The subdirectives key, url, import_apprise, default_urls, allow and deny may be repeated;
// lists add up. The global option has no matcher.
func (s *Settings) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return s.unmarshal(d, nil)
}

// unmarshal is UnmarshalCaddyfile where services are set elsewhere, for the
// case that the block sets none.
func (s *Settings) unmarshal(d *caddyfile.Dispenser, inherited *Services) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.Err("notify takes no arguments but a matcher, only a block")
	}
	b := settingsBlock{Settings: s}
	if err := readBlock(d, "notify", b.options()); err != nil {
		return err
	}
	if len(s.DefaultURLs) > 0 && s.Stateless != nil && !*s.Stateless {
		return b.defaultsAt.WrapErr(errStatelessDefaults)
	}
	if s.Services != nil {
		inherited = s.Services
	}
	return b.checkURLs(inherited)
}

// settingsBlock reads a notify block.
type settingsBlock struct {
	*Settings
	urls       []urlToken
	defaultsAt caddyfile.Dispenser // the last default_urls
}

// urlToken is a URL and its place in the file.
type urlToken struct {
	text string
	at   caddyfile.Dispenser
}

// checkURLs tells of unusable URLs with file and line. It comes last, since
// which services may be used can stand behind the URLs.
func (b *settingsBlock) checkURLs(services *Services) error {
	for _, u := range b.urls {
		if err := checkURL(u.text, services); err != nil {
			return u.at.WrapErr(err)
		}
	}
	return nil
}

func (b *settingsBlock) options() options {
	return options{
		"key":       {usage: "key <name> { … }", min: 1, max: 1, many: true, block: b.readKey},
		"stateless": {usage: "stateless on|off", min: 1, max: 1, line: onOff(&b.Stateless)},
		"default_urls": {usage: "default_urls <url...>", min: 1, max: math.MaxInt, many: true, at: func(d *caddyfile.Dispenser, urls []string) error {
			for _, u := range urls {
				b.urls = append(b.urls, urlToken{u, *d})
			}
			b.DefaultURLs, b.defaultsAt = append(b.DefaultURLs, urls...), *d
			return nil
		}},
		"services":    {usage: "services { … }", block: b.readServices},
		"egress":      {usage: "egress { … }", block: b.readEgress},
		"attachments": {usage: "attachments { … }", block: b.readAttachments},
		"max_body":    {usage: "max_body <size>", min: 1, max: 1, line: byteSize(&b.MaxBody)},
		"timeout": {usage: "timeout <duration>", min: 1, max: 1, line: func(args []string) error {
			t, err := caddy.ParseDuration(args[0])
			if err != nil || t <= 0 {
				return errors.New("a duration longer than 0 is expected, such as 30s or 2m")
			}
			b.Timeout = caddy.Duration(t)
			return nil
		}},
		"max_in_flight": {usage: "max_in_flight <n>", min: 1, max: 1, line: func(args []string) error {
			n, err := strconv.ParseUint(args[0], 10, 31)
			if err != nil || n == 0 {
				return errors.New("a number of messages above 0 is expected")
			}
			b.MaxInFlight = int(n)
			return nil
		}},
		"propagate_trace": {usage: "propagate_trace on|off", min: 1, max: 1, line: onOff(&b.PropagateTrace)},
		"page":            {usage: "page on|off", min: 1, max: 1, line: onOff(&b.Page)},
		"trusted_origins": {usage: "trusted_origins <origin...>|*", min: 1, max: math.MaxInt, many: true, line: func(origins []string) error {
			b.TrustedOrigins = append(b.TrustedOrigins, origins...)
			_, err := crossOrigin(origins)
			return err
		}},
		"identity": {usage: "identity { … }", block: b.readIdentity},
	}
}

func (b *settingsBlock) readKey(d *caddyfile.Dispenser, args []string) error {
	name := args[0]
	if err := checkKeyName(name); err != nil {
		return d.WrapErr(err)
	}
	if b.Keys[name] != nil {
		return d.Errf("there is a key %s already; write all its URLs into one", name)
	}
	start, k, tagAt := *d, &Key{}, *d
	err := readBlock(d, "key", options{
		"url": {usage: "url <url> [<tags...>]", min: 1, max: math.MaxInt, many: true, at: func(d *caddyfile.Dispenser, args []string) error {
			for _, tag := range args[1:] {
				if strings.Contains(tag, "://") {
					return errSeveralURLs
				}
				if err := checkTag(tag); err != nil {
					return err
				}
			}
			b.urls = append(b.urls, urlToken{args[0], *d})
			k.URLs = append(k.URLs, KeyURL{URL: args[0], Tags: args[1:]})
			return nil
		}},
		"import_apprise": {usage: "import_apprise <file|url...>", min: 1, max: math.MaxInt, many: true, at: func(d *caddyfile.Dispenser, locations []string) error {
			for _, location := range locations {
				path, err := importPath(location, d.File())
				if err != nil {
					return err
				}
				k.ImportApprise = append(k.ImportApprise, path)
			}
			return nil
		}},
		"default_tag": {usage: "default_tag <expression>|untagged", min: 1, max: 1, at: func(d *caddyfile.Dispenser, args []string) error {
			if args[0] == "" {
				return errors.New("a tag expression is expected, such as ops,dev, or untagged")
			}
			k.DefaultTag, tagAt = args[0], *d
			return nil
		}},
	})
	switch {
	case err != nil:
		return err
	case len(k.URLs)+len(k.ImportApprise) == 0:
		return start.Errf("the key %s needs a URL at least: url <url> [<tags...>]", name)
	}
	targets := make([]notifier.Target, len(k.URLs))
	for i, u := range k.URLs {
		targets[i].Tags = u.Tags
	}
	// Which tags imported files have is known when they are read.
	if _, err := defaultTargets(targets, k.DefaultTag); err != nil && (len(k.ImportApprise) == 0 || !errors.Is(err, errNobody)) {
		return tagAt.WrapErr(err)
	}
	if b.Keys == nil {
		b.Keys = map[string]*Key{}
	}
	b.Keys[name] = k
	return nil
}

func (b *settingsBlock) readServices(d *caddyfile.Dispenser, _ []string) error {
	b.Services = &Services{}
	list := func(to *[]string) func([]string) error {
		return func(schemas []string) error {
			*to = append(*to, schemas...)
			return (&Services{Allow: schemas}).check()
		}
	}
	start := *d
	err := readBlock(d, "services", options{
		"allow": {usage: "allow <schema...>", min: 1, max: math.MaxInt, many: true, line: list(&b.Services.Allow)},
		"deny":  {usage: "deny <schema...>", min: 1, max: math.MaxInt, many: true, line: list(&b.Services.Deny)},
	})
	if err != nil {
		return err
	}
	if err := b.Services.checkWhole(); err != nil {
		return start.WrapErr(fmt.Errorf("services: %w", err))
	}
	return nil
}

func (b *settingsBlock) readEgress(d *caddyfile.Dispenser, _ []string) error {
	b.Egress = &Egress{}
	return readBlock(d, "egress", options{
		"allow": {usage: "allow <cidr...>|private_ranges|all", min: 1, max: math.MaxInt, many: true, line: func(ranges []string) error {
			b.Egress.Allow = append(b.Egress.Allow, ranges...)
			_, err := egress.NewPolicy(ranges, nil)
			return err
		}},
		"deny": {usage: "deny <cidr...>|private_ranges", min: 1, max: math.MaxInt, many: true, line: func(ranges []string) error {
			b.Egress.Deny = append(b.Egress.Deny, ranges...)
			_, err := egress.NewPolicy(nil, ranges)
			return err
		}},
	})
}

func (b *settingsBlock) readAttachments(d *caddyfile.Dispenser, _ []string) error {
	b.Attachments = &Attachments{}
	return readBlock(d, "attachments", options{
		"max_size": {usage: "max_size <size>", min: 1, max: 1, line: byteSize(&b.Attachments.MaxSize)},
		"max_count": {usage: "max_count <n>", min: 1, max: 1, line: func(args []string) error {
			n, err := strconv.ParseUint(args[0], 10, 16)
			if err != nil {
				return errors.New("a number from 0 to 65535 is expected")
			}
			count := int(n)
			b.Attachments.MaxCount = &count
			return nil
		}},
		"remote": {usage: "remote on|off", min: 1, max: 1, line: onOff(&b.Attachments.Remote)},
	})
}

func (b *settingsBlock) readIdentity(d *caddyfile.Dispenser, _ []string) error {
	id := &Identity{}
	b.Identity = id
	text := func(name string, to *string) option {
		return option{usage: name + " <text>", min: 1, max: 1, line: func(args []string) error {
			if args[0] == "" {
				return errors.New("it must not be empty")
			}
			*to = args[0]
			return errors.Unwrap(id.check()) // the option's name is in front of it already
		}}
	}
	return readBlock(d, "identity", options{
		"name":        text("name", &id.Name),
		"description": text("description", &id.Description),
		"url":         text("url", &id.URL),
		"icon":        text("icon", &id.Icon),
		"logo":        text("logo", &id.Logo),
	})
}

// options are the subdirectives of a block, by name.
type options map[string]option

// option is a subdirective. It has one of line, at and block.
type option struct {
	usage    string // what is expected, for errors
	min, max int    // how many arguments it has
	many     bool   // it may be repeated
	line     func(args []string) error
	at       func(d *caddyfile.Dispenser, args []string) error // like line, where the place in the file is needed
	block    func(d *caddyfile.Dispenser, args []string) error
}

// readBlock reads the block that opens behind the current token. Only the
// block of the directive itself may be left out or empty: any other is there
// because something is to be set.
//
// No error shows a token, since one that is out of place may be a URL.
func readBlock(d *caddyfile.Dispenser, name string, known options) error {
	seen := map[string]bool{}
	start := *d
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		sub := d.Val()
		o, ok := known[sub]
		switch {
		case !ok:
			return d.Errf("%s is no subdirective of %s; expected one of %s", plainWord(sub), name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case seen[sub] && !o.many:
			return d.Errf("%s stands in this block already", sub)
		}
		seen[sub] = true
		args := d.RemainingArgs()
		if len(args) < o.min || len(args) > o.max {
			return d.Errf("wrong number of arguments; expected %s", o.usage)
		}
		if err := o.read(d, args, sub); err != nil {
			return err
		}
	}
	if len(seen) == 0 && name != "notify" {
		return start.Errf("%s needs a block with one at least of %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	return nil
}

func (o option) read(d *caddyfile.Dispenser, args []string, name string) error {
	if o.block != nil {
		return o.block(d, args)
	}
	if next := *d; next.Next() && next.Val() == "{" {
		return d.Errf("%s takes no block; expected %s", name, o.usage)
	}
	var err error
	if o.at != nil {
		err = o.at(d, args)
	} else {
		err = o.line(args)
	}
	if err != nil {
		return d.WrapErr(fmt.Errorf("%s: %w", name, err))
	}
	return nil
}

var short = regexp.MustCompile(`^[a-z0-9_]{1,16}$`)

// plainWord shows a token only if it looks like a misspelt name, not like a
// URL or a secret.
func plainWord(token string) string {
	if short.MatchString(token) {
		return token
	}
	return "this"
}

func onOff(to **bool) func([]string) error {
	return func(args []string) error {
		on := args[0] == "on"
		if !on && args[0] != "off" {
			return errors.New("on or off is expected")
		}
		*to = &on
		return nil
	}
}

func byteSize(to *int64) func([]string) error {
	return func(args []string) error {
		n, err := humanize.ParseBytes(args[0])
		if err != nil || n == 0 || n > math.MaxInt64 {
			return errors.New("a size above 0 is expected, such as 8MiB or 500KB")
		}
		*to = int64(n)
		return nil
	}
}

// Interface guards
var _ caddyfile.Unmarshaler = (*Settings)(nil)
