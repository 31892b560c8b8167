package caddyhttp

import (
	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
)

// Settings are the settings of a site, on its handler, or of all sites, on the app. A setting of
// a site replaces the app's as a whole. A site uses the app's setting where it has none. Only
// keys add up: a site has the app's keys and its own, and its own take precedence.
type Settings struct {
	// The name of the site, with 1 to 64 letters, digits, `_` and `-`. Sites with one
	// name are one site, also in other gateways with the same queue: they know the same
	// messages and `Idempotency-Key`, and the keys that they define share incidents,
	// silences, beats, devices and inboxes. A site is known by its name alone then. Only
	// for a handler. Example: `"alerts"`. Default: none; then a site is known by its
	// hosts, its ports and the prefix of its path.
	Site string `json:"site,omitempty"`

	// The keys that `POST /notify/{KEY}` sends to, by name. A name has 1 to 128
	// letters, digits, `_` and `-` and is case-sensitive. Example:
	// `{"ops": ["gotifys://gotify.example.com/{env.GOTIFY}"]}`.
	// Default: none.
	Keys map[string]*Key `json:"keys,omitempty"`

	// How requests in the formats of other programs are read, by the name of
	// the source in `POST /notify/{KEY}/{SOURCE}`. Built-in sources, such as
	// `alertmanager` and `grafana`, need no settings. Example: `{"grafana":
	// {"sign": "grafana", "secret": "{env.GRAFANA_SECRET}"}}`. Default: none.
	Sources map[string]*Source `json:"sources,omitempty"`

	// Allows `POST /notify`, where the request has the notification URLs.
	// Default: true.
	Stateless *bool `json:"stateless,omitempty"`

	// Lets a question name an address that gets the outcome, which is an address of the
	// client like the URLs of `POST /notify`. Example: `true`. Default: what `stateless` is.
	AskCallback *bool `json:"ask_callback,omitempty"`

	// Offers each key to agents by the Model Context Protocol, at `/notify/{KEY}/mcp`: they
	// notify, ask questions and resolve incidents with a token of the key. Each key of the site
	// must have one. Default: false.
	MCP *bool `json:"mcp,omitempty"`

	// Keeps the titles of messages to keys with their results in the queue, for those who may
	// manage or read a key, whether it has an `inbox` or not. Default: false.
	Titles *bool `json:"titles,omitempty"`

	// Lets the header `X-Apprise-Config-ID`, with which clients of Apprise 2 name the
	// key, name keys without a token. No path matcher sees it. Default: false; then
	// a request with the header needs a token of the key.
	ConfigID *bool `json:"config_id,omitempty"`

	// The notification URLs that `POST /notify` sends to if a request has none.
	// Placeholders such as `{env.DISCORD}` and `{file./run/secrets/discord}`
	// are replaced when the configuration loads. Example:
	// `["ntfys://ntfy.sh/backups"]`. Default: none.
	DefaultURLs []string `json:"default_urls,omitempty"`

	// The directory that paths in `default_urls` are relative to, such as the path of a
	// `template`. A Caddyfile sets it to its own directory. Default: the working directory.
	DefaultURLsDir string `json:"default_urls_dir,omitempty"`

	// Which services notification URLs may use. Default: all services.
	Services *Services `json:"services,omitempty"`

	// Which addresses may be reached by the notification URLs in requests and by
	// attachments that requests name by address. Default: public addresses.
	Egress *Egress `json:"egress,omitempty"`

	// Limits of the files in a message.
	Attachments *Attachments `json:"attachments,omitempty"`

	// How large the JSON of a request may be, including files in base64, or a
	// form without its files, in bytes. Larger requests get a 413. Default:
	// 8388608 (8 MiB).
	MaxBody int64 `json:"max_body,omitempty"`

	// How long the delivery to one destination may take, including all attempts,
	// and how long fetching the attachments of a request may take. A duration
	// such as `"1m30s"`, or a number of nanoseconds. Default: 30s.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// How many messages of clients may be under way at once, over all sites. If
	// there are more, this site answers 503 with `Retry-After: 1` and does not
	// read the request. Default: 1000.
	MaxInFlight int `json:"max_in_flight,omitempty"`

	// How much clients can make the gateway do.
	ClientLimits *ClientLimits `json:"client_limits,omitempty"`

	// Adds the headers `traceparent` and `tracestate` to the HTTP requests that
	// destinations get, if Caddy's `tracing` comes before the handler. Default:
	// false.
	PropagateTrace *bool `json:"propagate_trace,omitempty"`

	// The address at which people and programs outside reach the gateway, with the path
	// before `/notify` if there is one. Links in messages begin with it. Example:
	// `https://alerts.example.com`. Default: none; then nothing can have such links.
	PublicURL string `json:"public_url,omitempty"`

	// Answers `GET` from a browser with a page that has a form for messages.
	// Default: true.
	Page *bool `json:"page,omitempty"`

	// The origins whose pages may send messages from a visitor's browser, or `*`
	// for all. The site's own pages, and clients that are not browsers, may
	// always send. Example: `["https://status.example.com"]`. Default: none.
	TrustedOrigins []string `json:"trusted_origins,omitempty"`

	// The sender of the messages, for destinations that show one.
	Identity *Identity `json:"identity,omitempty"`

	// Saved configurations: keys whose notification URLs clients save over HTTP,
	// and the other routes of the Apprise API. Default: off.
	Configs *Configs `json:"configs,omitempty"`

	// The console: pages at `/notify/console` that show what is wrong, for those who may
	// manage. Default: on if `configs` has `manage`, and otherwise off.
	Console *Console `json:"console,omitempty"`

	// Who answers requests that fail, with a status of 400 or more: `notify`, in the format
	// that the client asks for, or `caddy`, with the `errors` routes of the server, which are
	// `handle_errors` in a Caddyfile. There, `{http.notify.error}` and `{http.error.message}`
	// have the reason, without secrets; `Allow`, `Retry-After` and `WWW-Authenticate` are set.
	// Example: `"caddy"`. Default: `notify`.
	Errors string `json:"errors,omitempty"`

	// The number of the block among the directives `notify` of a Caddyfile, from 1 on, and
	// below 0 for those in named routes. Caddy copies the handler of a site with several
	// addresses into several servers; handlers with the same number are one site. Only for a
	// handler. In JSON, `site` does the same. Default: none.
	Block int `json:"block,omitempty"`

	// Caddyfile has the positions of the settings, for errors; nil for none.
	Caddyfile *block.Info `json:"-"`
}

