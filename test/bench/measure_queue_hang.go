//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of the rows about destinations that hang or are down.
const (
	goodMessages = 100                    // beside destinations that hang
	goodInterval = 350 * time.Millisecond // between them, so that the last ones follow the first timeouts
	hangMessages = 4                      // to each destination that hangs
	hangWait     = time.Minute            // for good messages that have not arrived
	fillTime     = 2 * time.Minute        // for filling the queue
	backlogTime  = 10 * time.Minute       // the same with 800,000 messages
	fillChunk    = 10_000                 // messages; the time is checked after each chunk
	backWait     = 2 * time.Minute        // for the messages to a destination that is back
)

// queueHang measures good messages beside destinations that accept connections
// and never answer.
func (b *bench) queueHang() error {
	fmt.Printf("%-44s %8s %8s %8s %8s %18s\n", fmt.Sprintf("%d good messages, respond-async", goodMessages), "arrived", "p50 ms", "p99 ms", "max ms", "unused before, ms")
	for _, n := range []int{10, 64, 2000} {
		if err := b.besideHanging(n); err != nil {
			return fmt.Errorf("%d destinations hang: %w", n, err)
		}
	}
	return nil
}

// besideHanging sends messages to n destinations that hang, and then good ones.
// The good destination has had a message before. One that has not is measured
// with a single message.
func (b *bench) besideHanging(n int) error {
	var keys strings.Builder
	var paths []string
	for i := range n {
		// The kernel accepts connections, although nothing calls Accept. Each
		// destination is a host of its own, because the limit for a host would
		// help otherwise.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		fmt.Fprintf(&keys, "\t\tkey h%d {\n\t\t\turl json://%s/\n\t\t}\n", i, l.Addr())
		paths = append(paths, fmt.Sprintf("/notify/h%d", i))
	}
	good, err := startArrivals()
	if err != nil {
		return err
	}
	defer good.close()
	fmt.Fprintf(&keys, "\t\tkey good {\n\t\t\turl json://%s/good\n\t\t}\n\t\tkey new {\n\t\t\turl json://%s/new\n\t\t}\n\t\ttimeout 30s\n", good.address, good.address)
	c, err := b.start(b.binary, siteConfig{keys: keys.String(), global: b.queueOption(fmt.Sprintf("hang%d", n))})
	if err != nil {
		return err
	}
	defer c.stop()

	const first = goodMessages + 1 // makes the destination known
	if _, err := good.send(c, "/notify/good", first); err != nil {
		return err
	}
	if !good.wait(hangWait, first) {
		return errors.New("the first message to the good destination has not arrived")
	}
	hang := &queueRow{processes: []*caddy{c}, paths: paths, async: true}
	if _, err := hang.fill(hangMessages*n, fillTime); err != nil {
		return err
	}
	const unused = goodMessages + 2
	unusedAccepted, err := good.send(c, "/notify/new", unused)
	if err != nil {
		return err
	}
	var accepted []time.Time
	for k, begin := 0, time.Now(); k < goodMessages; k++ {
		time.Sleep(time.Until(begin.Add(time.Duration(k) * goodInterval)))
		at, err := good.send(c, "/notify/good", k)
		if err != nil {
			return err
		}
		accepted = append(accepted, at)
	}
	numbers := []int{unused}
	for k := range accepted {
		numbers = append(numbers, k)
	}
	good.wait(hangWait, numbers...)
	var delays []time.Duration
	for k, at := range accepted {
		if arrived, ok := good.arrival(k); ok {
			delays = append(delays, max(0, arrived.Sub(at)))
		}
	}
	if len(delays) == 0 {
		return errors.New("no good message has arrived")
	}
	slices.Sort(delays)
	quantile := func(percent int) float64 { return ms(delays[(len(delays)*percent+99)/100-1]) }
	unusedDelay := "not arrived"
	if arrived, ok := good.arrival(unused); ok {
		unusedDelay = fmt.Sprintf("%.1f", ms(max(0, arrived.Sub(unusedAccepted))))
	}
	fmt.Printf("%-44s %8d %8.1f %8.1f %8.1f %18s\n", fmt.Sprintf("%d destinations hang", n), len(delays), quantile(50), quantile(99), quantile(100), unusedDelay)
	return nil
}

// arrivals is a destination that records when each numbered message arrived for
// the first time.
type arrivals struct {
	server  *http.Server
	address string

	mu sync.Mutex
	at map[int]time.Time
}

func startArrivals() (*arrivals, error) {
	a := &arrivals{at: map[int]time.Time{}}
	return a, a.serve("127.0.0.1:0")
}

// serve begins to listen on an address.
func (a *arrivals) serve(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	a.address = l.Addr().String()
	a.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		now := time.Now()
		var m struct{ Message string }
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			return
		}
		k, err := strconv.Atoi(m.Message)
		if err != nil {
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if _, ok := a.at[k]; !ok {
			a.at[k] = now
		}
	})}
	go func() { _ = a.server.Serve(l) }()
	return nil
}

func (a *arrivals) close() { _ = a.server.Close() }

// send sends the message with number k and returns when it was accepted.
func (a *arrivals) send(c *caddy, path string, k int) (time.Time, error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+c.gateway+path, bytes.NewReader(fmt.Appendf(nil, `{"body":"%d"}`, k)))
	if err != nil {
		return time.Time{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Prefer", "respond-async")
	resp, err := http.DefaultClient.Do(req) //nolint:gosec // an address of the measured process
	if err != nil {
		return time.Time{}, err
	}
	at := time.Now()
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return time.Time{}, err
	}
	if resp.StatusCode/100 != 2 {
		return time.Time{}, fmt.Errorf("%s: %.200s", resp.Status, text)
	}
	return at, nil
}

