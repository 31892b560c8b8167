package safety

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// faultyNetwork is a network with a fault.
type faultyNetwork struct {
	answer func(r *http.Request) (*http.Response, error)
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

func (m faultyNetwork) RoundTrip(r *http.Request) (*http.Response, error) { return m.answer(r) }

// DialContext dials for services that do not use HTTP.
func (m faultyNetwork) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return m.dial(ctx, network, address)
}

func refuse(_ context.Context, network, address string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused: " + address)}
}

// respondingWith returns a network that answers HTTP requests with answer and
// refuses all other connections.
func respondingWith(answer func(r *http.Request) (*http.Response, error)) faultyNetwork {
	return faultyNetwork{answer, refuse}
}

// failing returns a network in which every connection fails with err.
func failing(err func(network, host string) error) faultyNetwork {
	return faultyNetwork{
		func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: err("tcp", r.URL.Hostname())}
		},
		func(_ context.Context, network, address string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(address)
			return nil, err(network, host)
		},
	}
}

// connectingTo returns a network in which all connections but HTTP reach one
// server.
func connectingTo(t *testing.T, serve func(net.Conn)) faultyNetwork {
	to := listen(t, "127.0.0.1:0", serve)
	return faultyNetwork{
		func(r *http.Request) (*http.Response, error) { return answerOf(r, 400, wire(r)) },
		func(ctx context.Context, network, address string) (net.Conn, error) {
			if network != "tcp" {
				return refuse(ctx, network, address)
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		},
	}
}

func answerOf(r *http.Request, code int, body string) (*http.Response, error) {
	return &http.Response{StatusCode: code, Request: r, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// wire returns a request as its receiver sees it.
func wire(r *http.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", r.Method, r.URL)
	_ = r.Header.Write(&b)
	if r.Body != nil {
		_, _ = io.Copy(&b, io.LimitReader(r.Body, 1<<20))
	}
	return b.String()
}

func echoes() map[string]faultyNetwork {
	echo := func(code int, form func(string) string) faultyNetwork {
		return respondingWith(func(r *http.Request) (*http.Response, error) { return answerOf(r, code, form(wire(r))) })
	}
	quoted := func(s string) string {
		b, _ := json.Marshal(map[string]any{
			"ok": false, "error": s, "message": s, "description": s, "errors": []string{s},
			"status": "error", "code": 40001, "errcode": 40001, "errmsg": s,
		})
		return string(b)
	}
	short := func(s string) string { // the request line, unescaped
		line, _, _ := strings.Cut(s, "\n")
		plain, err := url.PathUnescape(line)
		if err != nil {
			plain = line
		}
		return "not found: " + plain
	}
	return map[string]faultyNetwork{
		"400 echo":            echo(400, func(s string) string { return s }),
		"401 echo of headers": echo(401, func(s string) string { _, s, _ = strings.Cut(s, "\n"); return s }),
		"403 echo as JSON":    echo(403, quoted),
		"404 echo of path":    echo(404, short),
		"404 echo as HTML":    echo(404, func(s string) string { return html.EscapeString(short(s)) }),
		"200 echo as JSON":    echo(200, quoted),
		"500 echo":            echo(500, func(s string) string { return s }),
		"503 echo":            echo(503, quoted),
	}
}

func faultyNetworks(t *testing.T) map[string]faultyNetwork {
	out := echoes()
	out["no such host"] = failing(func(network, host string) error {
		return &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
	})
	out["refused"] = failing(func(network, host string) error {
		return &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused: " + host)}
	})
	out["TLS"] = failing(func(string, string) error {
		return &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	})
	out["panic"] = faultyNetwork{
		func(r *http.Request) (*http.Response, error) { panic(wire(r)) },
		func(_ context.Context, network, address string) (net.Conn, error) {
			panic("dialling " + network + " " + address)
		},
	}
	out["silence"] = faultyNetwork{
		func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: r.Context().Err()}
		},
		func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			t.Cleanup(func() { _ = theirs.Close() })
			return ours, nil
		},
	}
	out["a server that echoes"] = connectingTo(t, func(c net.Conn) { _, _ = io.Copy(c, io.LimitReader(c, 64<<10)) })
	out["a server that closes the connection"] = connectingTo(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 100)) })
	out["a server that refuses with an error"] = connectingTo(t, func(c net.Conn) {
		in := serverConn{bufio.NewReader(c), c}
		in.say("220 # :server NOTICE * :ready")
		for line, ok := in.line(); ok; line, ok = in.line() {
			in.say("535 # logresp %s unverified :I heard %s", line, plain(line))
		}
	})
	// Responses with a secret at the place where a long response is cut.
	for pad := 200; pad < 320; pad += 9 {
		out[fmt.Sprintf("400 echo behind %d characters", pad)] = respondingWith(func(r *http.Request) (*http.Response, error) {
			user, password, _ := r.BasicAuth()
			text := strings.TrimPrefix(r.URL.Path, "/") + " " + r.Header.Get("Authorization") + " " + user + " " + password
			return answerOf(r, 400, strings.Repeat("x", pad)+" "+text)
		})
	}
	return out
}

