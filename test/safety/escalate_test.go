package safety

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/internal/rulestest"
)

// TestEscalationOverKills kills the gateway again and again while it tells the steps of
// incidents, some of which somebody acknowledges or resolves meanwhile. No step follows
// that, none is lost, no more is told twice than was under way, and whoever was told of an
// incident is told of its resolution. There are 60 incidents, two rounds and 20 kills if soak is set.
func TestEscalationOverKills(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a while")
	}
	const phones = 3
	incidents, kills, rounds := amount(soak, 60, 12), amount(soak, 20, 4), amount(soak, 2, 1)
	p := rulestest.NewPhones(phones)
	s := serveHTTP(t, "127.0.0.1", p.ServeHTTP)
	g := start(t, queueOption(newFolder(t), "wait 500ms"),
		fmt.Sprintf("public_url https://alerts.example.com\nkey ops {\n%sescalate after 1s 2s {\nrepeat %d\n}\n}\n",
			p.URLs(authority(s)), rounds))
	g.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 32

	told := make([]*rulestest.Told, incidents)
	var wg sync.WaitGroup
	for i := range incidents {
		x := &rulestest.Told{
			Incident: fmt.Sprint("incident-", i),
			Fate:     []rulestest.Fate{rulestest.Forgotten, rulestest.Acknowledged, rulestest.Resolved}[i%3],
			Rounds:   rounds,
		}
		told[i] = x
		wg.Go(func() {
			g.tell(x.Incident, "failure")
			if x.Fate != rulestest.Forgotten {
				time.Sleep(time.Duration(rand.IntN(2500*rounds)) * time.Millisecond)
				g.takeCare(p, x)
			}
		})
	}
	var killed sync.WaitGroup
	killed.Go(func() {
		for range kills {
			time.Sleep(time.Duration(200+rand.IntN(1200)) * time.Millisecond)
			g.kill()
			g.run()
		}
	})
	wg.Wait()
	killed.Wait()
	waitArrived(t, func() (missing []string) {
		for _, x := range told {
			if text := p.Missing(x); text != "" {
				missing = append(missing, text)
			}
		}
		return missing
	})
	if err := g.stop(); err != nil {
		t.Errorf("the gateway ended: %v", err)
	}
	again := 0
	for _, x := range told {
		problems, n := p.Check(x, 3*time.Second)
		again += n
		for _, text := range problems {
			t.Error(text)
		}
	}
	const atOnce = 4 * (phones + 1) // deliveries of the queue to each destination
	if again > kills*atOnce {
		t.Errorf("%d messages came again, more than were under way", again)
	}
	t.Logf("%d messages came again", again)
}

// tell posts a message about an incident until there is an answer.
func (g *gateway) tell(incident, typ string) {
	g.t.Helper()
	for !g.t.Failed() {
		status, _, text, err := g.tryPost("/notify/ops",
			message{"title": incident, "body": "x", "type": typ, "incident": incident},
			"Idempotency-Key", incident+" "+typ)
		switch {
		case err == nil && (status == http.StatusOK || status == http.StatusAccepted):
			return
		case err == nil && status != http.StatusConflict: // the first request is not done yet
			g.t.Errorf("%s: %d %s", incident, status, text)
		}
		time.Sleep(10 * time.Millisecond) // it was killed
	}
}

// takeCare acknowledges or resolves an incident until there is an answer.
func (g *gateway) takeCare(p *rulestest.Phones, x *rulestest.Told) {
	g.t.Helper()
	if x.Fate == rulestest.Resolved {
		g.tell(x.Incident, "success")
	} else {
		eventually(g.t, x.Incident+" is acknowledged", func() bool {
			link := p.Link(x.Incident)
			if link == "" {
				return false
			}
			resp, err := g.client.PostForm(g.url+link, url.Values{"do": {"acknowledge"}, "by": {"Eve"}})
			if err != nil {
				return false
			}
			_ = resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
	}
	x.At = time.Now()
}
