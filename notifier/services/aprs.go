package services

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

var _ = notifier.Register[aprs]()

// aprs sends messages to radio amateurs over APRS-IS, the network that links
// their stations through the Internet.
type aprs struct {
	user, password string
	targets        []string
	delay          float64
	locale         string
}

func (a *aprs) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Aprs", "https://www.aprs-is.net/Connecting.aspx"
	s.URL("aprs://{user}:{password}@{targets...}")
	s.Limits.Title, s.Limits.Body = 0, aprsMost
	s.String(&a.user, "user", "", "call sign to send from").Match(aprsStation).Normalize(aprsUpper).Example("DF1ABC-10")
	s.Secret(&a.password, "password", "passcode of the call sign").Alias("pass").Normalize(aprsPasscode).Example("12345")
	s.List(&a.targets, "targets", "call signs to send to").Alias("to").Match(aprsCallSign).Normalize(aprsUpper).Example("DF2DEF")
	s.Float(&a.delay, "delay", 0, "seconds between two call signs").Range(0, 5)
	s.Choice(&a.locale, "locale", "EURO", []string{"NOAM", "SOAM", "EURO", "ASIA", "AUNZ", "ROTA"}, "part of the world whose servers are used")
}

const (
	// aprsStation is what may stand before a > in a packet.
	aprsStation = `^[0-9a-z]{3,7}(-[0-9a-z]{1,2})?$`

	// aprsCallSign is a prefix, a digit and a suffix, and perhaps the number
	// of one of its owner's stations.
	aprsCallSign = `^[0-9a-z]{1,2}[0-9][0-9a-z]{1,3}(-[0-9]{1,2})?$`
)

func aprsUpper(s string) (string, error) { return strings.ToUpper(s), nil }

func aprsPasscode(s string) (string, error) {
	if s == "-1" {
		return "", errors.New("is the passcode for listening only")
	}
	if n, err := strconv.ParseUint(s, 10, 16); err != nil || n > 32767 {
		return "", errors.New("is not an APRS-IS passcode, which is a number from 0 to 32767")
	}
	return s, nil
}

func (a *aprs) Finish(*notifier.Schema) error {
	if len(a.targets) == 0 {
		return errors.New("there is no call sign to send to; write one behind the @, as in DF2DEF")
	}
	return nil
}

// aprsHosts are the rotating addresses of the servers. They are asked at the
// port where nothing comes back but what is addressed to the call sign.
var aprsHosts = map[string]string{
	"NOAM": "noam.aprs2.net", "SOAM": "soam.aprs2.net", "EURO": "euro.aprs2.net",
	"ASIA": "asia.aprs2.net", "AUNZ": "aunz.aprs2.net", "ROTA": "rotate.aprs2.net",
}

const aprsPort = 14580

// Send signs in anew for each message: on a connection that stays open the
// network would take the gateway for a station that listens. After a failure
// all is sent again; the network drops what it has seen within 30 seconds.
func (a *aprs) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	text := aprsText(m.Body)
	if cut := aprsCut(text); cut != text {
		c.Warn("the message was cut to %d characters, which is all that APRS takes", aprsMost)
		text = cut
	}
	conn, err := wire.Dial(ctx, c, aprsHosts[a.locale], aprsPort, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer wire.InterruptOnDone(ctx, conn)()
	if err := a.talk(ctx, c, aprsConn{conn}, text); err != nil {
		return errs.ContextError(ctx, err)
	}
	return nil
}

func (a *aprs) talk(ctx context.Context, c *notifier.Client, conn aprsConn, text string) error {
	if err := conn.signIn(ctx, c.AnswerTimeout(), a.user, a.password); err != nil {
		return err
	}
	for i, target := range a.targets {
		if i > 0 && !pause(ctx, time.Duration(a.delay*float64(time.Second))) {
			return context.Cause(ctx)
		}
		if err := conn.send(a.user, target, text); err != nil {
			return err
		}
	}
	return conn.finish()
}

// pause waits, and says whether there is time left.
func pause(ctx context.Context, d time.Duration) bool {
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

// aprsMost is how many characters a message may have (APRS101, chapter 14).
const aprsMost = 67

// aprsSpelled writes out the letters of which many sets show nothing, and
// leaves out the characters that have a meaning in a message.
var aprsSpelled = strings.NewReplacer(
	"Ä", "Ae", "Ö", "Oe", "Ü", "Ue", "ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss",
	"{", "", "}", "", "|", "", "~", "",
)

var aprsControl = regexp.MustCompile(`[\pC\pZ]+`)

// aprsText is the text in one line, as a message may hold it.
func aprsText(s string) string {
	return aprsSpelled.Replace(strings.TrimSpace(aprsControl.ReplaceAllString(s, " ")))
}

// aprsCut is the beginning of a text that a message has room for.
func aprsCut(s string) string {
	if r := []rune(s); len(r) > aprsMost {
		s = string(r[:aprsMost])
	}
	return strings.TrimRight(s, " ")
}
