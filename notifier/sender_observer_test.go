package notifier

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestObservers checks that an observer sets the context of a delivery and
// receives its result, and that header fields made from that context are sent
// with every request, unless the service sets them.
func TestObservers(t *testing.T) {
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
	results := make([]Result, 2)
	ended := 0
	report := send(t, newTestSender(t), hello, Options{
		Observers: []Observer{
			{Begin: func(ctx context.Context, i int, d Target) context.Context {
				return context.WithValue(ctx, key{}, fmt.Sprint(d.Service(), " ", i))
			}},
			{End: func(ctx context.Context, i int, r Result) {
				mu.Lock()
				defer mu.Unlock()
				results[i] = r
				if ctx.Value(key{}) == fmt.Sprint("Probe ", i) {
					ended++
				}
			}},
		},
		Header: func(ctx context.Context) map[string]string {
			from, _ := ctx.Value(key{}).(string)
			return map[string]string{"X-From": from, "X-Own": "observer"}
		},
	}, base+"/good/tok", base+"/bad/tok?+X-Own=service")
	if seen["/good/send"] != "Probe 0 observer" || seen["/bad/send"] != "Probe 1 service" {
		t.Errorf("headers by path: %q", seen)
	}
	if ended != 2 {
		t.Errorf("%d of 2 results came with the context of their delivery", ended)
	}
	for i, r := range report.Results {
		if got := results[i]; got.Status != r.Status || got.Destination != r.Destination || got.Err != r.Err || got.Attempts != 1 {
			t.Errorf("the observer got %+v, the report has %+v", got, r)
		}
	}
}
