package services

import (
	"context"
	"encoding/base64"
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
	values             map[string]string // custom, decoded if decode is set
}

// oneSignalBatch is the max number of recipients of one request.
const oneSignalBatch = 2000

func (o *oneSignal) Describe(s *notifier.Schema) {
	s.Name, s.Site = "OneSignal", "https://documentation.onesignal.com/reference/create-notification"
	s.Setup = "Open Settings, Keys & IDs of your app in OneSignal, which shows the app ID and where API keys are created."
	s.URL("onesignal://{app}@{apikey}/{targets...}", "onesignal://{template}:{app}@{apikey}/{targets...}")
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
	s.Bool(&o.decode, "decode", false, "decode the values of custom data from base64")
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
	o.values = o.custom
	if !o.decode {
		return nil
	}
	o.values = map[string]string{}
	for k, v := range o.custom {
		text, err := base64.StdEncoding.DecodeString(v)
		if err != nil {
			return errors.New("a value of custom data is not base64; remove decode=yes if the values are plain text")
		}
		o.values[k] = string(text)
	}
	return nil
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
