package caddyhttp

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

func init() {
	httpcaddyfile.RegisterDirective("notify", parseRoute)
	httpcaddyfile.RegisterDirectiveOrder("notify", httpcaddyfile.Before, "respond")
	httpcaddyfile.RegisterGlobalOption("notify", parseGlobalOption)
}

// parseRoute does what httpcaddyfile.RegisterHandlerDirective does for
// parseDirective, and also rejects a matcher that no message can pass. It does not
// call Helper.NewRoute, which encodes and decodes the handler once more:
// handlers with thousands of keys are large.
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
		if !slices.ContainsFunc(paths, mayMatchRoute) {
			return nil, at.Err("the matcher excludes /notify and /notify/{KEY}, so notify would get no requests; for a prefix such as /alerts, write handle_path /alerts/* { notify { … } }")
		}
	}
	handler, err := parseDirective(h)
	if err != nil {
		return nil, err
	}
	route := caddyhttp.Route{HandlersRaw: []json.RawMessage{caddyconfig.JSON(struct {
		Name string `json:"handler"`
		*Handler
	}{"notify", handler}, nil)}}
	if matchers != nil {
		route.MatcherSetsRaw = caddyhttp.RawMatcherSets{matchers}
	}
	return []httpcaddyfile.ConfigValue{{Class: "route", Value: route}}, nil
}

// mayMatchRoute reports whether a pattern of Caddy's path matcher, which
// ignores case, may match a path that the handler answers.
func mayMatchRoute(pattern string) bool {
	pattern = strings.ToLower(pattern)
	i := strings.IndexAny(pattern, `*?[\{%`)
	if i < 0 {
		_, ok := route(pattern)
		_, ofSource := sourceRoute(pattern)
		return ok || ofSource
	}
	prefix := pattern[:i]
	return strings.HasPrefix("/notify/", prefix) || strings.HasPrefix(prefix, "/notify/")
}

func parseDirective(h httpcaddyfile.Helper) (*Handler, error) {
	handler := new(Handler)
	// A site that sets no services follows those of the global option. The rest
	// is not decoded, because it may have thousands of keys.
	var app struct {
		Services *Services `json:"services"`
	}
	if global, ok := h.Option("notify").(httpcaddyfile.App); ok {
		if err := json.Unmarshal(global.Value, &app); err != nil {
			return nil, err
		}
	}
	return handler, handler.unmarshal(h.Dispenser, app.Services, nil)
}

func parseGlobalOption(d *caddyfile.Dispenser, existing any) (any, error) {
	app := new(App)
	if existing != nil {
		d.Next()
		return nil, d.Err("the global option notify occurs twice; write all settings into one block")
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
//			queue off
//			fallback <key>
//			accept direct|smtp|<source...>
//		}
//		from <source> {
//			sign <scheme> [<secret>]
//			token <secret>
//			images on|off
//			title <template>
//			title_file <path>
//			body <template>
//			body_file <path>
//			type <template>
//			types <word>=<type>...
//			tag <template>
//			format <template>
//			skip <template>
//		}
//		stateless on|off
//		default_urls <url...>
//		services {
//			allow <scheme...>
//			deny <scheme...>
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
//		client_limits {
//			in_flight <n>
//			in_flight_per_address <n>
//			memory <size>
//			deliveries <n>
//			requests <n>
//			bytes <size>
//			retry <n>
//			wait <duration>
//		}
//		configs {
//			manage [open]
//			refresh <duration>
//			max_keys <n>
//			max_size <size>
//			max_urls <n>
//			trust client|operator
//			include on|off
//			secret <text>
//		}
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
// The subdirectives key, from, url, import_apprise, accept, types,
// default_urls, allow, deny and trusted_origins may be repeated; their values
// add up. The global option has no matcher.
func (s *Settings) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return s.unmarshal(d, nil, nil)
}

// UnmarshalCaddyfile sets up the app from Caddyfile tokens. It has the syntax of
// [Settings.UnmarshalCaddyfile] and in addition
//
//	queue [postgres <dsn>] {
//		path <folder>
//		secret <text>
//		max_age <duration>
//		max_size <size>
//		wait <duration>
//		keep <duration>
//	}
//	smtp <address...> {
//		implicit_tls <address...>
//		hostname <name>
//		tls <domain>, or tls <certificate> <key>
//		auth {
//			<user> <hash> [<keys...>]
//		}
//		trusted_clients <cidr...>|private_ranges|none
//		max_size <size>
//		max_recipients <n>
//		max_connections <n>
//		timeout <duration>
//	}
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return a.unmarshal(d, nil, a)
}

