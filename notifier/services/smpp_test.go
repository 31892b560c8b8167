package services

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linxGnu/gosmpp/data"
	gosmpp "github.com/linxGnu/gosmpp/pdu"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// testCA is the only CA that the tests of this package trust.
var testCA = servicetest.NewTrustedCA()

// smppCentre is a message centre that can be closed and opened again, and can have
// TLS. It logs what it accepts.
type smppCentre struct {
	config *tls.Config
	log    servicetest.Log
	*servicetest.Server
}

func newSMPPCentre(t *testing.T, config *tls.Config) *smppCentre {
	t.Helper()
	c := &smppCentre{config: config}
	c.open(t, "")
	return c
}

func (c *smppCentre) open(t *testing.T, at string) {
	t.Helper()
	c.Server = servicetest.Serve(t, at, c.config, func(conn net.Conn) {
		c.log.Add("connected")
		for {
			p, err := gosmpp.Parse(conn)
			if err != nil || !c.accept(p) {
				return
			}
			writePDU(conn, p.GetResponse())
		}
	})
}

func writePDU(conn net.Conn, p gosmpp.PDU) {
	b := gosmpp.NewBuffer(nil)
	p.Marshal(b)
	_, _ = conn.Write(b.Bytes())
}

func (c *smppCentre) url(rest string) string {
	scheme := "smpp"
	if c.config != nil {
		scheme = "smpps"
	}
	return scheme + "://bob:s3cret%268@" + c.Addr() + "/15557654321" + rest
}

// accept logs a request. It reports false for a wrong password.
func (c *smppCentre) accept(p gosmpp.PDU) bool {
	switch p := p.(type) {
	case *gosmpp.BindRequest:
		return p.SystemID == "bob" && p.Password == "s3cret&8"
	case *gosmpp.SubmitSM:
		text, err := p.Message.GetMessageData()
		if err != nil {
			c.log.Add(err.Error())
		}
		part := ""
		if total, number, _, ok := p.Message.UDH().GetConcatInfo(); ok {
			part = fmt.Sprintf(" part %v", []byte{total, number})
		}
		c.log.Add(fmt.Sprintf("%d/%d %s > %d/%d %s coding=%d class=%d receipt=%d%s %q",
			p.SourceAddr.Ton(), p.SourceAddr.Npi(), p.SourceAddr.Address(), p.DestAddr.Ton(), p.DestAddr.Npi(), p.DestAddr.Address(),
			p.Message.Encoding().DataCoding(), p.EsmClass, p.RegisteredDelivery, part, text))
	case *gosmpp.Unbind:
		c.log.Add("unbind")
	}
	return true
}

