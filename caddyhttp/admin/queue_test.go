package admin_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/admin"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// Deliveries that the queue gives up are in the admin API and the metrics, cause a
// message to the fallback and an event, and can be retried and dropped.
func TestQueueDead(t *testing.T) {
	p, backup, watch := gatewaytest.NewPager(t, http.StatusNotFound),
		gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
	caddyhttptest.Serve(t, `
	notify {
		queue {
			path "`+t.TempDir()+`"
		}
		key k {
			url json://user:secretsecret@`+strings.TrimPrefix(p.URL, "http://")+`/
			fallback b
		}
		key b {
			url `+backup.NotifyURL()+`
		}
		key w {
			url `+watch.NotifyURL()+`
		}
	}
	events {
		on notify_dead notify w
	}`, "")
	t.Cleanup(func() { caddyhttptest.Serve(t, "", "") })
	post := func(body string) string {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, caddyhttptest.Server+"/prefix/notify/k", strings.NewReader("body="+body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {typeForm}, "Prefer": {"respond-async"}, "Accept": {"application/json"}}
		resp, err := caddyhttptest.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var a gatewaytest.Answer
		if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != 202 ||
			resp.Header.Get("Location") != "/prefix/notify/messages/"+a.ID {
			t.Fatalf("status %d, header %v, %v", resp.StatusCode, resp.Header, err)
		}
		return a.ID
	}
	first, second := post("confidential&incident=db1"), post("confidential, too")
	dead := func() (q admin.Queue) {
		status, text := ask(t, "GET", "/notify/queue/dead?limit=1000", "")
		if err := json.Unmarshal([]byte(text), &q); status != 200 || err != nil ||
			strings.Contains(text, "secretsecret") || strings.Contains(text, "confidential") {
			t.Fatalf("status %d, %v\n%s", status, err, text)
		}
		return q
	}
	gatewaytest.Eventually(t, func() bool { return dead().Dead == 2 && backup.Count() == 1 && watch.Count() == 2 })
	q := dead()
	if d := q.Deliveries[0]; d.ID != first || d.Incident != "db1" || d.Key != "k" || d.Source != "http" ||
		d.Status != "failed" || d.Error == nil || !strings.Contains(*d.Error, "404") {
		t.Errorf("%+v", d)
	}
	for _, a := range append(backup.Got(), watch.Got()...) {
		if text := a.Title + a.Message; !strings.Contains(text, "404") || !strings.Contains(text, "JSON") ||
			strings.Contains(text, "secretsecret") || strings.Contains(text, "confidential") {
			t.Errorf("told %q", text)
		}
	}
	next := "/notify/queue/dead?limit=1"
	for _, id := range []string{first, second} {
		var page admin.Queue
		status, text := ask(t, "GET", next, "")
		if err := json.Unmarshal([]byte(text), &page); status != 200 || err != nil || len(page.Deliveries) != 1 || page.Deliveries[0].ID != id {
			t.Fatalf("%s: status %d %s", next, status, text)
		}
		if next = page.Next; next != "/notify/queue/dead?after="+id+".0&limit=1" {
			t.Fatalf("the next page is %s", next)
		}
	}
	if status, text := ask(t, "GET", next, ""); status != 200 ||
		!strings.Contains(text, `"deliveries":[]`) || strings.Contains(text, `"next"`) {
		t.Errorf("the last page: status %d %s", status, text)
	}
	for _, line := range []string{
		`caddy_notify_queue_jobs{state="dead"} 2`, "caddy_notify_queue_oldest_seconds 0",
		`caddy_notify_queue_dead_total{service="JSON"} `, "caddy_notify_queue_retries_total ",
	} {
		// The messages about these deliveries may not be settled yet.
		gatewaytest.Eventually(t, func() bool { _, text := ask(t, "GET", "/metrics", ""); return strings.Contains(text, "\n"+line) })
	}
	// What is known of the incident remains.
	gatewaytest.Eventually(t, func() bool {
		_, text := ask(t, "GET", "/metrics", "")
		_, all, _ := strings.Cut(text, "\ncaddy_notify_queue_bytes ")
		_, records, _ := strings.Cut(text, "\ncaddy_notify_queue_record_bytes ")
		all, _, _ = strings.Cut(all, "\n")
		return all != "0" && strings.HasPrefix(records, all+"\n")
	})

	p.Answer(http.StatusOK)
	if status, text := ask(t, "POST", "/notify/queue/"+first+"/retry", ""); status != 200 ||
		text != `{"deliveries":1,"waiting":0,"dead":1}`+"\n" {
		t.Errorf("retry: status %d %s", status, text)
	}
	gatewaytest.Eventually(t, func() bool { return p.Count() == 3 && dead().Dead == 1 })
	if status, text := ask(t, "DELETE", "/notify/queue/"+second, ""); status != 200 || text != "{\"deliveries\":1}\n" {
		t.Errorf("drop: status %d %s", status, text)
	}
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/notify/queue", 200},
		{"GET", "/notify/queue?limit=0", 400},
		{"GET", "/notify/queue?after=x", 400},
		{"PUT", "/notify/queue", 405},
		{"POST", "/notify/queue/" + second + "/retry", 200},
		{"POST", "/notify/queue/x/retry", 404},
		{"DELETE", "/notify/queue/x", 404},
		{"GET", "/notify/queue/" + second, 200},
		{"GET", "/notify/queue/x", 404},
		{"PUT", "/notify/queue/" + second, 405},
	} {
		if status, text := ask(t, tt.method, tt.path, ""); status != tt.want {
			t.Errorf("%s %s: status %d, want %d: %s", tt.method, tt.path, status, tt.want, text)
		}
	}
}
