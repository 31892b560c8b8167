package integration

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"
)

// TestClockPostgres checks that rules go by the clock of the database, here hours ahead of the
// machine's: what gateways hold, and until when, and that one of them tells it.
func TestClockPostgres(t *testing.T) {
	t.Parallel()
	p, a := newPostgres(t), newArrivals(t)
	const ahead = 2 * time.Hour
	const clock = `CREATE SCHEMA ahead; CREATE FUNCTION ahead.clock_timestamp() RETURNS TIMESTAMPTZ LANGUAGE sql VOLATILE
		AS 'SELECT pg_catalog.clock_timestamp() + INTERVAL ''2 hours'''; ALTER DATABASE postgres SET search_path = ahead, pg_catalog`
	if out, err := p.command("psql", "-h", p.dir, "-p", strconv.Itoa(p.port), "-U", "postgres", "-c", clock).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	key := "key ops {\nurl " + a.url + "\ndigest 4s\n}\nkey quiet {\nurl " + a.url + "\n}"
	site := "console {\nmanage open\n}"
	gateways := []*queueGateway{newQueueGatewayWith(t, p, key, site), newQueueGatewayWith(t, p, key, site)}
	post := func(g *queueGateway, path string, fields url.Values, status int, answer any) {
		t.Helper()
		r := request(t, http.MethodPost, g.url+path, fields.Encode())
		r.Header.Set("Accept", "application/json")
		got, body := ask(t, r)
		if err := json.Unmarshal([]byte(body), answer); err != nil || got != status {
			t.Fatalf("%s: status %d, %v", path, got, err)
		}
	}
	near := func(what string, got time.Time, want time.Duration) {
		t.Helper()
		if d := time.Until(got) - want; d > time.Minute || d < -time.Minute {
			t.Errorf("%s: in %v, want %v", what, time.Until(got), want)
		}
	}
	for i, g := range gateways {
		var answer struct{ Results []struct{ Until time.Time } }
		post(g, "/notify/ops", url.Values{"title": {"part"}, "body": {string(rune('a' + i))}, "type": {"info"}}, http.StatusOK, &answer)
		if len(answer.Results) != 1 {
			t.Fatalf("%+v", answer)
		}
		near("the digest", answer.Results[0].Until, ahead)
		var silence struct{ Until time.Time }
		post(g, "/notify/quiet/silences", url.Values{"for": {"1h"}, "title": {"x"}}, http.StatusCreated, &silence)
		near("the silence", silence.Until, ahead+time.Hour)
	}
	arrived := func() (n int) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, count := range a.got {
			n += count
		}
		return n
	}
	eventually(t, "the digest is told", func() bool { return arrived() > 0 })
	time.Sleep(2 * time.Second) // each gateway looks again at what is due, which nothing but time can show
	if n := arrived(); n != 1 || a.count("part") != 0 {
		t.Errorf("%d messages, and %d of those that belong into a digest", n, a.count("part"))
	}
}
