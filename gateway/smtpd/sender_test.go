package smtpd

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// converse sends commands to a server at once and returns all answers, the mails and the refusals
// that the server recorded.
func converse(t *testing.T, commands string) (answers string, mails []string, refused []Refusal) {
	t.Helper()
	var mu sync.Mutex
	s := newServer(func(mail io.Reader, to []Recipient) (*Outcome, error) {
		text, err := io.ReadAll(mail)
		mu.Lock()
		defer mu.Unlock()
		mails = append(mails, fmt.Sprintf("%d %s", len(to), text))
		return new(Outcome), err
	})
	s.gateway.Refused = func(r Refusal) {
		mu.Lock()
		defer mu.Unlock()
		refused = append(refused, r)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { s.Serve(l, false) })
	defer serving.Wait()
	defer s.Stop(new(Replaced), false)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, commands); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return string(all), mails, refused
}

// TestSenders sends mails of senders that are no addresses, as devices do.
func TestSenders(t *testing.T) {
	for _, sender := range []string{
		"FROM:<UPS>", "FROM:<root>", "FROM:<camera@>", "FROM:<Front Door@cam>", "FROM:<@nas>", "FROM:<>", "FROM:< ups@x >", "FROM:<a..b@x>",
		"FROM:<ups@x", "FROM:ups", "FROM:ups SIZE=10", "FROM:", "FROM:SIZE=10", "FROM: <ups@x>", "FROM:<UPS> SIZE=10 BODY=8BITMIME",
		"FROM <ups@x>", "FROM :<ups@x>",
		"FROM:Front Door <cam@x>", "FROM:<\"UPS\">", "FROM:<ups@x>> SIZE=10", "FROM:<Küche@x>", "FROM:<K\xFCche>", "FROM:<UPS> AUTH=<>",
		"from:<a,b@x>", "FROM:<[192.168.1.5]>",
	} {
		answers, mails, refused := converse(t, "EHLO x\r\nMAIL "+sender+"\r\nRCPT TO:<k@x>\r\nDATA\r\ntext\r\n.\r\nQUIT\r\n")
		if sender == "FROM:<ups@x" { // a bracket that is not closed may be a line that was cut
			if !strings.Contains(answers, "\r\n501 ") || len(mails) > 0 {
				t.Errorf("%s: %q", sender, answers)
			}
			continue
		}
		if !slices.Equal(mails, []string{"1 text\r\n"}) || len(refused) > 0 || !strings.Contains(answers, "250 2.0.0 delivered") {
			t.Errorf("%s: %q, mails %q, refused %v", sender, answers, mails, refused)
		}
	}
}

// TestProtocolRefusals checks that refusals of the protocol are recorded with the client's address,
// and that senders with control characters, and recipients, are read strictly.
func TestProtocolRefusals(t *testing.T) {
	for commands, code := range map[string]int{
		"EHLO x\r\nMAIL FROM:<a\x00b@x>\r\n":                       501,
		"EHLO x\r\nMAIL FROM:<a\rRCPT TO:<k@x>>\r\n":               501,
		"EHLO x\r\nMAIL FROM:<a\x1b[31m>\r\n":                      501,
		"EHLO x\r\nMAIL FROM:<a\tb>\r\n":                           501,
		"EHLO x\r\nMAIL FROM:<a\u009b31m>\r\n":                     501,
		"EHLO x\r\nMAIL FROM:<UPS> FOO=1\r\n":                      500,
		"EHLO x\r\nMAIL FROM:<UPS> SIZE=x\r\n":                     501,
		"EHLO x\r\nMAIL FROM:<UPS> SIZE=99999999\r\n":              552,
		"EHLO x\r\nMAIL TO:<k@x>\r\n":                              501,
		"MAIL FROM:<UPS>\r\n":                                      502,
		"EHLO x\r\nRCPT TO:<k@x>\r\n":                              502,
		"EHLO x\r\nMAIL FROM:<UPS>\r\nRCPT TO:<k>\r\n":             501,
		"EHLO x\r\nMAIL FROM:<UPS>\r\nRCPT TO:k x@x\r\n":           501,
		"EHLO x\r\nMAIL FROM:<UPS>\r\nRCPT TO:<k k@x>\r\n":         501,
		"EHLO x\r\nMAIL FROM:<UPS>\r\nDATA\r\n":                    502,
		"GET / HTTP/1.1\r\n":                                       501,
		"HELP\r\n":                                                 502,
		"STARTTLS\r\n":                                             502,
		"EHLO x\r\nAUTH PLAIN AGEAYg==\r\n":                        523,
		"EHLO x\r\nMAIL FROM:<UPS>\r\nMAIL\r\n":                    501,
		"EHLO x\r\nMAIL FROM:<UPS>\r\nRCPT TO:<k@x>\r\nBDAT x\r\n": 501,
	} {
		answers, mails, refused := converse(t, commands+"QUIT\r\n")
		if len(refused) != 1 || refused[0].Code != code || refused[0].Client.String() != "127.0.0.1" ||
			refused[0].Status != http.StatusBadRequest && code != 552 ||
			refused[0].Text == "" || refused[0].Mail || len(mails) > 0 || !strings.Contains(answers, fmt.Sprintf("\r\n%d ", code)) {
			t.Errorf("%q: refused %+v, answers %q", commands, refused, answers)
		}
	}
}

