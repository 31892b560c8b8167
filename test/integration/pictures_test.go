package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/tally"
	"github.com/caddy-notify/caddy-notify/gateway/tallystore"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
)

// newPictured runs a gateway as newConsole does, for pictures: its destinations are
// services that everybody knows, and there is a day behind it. Slack is down.
func newPictured(t *testing.T) (address string) {
	t.Helper()
	slackIsDown := newServices(t)
	folder, port := filepath.Join(t.TempDir(), "queue"), freePort(t)
	config := consoleConfig(port, "path "+folder+"\nwait 2s", `
			key ops {
				url slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#ops chat
				url ntfy://duty phone oncall
				url gotifys://nas.example/AbCdEfGhIjKlMnO
				inbox 7d
			}
			key backups {
				url gotifys://nas.example/AbCdEfGhIjKlMnO
				inbox 7d
			}
			key billing {
				token a-token-of-billing
				url tgram://123456789:AAG8vNvSNrjfRhcaYVLkJgUvMu1WX2iZ4vA/-100200300
				inbox 7d
			}
			key printer {
				url ntfy://office
			}
			key network {
				url discord://417421629812345678/JHMHI8qBe7bk2ZwO5U711o3dV_js
				rate 100/1h
				inbox 7d
			}
			key family {
				inbox 7d
			}
			key oncall {
				url ntfy://ann 1:oncall
				url ntfy://bob 2:oncall
				escalate after 1h
				inbox 7d
			}
`)
	address = fmt.Sprintf("http://localhost:%d/alerts", port)
	post := func(key string, status int, fields ...string) {
		t.Helper()
		form := url.Values{}
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		postForm(t, address+"/notify/"+key, status, form)
	}

	// Each destination has got a message before the day that is made up.
	s := startGateway(t, port, config)
	for _, key := range []string{"ops", "backups", "network", "oncall"} {
		post(key, http.StatusOK, "title", "Hello", "body", "The first message.", "type", "success")
	}
	if err := syscall.Kill(s.cmd.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	makeDay(t, folder)

	slackIsDown.Store(true)
	startGateway(t, port, config)
	for _, line := range [][3]string{
		{"success", "backups", "Backup of nas: 1.2 TB in 47 min"},
		{"info", "ops", "Deploy 1.4 has begun"},
		{"success", "ops", "Deploy 1.4 is done"},
		{"warning", "ops", "Certificate of shop.example ends in 6 days"},
	} {
		post(line[1], http.StatusOK, "title", line[2], "body", "See the dashboard.", "type", line[0])
	}
	for _, line := range [][3]string{
		{"failure", "router", "The router does not answer"},
		{"warning", "nas", "The backup is late"},
		{"failure", "switch", "Port 7 is down"},
		{"success", "switch", "Port 7 is up"},
	} {
		post("network", http.StatusOK, "title", line[2], "body", "Seen from the core switch.", "type", line[0], "incident", line[1])
	}
	post("oncall", http.StatusOK, "title", "The shop is down", "body", "No answer for 2 minutes.", "type", "failure", "incident", "shop")
	post("billing?token=a-token-of-billing", http.StatusFailedDependency, "title", "Invoices are sent", "body", "212 invoices.")
	post("backups", http.StatusBadRequest, "title", "x")
	phones := newPushService(t)
	for _, name := range []string{"Ann's phone", "Bob's laptop"} {
		addDevice(t, address+"/notify/family/devices", name, newSubscription(t, phones, "/"+url.PathEscape(name)))
	}
	post("family", http.StatusOK, "title", "The washing machine is done", "body", "Programme: cotton 40 °C.", "type", "success")
	return address
}

// newServices stands in for the services of newPictured, and makes programs that are
// started from now on reach it under their names. Slack is down while the value that it
// returns is true. Telegram refuses its token.
func newServices(t *testing.T) (slackIsDown *atomic.Bool) {
	t.Helper()
	slackIsDown = new(atomic.Bool)
	standIn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		status, body := http.StatusOK, `{"id": 1}`
		switch {
		case r.Host == "hooks.slack.com" && slackIsDown.Load():
			status, body = http.StatusServiceUnavailable, ""
		case r.Host == "hooks.slack.com":
			body = "ok"
		case r.Host == "discord.com":
			status, body = http.StatusNoContent, ""
		case r.Host == "api.telegram.org":
			status, body = http.StatusUnauthorized, `{"ok": false, "error_code": 401, "description": "Unauthorized"}`
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}), "hooks.slack.com", "ntfy.sh", "nas.example", "api.telegram.org", "discord.com")
	return slackIsDown
}

// makeDay stores what another gateway has counted in the 24 hours before now, for each
// destination and key that the gateway has counted something for. The gateway must have
// ended.
func makeDay(t *testing.T, folder string) {
	t.Helper()
	store, err := bolt.Open(bolt.Options{Path: folder})
	if err != nil {
		t.Fatal(err)
	}
	q := queue.New(store, queue.Options{MaxSize: 1 << 30})
	defer func() { _ = q.Close(context.Background()) }()
	ctx, group := context.Background(), q.Hash("tallies")
	ids := map[tally.ID]bool{}
	records := outbox.Typed[tally.Record]{Kind: tallystore.Kind, Fields: (*tally.Record).Fields}
	err = outbox.EachOfGroup(ctx, q, group, func(x queue.NamedRecord) bool {
		if r := records.Decode(x.Data); r != nil {
			for _, s := range r.Series {
				ids[s.ID] = true
			}
		}
		return true
	})
	if err != nil || len(ids) == 0 {
		t.Fatalf("%d series are counted: %v", len(ids), err)
	}
	now := tally.SlotOf(time.Now())
	for slot := now - tally.Kept + 1; slot < now; slot++ {
		r := tally.Record{Process: [16]byte{1}, Slot: slot}
		for id := range ids {
			random := rand.New(rand.NewPCG(uint64(slot-now+tally.Kept), uint64(id[0]))) //nolint:gosec // a picture
			switch n := random.IntN(20); {
			case n == 0:
				r.Series = append(r.Series, tally.Series{ID: id, Counts: tally.Counts{Delivered: 1, Waited: 1}})
			case n < 13:
				r.Series = append(r.Series, tally.Series{ID: id, Counts: tally.Counts{Delivered: n}})
			}
		}
		name := q.Hash(fmt.Sprint("tally of the day ", slot))
		err := q.Records.Apply(ctx, &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
			records.Put(tx, name, &r, slot.End().Add((tally.Kept-1)*tally.Length), group)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}
