package site

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/internal/parallel"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// KeyOptions are the settings of a key.
type KeyOptions struct {
	Name       string
	URLs       []URL
	DefaultTag string   // which URLs get a message without a tag, or "untagged"; default: all
	Accept     []string // sources, "direct" and "smtp"; default: all
	Tokens     []string // secrets of clients that may send; default: everyone may
	Readers    []string // secrets of clients that may read
	Expects    []BeatOptions
	KeySettings

	// Import returns further targets, such as those in a file. warn logs a warning about the key.
	// The error of Import may be a [*SettingError].
	Import func(warn func(about, text string)) ([]notifier.Target, error)
	Lines  func(setting string) string // the position of a setting, for errors; "" if unknown
}

// KeySettings are the options that a key takes over unchanged.
type KeySettings struct {
	Unqueued bool          // messages do not use the queue
	Inbox    time.Duration // how long messages can be read; 0 for not at all
	Fallback string        // the key that is told of dead deliveries; "" for none
	Rules    *rules.Rules  // nil for none
}

// BeatOptions are the settings of a beat that a key expects.
type BeatOptions struct {
	rules.Expect
	Tag string // tag expression for the URLs that are notified; default: default_tag of the key
}

const maxExpects = 100 // per key

// The bounds of how long an inbox keeps a message.
const (
	minInbox = time.Minute
	maxInbox = 90 * 24 * time.Hour
)

// CheckInbox returns an error if an inbox cannot keep messages for d. 0 means no inbox.
func CheckInbox(d time.Duration) error {
	if d != 0 && (d < minInbox || d > maxInbox) {
		return errors.New("it must be a duration from 1m to 90d, such as 7d")
	}
	return nil
}

// keyMaker makes the keys of a site.
type keyMaker struct {
	site     *Site
	options  *Options
	log      *zap.Logger
	warnings []warning // collected until logWarnings
}

// warning is a warning about a URL or an imported file.
type warning struct{ about, text string }

func (m *keyMaker) warn(about, text string) { m.warnings = append(m.warnings, warning{about, text}) }

func (m *keyMaker) logWarnings() {
	for _, w := range m.warnings {
		m.log.Warn(w.about, zap.String("warning", w.text))
	}
	m.warnings = nil
}

// makeAll makes keys, several at once. Its error and its warnings are the same as if it made one
// key after the other up to the first error.
func (m *keyMaker) makeAll(all []KeyOptions) ([]*Key, error) {
	made := make([]*Key, len(all))
	makers := make([]keyMaker, len(all)) // each maker has the warnings about its key
	failed, err := parallel.Each(len(all), func(i int) (err error) {
		makers[i] = keyMaker{site: m.site, options: m.options, log: m.log.WithLazy(zap.String("key", all[i].Name))}
		made[i], err = makers[i].make(&all[i])
		return err
	})
	for i := range min(failed+1, len(all)) {
		makers[i].logWarnings()
	}
	return made, err
}

// keyPrefix is the prefix of the names of a key's settings.
const keyPrefix = "key "

// make returns the key that c describes.
func (m *keyMaker) make(c *KeyOptions) (*Key, error) {
	push := m.site.Push != nil
	if err := CheckKeyName(c.Name); err != nil {
		return nil, err
	}
	if len(c.URLs) == 0 && c.Import == nil && c.Inbox == 0 && !push {
		return nil, fmt.Errorf("key %s: it has no URL; add one", c.Name)
	}
	if err := CheckInbox(c.Inbox); err != nil {
		return nil, c.fail("inbox", fmt.Errorf("inbox: %w", err))
	}
	k := &Key{
		Name: c.Name, Access: Access{Accept: c.Accept}, KeySettings: c.KeySettings,
		OfSite: m.options.Base != nil, Log: m.log,
	}
	if err := m.setSecrets(k, c); err != nil {
		return nil, c.fail("", err)
	}
	if err := m.setTargets(k, c); err != nil {
		return nil, err
	}
	if err := k.setDefaults(c.DefaultTag, push); err != nil {
		return nil, c.fail("", err)
	}
	if rule, err := k.checkRules(m.site.PublicURL, push); err != nil {
		return nil, c.fail(rule, err)
	}
	if beat, err := k.setExpects(c.Expects, push); err != nil {
		return nil, c.fail("expect "+beat, err)
	}
	m.warnRepeated(k, c)
	return k, nil
}

// fail returns an error about the key or a setting of it.
func (c *KeyOptions) fail(setting string, err error) error {
	name := keyPrefix + c.Name
	if setting != "" {
		setting = ", " + setting
	}
	return &SettingError{name + setting, fmt.Errorf("%s: %w", name, err)}
}

// setSecrets sets the tokens and readers of k.
func (m *keyMaker) setSecrets(k *Key, c *KeyOptions) (err error) {
	if k.Tokens, err = m.secrets(c.Tokens); err != nil {
		return fmt.Errorf("token: %w", err)
	}
	if k.Readers, err = m.secrets(c.Readers); err != nil {
		return fmt.Errorf("reader: %w", err)
	}
	if slices.ContainsFunc(k.Readers, func(sum [sha256.Size]byte) bool { return slices.Contains(k.Tokens, sum) }) {
		return errTokenAndReader
	}
	return nil
}

