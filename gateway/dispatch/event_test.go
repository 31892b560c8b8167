package dispatch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestOwnEventData checks that lists in events are bounded. The number of
// destinations is not.
func TestOwnEventData(t *testing.T) {
	t.Parallel()
	var results []notifier.Result
	for range 500 {
		results = append(results, notifier.Result{
			Service: "JSON", Destination: "json://h", Status: notifier.Failed,
			Err: errors.New(strings.Repeat("x", 10_000)),
		})
	}
	results = append(results, notifier.Result{Service: "Form", Status: notifier.Delivered})
	data := dispatch.OwnEventData(dispatch.Origin{Source: site.SourceHTTP, Key: "k"}, "", false, results)
	if data["failed"] != 500 || data["delivered"] != 1 || data["key"] != "k" || data["source"] != "http" {
		t.Errorf("got %v", data)
	}
	if n := len(fmt.Sprint(data)); n > 50_000 {
		t.Errorf("the data have %d bytes", n)
	}
}
