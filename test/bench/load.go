//go:build linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	message = `{"title":"Disk almost full","body":"Volume /data is at 91% on host-7","type":"warning"}`

	clients      = 32 // requests under way at once
	queueClients = 64 // the same with Prefer: respond-async

	settleTime = 1500 * time.Millisecond // for a queue to write results, which takes at most a second
	drainTime  = 5 * time.Minute         // for the destination to have all messages
)

// row is a row of a table: a request that is repeated to one process or to several.
type row struct {
	name      string
	processes []*process
	address   string   // the processes' gateways if empty
	paths     []string // used in turn
	body      string   // message if empty
	clients   int      // clients if 0
	requests  int      // in each round; the bench's number if 0
	async     bool     // respond-async
	drained   bool     // the round ends when the destination has all messages
	most      float64  // allocations at most, for -check; 0 for any number
	rounds    []measure
}

// measure is the cost of one request of a row.
type measure struct {
	perSecond float64
	delivered float64 // messages a second until the last one has arrived; 0 if not drained
	p50, p99  time.Duration
	cpu       time.Duration
	allocs    float64
}

// table measures rows in turn, so that other load on the machine affects all of
// them, and prints the medians. The last column is the median of the ratios to the
// first row within each round.
func (b *bench) table(title string, rows ...*row) error {
	for round := range b.rounds + 1 {
		for _, r := range rows {
			m, err := b.load(r)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if round > 0 { // the first round fills caches and pools
				r.rounds = append(r.rounds, m)
			}
		}
	}
	fmt.Printf("\n%-44s %8s %8s %8s %8s %8s %8s %14s\n", title, "req/s", "sent/s", "p50 ms", "p99 ms", "CPU µs", "allocs", "CPU to first")
	for _, r := range rows {
		fmt.Printf("%-44s %8.0f %8.0f %8.2f %8.2f %8.0f %8.1f %14.2f\n", r.name,
			r.median(func(m measure) float64 { return m.perSecond }),
			r.median(func(m measure) float64 { return m.delivered }),
			r.median(func(m measure) float64 { return ms(m.p50) }),
			r.median(func(m measure) float64 { return ms(m.p99) }),
			r.median(func(m measure) float64 { return float64(m.cpu) / float64(time.Microsecond) }),
			r.median(func(m measure) float64 { return m.allocs }),
			r.ratio(rows[0]))
	}
	for _, r := range rows {
		if n := r.least(func(m measure) float64 { return m.allocs }); b.check && r.most > 0 && n > r.most {
			return fmt.Errorf("%s, %s: a request makes %.1f allocations, and may make %.1f; "+
				"/debug/pprof/allocs of the admin API says where, with GODEBUG=memprofilerate=1", title, r.name, n, r.most)
		}
	}
	return nil
}

// least returns the smallest value of the rounds.
func (r *row) least(value func(measure) float64) float64 {
	least := value(r.rounds[0])
	for _, m := range r.rounds[1:] {
		least = min(least, value(m))
	}
	return least
}

// median returns the median of a value over the rounds.
func (r *row) median(value func(measure) float64) float64 {
	var values []float64
	for _, m := range r.rounds {
		values = append(values, value(m))
	}
	return median(values)
}

// ratio returns the median, over the rounds, of the CPU time divided by the CPU time of base in the
// same round.
func (r *row) ratio(base *row) float64 {
	var ratios []float64
	for i, m := range r.rounds {
		ratios = append(ratios, float64(m.cpu)/float64(base.rounds[i].cpu))
	}
	return median(ratios)
}

// load makes the requests of a round.
func (b *bench) load(r *row) (measure, error) {
	requests, arrived := cmp.Or(r.requests, b.requests), b.dest.total.Load()
	times, errs := make([][]time.Duration, cmp.Or(r.clients, clients)), make([]error, cmp.Or(r.clients, clients))
	before, err := usageOf(r.processes)
	if err != nil {
		return measure{}, err
	}
	var next atomic.Int64
	var group sync.WaitGroup
	begin := time.Now()
	for i := range times {
		group.Go(func() { times[i], errs[i] = r.client(i, &next, requests) })
	}
	group.Wait()
	took := time.Since(begin)
	if err := errors.Join(errs...); err != nil {
		return measure{}, err
	}
	var delivered float64
	if r.drained {
		if err := b.dest.await(arrived + int64(requests)); err != nil {
			return measure{}, err
		}
		delivered = float64(requests) / b.dest.lastArrival().Sub(begin).Seconds()
	}
	if r.processes[0].stores {
		time.Sleep(settleTime)
	}
	after, err := usageOf(r.processes)
	if err != nil {
		return measure{}, err
	}
	all := slices.Sorted(slices.Values(slices.Concat(times...)))
	return measure{
		perSecond: float64(requests) / took.Seconds(),
		delivered: delivered,
		p50:       percentile(all, 50),
		p99:       percentile(all, 99),
		cpu:       (after.cpu - before.cpu) / time.Duration(requests),
		allocs:    (after.allocs - before.allocs) / float64(requests),
	}, nil
}

// client makes requests on one connection until all clients together have made
// enough. It does little more than write and read bytes, because it shares the CPUs
// with the measured process.
func (r *row) client(i int, next *atomic.Int64, requests int) (times []time.Duration, err error) {
	address, body, prefer := cmp.Or(r.address, r.processes[i%len(r.processes)].gateway), cmp.Or(r.body, message), ""
	if r.async {
		prefer = "Prefer: respond-async\r\n"
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var texts [][]byte
	for _, path := range r.paths {
		texts = append(texts, fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
			path, address, prefer, len(body), body))
	}
	reader := bufio.NewReader(conn)
	for k := next.Add(1); k <= int64(requests); k = next.Add(1) {
		begin := time.Now()
		if _, err := conn.Write(texts[k%int64(len(texts))]); err != nil {
			return nil, err
		}
		if err := readResponse(http.ReadResponse(reader, nil)); err != nil {
			return nil, err
		}
		times = append(times, time.Since(begin))
	}
	return times, nil
}

// post sends one request outside of the rows.
func post(url, kind string, body io.Reader) error {
	return readResponse(http.Post(url, kind, body)) //nolint:gosec,bodyclose // an address of the measured process; readResponse closes
}

// readResponse reads the response to the end, and returns an error unless its
// status is 2xx.
func readResponse(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
	return fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(text))
}

// percentile returns the value below which percent of the sorted values are.
func percentile[T any](sorted []T, percent int) T {
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

// median returns the value in the middle.
func median(values []float64) float64 { return percentile(slices.Sorted(slices.Values(values)), 50) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
