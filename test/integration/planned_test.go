package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// plan plans a message for the key ops of a gateway at an address, and returns the address of
// the message.
func plan(t *testing.T, address, title string, after time.Duration) string {
	t.Helper()
	r := request(t, http.MethodPost, address+"/notify/ops", fmt.Sprintf(`{"title": %q, "body": "x", "send_at": %q}`, title, after))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	status, text := ask(t, r)
	var a struct{ ID string }
	if err := json.Unmarshal([]byte(text), &a); err != nil || status != http.StatusOK || a.ID == "" {
		t.Fatalf("%d %s", status, text)
	}
	return address + "/notify/messages/" + a.ID
}

// cancelPlanned cancels a message.
func cancelPlanned(t *testing.T, address string) {
	t.Helper()
	if status, text := ask(t, request(t, http.MethodDelete, address, "")); status != http.StatusOK {
		t.Errorf("DELETE: %d %s", status, text)
	}
}

// wantSent checks that each title arrives and no cancelled one does. At most some may arrive again,
// because a gateway was killed while it sent them.
func wantSent(t *testing.T, a *arrivals, titles *sync.Map, cancelled []string, again int) {
	t.Helper()
	// What a killed gateway was sending is sent by another one when its lease of a minute is over.
	within(t, 2*time.Minute, "the planned messages arrive", func() bool { lost, _ := a.lost(titles); return lost == 0 })
	time.Sleep(2 * time.Second) // a message that is sent twice comes at once, which nothing but time can show
	if _, n := a.lost(titles); n > again {
		t.Errorf("%d messages arrived again", n)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, title := range cancelled {
		if a.got[title] > 0 {
			t.Errorf("%s was cancelled, and has arrived", title)
		}
	}
}

// TestPlannedPostgres checks that one of three gateways with one database sends each planned
// message, also if the gateway that took it is killed, and that a cancelled message is not sent.
func TestPlannedPostgres(t *testing.T) {
	t.Parallel()
	p, a := newPostgres(t), newArrivals(t)
	var gateways []*queueGateway
	for range 3 {
		gateways = append(gateways, newQueueGatewayWith(t, p, "key ops {\nurl "+a.url+"\n}", ""))
	}
	var titles sync.Map
	var cancelled []string
	for i := range 40 {
		title := fmt.Sprint("planned ", i)
		address := plan(t, gateways[i%len(gateways)].url, title, time.Duration(2000+150*i)*time.Millisecond)
		if i%5 == 0 {
			cancelPlanned(t, address)
			cancelled = append(cancelled, title)
			continue
		}
		titles.Store(title, true)
	}
	time.Sleep(3 * time.Second)
	gateways[0].stop()
	time.Sleep(time.Second)
	gateways[1].stop()
	wantSent(t, a, &titles, cancelled, 4)
}

// TestPlannedKilled checks that what is planned outlasts kills: before it is due, while it is
// sent, and while nothing runs.
func TestPlannedKilled(t *testing.T) {
	t.Parallel()
	a, port, queue := newArrivals(t), freePort(t), t.TempDir()
	startNotify := func() *server {
		return startGateway(t, port,
			fmt.Sprintf("{\nnotify {\nqueue {\npath %s\n}\nkey ops {\nurl %s\n}\n}\n}\nhttp://127.0.0.1:%d {\nnotify\n}\n", queue, a.url, port))
	}
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	gateway := startNotify()
	var titles sync.Map
	var cancelled []string
	for i := range 30 {
		title := fmt.Sprint("planned ", i)
		message := plan(t, address, title, time.Duration(1000+200*i)*time.Millisecond)
		if i%5 == 0 {
			cancelPlanned(t, message)
			cancelled = append(cancelled, title)
			continue
		}
		titles.Store(title, true)
	}
	for range 3 {
		time.Sleep(time.Second)
		gateway.stop()
		gateway = startNotify()
	}
	wantSent(t, a, &titles, cancelled, 6)
}