func TestSMPP(t *testing.T) {
	const way = "1/1 15557654321 > 1/1 15551112222 "
	long := strings.Repeat("0123456789", 20)
	cases := []struct {
		rest, title, body string
		want              []string
	}{
		{"/15551112222", "", "91% full", []string{way + `coding=0 class=0 receipt=0 "91% full"`}},
		{"/+1(555)111-2222/15553334444/nonsense?to=15555556666", "", "x", []string{
			way + `coding=0 class=0 receipt=0 "x"`,
			`1/1 15557654321 > 1/1 15553334444 coding=0 class=0 receipt=0 "x"`,
			`1/1 15557654321 > 1/1 15555556666 coding=0 class=0 receipt=0 "x"`,
		}},
		{"/15551112222", "Title", "a@b_{é}", []string{way + `coding=0 class=0 receipt=0 "Title\r\na\x00b\x11\x1b(\x05\x1b)"`}},
		{"/15551112222", "", "☃ 😀", []string{way + `coding=8 class=0 receipt=0 "&\x03\x00 \xd8=\xde\x00"`}},
		{"/15551112222", "", long[:160], []string{way + fmt.Sprintf("coding=0 class=0 receipt=0 %q", long[:160])}},
		{"/15551112222", "", long[:161], []string{
			way + fmt.Sprintf("coding=0 class=64 receipt=0 part [2 1] %q", long[:153]),
			way + fmt.Sprintf("coding=0 class=64 receipt=0 part [2 2] %q", long[153:161]),
		}},
		// Neither an escape nor a surrogate pair is cut.
		{"/15551112222", "", long[:152] + "€" + long[:10], []string{
			way + fmt.Sprintf("coding=0 class=64 receipt=0 part [2 1] %q", long[:152]),
			way + fmt.Sprintf("coding=0 class=64 receipt=0 part [2 2] %q", "\x1be"+long[:10]),
		}},
		{"/15551112222", "", strings.Repeat("😀", 36), []string{
			way + fmt.Sprintf("coding=8 class=64 receipt=0 part [2 1] %q", strings.Repeat("\xd8=\xde\x00", 33)),
			way + fmt.Sprintf("coding=8 class=64 receipt=0 part [2 2] %q", strings.Repeat("\xd8=\xde\x00", 3)),
		}},
		{
			"/15551112222?from=15550000000", "", "x",
			[]string{
				strings.Replace(way, "15557654321", "15550000000", 1) + `coding=0 class=0 receipt=0 "x"`,
				"1/1 15550000000 > 1/1 15557654321 coding=0 class=0 receipt=0 \"x\"",
			},
		},
	}
	for _, c := range cases {
		centre, s := newSMPPCentre(t, nil), servicetest.NewSender(t)
		if r := servicetest.Send(t, s, centre.url(c.rest), &notifier.Message{Title: c.title, Body: c.body}, 5*time.Second); r.Err != nil {
			t.Errorf("%s: %v", c.rest, r.Err)
			continue
		}
		got := centre.log.Take()
		if len(got) == 0 || got[0] != "connected" || !sameLines(got[1:], c.want) {
			t.Errorf("%s, %q: the centre saw\n\t%s\nwant, on one connection,\n\t%s",
				c.rest, c.body, strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
		}
	}
}

// sameLines reports whether got and want have the same lines. The order may differ,
// since several targets are sent to at the same time.
func sameLines(got, want []string) bool {
	left := append([]string{}, want...)
	for _, line := range got {
		found := false
		for i, w := range left {
			if w == line {
				left, found = append(left[:i], left[i+1:]...), true
				break
			}
		}
		if !found {
			return false
		}
	}
	return len(left) == 0
}

func TestSMPPSession(t *testing.T) {
	const line = `1/1 15557654321 > 1/1 15551112222 coding=0 class=0 receipt=0 "%s"`
	centre := newSMPPCentre(t, nil)
	s := notifier.NewSender(egress.NewPool("test"), 0)
	url := centre.url("/15551112222")
	servicetest.SendText(t, s, url, "one")
	servicetest.SendText(t, s, url, "two")
	centre.log.Expect(t, "connected", fmt.Sprintf(line, "one"), fmt.Sprintf(line, "two"))

	at := centre.Addr()
	centre.Stop()
	servicetest.SendFails(t, s, url, "refused")
	centre.log.Take()
	centre.open(t, at)
	servicetest.SendText(t, s, url, "three")
	centre.log.Expect(t, "connected", fmt.Sprintf(line, "three"))

	// A connection that broke unnoticed loses no message.
	centre.Stop()
	centre.open(t, at)
	servicetest.SendText(t, s, url, "four")
	centre.log.Expect(t, "connected", fmt.Sprintf(line, "four"))

	s.Close()
	var got []string
	servicetest.Eventually(t, "Close has not ended the session", func() bool { got = centre.log.Take(); return got != nil })
	if len(got) != 1 || got[0] != "unbind" {
		t.Errorf("the centre saw %q", got)
	}
}

func TestSMPPOverTLS(t *testing.T) {
	centre, s := newSMPPCentre(t, servicetest.SelfSigned(t, "localhost")), servicetest.NewSender(t)
	servicetest.SendFails(t, s, centre.url("/15551112222"), "certificate", "s3cret")
	if r := servicetest.Send(t, s, centre.url("/15551112222?verify=no"), &notifier.Message{Body: "x"}, 5*time.Second); r.Err != nil {
		t.Fatal(r.Err)
	}
	plain := strings.Replace(centre.url("/15551112222"), "smpps", "smpp", 1)
	servicetest.SendFails(t, s, plain, "SMPP")

	config, otherName := testCA.Certificate(t, "127.0.0.1"), testCA.Certificate(t, "smpp.example.org")
	centre = newSMPPCentre(t, config)
	servicetest.SendText(t, s, centre.url("/15551112222"), "trusted")
	centre.log.Expect(t, "connected", `1/1 15557654321 > 1/1 15551112222 coding=0 class=0 receipt=0 "trusted"`)
	servicetest.SendFails(t, s, newSMPPCentre(t, otherName).url("/15551112222"), "certificate", "s3cret")
}

func TestSMPPWrongPassword(t *testing.T) {
	t.Parallel()
	centre, s := newSMPPCentre(t, nil), servicetest.NewSender(t)
	url := strings.Replace(centre.url("/15551112222"), "s3cret%268", "another1", 1)
	servicetest.SendFails(t, s, url, "check the user and the password", "another1")
	silent := servicetest.SilentServer(t)
	servicetest.Unanswered(t, s, "smpp://bob:another1@"+silent+"/15557654321/15551112222", "timeout")
	servicetest.Unanswered(t, s, "smpps://bob:another1@"+silent+"/15557654321/15551112222", "timeout")
}

// smppScript starts a message centre that answers what answer returns for request n of connection
// conn, both from 1. It closes the connection if there are none (nil).
func smppScript(t *testing.T, answer func(conn, n int, p gosmpp.PDU) []gosmpp.PDU) (url string) {
	t.Helper()
	var number atomic.Int32
	server := servicetest.Serve(t, "", nil, func(conn net.Conn) {
		for c, n := int(number.Add(1)), 1; ; n++ {
			p, err := gosmpp.Parse(conn)
			if err != nil {
				return
			}
			answers := answer(c, n, p)
			if answers == nil {
				return
			}
			for _, a := range answers {
				writePDU(conn, a)
			}
		}
	})
	return "smpp://bob:s3cret@" + server.Addr() + "/15557654321/15551112222"
}

// smppAnswer returns the answer to a request, with a status.
func smppAnswer(p gosmpp.PDU, status data.CommandStatusType) gosmpp.PDU {
	switch a := p.GetResponse().(type) {
	case *gosmpp.BindResp:
		a.CommandStatus = status
		return a
	case *gosmpp.SubmitSMResp:
		a.CommandStatus = status
		return a
	default:
		return a
	}
}

func TestSMPPRefusals(t *testing.T) {
	for _, c := range []struct {
		name         string
		bind, submit data.CommandStatusType
		want         string
	}{
		{"password", data.ESME_RINVPASWD, 0, "the SMPP server refused the login: Invalid Password (ESME_RINVPASWD)"},
		{"number", 0, data.ESME_RINVDSTADR, "the SMPP server refused the message: Invalid Dest Addr (ESME_RINVDSTADR)"},
		{"session", 0, data.ESME_RINVBNDSTS, "ESME_RINVBNDSTS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := smppScript(t, func(_, _ int, p gosmpp.PDU) []gosmpp.PDU {
				if _, ok := p.(*gosmpp.SubmitSM); ok {
					return []gosmpp.PDU{smppAnswer(p, c.submit)}
				}
				return []gosmpp.PDU{smppAnswer(p, c.bind)}
			})
			servicetest.SendFails(t, servicetest.NewSender(t), url, c.want, "s3cret")
		})
	}
}

