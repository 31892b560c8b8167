package site

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/similar"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// IsKeyName reports whether name has the form of the name of a key: 1 to 128
// letters, digits, _ and -.
func IsKeyName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return name != "" && len(name) <= 128
}

// CheckKeyName returns an error if no key can have the name.
func CheckKeyName(name string) error {
	if !IsKeyName(name) {
		return errors.New("the name of a key must be 1 to 128 letters, digits, _ and -")
	}
	if ContainsFold(reserved.keys, name) {
		return fmt.Errorf("a key cannot have the name %s, because /notify/%s is an address of the gateway itself; choose another name", name,
			strings.ToLower(name))
	}
	return nil
}

// untagged in default_tag means the URLs without tags.
const untagged = "untagged"

// AllTag in default_tag means every URL.
const AllTag = "all"

// CheckTag returns an error if a URL of a key cannot have the tag.
func CheckTag(tag string) error {
	_, name := notifier.SplitTag(tag)
	switch {
	case strings.EqualFold(name, untagged):
		return errors.New("untagged cannot be a tag, because it stands for the URLs without tags; choose another name")
	case strings.EqualFold(name, AllTag):
		return errors.New("all cannot be a tag, because it stands for every URL; remove it, or write always for a URL that gets every message")
	case strings.Contains(tag, ":") && retriesAfterTag.MatchString(tag):
		return errors.New("a number after a tag has a meaning in requests only; write ?retry=3 into the URL")
	}
	if !notifier.ValidTag(name) {
		return errors.New("the tag is malformed; a tag is a letter or digit followed by letters, digits, _ and -, and several are " +
			"separated by spaces")
	}
	return nil
}

var retriesAfterTag = lazyregexp.New(`^(\d+:)?[\w-]*[A-Za-z_-][\w-]*:\d+$`)

// Access says how, and from whom, a key accepts messages.
type Access struct {
	Accept  []string // names of sources, "direct" and "smtp"; empty for all
	Tokens  Secrets  // secrets of clients that may send; empty for everyone
	Readers Secrets  // secrets of clients that may read stored messages but not send
}

// Key is a named set of destinations, ready for use. It does not change.
type Key struct {
	Name string
	Access
	KeySettings
	Targets        []notifier.Target
	Defaults       DefaultTag
	DefaultTargets []notifier.Target // for a request without a tag
	Expects        []ExpectedBeat
	Limits         *notifier.Limits // for messages to a saved key; nil for no limits
	Saved          bool             // it is a saved key
	ID             string           // ID of a saved key; "" if an early version saved it
	First          string           // the first name of a saved key, which its records have; "" for Name
	Space          string           // "" for the default one
	OfSite         bool             // a site defines it, not the app
	Log            *zap.Logger
}

// Select returns the targets that a tag expression matches. The empty expression means default_tag.
func (k *Key) Select(e notifier.TagExpr) []notifier.Target {
	if e.Empty() {
		return k.DefaultTargets
	}
	return e.Select(k.Targets)
}

// Choose is like [Key.Select] but returns an error for the client if the message would reach
// nothing.
func (k *Key) Choose(e notifier.TagExpr) ([]notifier.Target, error) {
	targets := k.Select(e)
	switch {
	case len(targets) > 0 || len(k.Targets) == 0 && k.Inbox > 0: // the key has only an inbox
		return targets, nil
	case len(k.Targets) == 0:
		return nil, fmt.Errorf("the key %s has no destination yet, because no device has subscribed to it, so nothing was sent; caddy notify "+
			"invite %[1]s prints a link for a phone", k.Name)
	case e.Empty():
		return nil, fmt.Errorf("the message has no tag, and default_tag matches none of the %d destinations of the key %s, so nothing was "+
			"sent; send a tag", len(k.Targets), k.Name)
	}
	return nil, &unmatchedError{k, e}
}

// unmatchedError is returned when no destination of a key has the requested tags. Often nobody reads
// its text, which takes a comparison with all tags of the key.
type unmatchedError struct {
	key  *Key
	tags notifier.TagExpr
}

func (e *unmatchedError) Error() string {
	return fmt.Sprintf("none of the %d destinations of the key %s has the requested tag %s, so nothing was sent%s", len(e.key.Targets),
		e.key.Name, TagText(e.tags), SuggestTags(e.tags, e.key.Targets))
}

// CheckTag returns a [*message.Error] if no destination of the key has a tag.
func (k *Key) CheckTag(tag string) error {
	for _, t := range k.Targets {
		if slices.ContainsFunc(t.Tags, func(own string) bool { _, name := notifier.SplitTag(own); return strings.EqualFold(name, tag) }) {
			return nil
		}
	}
	e, err := notifier.ParseTags(tag)
	if err != nil {
		return &message.Error{Kind: message.Invalid, Err: err}
	}
	return message.Errorf(message.Invalid, "no destination of the key %s has the tag %s%s", k.Name, TagText(e), SuggestTags(e, k.Targets))
}

// maxTagText is the maximum length of a tag expression in an error, in bytes.
const maxTagText = 64

// TagText returns a tag expression as errors show it.
func TagText(e notifier.TagExpr) string { return markup.TruncateBytes(e.String(), maxTagText) }

