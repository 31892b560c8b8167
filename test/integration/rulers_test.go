package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// told are the types of the messages about one incident in the order in which they arrive.
type told struct {
	url   string
	mu    sync.Mutex
	types []string
	texts []string
}

func newTold(t *testing.T) *told {
	t.Helper()
	a := &told{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct{ Type, Message string }
		b, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(b, &m) != nil {
			return // the gateway was killed while it sent
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.types, a.texts = append(a.types, m.Type), append(a.texts, m.Message)
	}))
	t.Cleanup(s.Close)
	a.url = "json://" + strings.TrimPrefix(s.URL, "http://")
	return a
}

// last returns the type of the last message, or "", and how many there were.
func (a *told) last() (string, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.types) == 0 {
		return "", 0
	}
	return a.types[len(a.types)-1], len(a.types)
}

func (a *told) all() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.texts)
}

const rulerBlock = "from prometheus {\ngroup_wait 1s\ngroup_interval 3s\n}\n"

// TestRulersPostgres checks that three gateways that share a database keep one group: an
// alert may be posted to each of them, nobody is told anything while it fires although
// gateways are killed, and it is told once that it is over.
func TestRulersPostgres(t *testing.T) {
	t.Parallel()
	p, a := newPostgres(t), newTold(t)
	var gateways []*queueGateway
	for range 3 {
		gateways = append(gateways, newQueueGatewayWith(t, p, rulerBlock+"key ops {\nurl "+a.url+"\n}", ""))
	}
	post := func(g *queueGateway, lasts time.Duration) {
		t.Helper()
		body := fmt.Sprintf(`[{"labels": {"alertname": "Disk", "severity": "critical"}, "endsAt": %q}]`,
			time.Now().Add(lasts).UTC().Format(time.RFC3339Nano))
		eventually(t, "the gateway takes an alert", func() bool {
			resp, err := http.Post(g.url+"/notify/ops/prometheus/api/v2/alerts", "application/json", strings.NewReader(body))
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
	}
	for i := range 40 {
		post(gateways[i%len(gateways)], 8*time.Second)
		time.Sleep(500 * time.Millisecond)
		if i == 15 || i == 25 {
			gateways[0].stop()
			gateways = gateways[1:]
		}
		if kind, n := a.last(); n > 1 || n == 1 && kind != "failure" {
			t.Fatalf("while the alert fires: %q", a.all())
		}
	}
	within(t, 90*time.Second, "the alert is told", func() bool { _, n := a.last(); return n == 1 })
	post(gateways[0], -time.Second)
	within(t, 90*time.Second, "its end is told", func() bool { kind, _ := a.last(); return kind == "success" })
	if _, n := a.last(); n != 2 {
		t.Errorf("told %q", a.all())
	}
}

// TestRulersPrometheus lets a pair of Prometheus post an alert without an Alertmanager: it
// fires, one of the pair and the gateway are restarted, it is resolved, it fires again, and
// both are killed.
func TestRulersPrometheus(t *testing.T) {
	t.Parallel()
	prometheus := program(t, "prometheus", "prometheus")
	a, port := newTold(t), freePort(t)
	queue := t.TempDir()
	startNotify := func() *server {
		return startGateway(t, port,
			fmt.Sprintf("{\nnotify {\nqueue {\npath %s\n}\n%skey ops {\n"+
				"token 0123456789abcdef\nurl %s\n}\n}\n}\nhttp://127.0.0.1:%d {\nnotify\n}\n",
				queue, rulerBlock, a.url, port))
	}
	gateway := startNotify()
	value := filepath.Join(t.TempDir(), "rules.yml")
	write := func(expr string) {
		t.Helper()
		rule := fmt.Sprintf("groups: [{name: g, interval: 1s, rules: [{alert: Disk, expr: "+
			"%q, labels: {severity: critical}, annotations: {summary: The disk is full}}]}]\n", expr)
		if err := os.WriteFile(value, []byte(rule), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("vector(1)")
	type replica struct {
		*server
		port int
		dir  string
	}
	startReplica := func(r *replica, name string) {
		if r.port == 0 {
			r.port, r.dir = freePort(t), t.TempDir()
		}
		settings := writeFile(t, "prometheus.yml", fmt.Sprintf(`global: {evaluation_interval: 1s, external_labels: {replica: %s}}
rule_files: [%s]
alerting:
  alert_relabel_configs: [{action: labeldrop, regex: replica}]
  alertmanagers: [{path_prefix: /notify/ops/prometheus, authorization: {credentials: 0123456789abcdef},
    static_configs: [{targets: ["127.0.0.1:%d"]}]}]
`, name, value, port))
		r.server = start(t, r.port, prometheus, "--config.file="+settings,
			"--storage.tsdb.path="+r.dir, "--rules.alert.resend-delay=4s", "--web.enable-lifecycle",
			fmt.Sprintf("--web.listen-address=127.0.0.1:%d", r.port))
	}
	var pair [2]replica
	startReplica(&pair[0], "one")
	startReplica(&pair[1], "two")
	reload := func() {
		t.Helper()
		for i := range pair {
			eventually(t, "Prometheus reads its rules", func() bool {
				resp, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/-/reload", pair[i].port), "", nil)
				if err != nil {
					return false
				}
				defer resp.Body.Close()
				return resp.StatusCode == http.StatusOK
			})
		}
	}
	tells := func(n int, kind, text string) {
		t.Helper()
		within(t, 60*time.Second, fmt.Sprintf("message %d, %s", n, kind), func() bool { got, m := a.last(); return m == n && got == kind })
		if all := a.all(); len(all) != n || !strings.HasPrefix(all[n-1], text) {
			t.Fatalf("told %q", all)
		}
	}
	tells(1, "failure", "Firing: The disk is full")
	time.Sleep(2 * time.Second) // a message that arrived just before the gateway is killed is sent again
	gateway.stop()
	gateway = startNotify()
	pair[0].stop()
	startReplica(&pair[0], "one")
	time.Sleep(20 * time.Second) // longer than an alert lasts, which nothing but time can show
	tells(1, "failure", "Firing: The disk is full")
	write("vector(1) > 2")
	reload()
	tells(2, "success", "Resolved: The disk is full")
	write("vector(1)")
	reload()
	tells(3, "failure", "Firing: The disk is full")
	for i := range pair {
		pair[i].stop()
	}
	tells(4, "warning", "No longer reported: The disk is full")
	gateway.stop()
}
