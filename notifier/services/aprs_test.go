package services

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// aprsServer starts an APRS-IS server that accepts the call sign DF1ABC-10 with
// the passcode 12345.
func aprsServer(t *testing.T, address string, log *servicetest.Log) *servicetest.Server {
	t.Helper()
	return servicetest.Serve(t, address, nil, func(conn net.Conn) { serveAPRS(conn, log) })
}

func serveAPRS(conn net.Conn, log *servicetest.Log) {
	say := func(line string) { _, _ = conn.Write([]byte(line + "\r\n")) }
	say("# aprsc 2.1.19 1 Mar 2026 12:30:15 GMT")
	lines := bufio.NewScanner(conn)
	verified := false
	for lines.Scan() {
		line := lines.Text()
		log.Add(line)
		if f := strings.Fields(line); len(f) > 3 && f[0] == "user" {
			verified = f[1] == "DF1ABC-10" && f[3] == "12345"
			say("# comment")
			say("# logresp " + f[1] + map[bool]string{true: " verified", false: " unverified"}[verified] + ", server T2TEST")
			say("DB0XYZ>APRS,TCPIP*:>what others say")
		} else if !verified {
			log.Add("(dropped)")
		}
	}
	log.Add("(closed)")
}

func TestAPRS(t *testing.T) {
	log := &servicetest.Log{}
	euro := aprsServer(t, "", log)
	elsewhere := &servicetest.Log{}
	noam := aprsServer(t, "", elsewhere)
	s := newDialSender(t, dialMap{"tcp euro.aprs2.net:14580": euro.Addr(), "tcp noam.aprs2.net:14580": noam.Addr()})
	const signIn = "user DF1ABC-10 pass 12345 vers caddy-notify 1"
	const text = "Disk almost full Volume /data is at 91% on host-7"
	cases := []struct {
		rest, body string
		want       []string
	}{
		{"df2def", "", []string{"DF1ABC-10>APZCDN,TCPIP*::DF2DEF   :" + text}},
		{"DF2DEF-7/DB3GHI?to=OE1XYZ", "", []string{
			"DF1ABC-10>APZCDN,TCPIP*::DF2DEF-7 :" + text,
			"DF1ABC-10>APZCDN,TCPIP*::DB3GHI   :" + text,
			"DF1ABC-10>APZCDN,TCPIP*::OE1XYZ   :" + text,
		}},
		{"nonsense/df2def", "x", []string{"DF1ABC-10>APZCDN,TCPIP*::DF2DEF   :x"}},
		{"df2def", "Tür {1}|~ geöffnet\r\nDF9ZZZ>APRS:>forged\x00", []string{
			"DF1ABC-10>APZCDN,TCPIP*::DF2DEF   :Tuer 1 geoeffnet DF9ZZZ>APRS:>forged",
		}},
		{"df2def", strings.Repeat("123456789 ", 8), []string{
			"DF1ABC-10>APZCDN,TCPIP*::DF2DEF   :" + strings.Repeat("123456789 ", 6) + "1234567",
		}},
		{"df2def?overflow=split", strings.Repeat("123456789 ", 8), []string{
			"DF1ABC-10>APZCDN,TCPIP*::DF2DEF   :" + strings.Repeat("123456789 ", 5) + "123456789",
			"(closed)", signIn,
			"DF1ABC-10>APZCDN,TCPIP*::DF2DEF   :123456789 123456789",
		}},
		{"df2def?delay=0.001", "x", []string{"DF1ABC-10>APZCDN,TCPIP*::DF2DEF   :x"}},
	}
	for _, c := range cases {
		m := servicetest.Message(t, "plain")
		if c.body != "" {
			m = &notifier.Message{Body: c.body}
		}
		if r := servicetest.Send(t, s, "aprs://df1abc-10:12345@"+c.rest, m, 10*time.Second); r.Err != nil {
			t.Errorf("%s: %v", c.rest, r.Err)
			continue
		}
		log.Expect(t, append(append([]string{signIn}, c.want...), "(closed)")...)
	}
	servicetest.SendText(t, s, "aprs://df1abc-10:12345@df2def?locale=noam", "x")
	log.Expect(t)
	elsewhere.Expect(t, signIn, "DF1ABC-10>APZCDN,TCPIP*::DF2DEF   :x", "(closed)")
}

// The delay separates two call signs: if it is longer than the time limit of the
// delivery, nothing is sent to the second one.
func TestAPRSDelay(t *testing.T) {
	t.Parallel()
	log := &servicetest.Log{}
	server := aprsServer(t, "", log)
	s := newDialSender(t, dialMap{"tcp euro.aprs2.net:14580": server.Addr()})
	r := servicetest.Send(t, s, "aprs://df1abc-10:12345@df2def/db3ghi?delay=5", &notifier.Message{Body: "x"}, time.Second)
	if r.Err == nil || !strings.Contains(r.Err.Error(), "timeout") {
		t.Errorf("got %v", r.Err)
	}
	if got := strings.Join(log.Take(), "\n"); !strings.Contains(got, "DF2DEF") || strings.Contains(got, "DB3GHI") {
		t.Errorf("the server saw\n%s", got)
	}
}

func TestAPRSFailures(t *testing.T) {
	t.Parallel()
	log := &servicetest.Log{}
	server := aprsServer(t, "", log)
	s := newDialSender(t, dialMap{"tcp euro.aprs2.net:14580": server.Addr(), "tcp noam.aprs2.net:14580": servicetest.SilentServer(t)})
	servicetest.SendFails(t, s, "aprs://df1abc-10:23456@df2def", "passcode", "23456")
	checkTemporary(t, servicetest.Send(t, s, "aprs://df1abc-10:23456@df2def", &notifier.Message{Body: "x"}, 10*time.Second), final, "passcode")
	for _, line := range log.Take() {
		if strings.Contains(line, "DF2DEF") {
			t.Errorf("sent without a login: %s", line)
		}
	}
	servicetest.Unanswered(t, s, "aprs://df1abc-10:12345@df2def?locale=NOAM", "timeout")
	server.Stop()
	servicetest.SendFails(t, s, "aprs://df1abc-10:12345@df2def", "refused")
	log.Take()
	aprsServer(t, server.Addr(), log)
	servicetest.SendText(t, s, "aprs://df1abc-10:12345@df2def", "x")
	log.Expect(t, "user DF1ABC-10 pass 12345 vers caddy-notify 1", "DF1ABC-10>APZCDN,TCPIP*::DF2DEF   :x", "(closed)")
}
