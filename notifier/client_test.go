package notifier

import (
	"net/http"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// TestHops checks that every request carries the number of gateways that the
// message has passed, and that a client's URL cannot override it.
func TestHops(t *testing.T) {
	const product = "caddy-notify/test"
	var agent string
	base := target(t, func(w http.ResponseWriter, r *http.Request) { agent = r.UserAgent() })
	all, err := egress.NewPolicy([]string{"all"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		hops   int
		policy *egress.Policy
		query  string
		want   int
	}{
		{0, nil, "", 0},
		{1, nil, "", 1},
		{2, all, "", 2},
		{0, all, "?%2BUser-Agent=mine", 0},
		{2, all, "?%2BUser-Agent=mine", 2},
		{2, all, "?%2BUser-Agent=" + product + "%20hops/0", 2},
		{1, nil, "?%2BUser-Agent=mine", -1},
	} {
		d, err := Parse(base+"/tok"+tt.query, tt.policy)
		if err != nil {
			t.Fatal(err)
		}
		newTestSender(t).Send(t.Context(), &Message{Body: "x", Hops: tt.hops}, []Target{{Destination: d}}, Options{})
		if got := HopsOf(agent, product); got != tt.want {
			t.Errorf("%s: %d, want %d", agent, got, tt.want)
		}
	}
}