// unmarshal is UnmarshalCaddyfile with the services that apply if the block sets
// none. app is nil for the directive.
func (s *Settings) unmarshal(d *caddyfile.Dispenser, inherited *Services, app *App) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.Err("notify takes no arguments except a matcher; write its settings into a block: notify { … }")
	}
	s.Caddyfile = &CaddyfileInfo{}
	s.Caddyfile.record(blockLine, d)
	b := settingsBlock{Settings: s, app: app}
	if err := readBlock(d, "notify", b.options()); err != nil {
		return err
	}
	s.Caddyfile.Keys = b.keyLines.strings()
	s.Caddyfile.Files = s.fingerprint(app)
	if len(s.DefaultURLs) > 0 && s.Stateless != nil && !*s.Stateless {
		return b.defaultsAt.WrapErr(errDefaultsWithoutStateless)
	}
	services := inherited
	if s.Services != nil {
		services = s.Services
	}
	return b.checkURLs(services)
}

// settingsBlock reads a notify block.
type settingsBlock struct {
	*Settings
	app        *App // nil for the directive
	urls       []urlToken
	defaultsAt caddyfile.Dispenser // the position of the last default_urls
	key        keyBlock            // the key that is read
	keyOptions options             // of key
	keyLines   keyLines
}

// urlToken is a URL and its position in the file.
type urlToken struct {
	url string
	at  caddyfile.Dispenser
}

// checkURLs checks the URLs of the block, after the whole block is read, because
// services may follow them.
func (b *settingsBlock) checkURLs(services *Services) error {
	_, err := forEach(len(b.urls), func(i int) error {
		if err := checkURL(b.urls[i].url, services); err != nil {
			return b.urls[i].at.WrapErr(err)
		}
		return nil
	})
	return err
}

func (b *settingsBlock) options() options {
	return options{
		"key":       {usage: "key <name> { … }", min: 1, max: 1, repeat: true, block: b.readKey},
		"from":      {usage: "from <source> { … }", min: 1, max: 1, repeat: true, block: b.readFrom},
		"stateless": {usage: "stateless on|off", min: 1, max: 1, line: onOff(&b.Stateless)},
		"default_urls": {usage: "default_urls <url...>", min: 1, max: math.MaxInt, repeat: true, at: func(d *caddyfile.Dispenser, urls []string) error {
			for i, u := range urls {
				b.Caddyfile.record(defaultURLName(len(b.DefaultURLs)+i), d)
				b.urls = append(b.urls, urlToken{u, *d})
				dir, err := urlDir(u, d.File())
				if err != nil {
					return err
				}
				b.DefaultURLsDir = cmp.Or(b.DefaultURLsDir, dir)
			}
			b.DefaultURLs, b.defaultsAt = append(b.DefaultURLs, urls...), *d
			return nil
		}},
		"queue":           {usage: "queue [postgres <dsn>] [{ … }]", max: 2, block: b.readQueue},
		"smtp":            {usage: "smtp <address...> [{ … }]", max: math.MaxInt, block: b.readSMTP},
		"services":        {usage: "services { … }", block: b.readServices},
		"egress":          {usage: "egress { … }", block: b.readEgress},
		"attachments":     {usage: "attachments { … }", block: b.readAttachments},
		"max_body":        {usage: "max_body <size>", min: 1, max: 1, line: byteSize(&b.MaxBody)},
		"timeout":         {usage: "timeout <duration>", min: 1, max: 1, line: positiveDuration(&b.Timeout)},
		"client_limits":   {usage: "client_limits { … }", block: b.readClientLimits},
		"max_in_flight":   {usage: "max_in_flight <n>", min: 1, max: 1, line: number(&b.MaxInFlight, 1, math.MaxInt32)},
		"propagate_trace": {usage: "propagate_trace on|off", min: 1, max: 1, line: onOff(&b.PropagateTrace)},
		"page":            {usage: "page on|off", min: 1, max: 1, line: onOff(&b.Page)},
		"trusted_origins": {usage: "trusted_origins <origin...>|*", min: 1, max: math.MaxInt, repeat: true, line: func(origins []string) error {
			b.TrustedOrigins = append(b.TrustedOrigins, origins...)
			_, err := newOriginCheck(origins)
			return err
		}},
		"configs":  {usage: "configs { … }", block: b.readConfigs},
		"identity": {usage: "identity { … }", block: b.readIdentity},
	}
}

