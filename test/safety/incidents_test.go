package safety

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// board is a destination that knows what it was told last of each incident.
type board struct {
	url string

	mu       sync.Mutex
	status   int           // of the answers
	hold     chan struct{} // if not nil, requests wait until it is closed
	active   int           // requests
	sending  map[string]int
	told     map[string][]told // by incident
	problems []string
}

// told is a message that a board has taken.
type told struct {
	number int
	Title  string
	Text   string `json:"message"`
	Type   string
}

// newBoard starts a board. The titles of its messages are the name of the incident
// and a number that grows.
func newBoard(t *testing.T) *board {
	t.Helper()
	b := &board{status: http.StatusOK, sending: map[string]int{}, told: map[string][]told{}}
	s := serveHTTP(t, "127.0.0.1", b.serve)
	t.Cleanup(func() { b.be(http.StatusOK, false) }) // before the server is closed, which waits for its requests
	b.url = "json://" + authority(s) + "/?tz=UTC"
	return b
}

func (b *board) serve(w http.ResponseWriter, r *http.Request) {
	var m told
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		return // the gateway was killed while it sent
	}
	name, number, _ := strings.Cut(m.Title, " ")
	m.number, _ = strconv.Atoi(number)
	b.mu.Lock()
	b.active++
	if b.sending[name]++; b.sending[name] > 1 {
		b.problems = append(b.problems, "two deliveries at once of "+name)
	}
	hold := b.hold
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.active--
		b.sending[name]--
	}()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.status != http.StatusOK {
		w.WriteHeader(b.status)
		return
	}
	if before := b.told[name]; len(before) > 0 && before[len(before)-1].number > m.number {
		b.problems = append(b.problems, fmt.Sprintf("%s: %d after %d", name, m.number, before[len(before)-1].number))
	}
	b.told[name] = append(b.told[name], m)
}

// be makes the board answer with a status, or not at all for a while.
func (b *board) be(status int, silent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = status
	if b.hold != nil {
		close(b.hold)
		b.hold = nil
	}
	if silent {
		b.hold = make(chan struct{})
	}
}

func (b *board) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.active == 0
}

// last returns the number of the last message of an incident, or 0.
func (b *board) last(incident string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if all := b.told[incident]; len(all) > 0 {
		return all[len(all)-1].number
	}
	return 0
}

