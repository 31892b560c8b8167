package safety

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// recorder is a destination that keeps what it receives.
type recorder struct {
	url string
	mu  sync.Mutex
	got []string
}

func newRecorder(t *testing.T) *recorder {
	k := new(recorder)
	s := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.got = append(k.got, r.URL.String()+" "+string(body))
	})
	k.url = "json://" + authority(s)
	return k
}

func (k *recorder) take() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	got := k.got
	k.got = nil
	return got
}

// TestClientThatHangsUp checks that a message is delivered after its client has
// disconnected.
func TestClientThatHangsUp(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	h, k := newStalled(t), newRecorder(t)
	g := start(t, "", "key k {\nurl "+h.url+"?retry=0\nurl "+k.url+"/\n}")
	before := g.goroutines()
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/notify/k", strings.NewReader("body=x"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		_, err := g.client.Do(r)
		gone <- err
	}()
	eventually(t, "the message is under way", func() bool { return h.arrived.Load() == 1 })
	hangUp()
	if err := <-gone; err == nil {
		t.Error("the disconnected client got a response")
	}
	h.release()
	var recent string
	eventually(t, "the message is done", func() bool {
		_, recent = g.get(g.adminURL+"/notify/recent", "*/*")
		return strings.Contains(recent, `"outcome"`)
	})
	if n := strings.Count(recent, `"status":"delivered"`); n != 2 || h.arrived.Load() != 1 || len(k.take()) != 1 {
		t.Errorf("%d of 2 destinations have the message: %s", n, recent)
	}
	g.waitIdle(before)
}

// TestCircles checks that a message does not circulate between gateways, with
// any service that gateways accept.
func TestCircles(t *testing.T) {
	t.Parallel()
	k := newRecorder(t)
	urls := []string{"json://SELF/notify/k0?-:message=body", "form://SELF/notify/k1?-:message=body", "apprise://SELF/k2"}
	block := ""
	for i, self := range urls {
		block += fmt.Sprintf("key k%d {\nurl %s/\nurl %s\n}\n", i, k.url, self)
	}
	g := start(t, "", block)
	for i, self := range urls {
		got := g.post(fmt.Sprintf("/notify/k%d", i), message{"body": "round and round"})
		if got.Status != 424 || !strings.Contains(got.text(), "424") {
			t.Errorf("%s: status %d: %s", self, got.Status, got.Body)
		}
		if n := len(k.take()); n != 2 { // once from each of the two passes that are allowed
			t.Errorf("%s: the message arrived %d times", self, n)
		}
	}
}

// TestTextsAreData checks that placeholders and templates in a client's text are
// not evaluated.
func TestTextsAreData(t *testing.T) {
	t.Parallel()
	k := newRecorder(t)
	g := start(t, "", "key k {\nurl "+k.url+"/\n}\negress {\nallow 127.0.0.1\n}", "SECRET=resolved-secret")
	const text = `{env.SECRET} {$SECRET} {{env "SECRET"}} {{.}} {file./etc/hostname} ` +
		`{http.request.host} {system.hostname} ${SECRET} %(SECRET)s`
	for _, format := range []string{"text", "markdown", "html"} {
		got := g.post("/notify/k", message{"title": text, "body": text, "format": format})
		for _, arrived := range append(k.take(), got.Body) {
			if got.Status != 200 || strings.Contains(arrived, "resolved-secret") || strings.Contains(arrived, g.address()) {
				t.Errorf("%s: status %d: %s", format, got.Status, arrived)
			}
		}
	}
	g.post("/notify/k", message{"title": text, "body": text})
	var m struct{ Title, Message string }
	_, arrived, _ := strings.Cut(strings.Join(k.take(), ""), " ")
	if err := json.Unmarshal([]byte(arrived), &m); err != nil || m.Title != text || m.Message != text {
		t.Errorf("%v: it arrived as %s", err, arrived)
	}
	for _, u := range []string{
		k.url + "/{env.SECRET}", k.url + "/?-a={env.SECRET}",
		k.url + "/{$SECRET}", "{env.SECRET}", "json://{env.SECRET}/",
	} {
		got := g.post("/notify", message{"body": "x", "urls": u})
		for _, where := range append(k.take(), got.Body, g.log()) {
			if strings.Contains(where, "resolved-secret") {
				t.Errorf("placeholder in %s is evaluated: %s", u, where)
			}
		}
	}
}

// TestTextsAreInNoLog checks that neither the text of a message nor a file name
// is in a log, a metric, an event or a page.
func TestTextsAreInNoLog(t *testing.T) {
	t.Parallel()
	k := newRecorder(t)
	g := start(t, tracing, "timeout "+seconds(2)+"\nkey k {\nurl "+k.url+"/ works\nurl json://"+porttest.Address()+"/ fails\n}")
	texts := []string{"Qz-title-of-a-message", "Qz-body-of-a-message", "Qz-file-of-a-message", "Qz-content-of-a-message"}
	asForm, multi := form(t, func(w *multipart.Writer) {
		_ = w.WriteField("title", texts[0])
		_ = w.WriteField("body", texts[1])
		f, _ := w.CreateFormFile("attach", texts[2])
		_, _ = io.WriteString(f, texts[3])
	})
	for _, tag := range []string{"", "?tag=works", "?tag=nothing", "?type=bogus"} {
		g.post("/notify/k"+tag, message{
			"title": texts[0], "body": texts[1],
			"attach": map[string]any{"base64": []byte(texts[3]), "filename": texts[2]},
		})
		g.do("/notify/k"+tag, "application/x-www-form-urlencoded", strings.NewReader("title="+texts[0]+"&body="+texts[1]))
		g.do("/notify/k"+tag, asForm, strings.NewReader(multi))
		g.do("/notify/k"+tag, asForm, bytes.NewReader([]byte(multi)[:len(multi)-10]))
	}
	if n := len(k.take()); n != 6 {
		t.Errorf("%d messages arrived", n)
	}
	all := g.exposed("k")
	for _, text := range texts {
		if i := strings.Index(all, text); i >= 0 {
			t.Error(excerpt(text, all, i, i+len(text)))
		}
	}
}
