package caddyhttp

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/parallel"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

func init() {
	httpcaddyfile.RegisterDirective("notify", parseSite)
	httpcaddyfile.RegisterDirectiveOrder("notify", httpcaddyfile.Before, "respond")
	httpcaddyfile.RegisterGlobalOption("notify", parseGlobalOption)
}

// parseSite does what httpcaddyfile.RegisterHandlerDirective does for
// parseDirective, and also rejects a matcher that no message can pass. It does not
// call Helper.NewRoute, which encodes and decodes the handler once more:
// handlers with thousands of keys are large.
func parseSite(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
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
	}
	handler, has, err := parseDirective(h)
	if err != nil {
		return nil, err
	}
	routes := httpapi.NewRouteTable(httpapi.RouteSpecs())
	if paths != nil && !slices.ContainsFunc(paths, func(p string) bool { return routes.MayMatch(p, has) }) {
		return nil, at.Err("the matcher excludes /notify, /notify/{KEY} and all other addresses " +
			"of notify, so notify would get no requests; for a prefix such as /alerts, " +
			"write handle_path /alerts/* { notify { … } }")
	}
	if paths != nil {
		if err := cmp.Or(checkMatcher(h, handler, has, paths), handler.Console.checkHome(paths)); err != nil {
			return nil, at.WrapErr(err)
		}
	}
	module := caddyconfig.JSON(handler, nil)
	block.Remember(string(handlerID), module, handler.Caddyfile)
	route := caddyhttp.Route{HandlersRaw: []json.RawMessage{append([]byte(`{"handler":"notify",`), module[1:]...)}}
	if matchers != nil {
		route.MatcherSetsRaw = caddyhttp.RawMatcherSets{matchers}
	}
	return []httpcaddyfile.ConfigValue{{Class: "route", Value: route}}, nil
}

// parseDirective returns the handler of a directive, and the settings that decide
// which routes it may have.
func parseDirective(h httpcaddyfile.Helper) (handler *Handler, has *httpapi.SiteRoutes, err error) {
	handler = new(Handler)
	// A site that sets no services, configs or console uses the global option's. The
	// rest is not decoded, because it may have thousands of keys.
	var app struct {
		Services *Services        `json:"services"`
		Configs  *json.RawMessage `json:"configs"`
		Console  *json.RawMessage `json:"console"`
		Push     *json.RawMessage `json:"push"`
	}
	if global, ok := h.Option("notify").(httpcaddyfile.App); ok {
		if err := json.Unmarshal(global.Value, &app); err != nil {
			return nil, nil, err
		}
	}
	if err := handler.unmarshal(h.Dispenser, inherited{app.Services, app.Push != nil}, nil); err != nil {
		return nil, nil, err
	}
	blocks, _ := h.State[blocksState].(int)
	h.State[blocksState] = blocks + 1
	handler.Block = blocks + 1
	// Named routes have a State of their own. Caddy sets this option after it has parsed them, and
	// before it parses sites; Helper.IsNamedRoute exists only from v2.11.8 on.
	if h.Option("named_routes") == nil {
		handler.Block = -handler.Block
	}
	configs := app.Configs != nil || handler.Configs != nil
	return handler, &httpapi.SiteRoutes{
		Queue: true, Configs: configs, Push: app.Push != nil,
		Console: configs || app.Console != nil || handler.Console != nil,
	}, nil
}

// blocksState is the name in httpcaddyfile.Helper.State of the number of
// directives so far. Positions do not tell blocks apart: two sites may import a
// snippet that imports another one, and then Caddy records the same lines and imports.
const blocksState = "notify blocks"

func parseGlobalOption(d *caddyfile.Dispenser, existing any) (any, error) {
	app := new(App)
	if existing != nil {
		d.Next()
		return nil, d.Err("the global option notify occurs twice; write all settings into one block")
	}
	if err := app.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	module := caddyconfig.JSON(app, nil)
	block.Remember(string(appID), module, app.Caddyfile)
	return httpcaddyfile.App{Name: "notify", Value: module}, nil
}