func (b *settingsBlock) readServices(d *caddyfile.Dispenser, _ []string) error {
	b.Services = &Services{}
	list := func(to *[]string) func([]string) error {
		return func(schemes []string) error {
			*to = append(*to, schemes...)
			return checkSchemes(schemes)
		}
	}
	start := *d
	err := readBlock(d, "services", options{
		"allow": {usage: "allow <scheme...>", min: 1, max: math.MaxInt, repeat: true, line: list(&b.Services.Allow)},
		"deny":  {usage: "deny <scheme...>", min: 1, max: math.MaxInt, repeat: true, line: list(&b.Services.Deny)},
	})
	if err != nil {
		return err
	}
	if err := b.Services.validate(); err != nil {
		return start.WrapErr(prefixError("services", err))
	}
	return nil
}

func (b *settingsBlock) readEgress(d *caddyfile.Dispenser, _ []string) error {
	b.Egress = &Egress{}
	return readBlock(d, "egress", options{
		"allow": {usage: "allow <cidr...>|private_ranges|all", min: 1, max: math.MaxInt, repeat: true, line: func(ranges []string) error {
			b.Egress.Allow = append(b.Egress.Allow, ranges...)
			_, err := egress.NewPolicy(ranges, nil)
			return err
		}},
		"deny": {usage: "deny <cidr...>|private_ranges", min: 1, max: math.MaxInt, repeat: true, line: func(ranges []string) error {
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
			b.Attachments.MaxCount = new(int)
			return number(b.Attachments.MaxCount, 0, math.MaxUint16)(args)
		}},
		"remote": {usage: "remote on|off", min: 1, max: 1, line: onOff(&b.Attachments.Remote)},
	})
}

func (b *settingsBlock) readClientLimits(d *caddyfile.Dispenser, _ []string) error {
	c := &ClientLimits{}
	b.ClientLimits = c
	b.Caddyfile.record("client_limits", d)
	return readBlock(d, "client_limits", options{
		"in_flight":             {usage: "in_flight <n>", min: 1, max: 1, line: number(&c.InFlight, 1, math.MaxInt32)},
		"in_flight_per_address": {usage: "in_flight_per_address <n>", min: 1, max: 1, line: number(&c.InFlightPerAddress, 1, math.MaxInt32)},
		"memory":                {usage: "memory <size>", min: 1, max: 1, line: byteSize(&c.Memory)},
		"deliveries":            {usage: "deliveries <n>", min: 1, max: 1, line: number(&c.Deliveries, 1, math.MaxInt32)},
		"requests":              {usage: "requests <n>", min: 1, max: 1, line: number(&c.Requests, 1, math.MaxInt32)},
		"bytes":                 {usage: "bytes <size>", min: 1, max: 1, line: byteSize(&c.Bytes)},
		"retry": {usage: "retry <n>", min: 1, max: 1, line: func(args []string) error {
			c.Retry = new(int)
			return number(c.Retry, 0, math.MaxUint16)(args)
		}},
		"wait": {usage: "wait <duration>", min: 1, max: 1, line: positiveDuration(&c.Wait)},
	})
}