// A server may send a request or a stray answer before its answer, end a session, or
// answer with a generic_nack. No message is lost, and none counts as sent that was
// not.
func TestSMPPUnexpectedPDUs(t *testing.T) {
	log := &servicetest.Log{}
	url := smppScript(t, func(conn, n int, p gosmpp.PDU) []gosmpp.PDU {
		m, ok := p.(*gosmpp.SubmitSM)
		if !ok {
			log.Add(fmt.Sprintf("%d: %T", conn, p))
			if p.CanResponse() {
				return []gosmpp.PDU{smppAnswer(p, 0)}
			}
			return []gosmpp.PDU{}
		}
		text, _ := m.Message.GetMessage()
		log.Add(fmt.Sprintf("%d: %s", conn, text))
		switch {
		case text == "one":
			stray := gosmpp.NewSubmitSMResp()
			stray.SetSequenceNumber(m.GetSequenceNumber() + 1000)
			return []gosmpp.PDU{gosmpp.NewEnquireLink(), gosmpp.NewDeliverSM(), gosmpp.NewQuerySM(), stray, smppAnswer(p, 0)}
		case text == "two" && conn == 1:
			return []gosmpp.PDU{gosmpp.NewUnbind()}
		case text == "three" && conn == 2:
			return nil
		case text == "four" && conn == 3:
			nack := gosmpp.NewGenericNack().(*gosmpp.GenericNack)
			nack.CommandStatus = data.ESME_RSYSERR
			return []gosmpp.PDU{nack}
		}
		return []gosmpp.PDU{smppAnswer(p, 0)}
	})
	s := servicetest.NewSender(t)
	all := ""
	for i, text := range []string{"one", "two", "three", "four"} {
		servicetest.SendText(t, s, url, text)
		got := strings.Join(log.Take(), "\n")
		all += got
		if n := i + 1; i > 0 && (!strings.Contains(got, fmt.Sprintf("%d: %s", n-1, text)) ||
			!strings.Contains(got, fmt.Sprintf("%d: %s", n, text))) {
			t.Errorf("%s: want it on the connection that breaks and on the next, got\n%s", text, got)
		}
	}
	for _, answer := range []string{"1: *pdu.EnquireLinkResp", "1: *pdu.DeliverSMResp", "1: *pdu.GenericNack", "1: *pdu.UnbindResp"} {
		// The server may log an answer later than the message that follows it.
		for deadline := time.Now().Add(time.Minute); !strings.Contains(all, answer) && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
			all += strings.Join(log.Take(), "\n")
		}
		if !strings.Contains(all, answer) {
			t.Errorf("want the answer %s, got\n%s", answer, all)
		}
	}
}

