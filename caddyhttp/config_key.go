package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Key is a named set of destinations. In JSON, a key that has only URLs may be
// an array of them: `["gotifys://gotify.example.com/{env.GOTIFY}"]`.
type Key struct {
	// The destinations. A key needs at least one, here or in an imported file.
	URLs []KeyURL `json:"urls,omitempty"`

	// Configuration files of Apprise, in text or YAML, whose destinations are
	// added to the key: paths, or addresses that begin with `http://` or
	// `https://`. In JSON, paths are relative to the working directory. The
	// files are read when the configuration loads: each file may have 1 MiB, and
	// reading all files of a key may take 10 seconds. A mistake in a file is an
	// error. Placeholders are replaced in the locations but not in the files.
	// Example: `["/etc/apprise.yml"]`. Default: none.
	ImportApprise []string `json:"import_apprise,omitempty"`

	// A tag expression that chooses the URLs for requests without a tag, such as
	// `ops,dev`, or `untagged` for the URLs without tags. At least one URL must
	// match. Default: every URL.
	DefaultTag string `json:"default_tag,omitempty"`

	// Whether messages for the key use the queue, if the app has one. Turn it off
	// for messages that are worthless later. Default: true.
	Queue *bool `json:"queue,omitempty"`

	// How messages may come in: `direct`, for `POST /notify/{KEY}`, `smtp`, for
	// mails, and names of sources. Other requests get a 403, and other mails a 550.
	// Example: `["grafana"]`. Default: any way.
	Accept []string `json:"accept,omitempty"`

	// The name of a key of the same site or of the app. It gets a message when
	// the queue gives up a delivery for this key. The message names the service,
	// the reason and the ID of the undelivered message, but not its text.
	// Default: none.
	Fallback string `json:"fallback,omitempty"`
}

// KeyURL is one destination of a key. In JSON, a URL without a directory may be
// a string. Its tags, if it has any, come first, with commas between them and an
// equals sign after them: `"ops,2:urgent=gotifys://gotify.example.com/{env.GOTIFY}"`.
type KeyURL struct {
	// The notification URL. Placeholders such as `{env.DISCORD}` and
	// `{file./run/secrets/discord}`, which keep secrets out of the configuration,
	// are replaced when it loads. Example: `gotifys://gotify.example.com/{env.GOTIFY}`.
	URL string `json:"url,omitempty"`

	// The directory that paths in the URL are relative to, such as that of a
	// `template`. A Caddyfile sets it to its own directory. Default: the working
	// directory.
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
// of URLs.
func (k *Key) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddInt("urls", len(k.URLs))
	enc.AddInt("import_apprise", len(k.ImportApprise))
	return nil
}

// MarshalLogObject implements zapcore.ObjectMarshaler. It does not print the
// URL.
func (u KeyURL) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddInt("tags", len(u.Tags))
	return nil
}

// isKeyName reports whether name has the form of the name of a key: 1 to 128
// letters, digits, _ and -.
func isKeyName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return name != "" && len(name) <= 128
}

func checkKeyName(name string) error {
	if !isKeyName(name) {
		return errors.New("the name of a key must be 1 to 128 letters, digits, _ and -")
	}
	if name == messagesName {
		return errKeyReserved
	}
	return nil
}

var errKeyReserved = errors.New("a key cannot have the name messages, because /notify/messages/{ID} is the address of a message in the queue; choose another name")

// untagged in default_tag stands for the URLs without tags.
const untagged = "untagged"

func checkTag(tag string) error {
	_, name := notifier.SplitTag(tag)
	switch {
	case strings.EqualFold(name, untagged):
		return errors.New("untagged cannot be a tag, because it stands for the URLs without tags; choose another name")
	case strings.EqualFold(name, "all"):
		return errors.New("all cannot be a tag, because it stands for every URL; remove it, or write always for a URL that gets every message")
	case strings.Contains(tag, ":") && retriesAfterTag.MatchString(tag):
		return errors.New("a number after a tag has a meaning in requests only; write ?retry=3 into the URL")
	}
	if !notifier.ValidTag(name) {
		return errors.New("the tag is malformed; a tag is a letter or digit followed by letters, digits, _ and -, and several are separated by spaces")
	}
	return nil
}

