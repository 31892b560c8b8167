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
	"time"
)

// queueRow is a request that is repeated to one process or to several.
type queueRow struct {
	name      string
	processes []*caddy
	paths     []string // used in turn
	async     bool
	drained   bool // the round ends when the destination has all messages
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
	begin := time.Now()
	for i := range clients {
		group.Go(func() { times[i], errs[i] = r.client(i, &next, requests) })
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
	time.Sleep(settleTime)
	after, err := usageOf(r.processes)
	if err != nil {
		return measure{}, err
	}
	return newMeasure(slices.Concat(times...), took, before, after), nil
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

// client makes requests on one connection.
func (r *queueRow) client(i int, next *atomic.Int64, requests int) (times []time.Duration, err error) {
	address := r.processes[i%len(r.processes)].gateway
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	prefer := ""
	if r.async {
		prefer = "Prefer: respond-async\r\n"
	}
	body := message + "}"
	texts := make([][]byte, len(r.paths))
	for k, path := range r.paths {
		texts[k] = fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", path, address, prefer, len(body), body)
	}
	reader := bufio.NewReader(conn)
	for {
		k := next.Add(1)
		if k > int64(requests) {
			return times, nil
		}
		begin := time.Now()
		if _, err := conn.Write(texts[k%int64(len(texts))]); err != nil {
			return nil, err
		}
		if err := readResponse(reader); err != nil {
			return nil, err
		}
		times = append(times, time.Since(begin))
	}
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

// printQueueRows prints rows and their ratios to the first one.
func printQueueRows(title string, rows []*queueRow) {
	fmt.Printf("%-44s %8s %8s %8s %8s %8s   %s\n", title, "req/s", "p50 ms", "p99 ms", "CPU µs", "allocs", "of the first row: req/s, CPU")
	base := medianOf(rows[0].rounds)
	for _, r := range rows {
		m := medianOf(r.rounds)
		fmt.Printf("%-44s %8.0f %8.2f %8.2f %8.0f %8.0f   %.2f, %.2f\n", r.name, m.perSecond, ms(m.p50), ms(m.p99), us(m.cpu), m.allocs,
			m.perSecond/base.perSecond, float64(m.cpu)/float64(base.cpu))
	}
}
