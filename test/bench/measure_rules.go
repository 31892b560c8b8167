//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// silencesOfKey is the number of silences that a key can have.
const silencesOfKey = 200

// rules measures messages to a key with rules and to one without, before and after many
// incidents were opened and silences were made, and the memory that these take. Afterwards,
// a process that has as many messages in its queue, but neither incidents nor silences,
// separates what a longer history costs from what incidents cost.
func (b *bench) rules() error {
	rate := "\t\t\trate 1000000/1h\n\t\t}\n"
	withRate := func(name string) string {
		return strings.TrimSuffix(b.destinationKey(name, "", 1), "\t\t}\n") + rate
	}
	var keys strings.Builder
	keys.WriteString("\t\tconsole {\n\t\t\tmanage open\n\t\t}\n" + b.destinationKey("one", "", 1) + withRate("ruled") + withRate("open"))
	for i := range (b.silences + silencesOfKey - 1) / silencesOfKey {
		keys.WriteString(b.destinationKey(silencedKey(i), "", 1))
	}
	without, err := b.start(b.binary, siteConfig{keys: b.destinationKey("one", "", 1), global: b.queueOption("unruled")})
	if err != nil {
		return err
	}
	defer without.stop()
	c, err := b.start(b.binary, siteConfig{keys: keys.String(), global: b.queueOption("rules")})
	if err != nil {
		return err
	}
	defer c.stop()
	stored, err := b.start(b.binary, siteConfig{keys: keys.String(), global: b.queueOption("stored")})
	if err != nil {
		return err
	}
	defer stored.stop()
	processes := []*caddy{c}
	var rows []*queueRow
	measure := func(state string, others ...*queueRow) error {
		at := []*queueRow{
			{name: "no key has rules", processes: []*caddy{without}, paths: []string{"/notify/one"}, perSecond: pacedRate},
			{name: "another key has rules; " + state, processes: processes, paths: []string{"/notify/one"}, perSecond: pacedRate},
			{name: "a rule; " + state, processes: processes, paths: []string{"/notify/ruled"}, perSecond: pacedRate},
		}
		at = append(at, others...)
		rows = append(rows, at...)
		return b.measureQueueRows(at, b.clients, b.requests/2)
	}
	fill := func(c *caddy, incidents bool) (heap float64, err error) {
		before, err := c.usage(true)
		if err != nil {
			return 0, err
		}
		r := &queueRow{name: "filling", processes: []*caddy{c}, paths: []string{"/notify/open"}, async: true, drained: true, incidents: incidents}
		if _, err := b.rawLoad(r, queueClients, b.incidents); err != nil {
			return 0, err
		}
		after, err := c.usage(true)
		return after.settled - before.settled, err
	}
	if err := measure("no incidents"); err != nil {
		return err
	}
	for range 2 {
		if _, err := fill(stored, false); err != nil {
			return err
		}
	}
	messages, err := fill(c, false)
	if err != nil {
		return err
	}
	both, err := fill(c, true)
	if err != nil {
		return err
	}
	before, err := c.usage(true)
	if err != nil {
		return err
	}
	if err := b.makeSilences(c); err != nil {
		return err
	}
	after, err := c.usage(true)
	if err != nil {
		return err
	}
	silences := after.settled - before.settled
	history := &queueRow{name: fmt.Sprintf("a rule; %d messages are stored, no incidents", 2*b.incidents), processes: []*caddy{stored}, paths: []string{"/notify/ruled"}, perSecond: pacedRate}
	if err := measure(fmt.Sprintf("%d are open, %d silences", b.incidents, b.silences), history); err != nil {
		return err
	}
	printQueueRows(fmt.Sprintf("at %d requests a second", pacedRate), rows)
	fmt.Printf("%d messages: Go heap %.1f MB more; with an incident each %.1f MB more, so %.0f bytes for an open incident\n",
		b.incidents, messages/1e6, both/1e6, (both-messages)/float64(b.incidents))
	fmt.Printf("%d silences: Go heap %.1f MB more; with the incidents %.1f MB\n", b.silences, silences/1e6, (both-messages+silences)/1e6)
	return nil
}

// silencedKey returns the name of the i-th key that has silences.
func silencedKey(i int) string { return fmt.Sprintf("quiet%d", i) }

// makeSilences makes silences, as many of each key as it can have.
func (b *bench) makeSilences(c *caddy) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: b.clients}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	errs := make([]error, b.clients)
	var group sync.WaitGroup
	for i := range b.clients {
		group.Go(func() {
			for n := next.Add(1) - 1; n < int64(b.silences) && errs[i] == nil; n = next.Add(1) - 1 {
				r := row{
					address: "http://" + c.gateway + "/notify/" + silencedKey(int(n)/silencesOfKey) + "/silences",
					body:    fmt.Sprintf(`{"for": "24h", "title": "host %d of the data centre", "reason": "new disks"}`, n), header: http.Header{},
				}
				errs[i] = r.send(client)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
