package services

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[bark]()

// bark pushes to the Bark app on iOS through a Bark server.
type bark struct {
	notifier.Server
	devices         []string
	sound, level    string
	volume, badge   int
	click, icon     string
	category, group string
	image, call     bool
	key             string
}

// barkDefaultVolume means that the URL sets no volume.
const barkDefaultVolume = math.MinInt32

// Maximum lengths of title and body together, in bytes. Apple's push service
// accepts 4096 bytes of JSON, which also contain the other parameters, escape
// sequences and, for an encrypted message, the overhead of base64.
const (
	barkMaxText      = 3400
	barkMaxEncrypted = 2400
)

func (b *bark) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Bark", "https://bark.day.app/#/tutorial"
	s.Setup = "Install the Bark app, which shows an example URL such as https://api.day.app/KEY/…: " +
		"its host is host, and KEY is the device key for targets."
	s.Groups(notifier.GroupPhone)
	s.Words("iphone", "ios", "apple")
	s.URL("bark[s]://[{user}[:{password}]@]{host}[:{port}]/{targets...}")
	s.Hints(
		notifier.Hint{Text: `(?<address>https://api\.day\.app)/(?<targets>[A-Za-z0-9]{16,64})(?:/\S*)?`, Is: "the address of a device"},
	)
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.Limits = markup.Limits{Unit: markup.UTF8Bytes, Title: 500, Body: barkMaxText, InBody: true}
	s.Server(&b.Server)
	s.List(&b.devices, "targets", "device keys").Alias("to").Secret().Example("kAbC1dEf2GhI3jKl4MnO5p")
	s.Choice(&b.sound, "sound", "", barkSounds, "sound to play").Lenient()
	s.Choice(&b.level, "level", "", []string{"active", "timeSensitive", "passive", "critical"}, "interruption level of the alert").Lenient()
	s.Int(&b.volume, "volume", barkDefaultVolume, "volume of a critical alert, from 0 to 10").NoDefault().Lenient()
	s.Int(&b.badge, "badge", -1, "number on the app's icon").Range(0, math.MaxInt32).NoDefault().Lenient()
	s.String(&b.click, "click", "", "address to open when the message is tapped")
	s.String(&b.icon, "icon", "", "address of the icon to show")
	s.String(&b.category, "category", "", "category of the message")
	s.String(&b.group, "group", "", "group to list the message in")
	s.Bool(&b.image, "image", true, "show an icon for the type of the message")
	s.Bool(&b.call, "call", false, "repeat the sound for 30 seconds")
	s.Secret(&b.key, "key", "encryption key, as set in the app").Normalize(barkKey).
		Example("1234567890abcdef")
	s.Param("host").Example("api.day.app")
}

// Finish reserves room for the other parameters in the limit for the text.
func (b *bark) Finish(s *notifier.Schema) error {
	if b.key != "" {
		s.Limits.Body = barkMaxEncrypted
	}
	// Bark sends the group to Apple's push service twice.
	s.Limits.Reserve = min(len(b.click)+len(b.icon)+len(b.category)+2*len(b.group), s.Limits.Body/2)
	return nil
}

func (b *bark) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	payload, err := b.payload(m)
	if err != nil {
		return err
	}
	return c.Steps.Each(ctx, b.devices, func(ctx context.Context, device string) error {
		request := map[string]any{"device_key": device}
		maps.Copy(request, payload)
		_, err := c.Do(ctx, &notifier.Request{URL: b.URL("push"), Login: &b.Server, Body: notifier.JSON(request)})
		if status, ok := errors.AsType[*notifier.StatusError](err); ok && strings.Contains(status.Body, "PayloadTooLarge") {
			// The Bark server answers 500 if Apple's push service refuses the message.
			err = notifier.Refused(err)
		}
		return err
	})
}

// payload returns the request without the device key.
func (b *bark) payload(m *notifier.Message) (map[string]any, error) {
	payload := map[string]any{"title": cmp.Or(m.Title, m.Identity.Description)}
	if m.Format == notifier.Markdown {
		payload["markdown"] = m.Body
	} else {
		payload["body"] = m.Body
	}
	icon := b.icon
	if icon == "" && b.image {
		icon = m.Icon(128)
	}
	for name, v := range map[string]string{
		"icon": icon, "sound": b.sound, "url": b.click, "level": b.level, "category": b.category, "group": b.group, "id": m.NotificationID(),
	} {
		if v != "" {
			payload[name] = v
		}
	}
	if b.badge >= 0 {
		payload["badge"] = b.badge
	}
	if b.volume != barkDefaultVolume {
		payload["volume"] = b.volume
	}
	if b.call {
		payload["call"] = 1
	}
	if b.key == "" {
		return payload, nil
	}
	return b.encrypt(payload)
}

var barkSounds = []string{
	"alarm.caf", "anticipate.caf", "bell.caf", "birdsong.caf", "bloom.caf", "calypso.caf", "chime.caf",
	"choo.caf", "descent.caf", "electronic.caf", "fanfare.caf", "glass.caf", "gotosleep.caf",
	"healthnotification.caf", "horn.caf", "ladder.caf", "mailsent.caf", "minuet.caf", "multiwayinvitation.caf",
	"newmail.caf", "newsflash.caf", "noir.caf", "paymentsuccess.caf", "shake.caf", "sherwoodforest.caf",
	"silence.caf", "spell.caf", "suspense.caf", "telegraph.caf", "tiptoes.caf", "typewriters.caf",
	"update.caf",
}
