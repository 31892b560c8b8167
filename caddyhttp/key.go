package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Key is a named set of destinations. In JSON, a key that has only URLs may be
// an array of them: `["gotifys://gotify.example.com/{env.GOTIFY}"]`.
type Key struct {
	// The destinations, each a notification URL with tags. A key needs at least one, here or
	// in an imported file, unless it has `inbox`, or there is `push`, so that devices can
	// subscribe to it.
	URLs []KeyURL `json:"urls,omitempty"`

	// Configuration files of Apprise, in text or YAML, whose destinations are
	// added to the key: paths, or addresses that begin with `http://` or
	// `https://`. In JSON, paths are relative to the working directory. The
	// files are read when the configuration loads: each file may have 1 MiB, and
	// reading all files of a key may take 10 seconds. A mistake in a file is an
	// error. Placeholders are replaced in the locations but not in the files.
	// Example: `["/etc/apprise.yml"]`. Default: none.
	ImportApprise []string `json:"import_apprise,omitempty"`

	// Values for `${NAME}` in the URLs and options of imported files, by name. Names have
	// letters, digits and `_`, and ignore case. Placeholders are replaced in the values
	// when the configuration loads. Without variables, `${NAME}` is a text like any
	// other. Example: `{"TOKEN": "{env.TELEGRAM_TOKEN}"}`. Default: none.
	Variables map[string]string `json:"variables,omitempty"`

	// A tag expression that chooses the URLs for requests without a tag, such as
	// `ops,dev`, or `untagged` for the URLs without tags. At least one URL must
	// match. Default: every URL.
	DefaultTag string `json:"default_tag,omitempty"`

	// Whether messages for the key use the queue, if the app has one. Turn it off
	// for messages that are worthless later. Default: they do.
	Queue *bool `json:"queue,omitempty"`

	// How messages may come in: `direct`, for `POST /notify/{KEY}`, `smtp`, for
	// mails, and names of sources. Other requests get a 403, and other mails a 550.
	// Example: `["grafana"]`. Default: any way.
	Accept []string `json:"accept,omitempty"`

	// The secrets of those who may send to the key and see its page. A client sends one
	// as `Authorization: Bearer`, as the password of Basic authentication, in
	// `X-Gotify-Key`, in `?token=`, or in another place where the program of a source
	// can put it; otherwise the answer is 401. The `sign` or `token` of a source takes
	// their place for that source, and an account of `smtp` that names the key for
	// mails. Events, logs and `fallback` need none. Each has at least 16 characters;
	// several let one be replaced. Placeholders are replaced when the configuration
	// loads. Example: `["{env.OPS_TOKEN}"]`. Default: none; Caddy's matchers and
	// authentication decide.
	Tokens []string `json:"tokens,omitempty"`

	// The secrets of those who may read the `inbox` of the key and `/json/urls/{KEY}`,
	// which shows the destinations, and send nothing. Clients send them like `tokens`. A
	// key with `tokens` or `readers` shows its destinations only to them and to those who
	// may manage saved keys. They need `inbox`, or a site with `configs`. Example:
	// `["{env.OPS_READER}"]`. Default: none.
	Readers []string `json:"readers,omitempty"`

	// The name of a key, of the same site or of the app, that gets a message when
	// the queue gives up a delivery for this key. The message names the service,
	// the reason and the ID of the undelivered message, but not its text.
	// Default: none.
	Fallback string `json:"fallback,omitempty"`

	// How long the messages of the key can be read at `/notify/{KEY}/messages`, in streams
	// and with the clients of ntfy, by those who may read or manage. Whoever has one of the
	// `readers` may read. Messages are kept encrypted in the queue, which this needs. Such a
	// key needs no URL. A duration such as `"7d"`, or a number of nanoseconds, from 1m to 90d.
	// Default: the text of a message cannot be read.
	Inbox caddy.Duration `json:"inbox,omitempty"`

	// Beats that have to come again and again. They need the queue. Default: none.
	Expect []*Expect `json:"expect,omitempty"`

	Rules
}

// KeyURL is one destination of a key. In JSON, a URL without a directory may be
// a string. Its tags, if it has any, come first, with commas between them and an
// equals sign after them: `"ops,2:urgent=gotifys://gotify.example.com/{env.GOTIFY}"`.
type KeyURL struct {
	// The notification URL. Placeholders such as `{env.DISCORD}` and
	// `{file./run/secrets/discord}`, which keep secrets out of the configuration,
	// are replaced when it loads. Example: `gotifys://gotify.example.com/{env.GOTIFY}`.
	URL string `json:"url,omitempty"`

	// The directory that paths in the URL are relative to, such as the path of a `template`. A
	// Caddyfile sets it to its own directory. Default: the working directory.
	Dir string `json:"dir,omitempty"`

	// The tags by which requests choose among the URLs of the key. A tag has
	// letters, digits, `_` and `-`, begins with a letter or digit, and ignores
	// case. A URL with the tag `always` matches every request. A number before a
	// tag, as in `2:ops`, makes the URLs with the tag a chain: the URLs with a
	// number get the message only if it fails for a URL of each lower number.
	// Example: `["ops", "2:urgent"]`. Default: none.
	Tags []string `json:"tags,omitempty"`
}