// UnmarshalCaddyfile sets up the settings from Caddyfile tokens, for the
// directive and for the global option. Syntax:
//
//	notify [<matcher>] {
//		key <name> {
//			url <url> [<tags...>]
//			import_apprise <file|url...>
//			variables <name>=<value>...
//			default_tag <expression>|untagged
//			fallback <key>
//			queue on|off
//			token <secret...>
//			inbox <duration>
//			reader <secret...>
//			silence <from>-<to> [<days...>] [<zone>] [{
//				tag <tag>|all
//				title <text>
//				reason <text>
//				tell
//			}]
//			dedupe <duration> [{
//				types <type...>
//				tag <tag>
//			}]
//			hold <duration> [{ … }]
//			escalate after <duration...> [{
//				repeat <n>
//				ack <duration>
//				types <type...>
//				tag <tag>
//			}]
//			quiet <from>-<to> [<days...>] [<zone>] [{ … }]
//			digest <duration>|<time> [<days...>] [<zone>] [{ … }]
//			rate <n>/<duration> [{ … }]
//			expect <name> every <duration>|cron "<minute> <hour> <day> <month> <weekday>" [<zone>] [grace <duration>] [max_run <duration>] [{
//				tag <expression>
//			}]
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
//		site <name>
//		stateless on|off
//		config_id on|off
//		ask_callback on|off
//		mcp on|off
//		titles on|off
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
//		configs [<space>] {
//			manage [open|<user...>]
//			refresh <duration>
//			max_keys <n>
//			max_size <size>
//			max_urls <n>
//			trust client|operator
//			include on|off
//			secret <text>
//			variables|default_tag|inbox|silence|dedupe|hold|escalate|quiet|digest|rate … as in a key
//		}
//		console {
//			manage [open|<user...>]
//			home on|off
//		}
//		propagate_trace on|off
//		page on|off
//		errors caddy|notify
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
// The subdirectives key, from, types, default_urls, allow, deny and trusted_origins may be
// repeated; their values add up. The global option has no matcher and no site.
//
// Options of a key that may be repeated: url, import_apprise, variables, token, reader, silence, quiet, rate, expect, accept.
func (s *Settings) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return s.unmarshal(d, inherited{}, nil)
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
//		beat <url> <interval>
//	}
//	push {
//		contact <address>
//		devices invited|users|open
//		max_devices <n>
//		services <host...>
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
	return a.unmarshal(d, inherited{}, a)
}

// inherited is what a block inherits from the global option: the services that apply if the block
// sets none, and whether devices can subscribe to keys.
type inherited struct {
	services *Services
	push     bool
}

// unmarshal is UnmarshalCaddyfile for a block that inherits from. app is nil for the directive.
func (s *Settings) unmarshal(d *caddyfile.Dispenser, from inherited, app *App) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.Err("notify takes no arguments except a matcher; write its settings into a block: notify { … }")
	}
	s.Caddyfile = &block.Info{}
	s.Caddyfile.Record(block.Begin, d)
	b := settingsBlock{to: s, app: app}
	if err := block.ReadOptional(d, "notify", b.options()); err != nil {
		return err
	}
	if len(s.DefaultURLs) > 0 && s.Stateless != nil && !*s.Stateless {
		return b.defaultsAt.WrapErr(site.ErrDefaultsUnused)
	}
	if b.needsPush != nil && !from.push && (app == nil || app.Push == nil) {
		return b.needsPush
	}
	services := from.services
	if s.Services != nil {
		services = s.Services
	}
	return b.checkURLs(services)
}

// settingsBlock reads a notify block.
type settingsBlock struct {
	to         *Settings
	app        *App // nil for the directive
	urls       []urlToken
	defaultsAt caddyfile.Dispenser // the position of the last default_urls
	key        keyBlock            // the key that is read
	keyOptions block.Options       // of key
	needsPush  error               // about the first key that needs devices; nil for none
}

// urlToken is a URL and its position in the file.
type urlToken struct {
	url string
	at  caddyfile.Dispenser
}

// checkURLs checks the URLs of the block, after the whole block is read, because
// services may follow them.
func (b *settingsBlock) checkURLs(services *Services) error {
	_, err := parallel.Each(len(b.urls), func(i int) error {
		if err := checkURL(b.urls[i].url, services); err != nil {
			return b.urls[i].at.WrapErr(err)
		}
		return nil
	})
	return err
}

