package services

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[streamlabs]()

// streamlabs shows an alert, or a donation, on a stream.
type streamlabs struct {
	token, call                string
	alert, image, sound, color string
	name, identifier, currency string
	duration, amount           int
}

func (l *streamlabs) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Streamlabs", "https://dev.streamlabs.com/reference/alerts"
	s.Setup = "Register an app with Streamlabs and get an access token with the scope " +
		"alerts.create or donations.create through OAuth 2.0, as its API documentation describes."
	s.Groups(notifier.GroupMedia)
	s.Words("twitch", "obs", "youtube live", "live stream")
	s.URL("strmlabs://{access_token}")
	s.Limits.Body = 255
	s.Acknowledge = notifier.AcknowledgeNowhere
	s.Secret(&l.token, "access_token", "access token").Match(`^[a-z0-9]{40}$`).Example("IcIcArukDQtuC1is1X1UdKZjTg118Lag2vScOmso")
	s.Choice(&l.call, "call", "ALERTS", []string{"ALERTS", "DONATIONS"}, "show the message as an alert or as a donation")
	s.Choice(&l.alert, "alert_type", "donation", []string{"follow", "subscription", "donation", "host"}, "alert box that an alert goes to")
	s.String(&l.image, "image_href", "", "URL of a picture for an alert")
	s.String(&l.sound, "sound_href", "", "URL of a sound for an alert")
	s.Int(&l.duration, "duration", 1000, "milliseconds to show an alert for").Range(0, 3600000).Lenient()
	s.String(&l.color, "special_text_color", "", "CSS colour of an alert's special words").Normalize(streamlabsUpper)
	s.String(&l.name, "name", "Anon", "name of the donor, of 2 to 25 characters").Match(`^[^\s].{1,24}$`).Normalize(streamlabsUpper)
	s.String(&l.identifier, "identifier", "Apprise", "ID of the donor, the same for all donations of one donor").Normalize(streamlabsUpper)
	s.Int(&l.amount, "amount", 0, "amount of the donation").Range(0, 1e9).Lenient()
	s.String(&l.currency, "currency", "USD", "currency of the donation, in three letters").Match(`^[A-Z]{3}$`).Normalize(streamlabsUpper)
}

func streamlabsUpper(s string) (string, error) { return strings.ToUpper(s), nil }

func (l *streamlabs) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	var form url.Values
	if l.call == "DONATIONS" {
		form = notifier.Fields("access_token", l.token, "name", l.name, "identifier", l.identifier,
			"amount", strconv.Itoa(l.amount), "currency", l.currency, "message", m.Body)
	} else {
		form = notifier.Fields("access_token", l.token, "type", l.alert, "image_href", l.image, "sound_href", l.sound,
			"duration", strconv.Itoa(l.duration), "special_text_color", l.color, "message", m.Title, "user_message", m.Body)
	}
	return c.PostForm(ctx, "https://streamlabs.com/api/v1.0/"+strings.ToLower(l.call), form)
}
