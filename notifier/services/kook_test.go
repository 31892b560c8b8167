package services

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// kookServer is a fake of the API. It accepts only files that were uploaded. It
// refuses the first fails[ID] messages to the target with this ID.
type kookServer struct {
	fails map[string]int
	files []string
	sent  []string
}

func (k *kookServer) answer(q *http.Request, body string) (int, string) {
	answer := `{"code":0}`
	if strings.HasSuffix(q.URL.Path, "/asset/create") {
		q.Body = io.NopCloser(strings.NewReader(body))
		_, header, err := q.FormFile("file")
		if err != nil {
			return 400, err.Error()
		}
		address := "https://img.example.com/" + header.Filename
		k.files = append(k.files, address)
		answer = fmt.Sprintf(`{"code":0,"data":{"url":%q}}`, address)
	} else {
		var m struct {
			Type    int    `json:"type"`
			Target  string `json:"target_id"`
			Content string `json:"content"`
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			return 400, err.Error()
		}
		file := m.Type == kookImage || m.Type == kookFile
		switch {
		case k.fails[m.Target] > 0:
			k.fails[m.Target]--
			answer = `{"code":40000,"message":"too fast"}`
		case file && !slices.Contains(k.files, m.Content):
			answer = `{"code":40000,"message":"no such file"}`
		default:
			k.sent = append(k.sent, fmt.Sprintf("%s %d", m.Target, m.Type))
		}
	}
	return 200, answer
}

// A retry does not repeat what a target has received.
func TestKookRetry(t *testing.T) {
	server := &kookServer{fails: map[string]int{"2": 1}}
	send := servicetest.API(server.answer).Destination(t, "kook://b0t-token/1/@2?retry=1&wait=0")
	if err := send(servicetest.Message(t, "attach")); err != nil {
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
