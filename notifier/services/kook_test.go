package services

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// kookServer is a fake of the API. It accepts only files that were uploaded. It
// refuses the first fails[ID] messages to the target with this ID.
type kookServer struct {
	mu    sync.Mutex
	fails map[string]int
	files []string
	sent  []string
}

func (k *kookServer) RoundTrip(q *http.Request) (*http.Response, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	body := `{"code":0}`
	if strings.HasSuffix(q.URL.Path, "/asset/create") {
		_, header, err := q.FormFile("file")
		if err != nil {
			return nil, err
		}
		address := "https://img.example.com/" + header.Filename
		k.files = append(k.files, address)
		body = fmt.Sprintf(`{"code":0,"data":{"url":%q}}`, address)
	} else {
		var m struct {
			Type    int    `json:"type"`
			Target  string `json:"target_id"`
			Content string `json:"content"`
		}
		if err := json.NewDecoder(q.Body).Decode(&m); err != nil {
			return nil, err
		}
		file := m.Type == kookImage || m.Type == kookFile
		switch {
		case k.fails[m.Target] > 0:
			k.fails[m.Target]--
			body = `{"code":40000,"message":"too fast"}`
		case file && !slices.Contains(k.files, m.Content):
			body = `{"code":40000,"message":"no such file"}`
		default:
			k.sent = append(k.sent, fmt.Sprintf("%s %d", m.Target, m.Type))
		}
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: q}, nil
}

// A retry does not repeat what a target has received.
func TestKookRetry(t *testing.T) {
	server := &kookServer{fails: map[string]int{"2": 1}}
	sender := notifier.NewSender(egress.NewPoolWithTransport("test", server), 0)
	d, err := sender.Parse("kook://b0t-token/1/@2?retry=1&wait=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	report := sender.Send(context.Background(), servicetest.Message(t, "attach"), []notifier.Target{{Destination: d}}, notifier.Options{Timeout: 10 * time.Second})
	if err := report.Results[0].Err; err != nil {
		t.Fatal(err)
	}
	slices.Sort(server.sent)
	want := []string{"1 2", "1 4", "1 9", "2 2", "2 4", "2 9"}
	if !slices.Equal(server.sent, want) {
		t.Errorf("sent %q, want %q (target and type)", server.sent, want)
	}
	if len(server.files) != 2 {
		t.Errorf("%d uploads, want 2", len(server.files))
	}
}