// capture collects the log, the results and the records of a delivery.
type capture struct {
	mu sync.Mutex
	strings.Builder
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Builder.Write(p)
}

func (c *capture) Sync() error { return nil }

// TestSecretsOfEveryService checks, for every service and every fault of the
// network, that no result, record or log line reveals a secret of the URL. Each
// fault meets all URLs of a service if full is set, and else one of them.
func TestSecretsOfEveryService(t *testing.T) {
	racetest.LeaveToCI(t)
	racetest.SkipIfSlow(t)
	t.Parallel()
	faulty := faultyNetworks(t)
	for i, name := range slices.Sorted(maps.Keys(faulty)) {
		faultyNetwork, all := faulty[name], oneOfEach(catalogue(t), i)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := time.Second // reached only with other protocols than HTTP
			if name == "silence" {
				timeout = 50 * time.Millisecond
			}
			sender := notifier.NewSender(egress.NewPoolWithTransport("test", faultyNetwork), 0)
			var wg sync.WaitGroup
			room := make(chan struct{}, 64)
			for _, m := range all {
				room <- struct{}{}
				wg.Go(func() {
					defer func() { <-room }()
					log := new(capture)
					logger := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), log, zap.DebugLevel))
					d, err := notifier.Parse(m.url, nil)
					if err != nil {
						t.Error(err)
						return
					}
					msg := &notifier.Message{
						Title: "a title", Body: "a body",
						Attachments: []*notifier.Attachment{notifier.NewAttachment("a.txt", "text/plain", []byte("a file"))},
					}
					report := sender.Send(t.Context(), msg, []notifier.Target{{Destination: d}},
						notifier.Options{Timeout: timeout, Logger: logger, Transient: true})
					for _, r := range report.Results {
						fmt.Fprintln(log, r.Destination, r.Err)
					}
					for _, r := range report.Records {
						fmt.Fprintln(log, r.Text)
					}
					for _, w := range d.Warnings() {
						fmt.Fprintln(log, w)
					}
					if s := m.revealedIn(log.String()); s != "" {
						t.Errorf("%s: %s shows %s", m.service, m.url, s)
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestSecretsOfBrokenURLs checks that the error for an invalid URL reveals no
// secret of it, for one URL of each service, or all if full is set.
func TestSecretsOfBrokenURLs(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	if racetest.Enabled {
		t.Skip("has one goroutine, so the race detector finds nothing and takes ten times as long")
	}
	for _, m := range oneOfEach(catalogue(t), 0) {
		scheme, rest, _ := strings.Cut(m.url, "://")
		broken := []string{
			rest, scheme + ":/" + rest, scheme + ":" + rest, scheme + "x://" + rest,
			"x" + scheme + "://" + rest, "http://" + rest, "https://" + rest,
			m.url + "%zz", scheme + "://%zz" + rest, scheme + "://" + rest + "\x00",
			scheme + "://\n" + rest, scheme + "://[" + rest, scheme + "://:::" + rest,
			strings.Replace(m.url, "/", "//", 5), scheme + "://@" + rest,
			scheme + "://a:b@c:99999/" + rest, strings.ToUpper(scheme) + ":\\\\" + rest,
			scheme + "://" + strings.ReplaceAll(rest, "/", " "),
			scheme + "://" + strings.ReplaceAll(rest, "@", "/"),
			scheme + "://" + strings.ReplaceAll(rest, ":", "/"),
		}
		join := "?"
		if strings.Contains(m.url, "?") {
			join = "&"
		}
		for _, secret := range m.secrets {
			for _, p := range []string{
				"format", "overflow", "tz", "rto", "cto", "retry", "wait", "verify", "emojis", "unknown",
				secret, "to", "from", "port", "mode", "method", "priority", "ttl", "url", "icon",
			} {
				broken = append(broken, m.url+join+p+"="+secret, m.url+join+p+"="+secret+","+secret)
			}
			broken = append(broken, strings.ReplaceAll(m.url, secret, secret+"%21%20%40"),
				strings.ReplaceAll(m.url, secret, "$"+secret+"$"), strings.ReplaceAll(m.url, secret, secret+"\x01"))
		}
		for i := len(scheme); i < len(m.url); i++ {
			broken = append(broken, m.url[:i], m.url[:i]+"?")
		}
		for _, u := range broken {
			d, err := notifier.Parse(u, nil)
			var text string
			if err != nil {
				text = err.Error()
			} else {
				text = strings.Join(d.Warnings(), "\n")
			}
			if s := m.revealedIn(text); s != "" {
				t.Errorf("%s: %s shows %s", m.service, u, s)
			}
		}
	}
}