func (b *settingsBlock) readIdentity(d *caddyfile.Dispenser, _ []string) error {
	id := &Identity{}
	b.Identity = id
	text := func(name string, to *string) option {
		return option{usage: name + " <text>", min: 1, max: 1, line: func(args []string) error {
			if args[0] == "" {
				return errEmptyText
			}
			*to = args[0]
			return errors.Unwrap(id.validate()) // readBlock adds the name again
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

// readKey reads a block key.
func (b *settingsBlock) readKey(d *caddyfile.Dispenser, args []string) error {
	name := args[0]
	if err := checkKeyName(name); err != nil {
		return d.WrapErr(err)
	}
	if b.Keys[name] != nil {
		return d.Errf("the key %s occurs twice; write all its URLs into one block", name)
	}
	start := *d
	k := &b.key
	*k = keyBlock{name: name, settings: b, file: d.File(), line: d.Line(), tagAt: *d}
	if b.keyOptions == nil {
		b.keyOptions, b.keyLines = k.options(), keyLines{}
	}
	b.keyLines.add(name, k.file, k.line)
	if err := readBlock(d, "key", b.keyOptions); err != nil {
		return err
	}
	if len(k.URLs)+len(k.ImportApprise) == 0 {
		return start.Errf("the key %s has no URL; add url <url> [<tags...>]", name)
	}
	if err := k.checkDefaultTag(); err != nil {
		return k.tagAt.WrapErr(err)
	}
	if b.Keys == nil {
		b.Keys = map[string]*Key{}
	}
	key := k.Key
	b.Keys[name] = &key
	return nil
}

// keyBlock is the block of one key.
type keyBlock struct {
	Key
	name     string
	settings *settingsBlock
	file     string              // where the block begins
	line     int                 // in file
	tagAt    caddyfile.Dispenser // the position of default_tag
}

func (k *keyBlock) options() options {
	return options{
		"url": {usage: "url <url> [<tags...>]", min: 1, max: math.MaxInt, repeat: true, at: func(d *caddyfile.Dispenser, args []string) error {
			for _, tag := range args[1:] {
				if strings.Contains(tag, "://") {
					return errSeveralURLs
				}
				if err := checkTag(tag); err != nil {
					return err
				}
			}
			k.settings.urls = append(k.settings.urls, urlToken{args[0], *d})
			k.recordURL(d)
			dir, err := urlDir(args[0], d.File())
			if err != nil {
				return err
			}
			k.URLs = append(k.URLs, KeyURL{URL: args[0], Dir: dir, Tags: args[1:]})
			return nil
		}},
		"import_apprise": {usage: "import_apprise <file|url...>", min: 1, max: math.MaxInt, repeat: true, at: func(d *caddyfile.Dispenser, locations []string) error {
			for _, location := range locations {
				path, err := importPath(location, d.File())
				if err != nil {
					return err
				}
				k.settings.Caddyfile.record(importName(k.name, len(k.ImportApprise)), d)
				k.ImportApprise = append(k.ImportApprise, path)
			}
			return nil
		}},
		"queue": {usage: "queue on|off", min: 1, max: 1, line: onOff(&k.Queue)},
		"accept": {usage: "accept direct|smtp|<source...>", min: 1, max: math.MaxInt, repeat: true, line: func(names []string) error {
			for _, name := range names {
				if name != sourceDirect && name != sourceSMTP {
					if err := checkSourceName(name); err != nil {
						return err
					}
				}
			}
			k.Accept = append(k.Accept, names...)
			return nil
		}},
		"fallback": {usage: "fallback <key>", min: 1, max: 1, at: func(d *caddyfile.Dispenser, args []string) error {
			k.Fallback = args[0]
			k.settings.Caddyfile.record(fallbackName(k.name), d)
			return checkKeyName(args[0])
		}},
		"default_tag": {usage: "default_tag <expression>|untagged", min: 1, max: 1, at: func(d *caddyfile.Dispenser, args []string) error {
			if args[0] == "" {
				return errEmptyTag
			}
			k.DefaultTag, k.tagAt = args[0], *d
			return nil
		}},
	}
}

// recordURL records the position of the next URL of the key.
func (k *keyBlock) recordURL(d *caddyfile.Dispenser) {
	below := d.Line() - k.line
	if d.File() != k.file || below < 0 { // an import within the block
		below = 0
		k.settings.Caddyfile.record(keyURLName(k.name, len(k.URLs)), d)
	}
	k.settings.keyLines.addURL(k.file, below)
}

// checkDefaultTag returns an error if no URL has the default tag. If the key
// imports files, their URLs may have it.
func (k *keyBlock) checkDefaultTag() error {
	targets := make([]notifier.Target, len(k.URLs))
	for i, u := range k.URLs {
		targets[i].Tags = u.Tags
	}
	_, err := chooseDefaults(targets, k.DefaultTag)
	if errors.Is(err, errDefaultTagUnmatched) && len(k.ImportApprise) > 0 {
		return nil
	}
	return err
}

// Interface guards
var (
	_ caddyfile.Unmarshaler = (*Settings)(nil)
	_ caddyfile.Unmarshaler = (*App)(nil)
)