var retriesAfterTag = lazyregexp.New(`^(\d+:)?[\w-]*[A-Za-z_-][\w-]*:\d+$`)

// key is a [Key] ready for use.
type key struct {
	name           string
	targets        []notifier.Target
	defaultTargets []notifier.Target // for a request without a tag
	unqueued       bool              // messages do not use the queue
	accept         []string          // of the configuration
	fallback       string            // the key for messages about dead deliveries; "" for none
	limits         *notifier.Limits  // of a message to a saved key; nil for no limits
	log            *zap.Logger
}

// match returns the targets that a tag expression matches. The empty expression
// stands for default_tag.
func (k *key) match(e notifier.TagExpr) []notifier.Target {
	if e.Empty() {
		return k.defaultTargets
	}
	return e.Select(k.targets)
}

// choose returns the targets that match returns, or an error if there are none.
func (k *key) choose(e notifier.TagExpr) ([]notifier.Target, error) {
	targets := k.match(e)
	if len(targets) == 0 {
		return nil, fmt.Errorf("none of the %d destinations of the key %s has the requested tag, so nothing was sent", len(k.targets), k.name)
	}
	return targets, nil
}

// errDefaultTagUnmatched is returned when no URL of a key matches default_tag.
var errDefaultTagUnmatched = errors.New("default_tag: no URL of the key has this tag, so messages without a tag would be sent nowhere; give the tag to a URL")

// chooseDefaults returns the targets for requests without a tag.
func chooseDefaults(targets []notifier.Target, defaultTag string) ([]notifier.Target, error) {
	if defaultTag == "" {
		return targets, nil
	}
	var out []notifier.Target
	if strings.EqualFold(defaultTag, untagged) {
		for _, t := range targets {
			if len(t.Tags) == 0 {
				out = append(out, t)
			}
		}
	} else {
		e, err := notifier.ParseTags(defaultTag)
		if err == nil && e.Empty() {
			err = errEmptyTag
		}
		if err != nil {
			return nil, fmt.Errorf("default_tag: %w", err)
		}
		out = e.Select(targets)
	}
	if len(out) == 0 {
		return nil, errDefaultTagUnmatched
	}
	return out, nil
}

// parseFunc returns the destination of a URL of the operator. Several goroutines
// may call it at once.
type parseFunc func(url string, files notifier.Files) (*notifier.Destination, error)

// parseUnshared is a parseFunc whose destinations are not shared with other
// configurations.
func parseUnshared(url string, files notifier.Files) (*notifier.Destination, error) {
	return notifier.ParseWithFiles(url, nil, files)
}

// keyLoader makes keys and destinations ready for use.
type keyLoader struct {
	parse    parseFunc
	services *Services
	file     *CaddyfileInfo // the positions of the URLs, or nil
	log      *zap.Logger
	later    *[]func() // if not nil, warnings are added to it instead of logged
}

// warn logs a warning about a URL, now or later.
func (l keyLoader) warn(message string, field zap.Field) {
	log := func() { l.log.Warn(message, field) }
	if l.later == nil {
		log()
		return
	}
	*l.later = append(*l.later, log)
}

// loadAll returns the keys with the names, each of which check accepts. It loads
// several keys at once. The error and the warnings are those of loading one key
// after the other, in the order of the names, up to the first error.
func (l keyLoader) loadAll(names []string, keys map[string]*Key, check func(*key) error) ([]*key, error) {
	loaded := make([]*key, len(names))
	warnings := make([][]func(), len(names))
	failed, err := forEach(len(names), func(i int) (err error) {
		own := l
		own.later = &warnings[i]
		if loaded[i], err = own.load(names[i], keys[names[i]]); err != nil {
			return err
		}
		return l.locate(keyPrefix+names[i], check(loaded[i]))
	})
	for i := range min(failed+1, len(names)) {
		for _, log := range warnings[i] {
			log()
		}
	}
	return loaded, err
}