// secrets returns the hashes of secrets.
func (m *keyMaker) secrets(texts []string) (Secrets, error) {
	var out Secrets
	for _, text := range texts {
		if m.options.Secret != nil {
			var err error
			if text, err = m.options.Secret(text); err != nil {
				return nil, err
			}
		}
		secret := strings.TrimSpace(text) // a file ends with a line break
		if err := CheckSecret(secret); err != nil {
			return nil, err
		}
		if out.Has(secret) {
			return nil, errSecretTwice
		}
		out = append(out, sha256.Sum256([]byte(secret)))
	}
	return out, nil
}

// urlSetting returns the name of URL i of a key, counted from 0.
func (c *KeyOptions) urlSetting(i int) string {
	return fmt.Sprintf("%s%s, URL %d", keyPrefix, c.Name, i+1)
}

// setTargets sets the targets of k: its URLs and its imported targets.
func (m *keyMaker) setTargets(k *Key, c *KeyOptions) error {
	k.Targets = make([]notifier.Target, 0, len(c.URLs))
	for i, u := range c.URLs {
		t, err := m.target(u)
		if err != nil {
			setting := c.urlSetting(i)
			return &SettingError{setting, fmt.Errorf("%s: %w", setting, err)}
		}
		k.Targets = append(k.Targets, t)
	}
	if c.Import == nil {
		return nil
	}
	imported, err := c.Import(m.warn)
	if err != nil {
		return err
	}
	if k.Targets = append(k.Targets, imported...); len(k.Targets) == 0 && m.site.Push == nil {
		return c.fail("", errors.New("neither it nor the imported files have a URL; add one"))
	}
	return nil
}

// target returns the target of a URL.
func (m *keyMaker) target(u URL) (notifier.Target, error) {
	for _, tag := range u.Tags {
		if err := CheckTag(tag); err != nil {
			return notifier.Target{}, err
		}
	}
	d, err := m.destination(u)
	return notifier.Target{Destination: d, Tags: slices.Clone(u.Tags)}, err
}

// destination returns the destination of a URL. A mistake in it is an error, so that the operator
// corrects it before the URL is needed. In a client's URL, which may be in use already, it is only
// a warning. Errors do not show the URL, because it may hold secrets.
func (m *keyMaker) destination(u URL) (d *notifier.Destination, err error) {
	if m.options.Parse != nil {
		d, err = m.options.Parse(u)
	} else if d, err = notifier.ParseWithFiles(u.URL, nil, notifier.Files{Dir: cmp.Or(u.Dir, ".")}); err != nil {
		err = message.WithSuggestion(u.URL, err)
	}
	if err != nil {
		return nil, err
	}
	if err := m.site.Services.Check(d); err != nil {
		return nil, err
	}
	if text := d.Mistake(); text != "" {
		return nil, errors.New(text)
	}
	for _, w := range d.Warnings() {
		m.warn("notification URL", w)
	}
	return d, nil
}

// setExpects sets the beats that k expects. Its targets must be set. On an error, beat is the name
// of the wrong beat. With push, a device may have a tag later.
func (k *Key) setExpects(all []BeatOptions, push bool) (beat string, err error) {
	if len(all) > maxExpects {
		return "", fmt.Errorf("expect: it may occur %d times", maxExpects)
	}
	for _, o := range all {
		e, err := k.expect(&o, push)
		if err != nil {
			return o.Name, fmt.Errorf("expect %s: %w", o.Name, err)
		}
		k.Expects = append(k.Expects, e)
	}
	return "", nil
}

// expect returns a beat that k expects.
func (k *Key) expect(o *BeatOptions, push bool) (e ExpectedBeat, err error) {
	if err := o.Check(); err != nil {
		return e, err
	}
	if k.Expect(o.Name) != nil {
		return e, errors.New("the name occurs twice; choose another one, or remove one")
	}
	tag, err := notifier.ParseTags(o.Tag)
	if err == nil && o.Tag != "" && tag.Empty() {
		err = ErrEmptyTag
	}
	switch {
	case err != nil:
		return e, fmt.Errorf("tag: %w", err)
	case len(k.Select(tag)) == 0 && len(k.Targets)+len(o.Tag) > 0 && !push:
		return e, fmt.Errorf("tag: none of the %d destinations of the key has the tag %s; give it to a URL, or correct it", len(k.Targets), o.Tag)
	}
	return ExpectedBeat{o.Expect, tag}, nil
}

// warnRepeated warns about a URL that the key has twice with the same tags, because each message
// goes there twice. The first targets are the key's URLs, and the rest are imported.
func (m *keyMaker) warnRepeated(k *Key, c *KeyOptions) {
	if len(k.Targets) < 2 {
		return
	}
	place := func(i int) string {
		if i >= len(c.URLs) {
			return "an imported file"
		}
		setting, line := c.urlSetting(i), ""
		if c.Lines != nil {
			line = c.Lines(setting)
		}
		return cmp.Or(line, setting)
	}
	first := make(map[string]int, len(k.Targets))
	for i, t := range k.Targets {
		tags := slices.Clone(t.Tags)
		for j, tag := range tags {
			tags[j] = strings.ToLower(tag)
		}
		slices.Sort(tags)
		id := t.URL() + " " + strings.Join(slices.Compact(tags), " ")
		if j, repeated := first[id]; repeated {
			m.warn("notification URL",
				fmt.Sprintf("%s: the key %s has this URL already in %s, so each message is sent there twice; remove one, or give them different tags",
					place(i), k.Name, place(j)))
			continue
		}
		first[id] = i
	}
}
