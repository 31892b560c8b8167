package services

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// localLog returns a socket that stands for /dev/log, and a sender that uses it.
func localLog(t *testing.T, path string) (net.PacketConn, *notifier.Sender) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "log")
	l, err := net.ListenPacket("unixgram", socket)
	if err != nil {
		t.Skip("this system has no sockets of that kind:", err)
	}
	t.Cleanup(func() { l.Close() })
	return l, newDialSender(t, dialMap{"unixgram " + path: socket})
}

// packet returns the next packet.
func packet(t *testing.T, l net.PacketConn) string {
	t.Helper()
	if err := l.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1<<16)
	n, _, err := l.ReadFrom(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func TestSyslog(t *testing.T) {
	l, s := localLog(t, "/dev/log")
	process := fmt.Sprintf("Caddy[%d]", os.Getpid())
	plain := "Mar  1 12:30:15 " + process + ": Disk almost full: Volume /data is at 91% on host-7"
	cases := []struct{ url, message, want string }{
		{"syslog://", "plain", "<14>" + plain},
		{"syslog://", "notitle", "<10>Mar  1 12:30:15 " + process + ": " + servicetest.Message(t, "notitle").Body},
		{"syslog://local5", "plain", "<174>" + plain},
		{"syslog://?facility=mail", "plain", "<22>" + plain},
		{"syslog://kern", "plain", "<6>" + plain},
		{"syslog://?logpid=no", "plain", "<14>" + strings.Replace(plain, process, "Caddy", 1)},
		{"syslog://?tz=Asia/Tokyo", "plain", "<14>" + strings.Replace(plain, "12:30", "21:30", 1)},
		{"syslog://?logperror=no", "plain", "<14>" + plain},
	}
	var urls []string
	for _, c := range cases {
		urls = append(urls, c.url)
		m := servicetest.Message(t, c.message)
		if !strings.Contains(c.url, "tz=") {
			c.url += map[bool]string{true: "&", false: "?"}[strings.Contains(c.url, "?")] + "tz=UTC"
		}
		if r := servicetest.Send(t, s, c.url, m, 5*time.Second); r.Err != nil {
			t.Errorf("%s: %v", c.url, r.Err)
			continue
		}
		if got := packet(t, l); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.url, got, c.want)
		}
	}
	expectParams(t, "Syslog", urls)
}

func TestSyslogTypes(t *testing.T) {
	l, s := localLog(t, "/var/run/syslog")
	for kind, want := range map[notifier.Type]string{
		notifier.Info: "<14>", notifier.Success: "<13>", notifier.Warning: "<12>", notifier.Failure: "<10>",
	} {
		if r := servicetest.Send(t, s, "syslog://", &notifier.Message{Body: "x", Type: kind}, 5*time.Second); r.Err != nil {
			t.Fatal(r.Err)
		}
		if got := packet(t, l); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q does not begin with %s", kind, got, want)
		}
	}
}

// Each message is one line of the standard error.
func TestSyslogStandardError(t *testing.T) {
	l, s := localLog(t, "/var/run/log")
	old := os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stderr = w
	result := servicetest.Send(t, s, "syslog://?logperror=yes&logpid=no", &notifier.Message{
		Title: "Title", Body: "one\r\ntwo\x1b[31m\nCaddy: three", Identity: &notifier.Identity{Name: "My: Caddy\n"},
	}, 5*time.Second)
	os.Stderr = old
	w.Close()
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if want := "My-Caddy: Title: one  two [31m Caddy: three\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := packet(t, l); !strings.HasSuffix(got, " My-Caddy: Title: one\r\ntwo\x1b[31m\nCaddy: three") {
		t.Errorf("the log got %q", got)
	}
}

// No URL of a client can write to the machine's log, even if egress allows all
// destinations.
func TestSyslogIsNoClients(t *testing.T) {
	l, s := localLog(t, "/dev/log")
	everything, err := egress.NewPolicy([]string{"all"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, guard := range []*egress.Policy{{}, everything} {
		for _, u := range []string{"syslog://", "syslog://auth?logperror=yes"} {
			d, err := s.Parse(u, guard)
			if err != nil {
				t.Fatal(err)
			}
			r := s.Send(t.Context(), &notifier.Message{Body: "forged"}, []notifier.Target{{Destination: d}}, notifier.Options{}).Results[0]
			if r.Err == nil || !strings.Contains(r.Err.Error(), "machine") {
				t.Errorf("%s: %v", u, r.Err)
			}
		}
	}
	servicetest.SendText(t, s, "syslog://", "true")
	if got := packet(t, l); !strings.HasSuffix(got, ": true") {
		t.Errorf("the log got %q", got)
	}
}

func TestSyslogMissing(t *testing.T) {
	servicetest.SendFails(t, newDialSender(t, dialMap{}), "syslog://", "this machine has no syslog socket")
}

func TestRSyslog(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	host, _ := os.Hostname()
	head := "1 2026-03-01T12:30:15.000000Z " + syslogName(host, 255) + " Caddy "
	process := fmt.Sprint(os.Getpid())
	const text = " - - Disk almost full: Volume /data is at 91% on host-7"
	cases := []struct{ rest, message, want string }{
		{"?tz=UTC", "plain", "<14>" + head + process + text},
		{"?tz=UTC", "notitle", "<10>" + head + process + " - - " + servicetest.Message(t, "notitle").Body},
		{"/local0?tz=UTC", "plain", "<134>" + head + process + text},
		{"/?facility=cron&tz=UTC", "plain", "<78>" + head + process + text},
		{"/daemon?tz=UTC&logpid=no", "plain", "<30>" + head + "-" + text},
		{"?tz=Asia/Tokyo", "plain", "<14>" + strings.Replace(head, "12:30:15.000000Z", "21:30:15.000000+09:00", 1) + process + text},
	}
	s := servicetest.NewSender(t)
	var urls []string
	for _, c := range cases {
		urls = append(urls, c.rest)
		if r := servicetest.Send(t, s, "rsyslog://"+l.LocalAddr().String()+c.rest,
			servicetest.Message(t, c.message), 5*time.Second); r.Err != nil {
			t.Errorf("%s: %v", c.rest, r.Err)
			continue
		}
		if got := packet(t, l); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.rest, got, c.want)
		}
	}
	expectParams(t, "Remote Syslog", urls)
}

// A name of a sender cannot add a field or a line to the header.
func TestSyslogName(t *testing.T) {
	for in, want := range map[string]string{
		"Caddy": "Caddy", "": "-", "a b\r\nc\x00[7]: d": "a-bc7-d",
		"Überwachung": "berwachung", "ü": "-", "abcdef": "abcdef", "abcdefghij": "abcdefgh",
	} {
		if got := syslogName(in, 8); got != want[:min(len(want), 8)] {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
