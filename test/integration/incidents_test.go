package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// incidentTools stands in for PagerDuty, Opsgenie and Splunk On-Call. Each has alerts
// by their IDs, with what it was told about each, in order.
type incidentTools struct {
	mu   sync.Mutex
	down bool // Splunk On-Call
	told map[string]map[string][]string
}

// newIncidentTools starts the tools, and makes programs that are started from now on
// reach them under their names.
func newIncidentTools(t *testing.T) *incidentTools {
	t.Helper()
	x := &incidentTools{told: map[string]map[string][]string{"pagerduty": {}, "opsgenie": {}, "splunk": {}}}
	standIn(t, http.HandlerFunc(x.serve), "events.pagerduty.com", "api.opsgenie.com", "alert.victorops.com")
	return x
}

func (x *incidentTools) serve(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Routing string `json:"routing_key"` // of PagerDuty
		Action  string `json:"event_action"`
		Dedup   string `json:"dedup_key"`

		Alias string // of Opsgenie

		Entity string `json:"entity_id"` // of Splunk On-Call
		Kind   string `json:"message_type"`
		Text   string `json:"state_message"`
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	tell := func(tool, id, what string) {
		if what != "INFO" && id != "" { // it is about an incident
			x.told[tool][id] = append(x.told[tool][id], what)
		}
	}
	switch {
	case r.Host == "events.pagerduty.com" && r.URL.Path == "/v2/enqueue":
		tell("pagerduty", m.Dedup, m.Action)
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, `{"status": "success", "message": "Event processed", "dedup_key": %q}`, m.Dedup)
	case r.Host == "api.opsgenie.com":
		alias, action, closes := strings.Cut(strings.Trim(strings.TrimPrefix(r.URL.Path, "/v2/alerts"), "/"), "/")
		if !closes {
			alias, action = m.Alias, "create"
		}
		tell("opsgenie", alias, action)
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"result": "Request will be processed", "requestId": "1"}`)
	case r.Host == "alert.victorops.com" && x.down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.Host == "alert.victorops.com":
		if _, missed, ok := strings.Cut(m.Text, "The alert of "); ok {
			m.Kind += " after" + strings.TrimLeft(missed, "0123456789:")
		}
		tell("splunk", m.Entity, m.Kind)
		_, _ = io.WriteString(w, `{"result": "success"}`)
	default:
		http.NotFound(w, r)
	}
}

// of returns what a tool was told, about each alert in a line, sorted. Each ID is
// replaced by the word that is its value in names.
func (x *incidentTools) of(tool string, names map[string]string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []string
	for id, told := range x.told[tool] {
		if name := names[id]; name != "" {
			id = name
		}
		out = append(out, id+": "+strings.Join(told, ", "))
	}
	slices.Sort(out)
	return out
}

// TestAlertmanagerStory checks that what Alertmanager tells of two alerts arrives at
// each incident tool as two alerts, of which the right one is resolved. A tool that is
// down meanwhile is told of the present states only, and what it has missed.
func TestAlertmanagerStory(t *testing.T) {
	tools := newIncidentTools(t)
	tools.down = true
	port := freePort(t)
	startGateway(t, port, fmt.Sprintf(`{
	notify {
		queue {
			wait 1s
		}
		stateless off
		key ops {
			url pagerduty://routing@apikey
			url opsgenie://apikey
			url splunk://ops@apikey
		}
	}
}
http://127.0.0.1:%d {
	notify
}
`, port))
	address := alertmanager(t, "[alertname, instance]", webhookOf(fmt.Sprintf("127.0.0.1:%d", port)))

	is := func(tool string, names map[string]string, want ...string) {
		t.Helper()
		var got []string
		defer func() {
			if t.Failed() {
				t.Logf("%s was told %q", tool, got)
			}
		}()
		eventually(t, fmt.Sprintf("%s was told %q", tool, want), func() bool {
			got = tools.of(tool, names)
			return slices.Equal(got, want)
		})
	}
	names := map[string]string{}
	// added waits for an alert with a new ID, and gives that a name.
	added := func(name string) {
		t.Helper()
		eventually(t, "PagerDuty has "+name, func() bool {
			tools.mu.Lock()
			defer tools.mu.Unlock()
			for id := range tools.told["pagerduty"] {
				if names[id] == "" {
					names[id] = name
					if !regexp.MustCompile("^[a-z2-7]{32}$").MatchString(id) {
						t.Errorf("the ID of an incident is %q", id)
					}
					return true
				}
			}
			return false
		})
	}
	postAlerts(t, address, diskAlert("db1", 0))
	added("db1")
	postAlerts(t, address, diskAlert("db2", 0))
	added("db2")
	is("opsgenie", names, "db1: create", "db2: create")
	postAlerts(t, address, diskAlert("db1", -time.Second), diskAlert("db2", 0))
	is("pagerduty", names, "db1: trigger, resolve", "db2: trigger")
	is("opsgenie", names, "db1: create, close", "db2: create")
	is("splunk", names)
	tools.mu.Lock()
	tools.down = false
	tools.mu.Unlock()
	// A success wakes what waits for the destination.
	resp, err := http.PostForm(fmt.Sprintf("http://127.0.0.1:%d/notify/ops", port), url.Values{"body": {"are you there?"}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	is("splunk", names, "db1: RECOVERY after was not delivered.", "db2: CRITICAL")
	postAlerts(t, address, diskAlert("db1", 0), diskAlert("db2", -time.Second))
	is("pagerduty", names, "db1: trigger, resolve, trigger", "db2: trigger, resolve")
	is("opsgenie", names, "db1: create, close, create", "db2: create, close")
	is("splunk", names, "db1: RECOVERY after was not delivered., CRITICAL", "db2: CRITICAL, RECOVERY")
}

// board is a destination that notes what it is told of each incident. The titles are
// the name of the incident and a number that grows.
type board struct {
	url string

	mu       sync.Mutex
	down     bool
	active   map[string]int // requests
	last     map[string]int // numbers
	told     int
	problems []string

	// A gateway that was stopped may be between its last look at the queue and the
	// request. What it sends then, when it runs again, is not a problem.
	resumed time.Time
	excused int
}

// problem takes note of a mistake in the order. The caller holds the lock.
func (b *board) problem(text string) {
	if !b.resumed.IsZero() && time.Since(b.resumed) < 5*time.Second {
		b.excused++
		return
	}
	b.problems = append(b.problems, text)
}

func newBoard(t *testing.T) *board {
	t.Helper()
	b := &board{active: map[string]int{}, last: map[string]int{}}
	s := httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(s.Close)
	b.url = "json://" + strings.TrimPrefix(s.URL, "http://")
	return b
}

func (b *board) serve(w http.ResponseWriter, r *http.Request) {
	var m struct{ Title string }
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		return // the gateway was killed while it sent
	}
	name, text, _ := strings.Cut(m.Title, " ")
	number, _ := strconv.Atoi(text)
	b.mu.Lock()
	if b.active[name]++; b.active[name] > 1 {
		b.problem(fmt.Sprintf("two deliveries at once of %s, %s after %d was told", name, text, b.last[name]))
	}
	b.mu.Unlock()
	select {
	case <-time.After(time.Duration(rand.IntN(30)) * time.Millisecond):
	case <-r.Context().Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.active[name]--
	switch {
	case b.down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case number < b.last[name]:
		b.problem(fmt.Sprintf("%s: %d after %d", name, number, b.last[name]))
	default:
		b.last[name] = number
		b.told++
	}
}

// TestIncidentOrderPostgres sends messages about incidents to three gateways that
// share a database, while the destination has outages, one gateway is killed and
// another one is stopped for longer than its leases. The destination is told of each
// incident in order, one message at a time, and the present state last.
func TestIncidentOrderPostgres(t *testing.T) {
	t.Parallel()
	const incidents, kills = 12, 2
	p, b := newPostgres(t), newBoard(t)
	key := "key ops {\nurl " + b.url + "\n}\n"
	run := func() *queueGateway { return newQueueGatewayWith(t, p, key, "") }
	var mu sync.RWMutex // held for reading during a request
	gateways := []*queueGateway{run(), run(), run()}
	var stop atomic.Bool
	var posted atomic.Int64
	last := make([]int, incidents)
	post := func(i, number int) (status int, err error) {
		mu.RLock()
		defer mu.RUnlock()
		name := fmt.Sprintf("incident-%d", i)
		g := gateways[rand.IntN(len(gateways))]
		form := url.Values{
			"title": {fmt.Sprint(name, " ", number)}, "body": {"x"}, "incident": {name},
			"type": {[]string{"failure", "warning", "success", "info"}[rand.IntN(4)]},
		}
		r, err := http.NewRequest(http.MethodPost, g.url+"/notify/ops", strings.NewReader(form.Encode()))
		if err != nil {
			return 0, err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Prefer", []string{"wait=1", "respond-async"}[rand.IntN(2)])
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err
		}
		resp.Body.Close()
		return resp.StatusCode, nil
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for i := range incidents {
		wg.Go(func() {
			for number := 1; !stop.Load() && !t.Failed(); number++ {
				for { // until it has an answer: the gateway may be killed
					status, err := post(i, number)
					busy := status == http.StatusServiceUnavailable // PostgreSQL takes longer than 5 s on a busy machine
					if err == nil && !busy && status != http.StatusOK && status != http.StatusAccepted {
						t.Errorf("incident %d: the answer is %d", i, status)
						return
					}
					if !busy && (err == nil || stop.Load()) || t.Failed() {
						break
					}
					time.Sleep(50 * time.Millisecond)
				}
				last[i] = number
				posted.Add(1)
				time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
			}
		})
	}
	wg.Go(func() {
		for !stop.Load() {
			b.mu.Lock()
			b.down = rand.IntN(3) == 0
			b.mu.Unlock()
			time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
		}
		b.mu.Lock()
		b.down = false
		b.mu.Unlock()
	})
	more := func(n int64) {
		t.Helper()
		want := posted.Load() + n
		eventually(t, "the gateways accept messages", func() bool { return t.Failed() || posted.Load() >= want })
	}
	for k := range kills {
		more(60)
		gateways[k].stop() // requests are under way
		mu.Lock()
		gateways[k] = run()
		mu.Unlock()
	}
	more(60)
	mu.Lock() // no request is under way, but deliveries are
	stopped := gateways[2]
	if err := syscall.Kill(-stopped.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	gateways = gateways[:2]
	mu.Unlock()
	select {
	case <-time.After(65 * time.Second): // leases last a minute
	case <-t.Context().Done():
	}
	b.mu.Lock()
	b.resumed = time.Now()
	b.mu.Unlock()
	if err := syscall.Kill(-stopped.cmd.Process.Pid, syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	more(60)
	stop.Store(true)
	wg.Wait()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		var late []string
		b.mu.Lock()
		for i, want := range last {
			if name := fmt.Sprintf("incident-%d", i); b.last[name] != want {
				late = append(late, fmt.Sprintf("%s: %d of %d", name, b.last[name], want))
			}
		}
		b.mu.Unlock()
		if len(late) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not told: %q", late)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, problem := range b.problems {
		t.Error(problem)
	}
	const atOnce = 4 // deliveries to a destination
	if b.excused > atOnce {
		t.Errorf("%d mistakes after a gateway ran again, want at most one for each delivery under way when it was stopped", b.excused)
	}
	t.Logf("%d messages accepted, %d told", posted.Load(), b.told)
}