// postInTheEnd posts a message until there is an answer, because the gateway may be
// starting. It reports whether the message was accepted.
func (g *gateway) postInTheEnd(path string, m message, header ...string) bool {
	g.t.Helper()
	for {
		status, _, text, err := g.tryPost(path, m, header...)
		if err == nil {
			if status == http.StatusOK || status == http.StatusAccepted {
				return true
			}
			g.t.Errorf("%s: %d %s", m["title"], status, text)
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestIncidentsAreToldInOrder sends messages of many incidents while destinations
// have outages and the gateway is killed or restarted again and again. Each destination is told the
// states of an incident in their order, one at a time, and the present one last. There
// are 5,000 messages of 200 incidents if soak is set.
func TestIncidentsAreToldInOrder(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a while")
	}
	incidents, total, kills := amount(soak, 200, 20), amount(soak, 5000, 400), amount(soak, 12, 4)
	boards := []*board{newBoard(t), newBoard(t), newBoard(t)}
	block := "key ops {\n"
	for _, b := range boards {
		block += "url " + b.url + "&retry=0\n"
	}
	g := start(t, queueOption(newFolder(t), "wait 500ms"), block+"}\n")
	g.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 32
	var accepted, superseded atomic.Int64
	last := make([]int, incidents)
	var sending sync.WaitGroup
	stop := make(chan struct{})
	for i := range incidents {
		sending.Go(func() {
			name := "incident-" + strconv.Itoa(i)
			for n := 1; n <= total/incidents && !t.Failed(); n++ {
				m := message{
					"title": name + " " + strconv.Itoa(n), "body": "x", "incident": name,
					"type": []string{"failure", "warning", "success", "info"}[rand.IntN(4)],
				}
				var header []string
				if rand.IntN(2) == 0 {
					header = []string{"Prefer", "respond-async"}
				}
				if !g.postInTheEnd("/notify/ops", m, header...) {
					return
				}
				last[i] = n
				accepted.Add(1)
				time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
			}
		})
	}
	var outages sync.WaitGroup
	for _, b := range boards {
		outages.Go(func() {
			for {
				b.be([]int{http.StatusOK, http.StatusServiceUnavailable, http.StatusOK}[rand.IntN(3)], rand.IntN(4) == 0)
				select {
				case <-stop:
					b.be(http.StatusOK, false)
					return
				case <-time.After(time.Duration(rand.IntN(400)) * time.Millisecond):
				}
			}
		})
	}
	for k := range kills {
		want := int64(total * (k + 1) / (kills + 1))
		eventually(t, "the gateway accepts messages", func() bool { return t.Failed() || accepted.Load() >= want })
		if k%3 == 2 {
			if err := g.stop(); err != nil {
				t.Errorf("the gateway ended: %v", err)
			}
		} else {
			g.kill()
		}
		for _, b := range boards { // no request of the old process is left
			eventually(t, "the requests of the gateway have ended", b.idle)
		}
		g.run()
	}
	sending.Wait()
	close(stop)
	outages.Wait()
	// The first attempts after an outage are due after some seconds; this one wakes
	// what waits for each destination.
	waitArrived(t, func() (late []string) {
		for i := range incidents {
			for k, b := range boards {
				if name := "incident-" + strconv.Itoa(i); b.last(name) != last[i] {
					late = append(late, fmt.Sprintf("%s at board %d: %d of %d", name, k, b.last(name), last[i]))
				}
			}
		}
		return late
	})
	if err := g.stop(); err != nil {
		t.Errorf("the gateway ended: %v", err)
	}
	delivered := 0
	for _, b := range boards {
		b.mu.Lock() // a request that the gateway has given up may still be answered
		for _, p := range b.problems {
			t.Error(p)
		}
		for _, all := range b.told {
			delivered += len(all)
			for _, m := range all {
				if strings.Contains(m.Text, "not delivered") {
					superseded.Add(1)
				}
			}
		}
		b.mu.Unlock()
	}
	t.Logf("%d messages, %d delivered to %d destinations, %d of them told what was not delivered",
		accepted.Load(), delivered, len(boards), superseded.Load())
}

// TestAlertmanagerStory plays what a real Alertmanager sends to a destination that is
// down: db1 fires, db2 fires, and db1 is resolved while db2 still fires. The
// destination is told of each alert as it is now, and never of an old state after a
// newer one.
func TestAlertmanagerStory(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	b := newBoard(t)
	g := start(t, queueOption(newFolder(t), "wait 1s"), "key ops {\nurl "+b.url+"\n}\n")
	alert := func(group, status string, alerts ...string) {
		t.Helper()
		var list []map[string]any
		for _, a := range alerts {
			name, status, _ := strings.Cut(a, " ")
			list = append(list, map[string]any{
				"status": status, "labels": map[string]string{"alertname": "Down", "instance": name},
				"annotations": map[string]string{"summary": name + " is " + status},
				"fingerprint": name,
			})
		}
		code, _, text, err := g.tryPost("/notify/ops/alertmanager", message{
			"version": "4", "groupKey": `{}:{instance="` + group + `"}`, "status": status, "receiver": "ops", "externalURL": "http://am.example.net",
			"groupLabels": map[string]string{"instance": group}, "commonLabels": map[string]string{"alertname": "Down"}, "alerts": list,
		})
		if err != nil || code != http.StatusOK {
			t.Fatalf("%s %s: %d %s %v", group, status, code, text, err)
		}
	}
	b.be(http.StatusServiceUnavailable, false)
	alert("db1", "firing", "db1 firing")
	alert("db2", "firing", "db2 firing")
	alert("all", "firing", "db3 firing", "db4 firing")
	g.kill()
	g.run()
	alert("db1", "resolved", "db1 resolved")
	alert("all", "firing", "db3 resolved", "db4 firing")
	b.be(http.StatusOK, false)
	all := func() (out []told) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, x := range b.told {
			out = append(out, x...)
		}
		return out
	}
	eventually(t, "the destination is told of the three groups", func() bool { return len(all()) >= 3 })
	alert("all", "resolved", "db3 resolved", "db4 resolved")
	eventually(t, "the last group is resolved", func() bool { return len(all()) >= 4 })
	if err := g.stop(); err != nil {
		t.Error(err)
	}
	var got []string
	for _, m := range all() {
		text := strings.NewReplacer("\n\n", " / ", "\n", ", ", "http://am.example.net/#/alerts?receiver=ops", "").Replace(m.Text)
		if i := strings.Index(text, "The alert of "); i >= 0 {
			text = text[:i] + "+" // the time of day
		}
		got = append(got, m.Type+": "+strings.Trim(text, ", /"))
	}
	slices.Sort(got)
	want := []string{
		"failure: Firing: db2 is firing",
		"failure: Firing: db4 is firing, Resolved: db3 is resolved,  / +",
		"success: Resolved: db1 is resolved,  / +",
		"success: Resolved: db3 is resolved, Resolved: db4 is resolved",
	}
	if !slices.Equal(got, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestIncidentsOfSites checks that messages to a key of all sites are about the same
// incidents at every site, and that those to keys of the same name in two sites are
// not.
func TestIncidentsOfSites(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	other := porttest.Address()
	url := "url " + b.url + "&retry=0\n"
	local := "key local {\n" + url + "}\n"
	g := start(t, "notify {\nqueue {\npath "+newFolder(t)+"\n}\nkey shared {\n"+url+"}\n}", local+otherSite(other, local))
	b.be(http.StatusServiceUnavailable, false)
	post := func(g *gateway, key, title, typ string) (id string) {
		t.Helper()
		status, _, text, err := g.tryPost("/notify/"+key, message{"title": title, "body": "x", "incident": "db1", "type": typ})
		var answer struct{ ID string }
		if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &answer) != nil {
			t.Fatalf("%s: %d %s %v", title, status, text, err)
		}
		return answer.ID
	}
	state := func(id string) (status, by string) {
		t.Helper()
		code, text := g.get(g.url+"/notify/messages/"+id, "application/json")
		var m struct{ Results []struct{ Status, By string } }
		if err := json.Unmarshal([]byte(text), &m); code != http.StatusOK || err != nil || len(m.Results) != 1 {
			t.Fatalf("%s: %d %s", id, code, text)
		}
		return m.Results[0].Status, m.Results[0].By
	}
	down := post(g, "shared", "shared 1", "failure")
	up := post(g.at(other), "shared", "shared 2", "success")
	if status, by := state(down); status != "skipped" || by != up {
		t.Errorf("a key of all sites: the older message is %s by %q, want skipped by %s", status, by, up)
	}
	down = post(g, "local", "here 1", "failure")
	post(g.at(other), "local", "there 1", "success")
	if status, by := state(down); status != "queued" {
		t.Errorf("keys of two sites: the message to one is %s by %q", status, by)
	}
	b.be(http.StatusOK, false)
	eventually(t, "what waits arrives", func() bool { return b.last("shared") == 2 && b.last("here") == 1 && b.last("there") == 1 })
	if err := g.stop(); err != nil {
		t.Error(err)
	}
}
