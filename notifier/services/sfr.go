package services

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[sfr]()

// sfr sends text messages through the messaging service of SFR (Société Française
// du Radiotéléphone).
type sfr struct {
	sms
	user, password, space, lang, from, media, voice string
	timeout                                         int
}

func (x *sfr) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Société Française du Radiotéléphone", "https://www.dmc.sfr-sh.fr/"
	s.Setup = "Service ID, its password and space ID are those of your account " +
		"with SFR's messaging service; its documentation is at www.dmc.sfr-sh.fr."
	s.Groups(notifier.GroupSMS, notifier.GroupRegional)
	s.Words("france")
	s.URL("sfr://{user}:{password}@{space_id}/{targets...}")
	x.describe(s, notifier.FullPhone)
	s.String(&x.user, "user", "", "ID of the service").Example("0123456")
	s.Secret(&x.password, "password", "password of the service").Alias("pass").Example("pa55word")
	s.Secret(&x.space, "space_id", "ID of the space").Example("0123456789")
	s.String(&x.lang, "lang", "fr_FR", "language of the service's answers")
	s.String(&x.from, "sender", "", "name to send from").Alias("from")
	s.Choice(&x.media, "media", "SMSUnicode", []string{"SMS", "SMSLong", "SMSUnicode", "SMSUnicodeLong"}, "kind of message").Lenient()
	s.Int(&x.timeout, "timeout", 2880, "minutes to try delivery for").Range(0, 1e6).Lenient()
	s.Choice(&x.voice, "voice", "claire08s", []string{"claire08s", "laura8k"}, "voice that reads the message aloud").Lenient()
}

func (x *sfr) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	authenticate := sfrObject("serviceId", sfrString(x.user), "servicePassword", sfrString(x.password),
		"spaceId", sfrString(x.space), "lang", sfrString(x.lang))
	return c.Steps.Each(ctx, x.targets, func(ctx context.Context, number string) error {
		message := sfrObject("media", sfrString(x.media), "textMsg", sfrString(m.Body), "to", sfrString(number),
			"from", sfrString(x.from), "timeout", strconv.Itoa(x.timeout), "ttsVoice", sfrString(x.voice))
		var answer struct {
			Success     bool
			ErrorDetail string
		}
		err := smsAsk(ctx, c, &notifier.Request{
			Method: http.MethodPost,
			URL:    "https://www.dmc.sfr-sh.fr/DmcWS/1.5.8/JsonService/MessagesUnitairesWS/addSingleCall",
			Query:  notifier.Fields("authenticate", authenticate, "messageUnitaire", message),
		}, &answer)
		if err == nil && !answer.Success {
			err = smsRefused(answer.ErrorDetail)
		}
		return err
	})
}

// sfrObject returns a JSON object. pairs alternates between names and values in
// JSON. The object becomes a query parameter; it is ASCII only, so that it does not
// depend on the character encoding of the server.
func sfrObject(pairs ...string) string {
	var members []string
	for i := 0; i+1 < len(pairs); i += 2 {
		members = append(members, sfrString(pairs[i])+": "+pairs[i+1])
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// sfrString returns s as a JSON string of ASCII characters (RFC 8259, section 7).
func sfrString(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r >= ' ' && r < 0x7f:
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	return `"` + b.String() + `"`
}