func (l keyLoader) load(name string, c *Key) (*key, error) {
	if err := checkKeyName(name); err != nil {
		return nil, err
	}
	if c == nil || len(c.URLs)+len(c.ImportApprise) == 0 {
		return nil, fmt.Errorf("key %s: it has no URL; add one", name)
	}
	l.log = l.log.WithLazy(zap.String("key", name))
	k := &key{name: name, accept: c.Accept, unqueued: c.Queue != nil && !*c.Queue, fallback: c.Fallback, log: l.log}
	k.targets = make([]notifier.Target, 0, len(c.URLs))
	for i, u := range c.URLs {
		t, err := l.target(u)
		if err != nil {
			return nil, l.locate(keyURLName(name, i), err)
		}
		k.targets = append(k.targets, t)
	}
	imported, err := l.importApprise(name, c.ImportApprise)
	if err != nil {
		return nil, err
	}
	if k.targets = append(k.targets, imported...); len(k.targets) == 0 {
		return nil, l.locate("key "+name, errors.New("neither it nor the imported files have a URL; add one"))
	}
	if k.defaultTargets, err = chooseDefaults(k.targets, c.DefaultTag); err != nil {
		return nil, l.locate("key "+name, err)
	}
	return k, nil
}

// keyPrefix begins the name of a key, and of a setting of a key, in errors and
// in CaddyfileInfo.Lines.
const keyPrefix = "key "

// keyURLName returns the name of URL i of a key, counted from 0, in errors and
// in CaddyfileInfo.Lines.
func keyURLName(key string, i int) string { return fmt.Sprintf("key %s, URL %d", key, i+1) }

// locate returns err with the name of the setting that it is about, and with
// its position, or nil if err is nil.
func (l keyLoader) locate(setting string, err error) error {
	if err == nil {
		return nil
	}
	return l.file.locate(setting, prefixError(setting, err))
}

func (l keyLoader) target(u KeyURL) (notifier.Target, error) {
	for _, tag := range u.Tags {
		if err := checkTag(tag); err != nil {
			return notifier.Target{}, err
		}
	}
	d, err := l.destination(u.URL, u.Dir)
	return notifier.Target{Destination: d, Tags: slices.Clone(u.Tags)}, err
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
func (l keyLoader) destination(url, dir string) (*notifier.Destination, error) {
	url, err := resolveURL(url)
	if err != nil {
		return nil, err
	}
	d, err := l.parse(url, notifier.Files{Dir: cmp.Or(dir, ".")})
	if err != nil {
		return nil, notifier.WithSuggestion(url, err)
	}
	if err := l.services.check(d); err != nil {
		return nil, err
	}
	if err := rejectMistake(d); err != nil {
		return nil, err
	}
	for _, w := range d.Warnings() {
		l.warn("notification URL", zap.String("warning", w))
	}
	return d, nil
}

// rejectMistake returns the first mistake in a URL of the operator as an error,
// so that the operator corrects the URL before it is needed. In a URL of a
// client, a mistake is only a warning, because the URL may be in use already.
func rejectMistake(d *notifier.Destination) error {
	if text := d.Mistake(); text != "" {
		return errors.New(text)
	}
	return nil
}

// checkURL checks an operator's URL as far as possible before its placeholders
// are replaced.
func checkURL(url string, services *Services) error {
	if err := checkPlaceholders(url); err != nil {
		return err
	}
	if err := checkSingleURL(url); err != nil {
		return err
	}
	if strings.Contains(url, "{") {
		return nil
	}
	d, err := notifier.ParseWithFiles(url, nil, notifier.Files{Dir: ".", Unread: true})
	if err != nil {
		return notifier.WithSuggestion(url, err)
	}
	if err := rejectMistake(d); err != nil {
		return err
	}
	return services.check(d)
}
