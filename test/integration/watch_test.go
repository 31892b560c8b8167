package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAlertRules checks the alert rules with promtool, and runs their tests.
func TestAlertRules(t *testing.T) {
	promtool := program(t, "promtool", "prometheus")
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = "../../deploy/prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestPrometheus lets Prometheus scrape a gateway that has a queue, rules and beats, and
// checks that each panel of the dashboard shows something, and that the alert about
// refused requests fires.
func TestPrometheus(t *testing.T) {
	prometheus := program(t, "prometheus", "prometheus")
	station := newWebhook(t)
	port := freePort(t)
	site := fmt.Sprintf("http://127.0.0.1:%d", port)
	startGateway(t, port, fmt.Sprintf(`{
	notify {
		queue {
			wait 10ms
			secret the-new-secret-of-the-queue the-old-secret-of-the-queue
		}
		public_url %[3]s
		key ops {
			url %[1]s
			expect backup every 1h
			dedupe 1h
		}
		key closed {
			url json://127.0.0.1:%[2]d/
		}
	}
}
%[3]s {
	metrics /metrics
	notify
}
`, station.to("/"), freePort(t), site))

	rules, err := filepath.Abs("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	watch := freePort(t)
	settings := writeFile(t, "prometheus.yml",
		fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%s]\n"+
			"scrape_configs: [{job_name: caddy, static_configs: [{targets: ['127.0.0.1:%d']}]}]\n", rules, port))
	start(t, watch, prometheus, "--config.file="+settings, "--storage.tsdb.path="+t.TempDir(),
		fmt.Sprintf("--web.listen-address=127.0.0.1:%d", watch))
	query := func(expr string) int {
		t.Helper()
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/api/v1/query?query=%s", watch, url.QueryEscape(expr)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable { // it is still starting
			return 0
		}
		var answer struct {
			Status, Error string
			Data          struct{ Result []any }
		}
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		if answer.Error != "" {
			t.Fatalf("%s: %s", expr, answer.Error)
		}
		return len(answer.Data.Result)
	}
	eventually(t, "Prometheus has the metrics of the gateway", func() bool { return query("caddy_notify_in_flight") == 1 })

	send := func(key, body string, want int) {
		t.Helper()
		resp, err := http.PostForm(site+"/notify/"+key, url.Values{"body": {body}})
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Fatalf("%s: status %d, want %d", key, resp.StatusCode, want)
		}
	}
	ask := func() { // and withdraw it
		t.Helper()
		resp, err := http.PostForm(site+"/notify/ops", url.Values{"body": {"?"}, "ask": {"yes", "no"}})
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, site+resp.Header.Get("Location"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err = http.DefaultClient.Do(r); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("withdrawing a question: status %d", resp.StatusCode)
		}
	}
	content, err := os.ReadFile("../../deploy/grafana/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(content, &dashboard); err != nil {
		t.Fatal(err)
	}
	instead := strings.NewReplacer("$instance", ".*", "$__rate_interval", "5m", "$__range", "1h")
	n := 0
	for _, p := range dashboard.Panels {
		for _, q := range p.Targets {
			eventually(t, "the panel "+p.Title+" shows something: "+q.Expr, func() bool {
				n++
				send("ops", "the same", 200) // dedupe suppresses it
				send("closed", fmt.Sprint(n), 200)
				send("none", "x", 404)
				ask()
				return query(instead.Replace(q.Expr)) > 0
			})
		}
	}
	eventually(t, "the alert about refused requests fires", func() bool {
		return query(`ALERTS{alertname="NotifyRefused", reason="unknown_key", alertstate="firing"}`) == 1
	})
}
