//go:build linux

package main

import (
	"fmt"
	"strings"
)

// alert is a payload of Alertmanager with one alert.
const alert = `{"receiver":"web","status":"firing","alerts":[{"status":"firing","labels":{"alertname":"DiskAlmostFull",` +
	`"instance":"host-7:9100","severity":"warning"},"annotations":{"description":"Volume /data is at 91%",` +
	`"summary":"Disk almost full"},"startsAt":"2026-11-29T03:00:00Z","endsAt":"0001-01-01T00:00:00Z",` +
	`"generatorURL":"http://prometheus:9090/graph?g0.expr=disk","fingerprint":"c29f1a7e4b1d2a35"}],` +
	`"groupLabels":{"alertname":"DiskAlmostFull"},"commonLabels":{"alertname":"DiskAlmostFull",` +
	`"instance":"host-7:9100","severity":"warning"},"commonAnnotations":{"description":"Volume /data is at 91%",` +
	`"summary":"Disk almost full"},"externalURL":"http://alertmanager:9093","version":"4",` +
	`"groupKey":"{}:{alertname=\"DiskAlmostFull\"}","truncatedAlerts":0}`

// further is the number of destinations of a message in addition to the first one.
const further = 10

// messages measures a message to one destination, in several forms, and what each further destination costs.
func (b *bench) messages() error {
	for _, p := range []struct {
		protocol
		key, url, source, further float64 // allocations at most
	}{{b.dest.http2, 149.5, 160.4, 269.2, 581.5}, {b.dest.http1, 156.4, 167.2, 269.8, 637.5}} {
		c, err := b.start(siteConfig{keys: p.protocol.key("one", "", 1) + p.protocol.key("more", "", 1+further), proxy: p.protocol.url})
		if err != nil {
			return err
		}
		defer c.stop()
		withURL := message[:len(message)-1] + `,"urls":"` + p.gatewayURL("/") + `"}`
		one := []*process{c}
		if err := b.table("one destination, "+p.name,
			&row{name: "reverse_proxy", processes: one, address: c.proxy, paths: []string{"/"}},
			&row{name: "a key", processes: one, paths: []string{"/notify/one"}, most: p.key},
			&row{name: "URL in the request", processes: one, paths: []string{"/notify"}, body: withURL, most: p.url},
			&row{name: "an alert of Alertmanager", processes: one, paths: []string{"/notify/one/alertmanager"}, body: alert, most: p.source},
			&row{name: fmt.Sprintf("a key with %d destinations", 1+further), processes: one, paths: []string{"/notify/more"}, most: p.further},
		); err != nil {
			return err
		}
	}
	return nil
}

// fanOut measures messages to many destinations, and a server that makes as many
// requests with net/http alone. Destinations that answer after 50 ms get one message
// at a time.
func (b *bench) fanOut() error {
	for _, p := range []protocol{b.dest.http2, b.dest.http1} {
		counts := []int{1, 100, 1000}
		var keys strings.Builder
		for _, n := range counts {
			keys.WriteString(p.key(fmt.Sprintf("fast%d", n), "", n) + p.key(fmt.Sprintf("slow%d", n), "/slow", n))
		}
		c, err := b.start(siteConfig{keys: keys.String()})
		if err != nil {
			return err
		}
		defer c.stop()
		bare, err := b.startBare(p.url)
		if err != nil {
			return err
		}
		defer bare.stop()
		var rows []*row
		for _, n := range counts {
			add := func(name string, p *process, path string, requests, clients int) {
				rows = append(rows, &row{name: name, processes: []*process{p}, paths: []string{path}, requests: requests, clients: clients})
			}
			add(fmt.Sprintf("destinations: %d", n), c, fmt.Sprintf("/notify/fast%d", n), max(b.requests/n, 20), 0)
			add(fmt.Sprintf("%d, net/http alone", n), bare, fmt.Sprintf("/%d", n), max(b.requests/n, 20), 0)
			add(fmt.Sprintf("%d, after 50 ms", n), c, fmt.Sprintf("/notify/slow%d", n), 10, 1)
		}
		if err := b.table("many destinations, "+p.name, rows...); err != nil {
			return err
		}
	}
	return nil
}