// Services restricts the services that notification URLs may use. A scheme
// stands for its service with all schemes: `mailto` includes `mailtos`. The
// restriction holds for URLs in requests, keys and default URLs. Keys of the
// app follow the app's; keys of a site follow the site's if it sets one, and
// otherwise the app's.
type Services struct {
	// The schemes that may be used. Example: `["discord", "mailto"]`. Default:
	// all.
	Allow []string `json:"allow,omitempty"`

	// The schemes that may not be used, even if they are allowed. Example:
	// `["syslog"]`. Default: none.
	Deny []string `json:"deny,omitempty"`
}

// Egress restricts the addresses that may be reached by the notification URLs
// in requests, their redirects, and attachments that requests name by address.
// The address that is dialled is checked, after the name is resolved. Addresses
// that are not public, such as loopback, private and link-local ones, are
// denied unless they are allowed. URLs in the configuration may reach any
// address.
type Egress struct {
	// Ranges in CIDR notation, IP addresses, `private_ranges` or `all`, in
	// addition to public addresses. Example: `["192.168.1.0/24"]`. Default: none.
	Allow []string `json:"allow,omitempty"`

	// Ranges in CIDR notation, IP addresses or `private_ranges` that are denied
	// even if they are public or allowed. Example: `["203.0.113.7"]`. Default:
	// none.
	Deny []string `json:"deny,omitempty"`
}

