package servicetest

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// NewSender returns a sender that connects for real and is closed when the
// test ends.
func NewSender(t testing.TB) *notifier.Sender {
	t.Helper()
	s := notifier.NewSender(egress.NewPool("test"), 0)
	t.Cleanup(s.Close)
	return s
}

// NewSenderOver returns a sender whose requests go to transport, and that is
// closed when the test ends.
func NewSenderOver(t testing.TB, transport http.RoundTripper) *notifier.Sender {
	t.Helper()
	s := notifier.NewSender(egress.NewPoolWithTransport("test", transport), 0)
	t.Cleanup(s.Close)
	return s
}

// Report sends a message to a URL.
func Report(t testing.TB, s *notifier.Sender, address string, m *notifier.Message, timeout time.Duration) *notifier.Report {
	t.Helper()
	d, err := s.Parse(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.Send(context.Background(), m, []notifier.Target{{Destination: d}}, notifier.Options{Timeout: timeout})
}

// Send is [Report] for the result alone.
func Send(t testing.TB, s *notifier.Sender, address string, m *notifier.Message, timeout time.Duration) notifier.Result {
	t.Helper()
	return Report(t, s, address, m, timeout).Results[0]
}

// SendText sends a text to a URL. The test fails if it does not arrive within
// ten seconds.
func SendText(t testing.TB, s *notifier.Sender, address, body string) {
	t.Helper()
	if r := Send(t, s, address, &notifier.Message{Body: body}, 10*time.Second); r.Err != nil {
		t.Fatal(r.Err)
	}
}

// SendFails sends a text that cannot arrive to a URL. It checks that the error
// contains want, that the record of the failure names the service, and that
// neither of them nor the redacted URL contains one of the secrets.
func SendFails(t testing.TB, s *notifier.Sender, address, want string, secrets ...string) {
	t.Helper()
	sendFails(t, s, 10*time.Second, address, want, secrets...)
}

// Unanswered sends a text to a URL of a [SilentServer]. It checks that the error
// contains want when the delivery reaches its time limit, and names the
// parameter rto if that is shorter.
func Unanswered(t testing.TB, s *notifier.Sender, address, want string) {
	t.Helper()
	sendFails(t, s, 100*time.Millisecond, address, want)
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	sendFails(t, s, 10*time.Second, address+separator+"rto=0.05", "no answer within 50ms (rto)")
}

func sendFails(t testing.TB, s *notifier.Sender, limit time.Duration, address, want string, secrets ...string) {
	t.Helper()
	report := Report(t, s, address, &notifier.Message{Body: "x"}, limit)
	r := report.Results[0]
	if r.Err == nil || !strings.Contains(r.Err.Error(), want) {
		t.Errorf("got %v, want an error with %q", r.Err, want)
		return
	}
	record := report.Records[len(report.Records)-1].Text
	if !strings.Contains(record, r.Service) {
		t.Errorf("the record does not name %s: %s", r.Service, record)
	}
	for _, secret := range secrets {
		if strings.Contains(r.Err.Error()+record+r.Destination, secret) {
			t.Errorf("a secret shows: %v; %s; %s", r.Err, record, r.Destination)
		}
	}
}
