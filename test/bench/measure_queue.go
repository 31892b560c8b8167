package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// sources measures a message in the format of another program.
func (b *bench) sources() error {
	c, err := b.start(b.binary, siteConfig{keys: b.destinationKey("one", "", 1)})
	if err != nil {
		return err
	}
	defer c.stop()
	alert := `{"receiver":"ops","status":"firing","version":"4","groupKey":"{}:{alertname=\"DiskFull\"}","externalURL":"http://alertmanager:9093",` +
		`"groupLabels":{"alertname":"DiskFull"},"commonLabels":{"alertname":"DiskFull","severity":"critical"},"commonAnnotations":{"summary":"Disk almost full"},` +
		`"alerts":[{"status":"firing","labels":{"alertname":"DiskFull","instance":"host-7","severity":"critical"},"annotations":{"summary":"Disk almost full",` +
		`"description":"Volume /data is at 91%"},"startsAt":"2026-01-01T00:00:00Z","endsAt":"0001-01-01T00:00:00Z","generatorURL":"http://prometheus:9090/graph"}]}`
	rows := []*row{
		{name: "reverse_proxy", address: "http://" + c.proxy, body: alert},
		{name: "notify, source alertmanager", address: "http://" + c.gateway + "/notify/one/alertmanager", body: alert},
	}
	if err := b.measureRows(c, rows, b.requests); err != nil {
		return err
	}
	printRows("an alert of Alertmanager", rows)
	return nil
}

// queue measures messages with a queue, when it is empty and when many messages
// wait in it. A queue in Postgres is not measured here.
func (b *bench) queue() error {
	global := "notify {\n\t\tqueue {\n\t\t\tpath " + filepath.Join(b.dir, "queue") + "\n\t\t}\n\t}"
	c, err := b.start(b.binary, siteConfig{keys: b.destinationKey("one", "", 1) + b.destinationKey("down", "/down", 1), global: global})
	if err != nil {
		return err
	}
	defer c.stop()
	async := http.Header{"Prefer": {"respond-async"}}
	rows := func(when string) []*row {
		return []*row{
			{name: "reverse_proxy", address: "http://" + c.proxy, body: message + "}"},
			{name: "delivered, " + when, address: "http://" + c.gateway + "/notify/one", body: message + "}"},
			{name: "respond-async, " + when, address: "http://" + c.gateway + "/notify/one", body: message + "}", header: async},
		}
	}
	empty := rows("queue empty")
	if err := b.measureRows(c, empty, b.requests/2); err != nil {
		return err
	}
	printRows("with a queue", empty)
	if b.queued == 0 {
		return nil
	}
	if err := b.fill(c, b.queued); err != nil {
		return err
	}
	full := rows(fmt.Sprintf("%d wait", b.queued))
	if err := b.measureRows(c, full, b.requests/2); err != nil {
		return err
	}
	fmt.Println()
	printRows("with a queue", full)
	fmt.Printf("with %d messages in the queue: %.1f MiB resident\n", b.queued, c.memory("VmRSS"))
	return nil
}

// fill sends n messages to a destination that is down, so that they stay in the
// queue.
func (b *bench) fill(c *caddy, n int) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: b.clients}}
	defer client.CloseIdleConnections()
	r := &row{address: "http://" + c.gateway + "/notify/down", body: strings.TrimSpace(message) + "}", header: http.Header{"Prefer": {"respond-async"}}}
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, b.clients)
	for i := range b.clients {
		group.Go(func() {
			for errs[i] == nil && next.Add(1) <= int64(n) {
				errs[i] = r.send(client)
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("filling the queue: %w", err)
		}
	}
	return nil
}
