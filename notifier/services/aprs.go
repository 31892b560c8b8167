package services

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

var _ = notifier.Register[aprs]()

// aprs sends messages to radio amateurs over APRS-IS, which connects their
// stations through the Internet.
type aprs struct {
	user, password string
	targets        []string
	delay          float64
	locale         string
}

func (a *aprs) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Aprs", "https://www.aprs-is.net/Connecting.aspx"
	s.Setup = "The user is your amateur radio call sign, and the password is its APRS-IS passcode, " +
		"which the author of your APRS software gives to licensed amateurs."
	s.Groups(notifier.GroupHome)
	s.Words("ham radio", "amateur radio", "aprs-is")
	s.URL("aprs://{user}:{password}@{targets...}")
	s.Limits.Title, s.Limits.Body = 0, aprsMaxLength
	s.Acknowledge = notifier.AcknowledgeNowhere
	s.String(&a.user, "user", "", "call sign to send from").Match(aprsStation).Normalize(aprsUpper).Example("DF1ABC-10")
	s.Secret(&a.password, "password", "passcode of the call sign").Alias("pass").Normalize(aprsPasscode).Example("12345")
	s.List(&a.targets, "targets", "call signs to send to").Alias("to").Match(aprsCallSign).Normalize(aprsUpper).Example("DF2DEF")
	s.Float(&a.delay, "delay", 0, "seconds to wait between two call signs").Range(0, 5)
	s.Choice(&a.locale, "locale", "EURO", []string{"NOAM", "SOAM", "EURO", "ASIA", "AUNZ", "ROTA"}, "region of the APRS-IS servers to use")
}

const (
	// aprsStation matches the sender of a packet.
	aprsStation = `^[0-9a-z]{3,7}(-[0-9a-z]{1,2})?$`

	// aprsCallSign matches a prefix, a digit and a suffix, with an optional
	// station number (SSID).
	aprsCallSign = `^[0-9a-z]{1,2}[0-9][0-9a-z]{1,3}(-[0-9]{1,2})?$`
)

func aprsUpper(s string) (string, error) { return strings.ToUpper(s), nil }

// aprsPasscode checks a passcode. It refuses -1, because the network accepts no
// packets from such a client.
func aprsPasscode(s string) (string, error) {
	if s == "-1" {
		return "", errors.New("must not be -1, with which a station can only receive")
	}
	if n, err := strconv.ParseUint(s, 10, 16); err != nil || n > 32767 {
		return "", errors.New("must be an APRS-IS passcode, a number from 0 to 32767")
	}
	return s, nil
}

func (a *aprs) Finish(*notifier.Schema) error {
	if len(a.targets) == 0 {
		return errors.New("there is no call sign to send to; write one after the @, as in DF2DEF")
	}
	return nil
}

// aprsHosts has the host names of the servers by region. Each name stands for
// many servers.
var aprsHosts = map[string]string{
	"NOAM": "noam.aprs2.net", "SOAM": "soam.aprs2.net", "EURO": "euro.aprs2.net",
	"ASIA": "asia.aprs2.net", "AUNZ": "aunz.aprs2.net", "ROTA": "rotate.aprs2.net",
}

// aprsPort is the port for clients with a filter. Without a filter, as here, the
// server sends only packets that are addressed to the call sign.
const aprsPort = 14580

// Send signs in for each message, because with an open connection the network
// takes the gateway for a station that receives messages. A retry sends to all
// call signs again: the network drops packets that it has seen in the last 30
// seconds.
func (a *aprs) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	text := aprsLine(m.Body)
	if cut := aprsTruncate(text); cut != text {
		c.Warn("the message was cut to %d characters, the limit of APRS", aprsMaxLength)
		text = cut
	}
	conn, err := wire.Dial(ctx, c, aprsHosts[a.locale], aprsPort, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer wire.InterruptOnDone(ctx, conn)()
	if err := a.sendAll(ctx, c, aprsConn{conn}, text); err != nil {
		return errs.ContextError(ctx, err)
	}
	return nil
}

// sendAll signs in and sends text to all call signs.
func (a *aprs) sendAll(ctx context.Context, c *notifier.Client, conn aprsConn, text string) error {
	if err := conn.signIn(ctx, c.AnswerTimeout(), a.user, a.password); err != nil {
		return err
	}
	for i, target := range a.targets {
		if i > 0 && !sleep(ctx, time.Duration(a.delay*float64(time.Second))) {
			return context.Cause(ctx)
		}
		if err := conn.send(a.user, target, text); err != nil {
			return err
		}
	}
	return conn.finish()
}

// sleep waits for d. It returns false at once when ctx is done.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// aprsMaxLength is the maximum length of a message in characters (APRS101,
// chapter 14).
const aprsMaxLength = 67

// aprsReplacer writes German letters in ASCII, because many radios display
// nothing else, and removes the characters that are reserved in messages.
var aprsReplacer = strings.NewReplacer(
	"Ä", "Ae", "Ö", "Oe", "Ü", "Ue", "ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss",
	"{", "", "}", "", "|", "", "~", "",
)

var aprsControl = lazyregexp.New(`[\pC\pZ]+`)

// aprsLine returns s in one line without reserved characters.
func aprsLine(s string) string {
	return aprsReplacer.Replace(strings.TrimSpace(aprsControl.ReplaceAllString(s, " ")))
}

// aprsTruncate cuts s to the maximum length of a message.
func aprsTruncate(s string) string {
	if r := []rune(s); len(r) > aprsMaxLength {
		s = string(r[:aprsMaxLength])
	}
	return strings.TrimRight(s, " ")
}
