//go:build linux

package main

import (
	"fmt"
	"strings"
)

// rules measures messages to a key with rules and to one without, before and after many
// incidents were opened, and the memory that the incidents take.
func (b *bench) rules() error {
	rate := "\t\t\trate 1000000/1h\n\t\t}\n"
	withRate := func(name string) string {
		return strings.TrimSuffix(b.destinationKey(name, "", 1), "\t\t}\n") + rate
	}
	keys := b.destinationKey("one", "", 1) + withRate("ruled") + withRate("open")
	without, err := b.start(b.binary, siteConfig{keys: b.destinationKey("one", "", 1), global: b.queueOption("unruled")})
	if err != nil {
		return err
	}
	defer without.stop()
	c, err := b.start(b.binary, siteConfig{keys: keys, global: b.queueOption("rules")})
	if err != nil {
		return err
	}
	defer c.stop()
	processes := []*caddy{c}
	var rows []*queueRow
	measure := func(state string) error {
		at := []*queueRow{
			{name: "no key has rules", processes: []*caddy{without}, paths: []string{"/notify/one"}, perSecond: pacedRate},
			{name: "another key has rules; " + state, processes: processes, paths: []string{"/notify/one"}, perSecond: pacedRate},
			{name: "a rule; " + state, processes: processes, paths: []string{"/notify/ruled"}, perSecond: pacedRate},
		}
		rows = append(rows, at...)
		return b.measureQueueRows(at, b.clients, b.requests/2)
	}
	fill := func(incidents bool) (heap float64, err error) {
		before, err := c.usage(true)
		if err != nil {
			return 0, err
		}
		r := &queueRow{name: "filling", processes: processes, paths: []string{"/notify/open"}, async: true, drained: true, incidents: incidents}
		if _, err := b.rawLoad(r, queueClients, b.incidents); err != nil {
			return 0, err
		}
		after, err := c.usage(true)
		return after.settled - before.settled, err
	}
	if err := measure("no incidents"); err != nil {
		return err
	}
	messages, err := fill(false)
	if err != nil {
		return err
	}
	both, err := fill(true)
	if err != nil {
		return err
	}
	if err := measure(fmt.Sprintf("%d are open", b.incidents)); err != nil {
		return err
	}
	printQueueRows(fmt.Sprintf("at %d requests a second", pacedRate), rows)
	fmt.Printf("%d messages: Go heap %.1f MB more; with an incident each %.1f MB more, so %.0f bytes for an open incident\n",
		b.incidents, messages/1e6, both/1e6, (both-messages)/float64(b.incidents))
	return nil
}