func (b *settingsBlock) options() block.Options {
	return block.Options{
		"key":  {Usage: "key <name> { … }", Min: 1, Max: 1, Repeat: true, Block: b.readKey},
		"from": {Usage: "from <source> { … }", Min: 1, Max: 1, Repeat: true, Block: b.readFrom},
		"site": {Usage: "site <name>", Min: 1, Max: 1, Line: block.Text(&b.to.Site, func(name string) error {
			if b.app != nil {
				return errGlobalSite
			}
			return checkSiteName(name)
		})},
		"stateless":    {Usage: "stateless on|off", Min: 1, Max: 1, Line: block.OnOff(&b.to.Stateless)},
		"ask_callback": {Usage: "ask_callback on|off", Min: 1, Max: 1, Line: block.OnOff(&b.to.AskCallback)},
		"mcp":          {Usage: "mcp on|off", Min: 1, Max: 1, Line: block.OnOff(&b.to.MCP)},
		"titles": {Usage: "titles on|off", Min: 1, Max: 1, At: func(d *caddyfile.Dispenser, args []string) error {
			b.to.Caddyfile.Record("titles", d)
			return block.OnOff(&b.to.Titles)(args)
		}},
		"config_id": {Usage: "config_id on|off", Min: 1, Max: 1, Line: block.OnOff(&b.to.ConfigID)},
		"default_urls": {
			Usage: "default_urls <url...>", Min: 1, Max: math.MaxInt, Repeat: true,
			At: func(d *caddyfile.Dispenser, urls []string) error {
				for i, u := range urls {
					b.to.Caddyfile.Record(defaultURLName(len(b.to.DefaultURLs)+i), d)
					b.urls = append(b.urls, urlToken{u, *d})
					dir, err := urlDir(u, d.File())
					if err != nil {
						return err
					}
					b.to.DefaultURLsDir = cmp.Or(b.to.DefaultURLsDir, dir)
				}
				b.to.DefaultURLs, b.defaultsAt = append(b.to.DefaultURLs, urls...), *d
				return nil
			},
		},
		"queue":           {Usage: "queue [postgres <dsn>] [{ … }]", Max: 2, Block: b.readQueue},
		"smtp":            {Usage: "smtp <address...> [{ … }]", Max: math.MaxInt, Block: b.readSMTP},
		"push":            {Usage: "push [{ … }]", Block: b.readPush},
		"services":        {Usage: "services { … }", Block: b.readServices},
		"egress":          {Usage: "egress { … }", Block: b.readEgress},
		"attachments":     {Usage: "attachments { … }", Block: b.readAttachments},
		"max_body":        {Usage: "max_body <size>", Min: 1, Max: 1, Line: block.Size(&b.to.MaxBody)},
		"timeout":         {Usage: "timeout <duration>", Min: 1, Max: 1, Line: block.Duration(&b.to.Timeout)},
		"client_limits":   {Usage: "client_limits { … }", Block: b.readClientLimits},
		"max_in_flight":   {Usage: "max_in_flight <n>", Min: 1, Max: 1, Line: block.Number(&b.to.MaxInFlight, 1, math.MaxInt32)},
		"propagate_trace": {Usage: "propagate_trace on|off", Min: 1, Max: 1, Line: block.OnOff(&b.to.PropagateTrace)},
		"public_url": {Usage: "public_url <url>", Min: 1, Max: 1, Line: block.Text(&b.to.PublicURL, func(text string) error {
			_, err := parsePublicURL(text)
			return err
		})},
		"errors": {Usage: "errors caddy|notify", Min: 1, Max: 1, At: func(d *caddyfile.Dispenser, args []string) error {
			b.to.Caddyfile.Record("errors", d)
			return block.Text(&b.to.Errors, checkErrors)(args)
		}},
		"page": {Usage: "page on|off", Min: 1, Max: 1, Line: block.OnOff(&b.to.Page)},
		"trusted_origins": {
			Usage: "trusted_origins <origin...>|*", Min: 1, Max: math.MaxInt, Repeat: true,
			Line: block.List(&b.to.TrustedOrigins, func(origins []string) error {
				_, err := site.TrustedOrigins(origins)
				return err
			}),
		},
		"console":  {Usage: "console [{ … }]", Block: b.readConsole},
		"configs":  {Usage: "configs [<space>] [{ … }]", Max: 1, Block: b.readConfigs},
		"identity": {Usage: "identity { … }", Block: b.readIdentity},
	}
}

