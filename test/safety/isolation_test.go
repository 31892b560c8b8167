package safety

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

var ownText = regexp.MustCompile(`own-\d+-text`)

// TestIsolation checks that a response is about its own request only, when many
// concurrent requests share their destinations.
func TestIsolation(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	const requests = 60
	var together sync.WaitGroup // all requests are being sent before one is answered
	together.Add(requests)
	refusing := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		var m struct{ Title string }
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/first" {
			together.Done()
		}
		together.Wait()
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "no room for "+m.Title)
	})
	u := "json://" + authority(refusing)
	g := start(t, "debug", "key k {\nurl "+u+"/first a\nurl "+u+"/second b\n}\negress {\nallow 127.0.0.1\n}")
	// The response mentions each of two destinations in a record, in JSON also
	// in a result, and in a stream once more when the result arrives.
	forms := []struct {
		accept        string
		status, times int
	}{{"application/json", 424, 4}, {"text/plain", 424, 2}, {"text/html", 424, 2}, {"application/x-ndjson", 200, 6}}
	var wg sync.WaitGroup
	for n := range requests {
		wg.Go(func() {
			own := fmt.Sprintf("own-%d-text", n)
			m := message{"title": own, "body": "x"}
			path := "/notify/k"
			if n/len(forms)%2 == 0 {
				path, m["urls"] = "/notify", []string{u + "/first", u + "/second"}
			}
			body, err := json.Marshal(m)
			if err != nil {
				t.Error(err)
			}
			r, err := http.NewRequest(http.MethodPost, g.url+path, bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/json")
			form := forms[n%len(forms)]
			r.Header.Set("Accept", form.accept)
			got := g.ask(r)
			found := ownText.FindAllString(got.Body, -1)
			for _, text := range found {
				if text != own {
					t.Errorf("the response to %s contains %s", own, text)
				}
			}
			if got.Status != form.status || len(found) != form.times {
				t.Errorf("%s as %s: status %d, %d times: %s", own, form.accept, got.Status, len(found), got.Body)
			}
		})
	}
	wg.Wait()
}

// TestClientsDoNotStarveOthers checks that clients with silent destinations
// delay neither the operator's messages nor the messages of other clients.
func TestClientsDoNotStarveOthers(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	fine := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {})
	var waiting atomic.Int32
	silent := listen(t, "127.0.0.1:0", func(c net.Conn) {
		waiting.Add(1)
		_, _ = io.Copy(io.Discard, c)
	})
	g := start(t, "", "timeout 40s\nclient_limits {\ndeliveries 1000\n}\n"+
		"key k {\nurl json://"+authority(fine)+"/\n}\negress {\nallow 127.0.0.1\n}")
	urls := make([]string, 1000)
	for i := range urls {
		urls[i] = fmt.Sprintf("json://%s/%d", silent, i)
	}
	body, err := json.Marshal(message{"body": "x", "urls": urls})
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Int32
	var clients sync.WaitGroup
	ctx, hangUp := context.WithCancel(t.Context())
	defer clients.Wait()
	defer hangUp()
	client := func() {
		clients.Go(func() {
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/notify", bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			if resp, err := g.client.Do(r); err == nil {
				_ = resp.Body.Close()
			}
			ended.Add(1)
		})
	}
	taken := func(least int32) {
		eventually(t, "the clients have taken what they can get", func() bool { return waiting.Load() >= least })
	}
	client()
	taken(100)
	for range 10 {
		if got := g.post("/notify", message{"body": "x", "urls": "json://" + authority(fine)}); got.Status != 200 {
			t.Errorf("another client's message: status %d: %s", got.Status, got.Body)
		}
	}
	if n := waiting.Load(); n > 128 {
		t.Errorf("one message has %d deliveries in flight", n)
	}
	for range 4 {
		client()
	}
	taken(500)
	for range 10 {
		if got := g.post("/notify/k", message{"body": "x"}); got.Status != 200 {
			t.Errorf("the operator's message: status %d: %s", got.Status, got.Body)
		}
	}
	if ended.Load() > 0 {
		t.Error("the messages of others waited for those of the clients")
	}
}

// TestLongTextToMany checks that a long text to many destinations is refused if
// it would fill the memory.
func TestLongTextToMany(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	g := start(t, "", "timeout 1s\nclient_limits {\ndeliveries 1000\n}\negress {\nallow 127.0.0.1\n}")
	silent := listen(t, "127.0.0.1:0", func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		time.Sleep(5 * time.Second)
	})
	for _, tt := range []struct{ length, urls, status int }{
		{7 << 20, 1000, 413}, {7 << 20, 40, 413}, {7 << 20, 20, 424}, {7 << 20, 8, 424}, {60 << 10, 1000, 424},
	} {
		urls := make([]string, tt.urls)
		for i := range urls {
			urls[i] = fmt.Sprintf("json://%s/%d", silent, i)
		}
		got := g.post("/notify", message{"body": strings.Repeat("word ", tt.length/5), "urls": urls})
		if got.Status != tt.status {
			t.Errorf("%d bytes to %d URLs: status %d: %.300s", tt.length, tt.urls, got.Status, got.Body)
		}
	}
	if n := g.peak(); n > 512<<20 {
		t.Errorf("the gateway took %d MiB", n>>20)
	}
}
