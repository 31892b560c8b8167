package caddyhttp

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Key is a named set of destinations.
type Key struct {
	// The destinations. There must be at least one, here or in a file that is
	// imported.
	URLs []KeyURL `json:"urls,omitempty"`

	// Configuration files of Apprise, text or YAML, whose destinations the key
	// has, too: paths, or addresses that begin with `http://` or `https://`. In
	// JSON, paths are relative to the working directory. The files are read when
	// the configuration loads, each at most 1 MiB long and all of a key within
	// 10 seconds; a mistake in one is an error. Placeholders are resolved in the
	// locations, but not in the files.
	ImportApprise []string `json:"import_apprise,omitempty"`

	// A tag expression such as `ops,dev`, for requests that name no tag, or
	// `untagged` for the URLs without tags. It must fit one of the URLs at
	// least. Default: every URL.
	DefaultTag string `json:"default_tag,omitempty"`
}

// KeyURL is one destination of a key.
type KeyURL struct {
	// The notification URL. Placeholders such as `{env.DISCORD}` and
	// `{file./run/secrets/discord}` are resolved when the configuration loads,
	// and keep the secret out of it.
	URL string `json:"url,omitempty"`

	// The tags by which requests choose among the key's URLs: letters, digits,
	// `_` and `-`, in upper or lower case. A URL tagged `always` gets a message
	// whatever tag is asked for.
	Tags []string `json:"tags,omitempty"`
}

// MarshalLogObject implements zapcore.ObjectMarshaler. It shows a count and
// hides the URLs.
func (k *Key) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddInt("urls", len(k.URLs))
	enc.AddInt("import_apprise", len(k.ImportApprise))
	return nil
}

// MarshalLogObject implements zapcore.ObjectMarshaler. It hides the URL.
func (u KeyURL) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddInt("tags", len(u.Tags))
	return nil
}

var keyName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

func checkKeyName(name string) error {
	if !keyName.MatchString(name) {
		return errors.New("the name of a key has 1 to 128 letters, digits, _ and -")
	}
	return nil
}

// untagged as default_tag stands for the URLs without tags.
const untagged = "untagged"

func checkTag(tag string) error {
	switch {
	case strings.EqualFold(tag, untagged):
		return errors.New("untagged is no tag, since it stands for the URLs that have none")
	case strings.EqualFold(tag, "all"):
		return errors.New("all is no tag, since it stands for every URL; leave it out, or write always for a URL that gets every message")
	}
	if !notifier.ValidTag(tag) {
		return errors.New("a tag is a letter or digit, then letters, digits, _ and -; write several with spaces between them")
	}
	return nil
}

// key is a [Key] ready for use.
type key struct {
	name     string
	targets  []notifier.Target
	fallback []notifier.Target // for a request without a tag
	log      *zap.Logger
}

// choose returns the targets that a tag expression matches. The empty
// expression stands for default_tag.
func (k *key) choose(e notifier.TagExpr) ([]notifier.Target, error) {
	targets := k.match(e)
	if len(targets) == 0 {
		return nil, fmt.Errorf("none of the %d destinations of the key %s has the tag that was asked for, so nothing was sent", len(k.targets), k.name)
	}
	return targets, nil
}

// match is choose for a caller that can do without targets.
func (k *key) match(e notifier.TagExpr) []notifier.Target {
	if e.Empty() {
		return k.fallback
	}
	return fitting(k.targets, e)
}

func fitting(targets []notifier.Target, e notifier.TagExpr) (out []notifier.Target) {
	for _, t := range targets {
		if e.Match(t.Tags) {
			out = append(out, t)
		}
	}
	return out
}

var errNobody = errors.New("default_tag: no URL of the key fits, so that a message without a tag would reach nobody")

// defaultTargets lists the targets for requests without a tag.
func defaultTargets(targets []notifier.Target, tag string) ([]notifier.Target, error) {
	if tag == "" {
		return targets, nil
	}
	var out []notifier.Target
	if strings.EqualFold(tag, untagged) {
		for _, t := range targets {
			if len(t.Tags) == 0 {
				out = append(out, t)
			}
		}
	} else {
		e, err := notifier.ParseTags(tag)
		if err != nil {
			return nil, fmt.Errorf("default_tag: %w", err)
		}
		if e.Empty() {
			return nil, errors.New("default_tag: it names no tag")
		}
		out = fitting(targets, e)
	}
	if len(out) == 0 {
		return nil, errNobody
	}
	return out, nil
}

// parser makes a destination of a URL of the operator's.
type parser func(url string) (*notifier.Destination, error)

// parseAlone is a parser whose destinations nobody else has.
func parseAlone(url string) (*notifier.Destination, error) { return notifier.Parse(url, nil) }

// loader makes destinations of the operator's URLs.
type loader struct {
	parse    parser
	services *Services
	log      *zap.Logger
}

func (l loader) key(name string, c *Key) (*key, error) {
	if err := checkKeyName(name); err != nil {
		return nil, err
	}
	if c == nil || len(c.URLs)+len(c.ImportApprise) == 0 {
		return nil, fmt.Errorf("key %s: it needs a URL at least", name)
	}
	k := &key{name: name, log: l.log.With(zap.String("key", name))}
	for i, u := range c.URLs {
		where := fmt.Sprintf("key %s, URL %d", name, i+1)
		for _, tag := range u.Tags {
			if err := checkTag(tag); err != nil {
				return nil, fmt.Errorf("%s: %w", where, err)
			}
		}
		d, err := l.destination(u.URL, where)
		if err != nil {
			return nil, err
		}
		k.targets = append(k.targets, notifier.Target{Destination: d, Tags: slices.Clone(u.Tags)})
	}
	imported, err := l.importApprise(name, c.ImportApprise)
	if err != nil {
		return nil, err
	}
	if k.targets = append(k.targets, imported...); len(k.targets) == 0 {
		return nil, fmt.Errorf("key %s: it needs a URL at least, and the imported files have none", name)
	}
	if k.fallback, err = defaultTargets(k.targets, c.DefaultTag); err != nil {
		return nil, fmt.Errorf("key %s: %w", name, err)
	}
	return k, nil
}

// destination resolves the placeholders of a URL and understands it. where
// says in errors and warnings which one it is, since it must not be shown.
func (l loader) destination(text, where string) (*notifier.Destination, error) {
	text, err := resolveURL(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	d, err := l.parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, notifier.WithSuggestion(text, err))
	}
	if err := l.services.permit(d); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if err := refuseWarnings(d); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return d, nil
}

// refuseWarnings makes an error of what has no effect in an operator's URL. A
// client's URL works nevertheless, since it may have been in use for long;
// here whoever wrote it can mend it before the night in which it matters.
func refuseWarnings(d *notifier.Destination) error {
	if w := d.Warnings(); len(w) > 0 {
		return errors.New(w[0])
	}
	return nil
}

// checkURL does what can be done about an operator's URL before its
// placeholders are resolved.
func checkURL(text string, services *Services) error {
	if err := checkPlaceholders(text); err != nil {
		return err
	}
	if err := checkOneURL(text); err != nil {
		return err
	}
	if strings.Contains(text, "{") {
		return nil
	}
	d, err := notifier.Parse(text, nil)
	if err != nil {
		return notifier.WithSuggestion(text, err)
	}
	if err := refuseWarnings(d); err != nil {
		return err
	}
	return services.permit(d)
}
