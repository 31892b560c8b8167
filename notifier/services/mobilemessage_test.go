package services

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// mobileMessageServer answers each request with the next of its answers.
type mobileMessageServer struct {
	answers []string // a status and a body
	keys    []string // of the requests
	numbers []string
}

func (s *mobileMessageServer) RoundTrip(q *http.Request) (*http.Response, error) {
	var body struct{ Messages []struct{ To string } }
	if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
		return nil, err
	}
	numbers := ""
	for _, m := range body.Messages {
		numbers += m.To[len(m.To)-1:]
	}
	answer := s.answers[len(s.keys)]
	s.keys, s.numbers = append(s.keys, q.Header.Get("Idempotency-Key")), append(s.numbers, numbers)
	code := http.StatusOK
	if answer == "" {
		code = http.StatusInternalServerError
	}
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: q}, nil
}

// TestMobileMessageKey checks that all attempts of a delivery have one key while they
// send the same, also after a restart, and that numbers that have the message are left
// out.
func TestMobileMessageKey(t *testing.T) {
	const (
		partly = `{"status":"complete","results":[{"to":"61400000001","status":"success"},{"to":"61400000002","status":"error"}]}`
		one    = `{"status":"complete","results":[{"to":"61400000002","status":"success"}]}`
	)
	server := &mobileMessageServer{answers: []string{"", "", partly, one}}
	d, err := notifier.Parse("mobilemessage://al1ce:pa55word@ALERTS/0400000001/0400000002", nil)
	if err != nil {
		t.Fatal(err)
	}
	sender, progress := servicetest.NewSenderOver(t, server), new(notifier.Progress)
	var last notifier.Result
	for range server.answers {
		last = sender.Send(t.Context(), servicetest.Message(t, "plain"),
			[]notifier.Target{{Destination: d, Progress: progress}}, notifier.Options{}).Results[0]
		saved, err := json.Marshal(last.Progress)
		if err != nil {
			t.Fatal(err)
		}
		progress = new(notifier.Progress)
		if err := json.Unmarshal(saved, progress); err != nil {
			t.Fatal(err)
		}
	}
	k := server.keys
	if len(k) != 4 || k[0] == "" || k[0] != k[1] || k[0] != k[2] || k[0] == k[3] ||
		strings.Join(server.numbers, " ") != "12 12 12 2" || last.Status != notifier.Delivered {
		t.Errorf("the keys %q of requests for %q, the result %v %v", k, server.numbers, last.Status, last.Err)
	}
}
