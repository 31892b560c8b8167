package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// moment is the time of the messages.
var moment = time.Date(2026, 3, 1, 12, 30, 15, 0, time.UTC)

// rsyslogd starts a daemon that logs to a file what it receives over UDP and
// through a socket like /dev/log.
type rsyslogd struct {
	port           int
	socket, config string
	out            string
}

func newRsyslogd(t *testing.T) *rsyslogd {
	t.Helper()
	dir := t.TempDir()
	r := &rsyslogd{port: freePort(t), socket: filepath.Join(dir, "log"), out: filepath.Join(dir, "out")}
	r.config = writeFile(t, "rsyslog.conf", fmt.Sprintf(`
global(workDirectory="%[1]s" maxMessageSize="64k" parser.escapeControlCharactersOnReceive="off")
module(load="imudp")
module(load="imtcp")
module(load="imuxsock" SysSock.Use="off")
input(type="imudp" address="127.0.0.1" port="%[2]d")
input(type="imtcp" address="127.0.0.1" port="%[2]d")
input(type="imuxsock" Socket="%[3]s")
template(name="all" type="string" string="%%pri%%|%%app-name%%|%%procid%%|%%timereported:::date-rfc3339%%|%%msg%%<END>\n")
action(type="omfile" file="%[4]s" template="all")
`, dir, r.port, r.socket, r.out))
	return r
}

func (r *rsyslogd) start(t *testing.T) *server {
	t.Helper()
	s := start(t, r.port, program(t, "rsyslogd", "rsyslog"), "-n", "-f", r.config, "-i", filepath.Join(t.TempDir(), "pid"))
	// It listens at the port before it has the socket.
	eventually(t, "rsyslogd has its socket", func() bool {
		conn, err := net.Dial("unixgram", r.socket)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return s
}

// logs waits until this is the last entry of the log.
func (r *rsyslogd) logs(t *testing.T, entry string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the log ends in %q", entry), func() bool {
		b, _ := os.ReadFile(r.out)
		return strings.HasSuffix("\n"+string(b), "\n"+entry+"<END>\n")
	})
}

func TestRemoteSyslog(t *testing.T) {
	r, s := newRsyslogd(t), newSender(t)
	daemon := r.start(t)
	url := fmt.Sprintf("rsyslog://127.0.0.1:%d/local3?logpid=no&tz=UTC", r.port)
	m := &notifier.Message{Title: "Title", Body: body, Type: notifier.Failure, Time: moment}
	if result, _ := send(t, s, url, m); result.Err != nil {
		t.Fatal(result.Err)
	}
	r.logs(t, "154|Caddy|-|2026-03-01T12:30:15.000000Z|Title: "+body)

	m = &notifier.Message{Body: strings.Repeat("0123456789", 3000), Time: moment}
	if result, _ := send(t, s, strings.Replace(url, "logpid=no", "logpid=yes", 1), m); result.Err != nil {
		t.Fatal(result.Err)
	}
	r.logs(t, fmt.Sprintf("158|Caddy|%d|2026-03-01T12:30:15.000000Z|%s", os.Getpid(), m.Body))

	daemon.stop()
	r.start(t)
	if result, _ := send(t, s, url, &notifier.Message{Body: "after the restart", Time: moment}); result.Err != nil {
		t.Fatal(result.Err)
	}
	r.logs(t, "158|Caddy|-|2026-03-01T12:30:15.000000Z|after the restart")
}

// socketDialer opens its socket when code opens /dev/log.
type socketDialer string

func (socketDialer) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no HTTP")
}

func (s socketDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "unixgram" || address != "/dev/log" {
		return nil, os.ErrNotExist
	}
	var d net.Dialer
	return d.DialContext(ctx, network, string(s))
}

func TestLocalSyslog(t *testing.T) {
	r := newRsyslogd(t)
	s := notifier.NewSender(egress.NewPoolWithTransport("test", socketDialer(r.socket)), 0)
	t.Cleanup(s.Close)
	fails(t, s, "syslog://", "no syslog socket", "")
	daemon := r.start(t)
	// The daemon logs the time at which it receives a message.
	logged := func(head, text string) {
		t.Helper()
		eventually(t, fmt.Sprintf("the log ends in %q", text), func() bool {
			b, _ := os.ReadFile(r.out)
			entry, ok := strings.CutSuffix(string(b), "| "+text+"<END>\n")
			return ok && strings.HasPrefix(entry[strings.LastIndexByte(entry, '\n')+1:], head)
		})
	}
	if result, _ := send(t, s, "syslog://auth", &notifier.Message{Title: "Title", Body: body, Type: notifier.Warning}); result.Err != nil {
		t.Fatal(result.Err)
	}
	logged(fmt.Sprintf("36|Caddy|%d|", os.Getpid()), "Title: "+body)
	daemon.stop()
	r.start(t)
	delivers(t, s, "syslog://?logpid=no", "after the restart")
	logged("14|Caddy|-|", "after the restart")
}
