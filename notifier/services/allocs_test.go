package services_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// okTransport answers every request without a connection, as [http.Transport]
// answers one whose body is read.
type okTransport struct{ answer *http.Response }

func (t okTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return t.answer, err
}

// TestDeliveryAllocations bounds the allocations of each further destination of a message,
// without the allocations of [http.Transport]. It makes 11; the race detector adds some.
func TestDeliveryAllocations(t *testing.T) {
	racetest.SkipIfSlow(t)
	const n = 101
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
	s := notifier.NewSender(egress.NewPoolWithTransport("test", okTransport{answer}), 0)
	targets := make([]notifier.Target, n)
	for i := range targets {
		d, err := notifier.Parse(fmt.Sprintf("json://192.0.2.1/hook/%d", i), nil)
		if err != nil {
			t.Fatal(err)
		}
		targets[i].Destination = d
	}
	m := &notifier.Message{Title: "Disk almost full", Body: "Volume /data is at 91%", Type: notifier.Warning}
	allocs := func(targets []notifier.Target) float64 {
		return testing.AllocsPerRun(100, func() {
			if report := s.Send(t.Context(), m, targets, notifier.Options{}); !report.OK() {
				t.Fatal(report.Results[0].Err)
			}
		})
	}
	allocs(targets) // starts the workers
	further := (allocs(targets) - allocs(targets[:1])) / (n - 1)
	t.Logf("%.2f allocations", further)
	if further > 14 {
		t.Errorf("a further destination costs %.2f allocations, more than 14", further)
	}
}

// TestNoConversion checks that a message in the format of its destination is not read:
// markup costs as much as words.
func TestNoConversion(t *testing.T) {
	racetest.SkipIfSlow(t)
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
	s := notifier.NewSender(egress.NewPoolWithTransport("test", okTransport{answer}), 0)
	words := strings.Repeat("words here, ", 60)
	markups := map[notifier.Format]string{
		notifier.Text:     strings.Repeat("*a* **b** ", 72),
		notifier.Markdown: strings.Repeat("**a** *b*\n\n- c\n\n", 45),
		notifier.HTML:     strings.Repeat("<b>a</b><br> <i>b</i> ", 33),
	}
	for _, address := range []string{
		"json://192.0.2.1/hook?format=%s", "gotify://192.0.2.1/token?format=%s",
		"ntfy://192.0.2.1/topic?format=%s", "mmost://192.0.2.1/token?format=%s",
	} {
		for format, text := range markups {
			d, err := notifier.Parse(fmt.Sprintf(address, format), nil)
			if err != nil {
				t.Fatal(err)
			}
			targets := []notifier.Target{{Destination: d}}
			allocs := func(body string) float64 {
				m := &notifier.Message{Body: body, Format: format}
				return testing.AllocsPerRun(100, func() { s.Send(t.Context(), m, targets, notifier.Options{}) })
			}
			allocs(words) // starts the workers
			if of, without := allocs(text), allocs(words); of > without+4 {
				t.Errorf("%s: %s with markup costs %.0f allocations, and without %.0f", address, format, of, without)
			}
		}
	}
}
