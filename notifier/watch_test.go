package notifier

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Who watches a delivery gives it a context and gets its result; headers made
// of that context go with every request, unless the service sets them.
func TestSendWatched(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]string{} // by path
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.URL.Path] = r.Header.Get("X-From") + " " + r.Header.Get("X-Own")
		if strings.HasPrefix(r.URL.Path, "/bad") {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	type key struct{}
	var results []Result
	report := send(t, newTestSender(t), hello, Options{
		Begin: func(ctx context.Context, d Target) (context.Context, func(Result)) {
			return context.WithValue(ctx, key{}, d.Service()), func(r Result) {
				mu.Lock()
				defer mu.Unlock()
				results = append(results, r)
			}
		},
		Header: func(ctx context.Context) map[string]string {
			from, _ := ctx.Value(key{}).(string)
			return map[string]string{"X-From": from, "X-Own": "watcher"}
		},
	}, base+"/good/tok", base+"/bad/tok?+X-Own=service")
	if seen["/good/send"] != "Probe watcher" || seen["/bad/send"] != "Probe service" {
		t.Errorf("headers by path: %q", seen)
	}
	if len(results) != 2 || results[0].Status == results[1].Status {
		t.Fatalf("results: %+v", results)
	}
	for _, r := range report.Results {
		if got := results[0]; got.Status == r.Status && (got.Destination != r.Destination || got.Err != r.Err || got.Attempts != 1) {
			t.Errorf("the watcher got %+v, the report says %+v", got, r)
		}
	}
}