// MarshalLogObject implements zapcore.ObjectMarshaler. It prints counts instead
// of URLs and secrets.
func (k *Key) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddInt("urls", len(k.URLs))
	enc.AddInt("import_apprise", len(k.ImportApprise))
	enc.AddInt("variables", len(k.Variables))
	enc.AddInt("tokens", len(k.Tokens))
	enc.AddInt("readers", len(k.Readers))
	enc.AddDuration("inbox", time.Duration(k.Inbox))
	return nil
}

// MarshalLogObject implements zapcore.ObjectMarshaler. It does not print the
// URL.
func (u KeyURL) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddInt("tags", len(u.Tags))
	return nil
}

// errVariablesUnused is returned for variables that no file can use.
var errVariablesUnused = errors.New("they are for imported files, and the key has no import_apprise; " +
	"write {env.NAME} or {file./path} into the url line, or remove them")

// parseFunc returns the destination of a URL of the operator. Several goroutines
// may call it at once.
type parseFunc func(url string, files notifier.Files) (*notifier.Destination, error)

// parseUnshared is a parseFunc whose destinations are not shared with other
// configurations.
func parseUnshared(url string, files notifier.Files) (*notifier.Destination, error) {
	return notifier.ParseWithFiles(url, nil, files)
}

// keyLoader makes the keys and destinations of a site from its settings.
type keyLoader struct {
	parse    parseFunc
	services *site.ServiceRule // of imported URLs
	file     *block.Info       // the positions of the URLs, or nil
	log      *zap.Logger
}

// keyOptions returns the options of keys, sorted by their names.
func (l *keyLoader) keyOptions(keys map[string]*Key) ([]site.KeyOptions, error) {
	all := make([]site.KeyOptions, 0, len(keys))
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		o, err := l.options(name, keys[name])
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// options returns the options of a key.
func (l *keyLoader) options(name string, c *Key) (o site.KeyOptions, err error) {
	if c == nil {
		if err := site.CheckKeyName(name); err != nil {
			return o, err
		}
		return o, fmt.Errorf("key %s: it has no URL; add one", name)
	}
	o = site.KeyOptions{Name: name, Lines: l.file.Line, URLs: make([]site.URL, len(c.URLs)), Import: l.imports(name, c)}
	for i, u := range c.URLs {
		o.URLs[i] = site.URL(u)
	}
	if e, ok := errors.AsType[*optionError](c.to(&o)); ok {
		return o, l.file.Locate(optionName(name, e.option), errs.Prefix(block.KeyPrefix+name, e))
	}
	return o, nil
}

// locate returns err with the name of the setting that it is about, and with
// its position, or nil if err is nil.
func (l *keyLoader) locate(setting string, err error) error {
	if err == nil {
		return nil
	}
	return l.file.Locate(setting, errs.Prefix(setting, err))
}

// urlDir returns the directory of the Caddyfile that contains a URL, or "" if
// the URL names no file. Paths in placeholders do not count: they are relative
// to the working directory.
func urlDir(url, caddyfile string) (string, error) {
	if !notifier.MayNameFiles(url) {
		return "", nil
	}
	dir, err := filepath.Abs(filepath.Dir(caddyfile))
	if err != nil {
		return "", fmt.Errorf("making the path absolute: %w", err)
	}
	return dir, nil
}

// destination replaces the placeholders in a URL and parses it. Errors do not
// show the URL, which may hold secrets.
func (l *keyLoader) destination(u site.URL) (*notifier.Destination, error) {
	url, err := placeholder.ResolveURL(u.URL)
	if err != nil {
		return nil, err
	}
	d, err := l.parse(url, notifier.Files{Dir: cmp.Or(u.Dir, ".")})
	if err != nil {
		return nil, message.WithSuggestion(url, err)
	}
	return d, nil
}

// checkURL checks an operator's URL as far as possible before its placeholders
// are replaced.
func checkURL(url string, services *Services) error {
	if err := placeholder.Check(url); err != nil {
		return err
	}
	if err := placeholder.CheckSingleURL(url); err != nil {
		return err
	}
	if strings.Contains(url, "{") {
		return nil
	}
	d, err := notifier.ParseWithFiles(url, nil, notifier.Files{Dir: ".", Unread: true})
	if err != nil {
		return message.WithSuggestion(url, err)
	}
	if text := d.Mistake(); text != "" {
		return errors.New(text)
	}
	return services.rule().Check(d)
}
