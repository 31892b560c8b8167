package integration

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestGivenUpPostgres checks that gateways which share a queue keep what a destination
// refuses, that a repeat at one replaces what the other keeps, and that the fallback is
// told once.
func TestGivenUpPostgres(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(refuses.Close)
	var told atomic.Int64
	backup := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told.Add(1) }))
	t.Cleanup(backup.Close)
	keys := "key ops {\nurl json://" + strings.TrimPrefix(refuses.URL, "http://") +
		"\nfallback backup\n}\nkey backup {\nurl json://" + strings.TrimPrefix(backup.URL, "http://") + "\n}"
	gateways := []*queueGateway{newQueueGatewayWith(t, p, keys, ""), newQueueGatewayWith(t, p, keys, "")}
	ask := func(method, address, form string) (int, givenUpMessage) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var m givenUpMessage
		if err := json.NewDecoder(resp.Body).Decode(&m); err != nil || len(m.Results) != 1 {
			t.Fatalf("%s: %s, %+v, %v", address, resp.Status, m, err)
		}
		return resp.StatusCode, m
	}
	var ids []string
	for i, body := range []string{"disk full", "disk full", "disk full", "network down"} {
		status, m := ask(http.MethodPost, gateways[i%2].url+"/notify/ops", "body="+body)
		if status != http.StatusFailedDependency {
			t.Errorf("%s: status %d", body, status)
		}
		ids = append(ids, m.ID)
	}
	for i, by := range []string{ids[1], ids[2], "", ""} {
		if _, m := ask(http.MethodGet, gateways[i%2].url+"/notify/messages/"+ids[i], ""); m.State != "failed" || m.Results[0].By != by {
			t.Errorf("the message %d is %+v, want it replaced by %q", i, m, by)
		}
	}
	eventually(t, "the fallback is told", func() bool { return told.Load() > 0 })
	time.Sleep(time.Second)
	if n := told.Load(); n != 1 {
		t.Errorf("the fallback was told %d times", n)
	}
}

// givenUpMessage is an answer or the state of a message.
type givenUpMessage struct {
	ID, State string
	Results   []struct{ By string }
}
