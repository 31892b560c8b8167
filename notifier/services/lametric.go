package services

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[lametric]()

// lametric shows a message on a LaMetric Time, either directly on a device or
// through an indicator app in LaMetric's cloud.
type lametric struct {
	notifier.Server
	apiKey   string
	app      string
	version  string
	token    string
	mode     string
	priority string
	icon     string
	iconType string
	sound    int
	cycles   int

	device notifier.Server // has no Host for an app
	key    string          // of the device
}

func (l *lametric) Describe(s *notifier.Schema) {
	s.Name, s.Site = "LaMetric", "https://lametric-documentation.readthedocs.io/en/latest/"
	s.Setup = "The API key of a device is in the LaMetric app or under My Devices at developer.lametric.com; " +
		"the page of your indicator app there shows its ID and access token."
	s.Groups(notifier.GroupHome)
	s.Words("clock", "lametric time", "lametric sky", "display")
	s.URL(
		"lametric[s]://{app_token}@{app_id}[/{app_ver}]",
		"lametric[s]://{user}:{apikey}@{host}[:{port}]",
		"lametric[s]://{apikey}@{host}[:{port}]",
	)
	s.Way(3, "with the API key of a device in your network")
	s.Way(1, "with an indicator app, through the cloud of LaMetric")
	s.Way(2, "with a user name and the API key of a device")
	s.Native("https://developer.lametric.com/api/v1/dev/widget/update/com.lametric.{app_id}[/{app_ver}]?mode=cloud")
	s.Limits.Title = 0
	s.Acknowledge = notifier.AcknowledgeNowhere
	s.Server(&l.Server)
	s.Secret(&l.apiKey, "apikey", "key of the device").Example("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	s.Secret(&l.app, "app_id", "ID of the app").Alias("app").
		Match(`^(com\.lametric\.)?[0-9a-z.-]{1,64}(/[1-9][0-9]*)?$`).Normalize(lametricApp).Example("941c51dff3135bd87aa72db9d855dd50")
	s.String(&l.version, "app_ver", "1", "version of the app").Match(`^[1-9][0-9]*$`).Example("1")
	s.Secret(&l.token, "app_token", "access token of the app").Alias("token").
		Match(`^[A-Z0-9]{80,}==$`).Example(strings.Repeat("AbCdEf0123", 8) + "AbCdEf==")
	s.Choice(&l.mode, "mode", "", []string{"cloud", "device"}, "cloud for an app, device for a device; default: cloud with an app_token")
	s.Choice(&l.priority, "priority", "info", []string{"info", "warning", "critical"}, "priority on a device").Lenient()
	s.String(&l.icon, "icon", "", "number of an icon in LaMetric's gallery; default: by the message's type").Normalize(lametricIcon)
	s.Choice(&l.iconType, "icon_type", "none", []string{"info", "alert", "none"}, "icon that a device shows before the message").Lenient()
	s.Enum(&l.sound, "sound", "", lametricSounds, "sound that a device plays").Lenient()
	s.Int(&l.cycles, "cycles", 1, "how often a device shows the message; 0: until dismissed").Range(0, 1000).Lenient()
	s.Param("user").Example("dev")
}

// lametricApp drops the prefix com.lametric. of the ID of an app.
func lametricApp(s string) (string, error) {
	const prefix = "com.lametric."
	if len(s) > len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		s = s[len(prefix):]
	}
	return s, nil
}

// lametricIcon drops the # before the number of an icon.
func lametricIcon(s string) (string, error) {
	return strings.ToLower(cmp.Or(strings.TrimLeft(s, "# \t"), s)), nil
}

// Finish decides whether the URL is for an app or for a device.
func (l *lametric) Finish(*notifier.Schema) error {
	if i := strings.IndexByte(l.app, '/'); i >= 0 {
		l.app, l.version = l.app[:i], l.app[i+1:]
	}
	if l.mode == "cloud" || l.mode == "" && l.token != "" {
		if l.token == "" || l.app == "" {
			return errors.New("an app needs its ID and its access token; expected lametric://{app_token}@{app_id}")
		}
		return nil
	}
	l.device, l.key = l.Server, l.apiKey
	if l.key == "" {
		// With mode=device, the URL of an app is read as the URL of a device.
		l.device.Host, l.key = l.app, l.token
	}
	l.device.Port = cmp.Or(l.device.Port, 8080)
	return nil
}

var lametricIcons = map[notifier.Type]string{
	notifier.Info: "i620", notifier.Success: "i9182", notifier.Warning: "i9183", notifier.Failure: "i9184",
}

func (l *lametric) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	frame := map[string]any{"icon": cmp.Or(l.icon, lametricIcons[m.Type]), "text": m.Body}
	q := &notifier.Request{Header: map[string]string{"Cache-Control": "no-cache"}}
	if l.device.Host == "" {
		frame["index"] = 0
		q.URL = "https://developer.lametric.com/api/v1/dev/widget/update" + notifier.Path("com.lametric."+l.app, l.version)
		q.Header["X-Access-Token"] = l.token
		q.Body = notifier.JSON(map[string]any{"frames": []any{frame}})
	} else {
		q.URL = l.device.URL("api", "v2", "device", "notifications")
		q.User, q.Password = cmp.Or(l.User, "dev"), l.key
		model := map[string]any{"cycles": l.cycles, "frames": []any{frame}}
		if l.sound > 0 {
			model["sound"] = lametricSound(l.sound)
		}
		// The device drops the message after a lifetime of two minutes.
		q.Body = notifier.JSON(map[string]any{
			"priority": l.priority, "icon_type": l.iconType, "lifetime": 120000, "model": model,
		})
	}
	_, err := c.Do(ctx, q)
	return err
}