// SuggestTags returns the end of an error that suggests tags of targets similar to the
// expression's, or "" if there are none.
func SuggestTags(e notifier.TagExpr, targets []notifier.Target) string {
	var known, near []string
	for _, t := range targets {
		for _, tag := range t.Tags {
			if _, name := notifier.SplitTag(tag); !slices.Contains(known, name) {
				known = append(known, name)
			}
		}
	}
	for _, word := range strings.FieldsFunc(TagText(e), func(r rune) bool { return r == ',' || r == ' ' }) {
		_, name := notifier.SplitTag(word)
		for _, tag := range similar.Names(name, known) {
			if !slices.Contains(near, tag) && len(near) < maxNearTags {
				near = append(near, tag)
			}
		}
	}
	if len(near) == 0 {
		return ""
	}
	return "; you may mean " + strings.Join(near, " or ")
}

// maxNearTags bounds the tags that an error suggests.
const maxNearTags = 3

// ErrDefaultTagUnmatched is returned when no URL of a key matches default_tag.
var ErrDefaultTagUnmatched = errors.New("default_tag: no URL of the key has this tag, so messages without a tag would be sent nowhere; " +
	"give the tag to a URL")

// setDefaults sets the targets for requests without a tag. It returns an error if there are none,
// unless devices can have the tag later, or default_tag is untagged: then, as with Apprise, a
// request without a tag is refused if all URLs have tags.
func (k *Key) setDefaults(text string, push bool) (err error) {
	if text != "" {
		if k.Defaults, err = ParseDefaultTag(text); err != nil {
			return fmt.Errorf("default_tag: %w", err)
		}
	}
	if k.DefaultTargets = k.Defaults.Choose(k.Targets); len(k.DefaultTargets) == 0 && text != "" && !k.Defaults.Untagged && !push {
		return ErrDefaultTagUnmatched
	}
	return nil
}

// DefaultTag chooses the targets for requests without a tag. The zero value chooses all.
type DefaultTag struct {
	Untagged bool // the targets without tags
	expr     notifier.TagExpr
}

// ParseDefaultTag reads the setting default_tag, which is not empty.
func ParseDefaultTag(text string) (d DefaultTag, err error) {
	if strings.EqualFold(text, untagged) {
		return DefaultTag{Untagged: true}, nil
	}
	if d.expr, err = notifier.ParseTags(text); err == nil && d.expr.Empty() {
		err = ErrEmptyTag
	}
	return d, err
}

// Choose returns the targets that a message without a tag reaches.
func (d DefaultTag) Choose(targets []notifier.Target) []notifier.Target {
	switch {
	case d.Untagged:
		return slices.DeleteFunc(slices.Clone(targets), func(t notifier.Target) bool { return len(t.Tags) > 0 })
	case d.expr.Empty():
		return targets
	}
	return d.expr.Select(targets)
}

// Home returns where a key is defined: the ID of its site, "" for all sites, or the space of a
// saved key. For a saved key it includes the key's ID, so that the records of a deleted key do not
// belong to a later key of the same name.
func (k *Key) Home(siteID string) string {
	switch {
	case k.Saved:
		return savedHome(k.Space, k.ID)
	case k.OfSite:
		return "site " + siteID
	}
	return ""
}

// savedHome returns the home of the saved key with id, which is "" for keys saved by an early
// version. The name of a space has no blanks.
func savedHome(space, id string) string {
	if id == "" {
		return "space " + space
	}
	return "space " + space + " " + id
}

// FirstName returns the name in the records of k. A key that was moved keeps its first name there.
func (k *Key) FirstName() string { return cmp.Or(k.First, k.Name) }

// SilenceWindows returns the silences that the configuration of k has. k may be nil.
func (k *Key) SilenceWindows() []rules.SilenceWindow {
	if k == nil {
		return nil
	}
	return k.Rules.SilenceWindows()
}

// Place returns the place of k in the site with an ID.
func (k *Key) Place(siteID string) Place {
	return Place{Home: k.Home(siteID), Key: k.FirstName()}
}

// ErrEmptyTag is returned for a tag expression that names no tag.
var ErrEmptyTag = errors.New("it names no tag; write a tag expression, such as ops,dev")

// DestinationName returns the name under which a destination is stored. With limits, the
// destination is a client's and has a name of its own, even if the operator uses the same URL:
// messages of clients do not delay the operator's.
func DestinationName(t notifier.Target, limits *notifier.Limits) string {
	if limits != nil {
		return ofClients + t.Hash()
	}
	return t.Hash()
}

// ofClients is the prefix of the name of a destination with limits.
const ofClients = "client "

// DestinationHash returns the hash of the destination in a [DestinationName].
func DestinationHash(name string) string { return strings.TrimPrefix(name, ofClients) }

// IsDevice reports whether shown is the text that a device is shown as.
func IsDevice(shown string) bool { return strings.HasPrefix(shown, DeviceScheme) }

// DeviceScheme is the prefix of the text that a device is shown as. No URL can have it.
const DeviceScheme = "device://"

// Place identifies a key in all sites and spaces. It stays the same when a saved key is moved to
// another name.
type Place struct {
	Home string // see [Key.Home]
	Key  string // see [Key.FirstName]
}

// String returns the place as a part of the names of stored records.
func (p Place) String() string { return p.Home + "\x00" + p.Key }
