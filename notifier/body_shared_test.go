package notifier_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// TestLongText checks what a text of 1 MiB takes while ten destinations have it
// and have not answered: it must be less than three times the text.
func TestLongText(t *testing.T) {
	const destinations, size = 10, 1 << 20
	var arrived sync.WaitGroup
	arrived.Add(destinations)
	answer := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived.Done()
		<-answer
	}))
	defer server.Close()
	held := func() int64 {
		runtime.GC()
		runtime.GC() // empties the sync.Pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var targets []notifier.Target
	for range destinations {
		d, err := notifier.Parse("json://"+strings.TrimPrefix(server.URL, "http://"), nil)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, notifier.Target{Destination: d})
	}
	sender := notifier.NewSender(egress.NewPool("test"), 0)
	before := held()
	text := strings.Repeat("0123456789abcde\n", size/16)
	done := make(chan *notifier.Report)
	go func() { done <- sender.Send(t.Context(), &notifier.Message{Body: text}, targets, notifier.Options{}) }()
	arrived.Wait()
	if n := held() - before; n > 3*size {
		t.Errorf("a text of %d bytes takes %d", size, n)
	}
	close(answer)
	if report := <-done; !report.OK() {
		t.Error(report.Records)
	}
	sender.Pool().Close()
	runtime.KeepAlive(text)
}
