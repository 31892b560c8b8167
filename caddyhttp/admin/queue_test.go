package admin_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/admin"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
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
	post := func(body string) string {
		t.Helper()
		got := caddyhttptest.Do(t, http.MethodPost, caddyhttptest.Server+"/prefix/notify/k", "body="+body,
			"Content-Type", gatewaytest.TypeForm, "Prefer", "respond-async", "Accept", gatewaytest.TypeJSON)
		id := got.JSON(t).ID
		if got.Status != 202 || got.Header.Get("Location") != "/prefix/notify/messages/"+id {
			t.Fatalf("status %d, header %v", got.Status, got.Header)
		}
		return id
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

// TestOldSecrets checks that the admin API and the metrics say when nothing needs the old secret any more.
func TestOldSecrets(t *testing.T) {
	dir := t.TempDir()
	store, err := bolt.Open(bolt.Options{Path: dir, Secret: "the-first-secret-of-the-test", NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.SaveHealth(t.Context(), queue.Health{Destination: store.Hash("x"), Known: true, Changed: time.Now()}); err != nil {
		t.Fatal(err)
	}
	store.Close()
	caddyhttptest.Serve(t, `
	notify {
		queue {
			path "`+dir+`"
			secret the-second-secret-of-the-test the-first-secret-of-the-test
		}
	}`, "")
	for path, want := range map[string]string{
		"/notify/queue": `"old_secrets":"not needed"`, "/metrics": "\ncaddy_notify_queue_old_secret_records 0\n",
	} {
		gatewaytest.Eventually(t, func() bool { _, text := ask(t, "GET", path, ""); return strings.Contains(text, want) })
	}
}

// send sends a request to an address. It returns the status and the body of the answer in JSON.
func send(t *testing.T, method, address, contentType, body string) (int, string) {
	t.Helper()
	got := caddyhttptest.Do(t, method, address, body, "Content-Type", contentType, "Accept", gatewaytest.TypeJSON)
	return got.Status, got.Body
}

// TestAdminChangesAsPages checks that the admin API does with planned messages and with later steps
// of an escalation what the pages do: hurrying leaves both, retrying sends a planned message now and
// leaves the steps, and dropping ends both.
func TestAdminChangesAsPages(t *testing.T) {
	caddyhttptest.ReplaceShared(t)
	s := gatewaytest.NewStation(t)
	caddyhttptest.Serve(t, "notify {\nqueue {\npath "+t.TempDir()+"\n}\npublic_url "+gatewaytest.PublicURL+
		"\nkey k {\nurl "+s.NotifyURL("/k")+"\n}\nkey oncall {\nurl "+s.NotifyURL("/first")+" 1:x\nurl "+s.NotifyURL("/second")+
		" 2:x\nescalate after 1h\n}\n}", "console {\nmanage open\n}")
	t.Cleanup(func() { caddyhttptest.Serve(t, "", "") })
	submit := func(path, form string) {
		t.Helper()
		if status, text := send(t, http.MethodPost, caddyhttptest.Server+"/notify/console/"+path, gatewaytest.TypeForm, form); status >= 400 {
			t.Errorf("the page %s: status %d %s", path, status, text)
		}
	}
	operate := func(method, path string) (text string) {
		t.Helper()
		status, text := ask(t, method, "/notify/"+path, "")
		if status != http.StatusOK {
			t.Errorf("%s %s: status %d %s", method, path, status, text)
		}
		return text
	}
	for name, front := range map[string]struct {
		hurry       func()
		retry, drop func(id string)
	}{
		"pages": {
			func() { submit("queue?hurry", "") },
			func(id string) { submit("messages/"+id+"?retry", "") },
			func(id string) { submit("messages/"+id+"?drop", "") },
		},
		"admin": {
			func() {
				var list admin.Destinations
				if err := json.Unmarshal([]byte(operate("GET", "destinations")), &list); err != nil || len(list.Destinations) != 3 {
					t.Fatalf("%v: %+v", err, list)
				}
				for _, d := range list.Destinations {
					operate("POST", "destinations/"+d.ID+"/retry")
				}
				operate("POST", "queue/retry")
			},
			func(id string) { operate("POST", "queue/"+id+"/retry") },
			func(id string) { operate("DELETE", "queue/"+id) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			post := func(key string, fields url.Values) (id string) {
				t.Helper()
				fields.Set("body", "x")
				status, text := send(t, http.MethodPost, caddyhttptest.Server+"/notify/"+key, gatewaytest.TypeForm, fields.Encode())
				var a gatewaytest.Answer
				if err := json.Unmarshal([]byte(text), &a); status != http.StatusOK || err != nil || a.ID == "" {
					t.Fatalf("status %d %s", status, text)
				}
				return a.ID
			}
			// want waits for the results of a message, in which equal neighbours are one.
			want := func(when, id, want string) {
				t.Helper()
				var got string
				defer func() {
					if t.Failed() {
						t.Logf("%s: the results are %s, want %s", when, got, want)
					}
				}()
				gatewaytest.Eventually(t, func() bool {
					_, text := send(t, http.MethodGet, caddyhttptest.Server+"/notify/messages/"+id, gatewaytest.TypeForm, "")
					var m gatewaytest.Answer
					if err := json.Unmarshal([]byte(text), &m); err != nil {
						t.Fatal(text)
					}
					var results []string
					for _, r := range m.Results {
						results = append(results, strings.TrimSpace(string(r.Status)+" "+string(r.Rule)))
					}
					got = strings.Join(slices.Compact(results), ", ")
					return got == want
				})
			}
			soon, never := post("k", url.Values{"send_at": {"3h"}}), post("k", url.Values{"send_at": {"3h"}})
			steps := post("oncall", url.Values{"type": {"failure"}, "incident": {name}})
			front.hurry()
			want("hurried", soon, "queued planned")
			want("hurried", steps, "delivered, queued escalating")
			front.retry(soon)
			want("retried", soon, "delivered")
			front.retry(steps)
			want("retried", steps, "delivered, queued escalating")
			front.drop(never)
			want("dropped", never, "cancelled")
			front.drop(steps)
			want("dropped", steps, "delivered, cancelled")
			if got := s.Paths(); got != "first k" {
				t.Errorf("messages arrived at %q", got)
			}
		})
	}
}

// TestAdminWithoutQueue checks that the admin API refuses silences and questions of keys that cannot
// have them as the site does, with the same status and the same words.
func TestAdminWithoutQueue(t *testing.T) {
	to := gatewaytest.NewStation(t).NotifyURL("/")
	const (
		silence  = `{"for":"1h","tag":"all"}`
		question = `"options":["yes","no"]`
	)
	operator := "http://" + caddyhttptest.Admin + "/notify/keys/k/"
	queue := "queue {\npath " + t.TempDir() + "\n}\n"
	public := "public_url " + gatewaytest.PublicURL + "\n"
	t.Cleanup(func() { caddyhttptest.Serve(t, "", "") })
	for _, tt := range []struct {
		name, options, key string
		silenced           int // status
		asked              string
	}{
		{"no queue", public, "", 403, "needs a queue"},
		{"a key that does not use the queue", queue + public, "queue off\n", 403, "needs a queue"},
		{"no public_url", queue, "", 201, "needs public_url"},
	} {
		caddyhttptest.Serve(t, "notify {\n"+tt.options+"key k {\nurl "+to+"\n"+tt.key+"}\n}", "console {\nmanage open\n}")
		status, site := send(t, http.MethodPost, caddyhttptest.Server+"/notify/k/silences", gatewaytest.TypeJSON, silence)
		operated, admin := send(t, http.MethodPost, operator+"silences", gatewaytest.TypeJSON, silence)
		if status != tt.silenced || operated != status || status != 201 && problem(t, site) != problem(t, admin) {
			t.Errorf("%s: a silence gets %d %s at the site, and %d %s in the admin API", tt.name, status, site, operated, admin)
		}
		status, site = send(t, http.MethodPost, caddyhttptest.Server+"/notify/k", gatewaytest.TypeJSON, `{"body":"x","ask":{`+question+`}}`)
		operated, admin = send(t, http.MethodPost, operator+"questions", gatewaytest.TypeJSON, `{"body":"x",`+question+`}`)
		if status != 400 || operated != status || !strings.Contains(site, tt.asked) || problem(t, site) != problem(t, admin) {
			t.Errorf("%s: a question gets %d %s at the site, and %d %s in the admin API", tt.name, status, site, operated, admin)
		}
	}
}

// problem returns the text of an error in JSON.
func problem(t *testing.T, answer string) string {
	t.Helper()
	var a gatewaytest.Answer
	if err := json.Unmarshal([]byte(answer), &a); err != nil || a.Error == nil {
		t.Fatalf("no error: %s", answer)
	}
	return *a.Error
}
