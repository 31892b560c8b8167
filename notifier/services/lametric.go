package services

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[lametric]()

// lametric shows a message on a LaMetric Time: on a device in reach, or by way
// of an indicator app in LaMetric's cloud.
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

	device notifier.Server // no host where an app is meant
	key    string          // of the device
}

func (l *lametric) Describe(s *notifier.Schema) {
	s.Name, s.Site = "LaMetric", "https://lametric-documentation.readthedocs.io/en/latest/"
	s.URL(
		"lametric[s]://{app_token}@{app_id}[/{app_ver}]",
		"lametric[s]://{user}:{apikey}@{host}[:{port}]",
		"lametric[s]://{apikey}@{host}[:{port}]",
	)
	s.Native("https://developer.lametric.com/api/v1/dev/widget/update/com.lametric.{app_id}[/{app_ver}]?mode=cloud")
	s.Limits.Title = 0
	s.Server(&l.Server)
	s.Secret(&l.apiKey, "apikey", "key of the device").Example("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	s.Secret(&l.app, "app_id", "ID of the app").Alias("app").
		Match(`^(com\.lametric\.)?[0-9a-z.-]{1,64}(/[1-9][0-9]*)?$`).Normalize(lametricApp).Example("941c51dff3135bd87aa72db9d855dd50")
	s.String(&l.version, "app_ver", "1", "version of the app").Match(`^[1-9][0-9]*$`).Example("1")
	s.Secret(&l.token, "app_token", "access token of the app").Alias("token").
		Match(`^[A-Z0-9]{80,}==$`).Example(strings.Repeat("AbCdEf0123", 8) + "AbCdEf==")
	s.Choice(&l.mode, "mode", "", []string{"cloud", "device"}, "cloud for an app, device for a device; found out by itself")
	s.Choice(&l.priority, "priority", "info", []string{"info", "warning", "critical"}, "priority on a device").Lenient()
	s.String(&l.icon, "icon", "", "number of an icon in LaMetric's gallery; default by type").Normalize(lametricIcon)
	s.Choice(&l.iconType, "icon_type", "none", []string{"info", "alert", "none"}, "what a device shows before the message").Lenient()
	s.Enum(&l.sound, "sound", "", lametricSounds, "sound that a device plays").Lenient()
	s.Int(&l.cycles, "cycles", 1, "how often a device shows it; 0 until dismissed").Range(0, 1000).Lenient()
	s.Param("user").Example("dev")
}

// lametricApp drops what all IDs of apps begin with.
func lametricApp(s string) (string, error) {
	const prefix = "com.lametric."
	if len(s) > len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		s = s[len(prefix):]
	}
	return s, nil
}

// lametricIcon drops the # that people write before a number.
func lametricIcon(s string) (string, error) {
	return strings.ToLower(cmp.Or(strings.TrimLeft(s, "# \t"), s)), nil
}

// Finish finds out what the URL means, an app or a device.
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
		// Where the URL says device, what looks like an app is one.
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
		// The device forgets the message after two minutes.
		q.Body = notifier.JSON(map[string]any{
			"priority": l.priority, "icon_type": l.iconType, "lifetime": 120000, "model": model,
		})
	}
	_, err := c.Do(ctx, q)
	return err
}
