//go:build linux

package main

import (
	"fmt"
	"strings"
)

// messages measures a message to one destination.
func (b *bench) messages() error {
	for _, p := range []struct {
		protocol
		key, url float64 // allocations at most
	}{{b.dest.http2, 171.6, 181.5}, {b.dest.http1, 181.2, 191.4}} {
		c, err := b.start(siteConfig{keys: p.protocol.key("one", "", 1), proxy: p.protocol.url})
		if err != nil {
			return err
		}
		defer c.stop()
		withURL := message[:len(message)-1] + `,"urls":"` + p.gatewayURL("/") + `"}`
		if err := b.table("one destination, "+p.name,
			&row{name: "reverse_proxy", processes: []*process{c}, address: c.proxy, paths: []string{"/"}},
			&row{name: "a key", processes: []*process{c}, paths: []string{"/notify/one"}, most: p.key},
			&row{name: "URL in the request", processes: []*process{c}, paths: []string{"/notify"}, body: withURL, most: p.url},
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
