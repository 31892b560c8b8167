//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// measure is the cost of one request of a row.
type measure struct {
	perSecond float64
	p50, p99  time.Duration
	cpu       time.Duration // of each request
	allocs    float64
	bytes     float64       // allocated
	delivered float64       // messages a second until the last one arrived; only with rawLoad
	ownCPU    time.Duration // of this process, for each request; only with rawLoad
}

func (m measure) rate() float64        { return m.perSecond }
func (m measure) cpuTime() float64     { return float64(m.cpu) }
func (m measure) allocations() float64 { return m.allocs }

// row is a row of a table: a request that is repeated.
type row struct {
	name, address, body string
	header              http.Header // additional fields
	process             *caddy      // nil for the one that is passed to measureRows
	requests            int         // in each round; 0 for the number that is passed to measureRows
	rounds              []measure
}

// measureRows measures the rows in turn, so that other load on the machine
// affects all of them.
func (b *bench) measureRows(c *caddy, rows []*row, requests int) error {
	for round := range b.rounds + 1 {
		for _, r := range rows {
			m, err := b.load(cmp.Or(r.process, c), r, cmp.Or(r.requests, requests))
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if round > 0 { // the first round fills caches and pools
				r.rounds = append(r.rounds, m)
			}
		}
	}
	return nil
}

// median returns the median of each value.
func (r *row) median() measure { return medianOf(r.rounds) }

func medianOf(rounds []measure) measure {
	var out measure
	get := func(f func(measure) float64) float64 {
		values := make([]float64, len(rounds))
		for i, m := range rounds {
			values[i] = f(m)
		}
		return median(values)
	}
	out.perSecond = get(func(m measure) float64 { return m.perSecond })
	out.p50 = time.Duration(get(func(m measure) float64 { return float64(m.p50) }))
	out.p99 = time.Duration(get(func(m measure) float64 { return float64(m.p99) }))
	out.cpu = time.Duration(get(func(m measure) float64 { return float64(m.cpu) }))
	out.allocs = get(func(m measure) float64 { return m.allocs })
	out.bytes = get(func(m measure) float64 { return m.bytes })
	out.delivered = get(func(m measure) float64 { return m.delivered })
	out.ownCPU = time.Duration(get(func(m measure) float64 { return float64(m.ownCPU) }))
	return out
}

// ratio returns the median, over the rounds, of the ratio of a value to that of
// base in the same round.
func (r *row) ratio(base *row, value func(measure) float64) float64 {
	ratios := make([]float64, len(r.rounds))
	for i, m := range r.rounds {
		ratios[i] = value(m) / value(base.rounds[i])
	}
	return median(ratios)
}

// load makes the requests of a round.
func (b *bench) load(c *caddy, r *row, requests int) (measure, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: b.clients}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	before, err := c.usage(false)
	if err != nil {
		return measure{}, err
	}
	var next atomic.Int64
	var group sync.WaitGroup
	times := make([][]time.Duration, b.clients)
	errs := make([]error, b.clients)
	begin := time.Now()
	for i := range b.clients {
		group.Go(func() {
			for next.Add(1) <= int64(requests) {
				start := time.Now()
				if errs[i] = r.send(client); errs[i] != nil {
					return
				}
				times[i] = append(times[i], time.Since(start))
			}
		})
	}
	group.Wait()
	took := time.Since(begin)
	for _, err := range errs {
		if err != nil {
			return measure{}, err
		}
	}
	after, err := c.usage(false)
	if err != nil {
		return measure{}, err
	}
	return newMeasure(slices.Concat(times...), took, before, after), nil
}

// newMeasure returns the figures of requests that took these times, all together
// took, with the usage before and after them. It sorts times.
func newMeasure(times []time.Duration, took time.Duration, before, after usage) measure {
	slices.Sort(times)
	n := float64(len(times))
	return measure{
		perSecond: n / took.Seconds(),
		p50:       times[len(times)/2],
		p99:       times[len(times)*99/100],
		cpu:       time.Duration(float64(after.cpu-before.cpu) / n),
		allocs:    (after.allocs - before.allocs) / n,
		bytes:     (after.bytes - before.bytes) / n,
	}
}

// send makes one request of a row.
func (r *row) send(client *http.Client) error {
	if r.header == nil {
		return post(client, r.address, "application/json", strings.NewReader(r.body))
	}
	q, err := http.NewRequest(http.MethodPost, r.address, strings.NewReader(r.body))
	if err != nil {
		return err
	}
	q.Header = r.header.Clone()
	q.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(q) //nolint:gosec // the address of the measured process
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("status %d: %.200s", resp.StatusCode, text)
	}
	return err
}

func post(client *http.Client, address, kind string, body io.Reader) error {
	resp, err := client.Post(address, kind, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", resp.StatusCode, text)
	}
	return err
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
