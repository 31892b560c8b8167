package services

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[dapnet]()

// dapnet sends messages to the pagers of radio amateurs through DAPNET.
type dapnet struct {
	sms
	user, password string
	groups         []string
	priority       int
}

func (d *dapnet) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Dapnet", "https://hampager.de/dokuwiki/doku.php"
	s.Setup = "User and password are those of your DAPNET account at hampager.de, for which you need an amateur radio licence."
	s.Groups(notifier.GroupHome)
	s.Words("pager", "pocsag", "ham radio", "amateur radio")
	s.URL("dapnet://{user}:{password}@{targets...}")
	s.Limits.Title, s.Limits.Body = 0, 80
	s.Acknowledge = notifier.AcknowledgeNowhere
	s.List(&d.targets, "targets", "call signs to send to").Alias("to").Normalize(dapnetCallSign).Example("DF1ABC")
	d.describeBatch(s)
	s.String(&d.user, "user", "", "user name").Example("DF1ABC")
	s.Secret(&d.password, "password", "password").Alias("pass").Example("pa55word")
	s.Enum(&d.priority, "priority", "normal", []notifier.Choice{
		{Name: "normal", Value: 0}, {Name: "emergency", Value: 1},
	}, "priority of the message").Lenient()
	s.List(&d.groups, "txgroups", "transmitter groups; default: dl-all").Secret()
}

// dapnetPattern matches a call sign: a prefix, a digit and a suffix, with an
// optional station number (SSID).
var dapnetPattern = lazyregexp.New(`(?i)^([0-9a-z]{1,2}[0-9][a-z0-9]{1,3})(-[0-9]{1,2})?$`)

// dapnetCallSign returns the call sign without the station number, because pagers
// have none.
func dapnetCallSign(s string) (string, error) {
	m := dapnetPattern.FindStringSubmatch(s)
	if m == nil {
		return "", errors.New("is not a call sign")
	}
	return m[1], nil
}

func (d *dapnet) Finish(s *notifier.Schema) error {
	s.Recipients = len(d.targets)
	if len(d.targets) == 0 {
		return errors.New("there is no call sign to send to; write one after the @, as in DF1ABC")
	}
	return nil
}

func (d *dapnet) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	groups := []string{"dl-all"}
	if len(d.groups) > 0 {
		groups = strings.Split(strings.ToLower(strings.Join(d.groups, ",")), ",")
		slices.Sort(groups)
	}
	return d.each(ctx, c, d.targets, 50, func(ctx context.Context, names []string) error {
		_, err := c.Do(ctx, &notifier.Request{
			URL:  "http://www.hampager.de:8080/calls",
			User: d.user, Password: d.password,
			Body: notifier.JSON(map[string]any{
				"text": m.Body, "callSignNames": names, "transmitterGroupNames": groups, "emergency": d.priority == 1,
			}),
			Accept: func(code int) bool { return code == http.StatusCreated },
		})
		return err
	})
}
