//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// queueRow is a request that is repeated to one process or to several.
type queueRow struct {
	name      string
	processes []*caddy
	paths     []string // used in turn
	async     bool
	perSecond int  // requests that begin in a second; 0 for as many as possible
	drained   bool // the round ends when the destination has all messages
	incidents bool // each message is about an incident of its own
	rounds    []measure
}

// settleTime is the time for a process to write results after the response; it
// writes them within a second.
const settleTime = 1500 * time.Millisecond

// drainTime is the maximum time that a round waits for the destination.
const drainTime = 5 * time.Minute

// rawLoad makes requests with clients connections. Its clients do little more
// than write and read bytes, because they share the CPUs with the measured
// process.
func (b *bench) rawLoad(r *queueRow, clients, requests int) (measure, error) {
	arrived := b.dest.total.Load()
	before, err := usageOf(r.processes)
	if err != nil {
		return measure{}, err
	}
	var next atomic.Int64
	var group sync.WaitGroup
	times, errs := make([][]time.Duration, clients), make([]error, clients)
	ownBefore, begin := ownCPU(), time.Now()
	for i := range clients {
		group.Go(func() { times[i], errs[i] = r.client(i, &next, begin, requests) })
	}
	group.Wait()
	took := time.Since(begin)
	if err := errors.Join(errs...); err != nil {
		return measure{}, err
	}
	for end := time.Now().Add(drainTime); r.drained && b.dest.total.Load() < arrived+int64(requests); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return measure{}, errors.New("the messages are not delivered")
		}
	}
	own := ownCPU() - ownBefore
	delivered := float64(requests) / b.dest.lastArrival().Sub(begin).Seconds()
	if r.async && !r.drained {
		delivered = 0 // the destination may hang
	}
	time.Sleep(settleTime)
	after, err := usageOf(r.processes)
	if err != nil {
		return measure{}, err
	}
	m := newMeasure(slices.Concat(times...), took, before, after)
	m.delivered, m.ownCPU = delivered, own/time.Duration(requests)
	return m, nil
}

// ownCPU returns the CPU time of this process, which has the clients and the
// destination.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// usageOf returns the sum of the usage of processes.
func usageOf(processes []*caddy) (sum usage, err error) {
	for _, c := range processes {
		u, err := c.usage(false)
		if err != nil {
			return usage{}, err
		}
		sum.cpu += u.cpu
		sum.allocs += u.allocs
		sum.bytes += u.bytes
	}
	return sum, nil
}

// client makes requests on one connection. start is the time of the first
// request of all clients.
func (r *queueRow) client(i int, next *atomic.Int64, start time.Time, requests int) (times []time.Duration, err error) {
	address := r.processes[i%len(r.processes)].gateway
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	texts := make([][]byte, len(r.paths))
	for k, path := range r.paths {
		texts[k] = r.request(path, address, message+"}")
	}
	reader := bufio.NewReader(conn)
	for {
		k := next.Add(1)
		if k > int64(requests) {
			return times, nil
		}
		if r.perSecond > 0 {
			time.Sleep(time.Until(start.Add(time.Duration(k) * time.Second / time.Duration(r.perSecond))))
		}
		text := texts[k%int64(len(texts))]
		if r.incidents {
			text = r.request(r.paths[k%int64(len(r.paths))], address, message+fmt.Sprintf(`,"incident":"host %d"}`, k))
		}
		begin := time.Now()
		if _, err := conn.Write(text); err != nil {
			return nil, err
		}
		if err := readResponse(reader); err != nil {
			return nil, err
		}
		times = append(times, time.Since(begin))
	}
}

// request returns a request with a body.
func (r *queueRow) request(path, host, body string) []byte {
	prefer := ""
	if r.async {
		prefer = "Prefer: respond-async\r\n"
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", path, host, prefer, len(body), body)
}

// readResponse reads a response with a Content-Length.
func readResponse(r *bufio.Reader) error {
	status, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	length := -1
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("the response has no Content-Length")
	}
	if !strings.HasPrefix(status, "HTTP/1.1 2") {
		text := make([]byte, min(length, 200))
		_, _ = io.ReadFull(r, text)
		return fmt.Errorf("%s: %s", strings.TrimSpace(status), text)
	}
	_, err = r.Discard(length)
	return err
}

// measureQueueRows measures the rows in turn, as measureRows does.
func (b *bench) measureQueueRows(rows []*queueRow, clients, requests int) error {
	for round := range b.rounds + 1 {
		for _, r := range rows {
			m, err := b.rawLoad(r, clients, requests)
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

// printQueueRows prints rows, and the medians of their ratios to the first one
// and of the differences from its p99 within each round.
func printQueueRows(title string, rows []*queueRow) {
	fmt.Printf("%-44s %8s %8s %8s %8s %8s %8s %8s   %s\n", title, "req/s", "sent/s", "p50 ms", "p99 ms", "CPU µs", "allocs", "own CPU", "to the first row: req/s, CPU, p99 ms")
	base := row{rounds: rows[0].rounds}
	for _, r := range rows {
		m, compared := medianOf(r.rounds), row{rounds: r.rounds}
		later := make([]float64, len(r.rounds))
		for i := range later {
			later[i] = ms(r.rounds[i].p99 - base.rounds[i].p99)
		}
		fmt.Printf("%-44s %8.0f %8.0f %8.2f %8.2f %8.0f %8.0f %8.0f   %.2f, %.2f, %+.2f\n", r.name, m.perSecond, m.delivered, ms(m.p50), ms(m.p99), us(m.cpu), m.allocs,
			us(m.ownCPU), compared.ratio(&base, measure.rate), compared.ratio(&base, measure.cpuTime), median(later))
	}
}