// arrival returns when message k arrived.
func (a *arrivals) arrival(k int) (time.Time, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.at[k]
	return at, ok
}

// wait waits until messages have arrived, and reports whether all have.
func (a *arrivals) wait(limit time.Duration, numbers ...int) bool {
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		missing := slices.ContainsFunc(numbers, func(k int) bool { _, ok := a.arrival(k); return !ok })
		if !missing {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// fill makes n requests, or fewer if they take longer than limit, and returns
// how many it made.
func (r *queueRow) fill(n int, limit time.Duration) (int, error) {
	begin := time.Now()
	done := 0
	for done < n && time.Since(begin) < limit {
		chunk := min(fillChunk, n-done)
		var next atomic.Int64
		var group sync.WaitGroup
		errs := make([]error, queueClients)
		for i := range queueClients {
			group.Go(func() { _, errs[i] = r.client(i, &next, begin, chunk) })
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			return done, err
		}
		done += chunk
	}
	return done, nil
}

// unusedAddress returns an address of the loopback interface on which nothing
// listens.
func unusedAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// queueBacklog measures a queue in a folder while many messages wait for a
// destination that is down, and how fast it delivers them to one that is back.
func (b *bench) queueBacklog() error {
	if err := b.acceptedWhileDown(); err != nil {
		return err
	}
	fmt.Println()
	fmt.Printf("%-44s %12s %12s %12s\n", fmt.Sprintf("%d messages wait, what was down is back", drainedMessages), "first s", "all s", "delivered/s")
	for _, n := range []int{1, 16} {
		if err := b.deliveredWhenBack(n); err != nil {
			return fmt.Errorf("%d destinations that are back: %w", n, err)
		}
	}
	return nil
}

// acceptedWhileDown measures how many messages are accepted while others wait.
func (b *bench) acceptedWhileDown() error {
	address, err := unusedAddress()
	if err != nil {
		return err
	}
	keys := "\t\tkey down {\n\t\t\turl json://" + address + "/\n\t\t}\n"
	option := "notify {\n\t\tqueue {\n\t\t\tpath " + filepath.Join(b.dir, "backlog") + "\n\t\t\tmax_size 8GiB\n\t\t}\n\t}"
	c, err := b.start(b.binary, siteConfig{keys: keys, global: option})
	if err != nil {
		return err
	}
	defer c.stop()
	fmt.Printf("%-44s %12s %12s %12s %12s\n", fmt.Sprintf("respond-async, %d clients, a folder", queueClients), "accepted/s", "p50 ms", "p99 ms", "CPU µs")
	waiting, end := 0, time.Now().Add(backlogTime)
	for _, n := range backlogs {
		if !b.reaches(n) {
			continue
		}
		r := &queueRow{processes: []*caddy{c}, paths: []string{"/notify/down"}, async: true}
		made, err := r.fill(max(0, n-waiting), time.Until(end))
		waiting += made
		if err != nil {
			return fmt.Errorf("after %d messages: %w", waiting, err)
		}
		name := fmt.Sprintf("%d wait", waiting)
		if waiting < n {
			name += fmt.Sprintf("; %d not reached in %v", n, backlogTime)
		}
		for range b.rounds {
			m, err := b.rawLoad(r, queueClients, b.requests)
			if err != nil {
				return fmt.Errorf("after %d messages: %w", waiting, err)
			}
			r.rounds = append(r.rounds, m)
			waiting += b.requests
		}
		m := medianOf(r.rounds)
		fmt.Printf("%-44s %12.0f %12.2f %12.2f %12.0f\n", name, m.perSecond, ms(m.p50), ms(m.p99), us(m.cpu))
	}
	printMemory(c, waiting)
	return nil
}

// printMemory prints how much memory a process takes while messages wait.
func printMemory(c *caddy, waiting int) {
	fmt.Printf("%d messages wait: %.0f MiB resident, %.0f MiB of them of the mapped database\n", waiting, c.memory("VmRSS"), c.memory("RssFile"))
}

// deliveredWhenBack fills a queue while n destinations are down, and measures
// how fast the messages arrive when the destinations are back.
func (b *bench) deliveredWhenBack(n int) error {
	address, err := unusedAddress()
	if err != nil {
		return err
	}
	var keys strings.Builder
	var paths []string
	for i := range n {
		fmt.Fprintf(&keys, "\t\tkey k%d {\n\t\t\turl json://%s/%d\n\t\t}\n", i, address, i)
		paths = append(paths, fmt.Sprintf("/notify/k%d", i))
	}
	c, err := b.start(b.binary, siteConfig{keys: keys.String(), global: b.queueOption(fmt.Sprintf("back%d", n))})
	if err != nil {
		return err
	}
	defer c.stop()
	r := &queueRow{processes: []*caddy{c}, paths: paths, async: true}
	messages, err := r.fill(drainedMessages, fillTime)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	var total, first, last atomic.Int64
	begin := time.Now()
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		since := int64(time.Since(begin))
		first.CompareAndSwap(0, since)
		last.Store(since)
		total.Add(1)
	})}
	defer server.Close()
	go func() { _ = server.Serve(l) }()
	for end := begin.Add(backWait); total.Load() < int64(messages) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	name := fmt.Sprintf("destinations: %d", n)
	if got := total.Load(); got < int64(messages) {
		name += fmt.Sprintf("; %d of %d arrived in %v", got, messages, backWait)
	}
	from, to := time.Duration(first.Load()), time.Duration(last.Load())
	fmt.Printf("%-44s %12.1f %12.1f %12.0f\n", name, from.Seconds(), to.Seconds(), float64(total.Load())/max(to-from, time.Millisecond).Seconds())
	return nil
}