func (b *settingsBlock) readServices(d *caddyfile.Dispenser, _ []string) error {
	b.to.Services = &Services{}
	start := *d
	err := block.Read(d, "services", block.Options{
		"allow": {Usage: "allow <scheme...>", Min: 1, Max: math.MaxInt, Repeat: true, Line: block.List(&b.to.Services.Allow, checkSchemes)},
		"deny":  {Usage: "deny <scheme...>", Min: 1, Max: math.MaxInt, Repeat: true, Line: block.List(&b.to.Services.Deny, checkSchemes)},
	})
	if err != nil {
		return err
	}
	if err := b.to.Services.validate(); err != nil {
		return start.WrapErr(errs.Prefix("services", err))
	}
	return nil
}

func (b *settingsBlock) readEgress(d *caddyfile.Dispenser, _ []string) error {
	b.to.Egress = &Egress{}
	return block.Read(d, "egress", block.Options{
		"allow": {
			Usage: "allow <cidr...>|private_ranges|all", Min: 1, Max: math.MaxInt, Repeat: true,
			Line: block.List(&b.to.Egress.Allow, func(ranges []string) error {
				_, err := egress.NewPolicy(ranges, nil)
				return err
			}),
		},
		"deny": {
			Usage: "deny <cidr...>|private_ranges", Min: 1, Max: math.MaxInt, Repeat: true,
			Line: block.List(&b.to.Egress.Deny, func(ranges []string) error {
				_, err := egress.NewPolicy(nil, ranges)
				return err
			}),
		},
	})
}

func (b *settingsBlock) readAttachments(d *caddyfile.Dispenser, _ []string) error {
	b.to.Attachments = &Attachments{}
	return block.Read(d, "attachments", block.Options{
		"max_size": {Usage: "max_size <size>", Min: 1, Max: 1, Line: block.Size(&b.to.Attachments.MaxSize)},
		"max_count": {Usage: "max_count <n>", Min: 1, Max: 1, Line: func(args []string) error {
			b.to.Attachments.MaxCount = new(int)
			return block.Number(b.to.Attachments.MaxCount, 0, math.MaxUint16)(args)
		}},
		"remote": {Usage: "remote on|off", Min: 1, Max: 1, Line: block.OnOff(&b.to.Attachments.Remote)},
	})
}

func (b *settingsBlock) readClientLimits(d *caddyfile.Dispenser, _ []string) error {
	c := &ClientLimits{}
	b.to.ClientLimits = c
	b.to.Caddyfile.Record("client_limits", d)
	return block.Read(d, "client_limits", block.Options{
		"in_flight": {Usage: "in_flight <n>", Min: 1, Max: 1, Line: block.Number(&c.InFlight, 1, math.MaxInt32)},
		"in_flight_per_address": {
			Usage: "in_flight_per_address <n>", Min: 1, Max: 1,
			Line: block.Number(&c.InFlightPerAddress, 1, math.MaxInt32),
		},
		"memory":     {Usage: "memory <size>", Min: 1, Max: 1, Line: block.Size(&c.Memory)},
		"deliveries": {Usage: "deliveries <n>", Min: 1, Max: 1, Line: block.Number(&c.Deliveries, 1, math.MaxInt32)},
		"requests":   {Usage: "requests <n>", Min: 1, Max: 1, Line: block.Number(&c.Requests, 1, math.MaxInt32)},
		"bytes":      {Usage: "bytes <size>", Min: 1, Max: 1, Line: block.Size(&c.Bytes)},
		"retry": {Usage: "retry <n>", Min: 1, Max: 1, Line: func(args []string) error {
			c.Retry = new(int)
			return block.Number(c.Retry, 0, math.MaxUint16)(args)
		}},
		"wait": {Usage: "wait <duration>", Min: 1, Max: 1, Line: block.Duration(&c.Wait)},
	})
}

func (b *settingsBlock) readIdentity(d *caddyfile.Dispenser, _ []string) error {
	b.to.Identity = &Identity{}
	known := block.Options{}
	for _, f := range b.to.Identity.fields() {
		known[f.name] = block.Option{Usage: f.name + " <text>", Min: 1, Max: 1, Line: func(args []string) error {
			if args[0] == "" {
				return block.ErrEmptyText
			}
			*f.value = args[0]
			return f.check(args[0])
		}}
	}
	return block.Read(d, "identity", known)
}

// Interface guards
var (
	_ caddyfile.Unmarshaler = (*Settings)(nil)
	_ caddyfile.Unmarshaler = (*App)(nil)
)
