package services

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[mastodon]()

// mastodon posts a status on a Mastodon server.
type mastodon struct {
	notifier.Server
	token, scheme                      string
	targets, ping                      []string
	visibility, spoiler, key, language string
	sensitive, batch                   bool
	me                                 notifier.Cached[string]
}

// mastodonImages is the max number of pictures of a status.
const mastodonImages = 4

func (t *mastodon) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Mastodon", "https://docs.joinmastodon.org/methods/statuses/"
	s.Recipients = 1 // the lists have mentions, of one status
	s.Setup = "Open Preferences, Development, New application in Mastodon, " +
		"allow read:accounts, write:media and write:statuses, and copy Your access token."
	s.Groups(notifier.GroupSocial)
	s.Words("fediverse", "activitypub")
	s.URL("mastodon[s]|toot[s]://{token}@{host}[:{port}][/{targets...}]")
	s.Hints(
		notifier.Hint{Text: `@(?<targets>\w+@(?<host>[\w.-]+\.[a-z]+))`, Is: "the name of an account", Guess: true},
	)
	s.Attachments = true
	s.Foreign = &notifier.ForeignText{Mentions: chattext.BreakMentions}
	s.Server(&t.Server)
	s.Secret(&t.token, "token", "access token").Example("AbCdEf0123456789GhIjKlMnOpQrStUvWxYz0123456")
	s.List(&t.targets, "targets", "@users and #tags to mention").Alias("to").Normalize(mastodonMention).Example("@alice")
	s.List(&t.ping, "ping", "further @users and #tags to mention").Normalize(mastodonPing).DropInvalid()
	s.Choice(&t.visibility, "visibility", "", []string{"default", "direct", "private", "unlisted", "public"},
		"who sees the status; default: as set in the account; public with toot://")
	s.String(&t.spoiler, "spoiler", "", "content warning that hides the status")
	s.String(&t.key, "key", "", "any text; the same status with the same key is posted once an hour at most")
	s.String(&t.language, "language", "", "language of the status, as in en")
	s.Bool(&t.sensitive, "sensitive", false, "hide pictures until the reader clicks on them")
	s.Bool(&t.batch, "batch", true, "put up to 4 pictures into a status")
	s.Ignore("cache", "the account of the token is always kept", "yes", "no")
	s.Param("host").Example("mastodon.example.com")
}

var (
	mastodonUser = lazyregexp.New(`(?i)^@?([a-z0-9_]+(?:@[a-z0-9_.-]+)?)$`)
	mastodonTag  = lazyregexp.New(`^#[\pL\pN][\pL\pN_]*$`)
	// mastodonMentions finds users and tags in a text.
	mastodonMentions = lazyregexp.New(`(?i)@[a-z0-9_]+(?:@[a-z0-9_.-]*[a-z0-9_-])?|#[\pL\pN][\pL\pN_]*`)
)

func mastodonMention(text string) (string, error) {
	if m := mastodonUser.FindStringSubmatch(text); m != nil {
		return "@" + m[1], nil
	}
	if mastodonTag.MatchString(text) && strings.Trim(text, "#_0123456789") != "" {
		return text, nil
	}
	return "", errors.New("is not a @user or a #tag")
}

// mastodonPing is mastodonMention for a text that must begin with @ or #.
func mastodonPing(text string) (string, error) {
	if !strings.HasPrefix(text, "@") && !strings.HasPrefix(text, "#") {
		return "", errors.New("must begin with @ or #")
	}
	return mastodonMention(text)
}

// Finish reserves room for the mentions after the text.
func (t *mastodon) Finish(s *notifier.Schema) error {
	t.scheme = s.Scheme
	s.Limits.Title = 0
	s.Limits.Body = max(500-len([]rune(strings.Join(append([]string{""}, t.mentions("")...), " "))), 1)
	return nil
}

// mentions returns the users and tags to mention that text does not contain.
func (t *mastodon) mentions(text string) (out []string) {
	seen := mastodonMentions.FindAllString(text, -1)
	for _, name := range slices.Concat(t.targets, t.ping) {
		if !slices.ContainsFunc(seen, func(s string) bool { return strings.EqualFold(s, name) }) {
			out, seen = append(out, name), append(seen, name)
		}
	}
	return out
}

func (t *mastodon) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	visibility := t.visibility
	switch {
	case visibility == "default":
		visibility = ""
	case visibility == "" && strings.HasPrefix(t.scheme, "toot"):
		visibility = "public"
	}
	text := m.Body
	if visibility == "direct" {
		var err error
		if text, err = t.address(ctx, c, text); err != nil {
			return err
		}
	}
	text = strings.Join(append([]string{text}, t.mentions(text)...), " ")
	batches, err := t.upload(ctx, c, m.Attachments)
	if err != nil {
		return err
	}
	var errs []error
	for i, media := range batches {
		status := mastodonStatus{
			Status: text, Sensitive: t.sensitive, Visibility: visibility, Spoiler: t.spoiler, Language: t.language, Media: media,
		}
		if len(media) > 0 && (i > 0 || m.Body == "") {
			status.Status, status.Sensitive = fmt.Sprintf("%02d/%02d", i+1, len(batches)), false
		}
		err := c.Steps.Once(fmt.Sprint("status ", i), func() error { return t.post(ctx, c, status) })
		if err != nil && i == 0 {
			return err // alone, so that the text can be sent without pictures
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (t *mastodon) post(ctx context.Context, c *notifier.Client, status mastodonStatus) error {
	q := t.request("POST", notifier.JSON(status), "statuses")
	if t.key != "" {
		// For an hour, a server answers a known key with the status that it has
		// under that key. Each status therefore has a different key.
		q.Header["Idempotency-Key"] = fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, t.key, status)))
	}
	return c.DoJSON(ctx, q, nil)
}

type mastodonStatus struct {
	Status     string   `json:"status"`
	Sensitive  bool     `json:"sensitive"`
	Visibility string   `json:"visibility,omitempty"`
	Spoiler    string   `json:"spoiler_text,omitempty"`
	Language   string   `json:"language,omitempty"`
	Media      []string `json:"media_ids,omitempty"`
}