// A retry does not repeat the parts that have arrived.
func TestSMPPRetry(t *testing.T) {
	log := &servicetest.Log{}
	first := true
	url := smppScript(t, func(_, _ int, p gosmpp.PDU) []gosmpp.PDU {
		m, ok := p.(*gosmpp.SubmitSM)
		if !ok {
			return []gosmpp.PDU{smppAnswer(p, 0)}
		}
		text, _ := m.Message.GetMessage()
		concat, _ := m.Message.UDH().FindInfoElement(data.UDH_CONCAT_MSG_8_BIT_REF)
		log.Add(fmt.Sprintf("%d %x", len(text), concat.Data))
		if concat.Data[2] == 2 && first {
			first = false
			return []gosmpp.PDU{smppAnswer(p, data.ESME_RMSGQFUL)}
		}
		return []gosmpp.PDU{smppAnswer(p, 0)}
	})
	servicetest.SendText(t, servicetest.NewSender(t), url+"?retry=1&wait=0", strings.Repeat("x", 310))
	got := log.Take()
	if len(got) != 4 || got[1] != got[2] || !strings.HasPrefix(got[0], "153 ") || !strings.HasPrefix(got[3], "4 ") {
		t.Errorf("the centre saw %q", got)
	}
}

func TestSMPPParts(t *testing.T) {
	coding, parts, err := smppParts("")
	if err != nil || coding != data.GSM7BIT || len(parts) != 1 || len(parts[0]) != 0 {
		t.Errorf("an empty text becomes %v, %q, %v", coding, parts, err)
	}
	if _, parts, err = smppParts(strings.Repeat("x", 153*255)); err != nil || len(parts) != 255 {
		t.Errorf("the longest text becomes %d parts, %v", len(parts), err)
	}
	if _, _, err = smppParts(strings.Repeat("x", 153*255+1)); err == nil || !strings.Contains(err.Error(), "overflow") {
		t.Errorf("a longer one: %v", err)
	}
}

func TestSMPPPing(t *testing.T) {
	url := smppScript(t, func(_, n int, p gosmpp.PDU) []gosmpp.PDU {
		if _, ok := p.(*gosmpp.EnquireLink); !ok || n > 1 {
			return nil
		}
		return []gosmpp.PDU{smppAnswer(p, 0)}
	})
	address, _, _ := strings.Cut(strings.TrimPrefix(url, "smpp://bob:s3cret@"), "/")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	l := &smppLink{conn: &wire.Conn{Conn: conn}}
	if err := l.Ping(t.Context()); err != nil {
		t.Errorf("Ping of an open connection: %v", err)
	}
	if err := l.Ping(t.Context()); err == nil {
		t.Error("Ping of a closed connection succeeds")
	}
}