// Attachments limits the files in a message.
type Attachments struct {
	// How large each file may be, in bytes. Larger ones get a 413. Default:
	// 209715200 (200 MiB).
	MaxSize int64 `json:"max_size,omitempty"`

	// How many files a message may have; 0 allows none. Default: 6, and 10 for
	// the API of Discord.
	MaxCount *int `json:"max_count,omitempty"`

	// Allows requests to name files by `http` or `https` addresses, from which
	// the gateway fetches them. Default: true.
	Remote *bool `json:"remote,omitempty"`
}

// ClientLimits limits how much clients can make the gateway do, so that they
// cannot use up what messages for keys need, and cannot make the gateway send
// much more than they send. The first three limits count for the whole process.
// The others apply to each message with notification URLs in the request, not
// to messages for keys.
type ClientLimits struct {
	// How many of the messages under way may have notification URLs in their
	// requests. Messages for keys count as well while their attachments are
	// fetched from addresses in the request, and messages of sources until their
	// token or signature is verified. Further ones get a 503 with
	// `Retry-After: 1`. Default: half of `max_in_flight`.
	InFlight int `json:"in_flight,omitempty"`

	// How many of these may come from one client: from an IPv4 address or an IPv6
	// network of 64 bits. It is the client's address as Caddy determines it,
	// with `trusted_proxies` if it is set. Further ones get a 503 with
	// `Retry-After: 1`. Default: an eighth of `in_flight`.
	InFlightPerAddress int `json:"in_flight_per_address,omitempty"`

	// How many bytes of memory the requests under way may hold, including those
	// for keys. Half of it is for requests for keys only. If it is used up, files
	// are stored in temporary files, and a text gets a 503 with `Retry-After: 1`.
	// A text of up to 32 KiB is not counted. It must be at
	// least 8 times `max_body`. Default: 268435456 (256 MiB), or 8 times
	// `max_body` if that is more.
	Memory int64 `json:"memory,omitempty"`

	// How many deliveries a message may make: one for each recipient, such as a
	// chat or a telephone number, that one of its URLs has, and for each part
	// that the text is split into. A message with more gets a 400. Default:
	// 500.
	Deliveries int `json:"deliveries,omitempty"`

	// How many HTTP requests and connections a message may cause, including
	// retries. If the deliveries with their retries alone are more, the message
	// gets a 400. Other requests of services are counted while the message is
	// sent. Default: 1500.
	Requests int `json:"requests,omitempty"`

	// How many bytes a message may send: its text and its files, for each
	// recipient and retry. A message with more gets a 413. Default: 268435456
	// (256 MiB).
	Bytes int64 `json:"bytes,omitempty"`

	// The largest value of the URL parameter `retry`. A greater one is lowered,
	// with a warning. Default: 2.
	Retry *int `json:"retry,omitempty"`

	// The smallest value of the URL parameter `wait`. A smaller one is raised,
	// with a warning. A duration such as `"1m30s"`, or a number of nanoseconds.
	// Default: 1s.
	Wait caddy.Duration `json:"wait,omitempty"`
}

// Identity is the sender of the messages, for destinations that show one.
// Placeholders are not replaced, except for two in the icon.
type Identity struct {
	// The name of the sender. Default: `Caddy`.
	Name string `json:"name,omitempty"`

	// A few words about the sender. Default: `Caddy Notifications`.
	Description string `json:"description,omitempty"`

	// The website of the sender. Default: `https://caddyserver.com/`.
	URL string `json:"url,omitempty"`

	// The address of a picture for a message. In it, `{type}` becomes `info`,
	// `success`, `warning` or `failure`, and `{size}` the size in pixels, such as
	// `72x72`. Example: `https://example.com/{type}-{size}.png`. Default: no
	// picture.
	Icon string `json:"icon,omitempty"`

	// The address of a picture of the sender. Example:
	// `https://example.com/logo.png`. Default: no picture.
	Logo string `json:"logo,omitempty"`
}

// MarshalLogObject implements zapcore.ObjectMarshaler. Caddy's debug log prints
// whole modules; this prints counts instead of URLs.
func (s *Settings) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddInt("keys", len(s.Keys))
	enc.AddInt("default_urls", len(s.DefaultURLs))
	return nil
}
