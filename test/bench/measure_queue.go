//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// collectedTime is the time that memory takes until it is given back after a garbage collection.
const collectedTime = 5 * time.Second

// queue measures messages with a queue in a folder, and without one. Messages with
// Prefer: respond-async are stored before the response.
func (b *bench) queue() error {
	keys := b.dest.plain.key("one", "", 1) + b.dest.plain.key("hang", "/hang", 1)
	without, err := b.start(siteConfig{keys: keys})
	if err != nil {
		return err
	}
	defer without.stop()
	with, err := b.start(siteConfig{keys: keys, queue: b.queueIn("fast")})
	if err != nil {
		return err
	}
	defer with.stop()
	accept, err := b.start(siteConfig{keys: keys, queue: b.queueIn("accept")})
	if err != nil {
		return err
	}
	defer accept.stop()
	synchronous := func(name string, p *process, most float64) *row {
		return &row{name: name, processes: []*process{p}, paths: []string{"/notify/one"}, most: most}
	}
	async := func(p *process) *row {
		return &row{
			name: "respond-async; the destination answers", processes: []*process{p}, paths: []string{"/notify/one"},
			clients: queueClients, async: true, drained: true,
		}
	}
	hang := func(p *process) *row {
		return &row{
			name: "respond-async; the destination hangs", processes: []*process{p}, paths: []string{"/notify/hang"},
			clients: queueClients, async: true,
		}
	}
	if err := b.table("with a queue in a folder",
		synchronous("without a queue", without, 153.4), synchronous("with a queue", with, 173.0), hang(accept), async(accept)); err != nil {
		return err
	}

	config := siteConfig{keys: keys, queue: b.queueIn("waiting")}
	c, err := b.start(config)
	if err != nil {
		return err
	}
	fill := hang(c)
	fill.requests = b.queued
	if _, err = b.load(fill); err == nil {
		came := c.besideDatabase()
		_, err = c.heap()
		time.Sleep(collectedTime)
		fmt.Printf("\nwhile %d wait: %.1f MiB resident beside the database when they have come in, %.1f MiB after a garbage collection\n",
			b.queued, came, c.besideDatabase())
	}
	if err == nil {
		err = b.table(fmt.Sprintf("while %d wait", b.queued), synchronous("with a queue", c, 173.4), async(c))
	}
	c.stop()
	if err != nil {
		return err
	}
	var first, resident, beside []float64
	for range b.rounds {
		c, err := b.start(config)
		if err != nil {
			return err
		}
		first, resident, beside = append(first, ms(c.answered)), append(resident, c.memory("VmRSS")), append(beside, c.besideDatabase())
		c.stop()
	}
	fmt.Printf("a start while %d wait: first answer after %.0f ms, %.1f MiB resident, %.1f beside the database\n",
		b.queued, median(first), median(resident), median(beside))
	return nil
}

const (
	deadDestinations = 2500
	timedMessages    = 600 // to known destinations
	timedPerSecond   = 20
)

// dead measures how long messages to known destinations take while many others wait for
// destinations that answer 503, with a queue in a folder and in PostgreSQL.
func (b *bench) dead() error {
	title := fmt.Sprintf("%d wait for %d that are down", b.queued, deadDestinations)
	fmt.Printf("\n%-44s %8s %8s %8s %14s\n", title, "p50 ms", "p99 ms", "max ms", "attempts/s")
	if err := b.besideDead("a folder", b.queueIn("dead")); err != nil {
		return err
	}
	return b.withPostgres(func(server postgresServer) error {
		queue, err := server.queue("dead")
		if err != nil {
			return err
		}
		return b.besideDead("Postgres", queue)
	})
}

// besideDead fills a queue with messages to destinations that are down, and then times other
// messages.
func (b *bench) besideDead(name, queue string) error {
	var attempts atomic.Int64
	refuse := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attempts.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusServiceUnavailable)
	})}
	defer refuse.Close()
	keys, timed := b.dest.plain.keys("/timed", 10)
	var dead []string
	for i := range deadDestinations {
		// Each is a separate host, because otherwise the limit per host would help.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		go func() { _ = refuse.Serve(l) }()
		keys += keyOf(fmt.Sprintf("d%d", i), "json://"+l.Addr().String())
		dead = append(dead, fmt.Sprintf("/notify/d%d", i))
	}
	c, err := b.start(siteConfig{keys: keys, queue: queue})
	if err != nil {
		return err
	}
	defer c.stop()
	if _, err := b.sendTimed(c, timed, len(timed)); err != nil { // they are known then
		return err
	}
	if _, err := b.load(&row{processes: []*process{c}, paths: dead, clients: queueClients, requests: b.queued, async: true}); err != nil {
		return err
	}
	before, begin := attempts.Load(), time.Now()
	delays, err := b.sendTimed(c, timed, timedMessages)
	if err != nil {
		return err
	}
	rate := float64(attempts.Load()-before) / time.Since(begin).Seconds()
	fmt.Printf("%-44s %8.1f %8.1f %8.1f %14.0f\n", name,
		ms(percentile(delays, 50)), ms(percentile(delays, 99)), ms(percentile(delays, 100)), rate)
	return nil
}

// sendTimed sends n messages to the destination at a fixed rate, and returns how long
// each took to arrive, the shortest time first.
func (b *bench) sendTimed(c *process, paths []string, n int) ([]time.Duration, error) {
	errs := make(chan error, n)
	for k, begin := 0, time.Now(); k < n; k++ {
		time.Sleep(time.Until(begin.Add(time.Duration(k) * time.Second / timedPerSecond)))
		go func() {
			body := fmt.Sprintf(`{"body":"%d"}`, time.Now().UnixNano())
			req, err := http.NewRequest(http.MethodPost, "http://"+c.gateway+paths[k%len(paths)], strings.NewReader(body))
			if err == nil {
				req.Header = http.Header{"Content-Type": {"application/json"}, "Prefer": {"respond-async"}}
				err = readResponse(http.DefaultClient.Do(req)) //nolint:bodyclose,gosec // readResponse closes
			}
			errs <- err
		}()
	}
	var delays []time.Duration
	for late := time.After(drainTime); len(delays) < n; {
		select {
		case d := <-b.dest.delays:
			delays = append(delays, d)
		case err := <-errs:
			if err != nil {
				return nil, err
			}
		case <-late:
			return nil, fmt.Errorf("%d of %d messages have arrived", len(delays), n)
		}
	}
	slices.Sort(delays)
	return delays, nil
}
