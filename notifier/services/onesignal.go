package services

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[oneSignal]()

// oneSignal pushes through OneSignal to devices, e-mail addresses, users and
// segments of an app.
type oneSignal struct {
	app, key, template string
	players            []string // player IDs and e-mail addresses
	users, segments    []string
	subtitle, language string
	image, contents    bool
	batch, decode      bool
	custom, data       map[string]string
	values             map[string]any // custom, decoded if decode is set
}

// oneSignalBatch is the max number of recipients of one request.
const oneSignalBatch = 2000

func (o *oneSignal) Describe(s *notifier.Schema) {
	s.Name, s.Site = "OneSignal", "https://documentation.onesignal.com/reference/create-notification"
	s.Setup = "Open Settings, Keys & IDs of your app in OneSignal, which shows the app ID and where API keys are created."
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.Groups(notifier.GroupPhone)
	s.Words("mobile app", "web push service")
	s.URL("onesignal://{app}@{apikey}/{targets...}", "onesignal://{template}:{app}@{apikey}/{targets...}")
	s.Way(1, "with the text of the message")
	s.Way(2, "with a template of OneSignal")
	s.Hints(
		notifier.Hint{Text: `(?<apikey>os_v2_app_\w+)`, Is: "an API key"},
	)
	s.Secret(&o.app, "app", "app ID").Example("01234567-89ab-cdef-0123-456789abcdef")
	s.Secret(&o.key, "apikey", "API key of the app").Match(`\S`).Example("os_v2_app_abcdef0123456789ghijklmnopqrstuv")
	s.Secret(&o.template, "template", "ID of a template").Example("01234567-89ab-cdef-0123-456789abcdef")
	s.List(&o.players, "targets", "player IDs, e-mail addresses, @users and #segments",
		notifier.Prefixed{Prefix: "@", Items: &o.users, Doc: "external ID of a user"},
		notifier.Prefixed{Prefix: "#", Items: &o.segments, Doc: "name of a segment"}).Alias("to").Match("^..").Example("alice@example.com")
	s.String(&o.subtitle, "subtitle", "", "line below the title")
	s.String(&o.language, "language", "en", "language of the message").Alias("lang").Normalize(oneSignalLanguage)
	s.Bool(&o.image, "image", true, "show the icon of the message's type")
	s.Bool(&o.contents, "contents", true, "send the message's text together with the template")
	s.Bool(&o.batch, "batch", false, "send to up to 2000 recipients with one request")
	s.Bool(&o.decode, "decode", false, "decode values of custom data that begin with b64:, which are base64 of JSON")
	s.Map(&o.custom, ":", "custom", "custom data for the template")
	s.Map(&o.data, "+", "postback", "data for the app")
}

// oneSignalLanguage returns the first two letters of a language code, or the
// full code of one of the two scripts of Chinese.
func oneSignalLanguage(s string) (string, error) {
	if i := slices.Index([]string{"zh-hans", "zh-hant"}, strings.ToLower(s)); i >= 0 {
		return []string{"zh-Hans", "zh-Hant"}[i], nil
	}
	if len(s) < 2 {
		return "", errors.New("is not a language code such as en")
	}
	return strings.ToLower(s[:2]), nil
}

func (o *oneSignal) Finish(*notifier.Schema) error {
	if len(o.players)+len(o.users)+len(o.segments) == 0 {
		return errors.New("the URL has no target; add a player ID, an e-mail address, a @user or a #segment to the path")
	}
	o.values = map[string]any{}
	for k, v := range o.custom {
		o.values[k] = v
		if encoded, ok := strings.CutPrefix(v, "b64:"); ok && o.decode {
			if value := oneSignalDecode(encoded); value != nil {
				o.values[k] = value
			}
		}
	}
	return nil
}

// Warning implements notifier.Warner.
func (o *oneSignal) Warning() string {
	for _, v := range o.values {
		if text, ok := v.(string); ok && o.decode && strings.HasPrefix(text, "b64:") {
			return "a value of custom data is not base64 of JSON and is sent as it is; remove decode=yes if the values are plain text"
		}
	}
	return ""
}

// oneSignalDecode returns the JSON in base64, of either alphabet, or nil if there is
// none.
func oneSignalDecode(s string) json.RawMessage {
	s = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(s), "=")
	text, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil || !json.Valid(text) {
		return nil
	}
	return text
}

func (o *oneSignal) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	size := 1
	if o.batch {
		size = oneSignalBatch
	}
	isEmail := func(s string) bool { return strings.Contains(s, "@") }
	batches := map[string][]string{}
	for field, targets := range map[string][]string{
		"include_player_ids":        slices.DeleteFunc(slices.Clone(o.players), isEmail),
		"include_email_tokens":      slices.DeleteFunc(slices.Clone(o.players), func(s string) bool { return !isEmail(s) }),
		"include_external_user_ids": o.users,
		"included_segments":         o.segments,
	} {
		for batch := range slices.Chunk(targets, size) {
			batches[field+" "+batch[0]] = batch
		}
	}
	return c.Steps.Each(ctx, slices.Sorted(maps.Keys(batches)), func(ctx context.Context, key string) error {
		payload := o.payload(m)
		field, _, _ := strings.Cut(key, " ")
		payload[field] = batches[key]
		return o.post(ctx, c, payload)
	})
}
