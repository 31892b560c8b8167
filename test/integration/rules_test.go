package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/rulestest"
)

// fleet are gateways that share a database.
type fleet struct {
	t    *testing.T
	run  func(port int) *queueGateway
	mu   sync.Mutex
	all  []*queueGateway
	next int

	accepted sync.Map // the address of the gateway that has accepted a message, by its ID
}

func newFleet(t *testing.T, n int, run func(port int) *queueGateway) *fleet {
	t.Helper()
	f := &fleet{t: t, run: run}
	for range n {
		f.all = append(f.all, run(freePort(t)))
	}
	return f
}

// url returns the address of one of the gateways that run.
func (f *fleet) url() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	return f.all[f.next%len(f.all)].url
}

// kill kills a gateway, and starts it again.
func (f *fleet) kill(i int) {
	f.mu.Lock()
	g := f.all[i]
	f.mu.Unlock()
	g.stop()
	u, err := url.Parse(g.url)
	if err != nil {
		f.t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		f.t.Fatal(err)
	}
	next := f.run(port)
	f.mu.Lock()
	f.all[i] = next
	f.mu.Unlock()
}

// pause stops the last gateway in the middle of what it does, for longer than leases
// last. It then runs again, without requests.
func (f *fleet) pause(d time.Duration) {
	f.t.Helper()
	f.mu.Lock()
	last := len(f.all) - 1
	g := f.all[last]
	f.all = f.all[:last]
	f.mu.Unlock()
	if err := syscall.Kill(-g.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		f.t.Error(err)
	}
	select {
	case <-time.After(d):
	case <-f.t.Context().Done():
	}
	if err := syscall.Kill(-g.cmd.Process.Pid, syscall.SIGCONT); err != nil {
		f.t.Error(err)
	}
}

// do sends a request to one of the gateways. The status is 0 if it has ended meanwhile.
func (f *fleet) do(method, path string, form url.Values) (status int, body []byte) {
	at := f.url()
	if id, ok := strings.CutPrefix(path, "/notify/messages/"); ok { // a message belongs to its site
		if v, ok := f.accepted.Load(id); ok {
			at = v.(string)
		}
	}
	r, err := http.NewRequest(method, at+path, strings.NewReader(form.Encode()))
	if err != nil {
		f.t.Error(err)
		return 0, nil
	}
	r.Header.Set("Accept", "application/json")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil {
		return 0, nil
	}
	var a struct{ ID string }
	if method == http.MethodPost && json.Unmarshal(body, &a) == nil {
		f.accepted.Store(a.ID, at)
	}
	return resp.StatusCode, body
}

