//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of the rows about good messages beside destinations that are down.
const (
	deadDestinations = 2500
	goodDestinations = 10
	goodPerSecond    = 20
	besideDead       = 600 // good messages
)

// queueDead measures stored messages to good destinations that are known, while many wait
// for destinations that answer 503, with a queue in a folder and in PostgreSQL.
func (b *bench) queueDead() error {
	fmt.Printf("%-44s %8s %8s %8s %8s %14s\n", fmt.Sprintf("%d good, %d/s, %d for %d that are down", besideDead, goodPerSecond, b.queued, deadDestinations),
		"arrived", "p50 ms", "p99 ms", "max ms", "attempts/s")
	if err := b.besideDead("a folder", b.queueOption("dead")); err != nil {
		return fmt.Errorf("a folder: %w", err)
	}
	server, err := b.startPostgres()
	if errors.Is(err, errNoPostgres) {
		fmt.Println("queues in Postgres are not measured:", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer server.stop()
	if err := server.execute("CREATE DATABASE dead"); err != nil {
		return err
	}
	if err := b.besideDead("Postgres", postgresConfig(server.dsn("dead"), "").global); err != nil {
		return fmt.Errorf("Postgres: %w", err)
	}
	return nil
}

// besideDead fills a queue with messages to destinations that are down, and then sends
// good ones to destinations that have had one before.
func (b *bench) besideDead(name, option string) error {
	var attempts atomic.Int64
	refuse := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attempts.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusServiceUnavailable)
	})}
	defer refuse.Close()
	var keys strings.Builder
	var dead []string
	for i := range deadDestinations {
		l, err := net.Listen("tcp", "127.0.0.1:0") // each is a host of its own, as in besideHanging
		if err != nil {
			return err
		}
		go func() { _ = refuse.Serve(l) }()
		fmt.Fprintf(&keys, "\t\tkey d%d {\n\t\t\turl json://%s/\n\t\t}\n", i, l.Addr())
		dead = append(dead, fmt.Sprintf("/notify/d%d", i))
	}
	good, err := startArrivals()
	if err != nil {
		return err
	}
	defer good.close()
	for i := range goodDestinations {
		fmt.Fprintf(&keys, "\t\tkey g%d {\n\t\t\turl json://%s/%d\n\t\t}\n", i, good.address, i)
	}
	c, err := b.start(b.binary, siteConfig{keys: keys.String(), global: option})
	if err != nil {
		return err
	}
	defer c.stop()
	var first []int // make the destinations known
	for i := range goodDestinations {
		if _, err := good.send(c, fmt.Sprintf("/notify/g%d", i), besideDead+i); err != nil {
			return err
		}
		first = append(first, besideDead+i)
	}
	if !good.wait(hangWait, first...) {
		return errors.New("the first messages to the good destinations have not arrived")
	}
	filled, err := (&queueRow{processes: []*caddy{c}, paths: dead, async: true}).fill(b.queued, backlogTime)
	if err != nil {
		return err
	}
	if filled < b.queued {
		name += fmt.Sprintf("; %d wait", filled)
	}
	before, begin := attempts.Load(), time.Now()
	delays, err := good.delays(c)
	if err != nil {
		return err
	}
	rate := float64(attempts.Load()-before) / time.Since(begin).Seconds()
	quantile := func(percent int) float64 { return ms(delays[(len(delays)*percent+99)/100-1]) }
	fmt.Printf("%-44s %8d %8.1f %8.1f %8.1f %14.0f\n", name, len(delays), quantile(50), quantile(99), quantile(100), rate)
	return nil
}

// delays sends messages to the good destinations in turn, and returns how long after they
// were accepted they arrived, the shortest time first.
func (a *arrivals) delays(c *caddy) ([]time.Duration, error) {
	accepted, errs := make([]time.Time, besideDead), make([]error, besideDead)
	var group sync.WaitGroup
	var numbers []int
	for k, begin := 0, time.Now(); k < besideDead; k++ {
		time.Sleep(time.Until(begin.Add(time.Duration(k) * time.Second / goodPerSecond)))
		numbers = append(numbers, k)
		group.Go(func() { accepted[k], errs[k] = a.send(c, fmt.Sprintf("/notify/g%d", k%goodDestinations), k) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	a.wait(hangWait, numbers...)
	var delays []time.Duration
	for k, at := range accepted {
		if arrived, ok := a.arrival(k); ok {
			delays = append(delays, max(0, arrived.Sub(at)))
		}
	}
	if len(delays) == 0 {
		return nil, errors.New("no good message has arrived")
	}
	slices.Sort(delays)
	return delays, nil
}
