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
	"testing"
	"time"
)

var ownText = regexp.MustCompile(`own-\d+-text`)

// What the answer to one request says is about that request alone, though many
// are under way at once and share their destinations.
func TestIsolation(t *testing.T) {
	const requests = 60
	var together sync.WaitGroup // all are under way before one is answered
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
	var wg sync.WaitGroup
	for n := range requests {
		wg.Go(func() {
			own := fmt.Sprintf("own-%d-text", n)
			m := message{"title": own, "body": "x"}
			path := "/notify/k"
			if n%2 == 0 {
				path, m["urls"] = "/notify", []string{u + "/first", u + "/second"}
			}
			got := g.post(path, m)
			if got.Status != 424 || len(got.Results) != 2 || len(got.Details) != 2 {
				t.Errorf("status %d: %s", got.Status, got.Body)
			}
			found := ownText.FindAllString(got.Body, -1)
			for _, text := range found {
				if text != own {
					t.Errorf("the answer to %s tells of %s", own, text)
				}
			}
			if len(found) != 4 { // in two results, and in two records
				t.Errorf("%s: %s", own, got.Body)
			}
		})
	}
	wg.Wait()
}

// Clients whose destinations never answer do not keep the operator's own
// messages from theirs.
func TestClientsDoNotStarveTheOperator(t *testing.T) {
	fine := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {})
	var mu sync.Mutex
	waiting := 0
	deaf := listen(t, "127.0.0.1:0", func(c net.Conn) {
		mu.Lock()
		waiting++
		mu.Unlock()
		_, _ = io.Copy(io.Discard, c)
	})
	g := start(t, "", "timeout 15s\nkey k {\nurl json://"+authority(fine)+"/\n}\negress {\nallow 127.0.0.1\n}")
	urls := make([]string, 1000)
	for i := range urls {
		urls[i] = fmt.Sprintf("json://%s/%d", deaf, i)
	}
	body, err := json.Marshal(message{"body": "x", "urls": urls})
	if err != nil {
		t.Fatal(err)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	ended := make(chan struct{}, 3)
	for range 3 {
		go func() {
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/notify", bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			if resp, err := http.DefaultClient.Do(r); err == nil {
				_ = resp.Body.Close()
			}
			ended <- struct{}{}
		}()
	}
	eventually(t, "the clients have taken what they can get", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return waiting >= 500
	})
	for range 10 {
		if got := g.post("/notify/k", message{"body": "x"}); got.Status != 200 {
			t.Errorf("the operator's message: status %d: %s", got.Status, got.Body)
		}
	}
	select {
	case <-ended:
		t.Error("the operator's messages waited for those of the clients")
	default:
	}
	hangUp()
	for range 3 {
		<-ended
	}
}

// A long text to many destinations does not fill the memory: what would is
// refused, and what is not refused is held in what is left.
func TestLongTextToMany(t *testing.T) {
	g := start(t, "", "timeout 2s\negress {\nallow 127.0.0.1\n}")
	deaf := listen(t, "127.0.0.1:0", func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		time.Sleep(5 * time.Second)
	})
	for _, tt := range []struct{ length, urls, status int }{{7 << 20, 1000, 413}, {7 << 20, 20, 413}, {7 << 20, 8, 424}, {60 << 10, 1000, 424}} {
		urls := make([]string, tt.urls)
		for i := range urls {
			urls[i] = fmt.Sprintf("json://%s/%d", deaf, i)
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