// TestSenderWithinMail checks that a command within a mail is a part of its text, whatever its sender is.
func TestSenderWithinMail(t *testing.T) {
	for _, inner := range []string{"MAIL FROM:<UPS>", "MAIL FROM:<Front Door@cam> SIZE=5", "MAIL FROM:ups"} {
		text := inner + "\r\nRCPT TO:<k@x>\r\nDATA\r\n"
		begin := "EHLO x\r\nMAIL FROM:<UPS>\r\nRCPT TO:<k@x>\r\n"
		for name, commands := range map[string]string{
			"DATA":                  begin + "DATA\r\n" + text + ".\r\n",
			"DATA with a lone dot":  begin + "DATA\r\n" + text + "\n.\n" + text + ".\r\n",
			"DATA with a lone CR":   begin + "DATA\r\n" + text + "\r.\r" + text + ".\r\n",
			"BDAT":                  begin + fmt.Sprintf("BDAT %d LAST\r\n%s", len(text), text),
			"BDAT in two pieces":    begin + fmt.Sprintf("BDAT 7\r\n%sBDAT %d LAST\r\n%s", text[:7], len(text)-7, text[7:]),
			"BDAT with an own dot":  begin + fmt.Sprintf("BDAT %d LAST\r\n%s.\r\n", len(text)+3, text),
			"the argument of MAIL":  "EHLO x\r\nMAIL FROM:<a\rMAIL FROM:<UPS>\r\n" + begin + "DATA\r\n" + text + ".\r\n",
			"a sender of two lines": "EHLO x\r\nMAIL FROM:<a\nMAIL FROM:<UPS>\r\n" + begin + "DATA\r\n" + text + ".\r\n",
		} {
			answers, mails, _ := converse(t, commands+"QUIT\r\n")
			if len(mails) != 1 || !strings.HasPrefix(mails[0], "1 "+inner) || strings.Count(answers, "delivered") != 1 {
				t.Errorf("%s, %s: mails %q, answers %q", name, inner, mails, answers)
			}
		}
	}
}

// TestSameRecipients checks that recipients of one key, type and tags are one.
func TestSameRecipients(t *testing.T) {
	for _, tt := range []struct {
		recipients string
		typ        notifier.Type // as the mail states
		want       int
	}{
		{"k@a k@b", "info", 1},
		{"k@a k@a k@a", "info", 1},
		{"k.failure@a k.critical@b", "info", 1},
		{"k+x@a k+X@b", "info", 1},
		{"k+x+y@a k+y+x@b", "info", 1},
		{"k+x|y@a k+y|x@b", "info", 1},
		{"k@a K@a", "info", 2},
		{"k@a k.failure@a", "info", 2},
		{"k@a k.info@a", "info", 1},
		{"k@a k.failure@b", "failure", 1},
		{"k.warning@a k.failure@b k@c", "success", 1},
		{"k.warning@a k.failure@b", "failure", 2},
		{"k@a k+x@a k+y@a k.warning@a", "info", 4},
	} {
		var to []Recipient
		for address := range strings.FieldsSeq(tt.recipients) {
			r, err := parseRecipient(address)
			if err != nil {
				t.Fatal(err)
			}
			to = append(to, r)
		}
		if got := Distinct(to, tt.typ); len(got) != tt.want {
			t.Errorf("%s of the type %s: %+v, want %d", tt.recipients, tt.typ, got, tt.want)
		}
	}
}