// TestRulesModelPostgres holds three gateways that share a database to what is promised
// of rules, while they are killed: 5,000 random steps if CI is set, and 400 otherwise.
func TestRulesModelPostgres(t *testing.T) {
	t.Parallel()
	keys, steps, kills := 10, 40, 2
	if os.Getenv("CI") != "" {
		keys, steps, kills = 50, 100, 4
	}
	p := newPostgres(t)
	models := map[string]*rulestest.Model{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		models[key].ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	var f *fleet
	gateway := rulestest.Gateway{
		Do:   func(method, path string, form url.Values) (int, []byte) { return f.do(method, path, form) },
		Wait: func(d time.Duration) { time.Sleep(d / 4) }, Now: time.Now, Slack: 5 * time.Second,
	}
	var blocks strings.Builder
	blocks.WriteString("public_url https://alerts.example.com\n")
	for i := range keys {
		key := fmt.Sprint("key", i)
		m := rulestest.New(gateway, key, uint64(i), time.Second)
		m.Brief, models[key] = true, m
		blocks.WriteString(m.Block(strings.TrimPrefix(s.URL, "http://")) + "\n")
	}
	f = newFleet(t, 3, func(port int) *queueGateway {
		return newQueueGatewayOn(t, p, port, blocks.String(), "console {\nmanage open\n}")
	})
	var work sync.WaitGroup
	for _, m := range models {
		work.Go(func() {
			for range steps {
				if err := m.Step(); err != nil {
					t.Errorf("%v\n%s", err, m.Log())
					return
				}
			}
			problems := m.Finish(4 * time.Minute) // what a killed gateway was sending follows after a minute
			for _, text := range problems {
				t.Errorf("%s: %s", m.Key, text)
			}
			if len(problems) > 0 {
				t.Log(m.Log())
			}
		})
	}
	for k := range kills {
		time.Sleep(7 * time.Second)
		f.kill(k % 3)
	}
	work.Wait()
}

// client gives up requests to a gateway that is killed or stopped.
var client = &http.Client{Timeout: 10 * time.Second}

// post posts a message to one of the gateways until there is an answer.
func (f *fleet) post(key string, m map[string]string) {
	f.t.Helper()
	body, err := json.Marshal(m)
	if err != nil {
		f.t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); !f.t.Failed(); time.Sleep(50 * time.Millisecond) {
		r, err := http.NewRequest(http.MethodPost, f.url()+"/notify/"+key, bytes.NewReader(body))
		if err != nil {
			f.t.Error(err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key+m["title"]+m["type"])
		resp, err := client.Do(r)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusAccepted {
				return
			}
			if resp.StatusCode != http.StatusConflict { // the first request is not done yet
				f.t.Errorf("%s: %d", m["title"], resp.StatusCode)
			}
		}
		if time.Now().After(deadline) {
			f.t.Errorf("%s: no answer", m["title"])
		}
	}
}

// TestRulesPostgres sends messages to three gateways that share a database, to keys with
// a digest, an escalation and a beat. Two of them are killed, and one is stopped for
// longer than its leases. All together make one digest of each key, tell each step and
// each missed beat once, and lose nothing. What was under way may come twice.
func TestRulesPostgres(t *testing.T) {
	t.Parallel()
	const incidents, lots, phones, rounds, kills = 12, 6, 2, 2, 2
	p, pages, a := newPostgres(t), rulestest.NewPhones(phones), newArrivals(t)
	s := httptest.NewServer(pages)
	t.Cleanup(s.Close)
	keys := fmt.Sprintf("public_url https://alerts.example.com\nkey ops {\n%sescalate after 2s {\nrepeat %d\n}\n}\n",
		pages.URLs(strings.TrimPrefix(s.URL, "http://")), rounds)
	keys += "key beats {\nurl " + a.url + "\nexpect sync every 10s grace 2s\n}\n"
	for i := range lots {
		keys += fmt.Sprintf("key lot%d {\nurl %s\ndigest 8s\n}\n", i, a.url)
	}
	f := newFleet(t, 3, func(port int) *queueGateway { return newQueueGatewayOn(t, p, port, keys, "") })

	var work sync.WaitGroup
	told := make([]*rulestest.Told, incidents)
	for i := range incidents {
		x := &rulestest.Told{
			Incident: fmt.Sprint("incident-", i),
			Fate:     []rulestest.Fate{rulestest.Forgotten, rulestest.Acknowledged, rulestest.Resolved}[i%3],
			Rounds:   rounds,
		}
		told[i] = x
		work.Go(func() {
			time.Sleep(time.Duration(i) * 300 * time.Millisecond)
			f.post("ops", map[string]string{"title": x.Incident, "body": "x", "type": "failure", "incident": x.Incident})
			switch x.Fate {
			case rulestest.Forgotten:
				return
			case rulestest.Resolved:
				time.Sleep(3 * time.Second)
				f.post("ops", map[string]string{"title": x.Incident, "body": "x", "type": "success", "incident": x.Incident})
			case rulestest.Acknowledged:
				eventually(t, x.Incident+" is acknowledged", func() bool {
					link := pages.Link(x.Incident)
					if link == "" {
						return false
					}
					resp, err := client.PostForm(f.url()+link, url.Values{"do": {"acknowledge"}, "by": {"Eve"}})
					if err != nil {
						return false
					}
					_ = resp.Body.Close()
					return resp.StatusCode == http.StatusOK
				})
			}
			x.At = time.Now()
		})
	}
	for i := range lots {
		work.Go(func() {
			for n := range 3 {
				f.post(fmt.Sprint("lot", i), map[string]string{"title": fmt.Sprint("message ", n), "body": "x", "type": "info"})
			}
		})
	}
	for k := range kills {
		time.Sleep(1500 * time.Millisecond)
		f.kill(k)
	}
	f.pause(65 * time.Second) // leases last a minute
	work.Wait()
	eventually(t, "all is told", func() bool {
		for _, x := range told {
			if pages.Missing(x) != "" {
				return false
			}
		}
		for i := range lots {
			if a.count(fmt.Sprintf("lot%d: 3 messages", i)) == 0 {
				return false
			}
		}
		return a.count("sync is late") > 0
	})
	again := 0
	for _, x := range told {
		problems, n := pages.Check(x, 5*time.Second)
		again += n
		for _, text := range problems {
			t.Error(text)
		}
	}
	for i := range lots {
		again += a.count(fmt.Sprintf("lot%d: 3 messages", i)) - 1
	}
	again += a.count("sync is late") - 1
	// A gateway that is killed or stopped has up to four deliveries under way to each
	// destination.
	if most := (kills + 1) * 4; again > most {
		t.Errorf("%d messages came again, want at most %d", again, most)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for title := range a.got {
		if strings.HasPrefix(title, "lot") && !strings.HasSuffix(title, ": 3 messages") {
			t.Errorf("a part of a digest came: %q", title)
		}
	}
	t.Logf("%d messages came again", again)
}
