//go:build linux

package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const message = `{"title":"Disk almost full","body":"Volume /data is at 91% on host-7","type":"warning"`

// destinationKey returns a key with n destinations over plain HTTP whose paths
// begin with path.
func (b *bench) destinationKey(name, path string, n int) string {
	return b.dest.plain().key(name, path, n)
}

// messages measures a message to one destination, over each protocol.
func (b *bench) messages() error {
	for _, p := range b.dest.protocols() {
		if err := b.messagesOver(p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (b *bench) messagesOver(p protocol) error {
	c, err := b.start(b.binary, siteConfig{keys: p.key("one", "", 1), proxy: p.url})
	if err != nil {
		return err
	}
	defer c.stop()
	rows := []*row{
		{name: "reverse_proxy", address: "http://" + c.proxy, body: message + "}"},
		{name: "notify, key", address: "http://" + c.gateway + "/notify/one", body: message + "}"},
		{name: "notify, URL in the request", address: "http://" + c.gateway + "/notify", body: message + `,"urls":"` + p.gatewayURL("/") + `"}`},
	}
	if err := b.measureRows(c, rows, b.requests); err != nil {
		return err
	}
	printRows("one destination, "+p.name, rows)
	fmt.Println()
	return nil
}

// printRows prints rows and their ratios to the first one, which is
// reverse_proxy.
func printRows(title string, rows []*row) {
	fmt.Printf("%-34s %8s %8s %8s %8s %8s %8s   %s\n", title, "req/s", "p50 ms", "p99 ms", "CPU µs", "allocs", "KB", "of reverse_proxy: CPU, allocs, req/s")
	for _, r := range rows {
		m := r.median()
		fmt.Printf("%-34s %8.0f %8.2f %8.2f %8.0f %8.0f %8.1f   %.2f, %.2f, %.2f\n", r.name, m.perSecond, ms(m.p50), ms(m.p99), us(m.cpu), m.allocs, m.bytes/1000,
			r.ratio(rows[0], measure.cpuTime), r.ratio(rows[0], measure.allocations), r.ratio(rows[0], measure.rate))
	}
}

// fanOut measures messages to many destinations, over each protocol, and a
// server that makes as many requests with net/http alone.
func (b *bench) fanOut() error {
	for _, p := range b.dest.protocols() {
		if err := b.fanOutOver(p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (b *bench) fanOutOver(p protocol) error {
	counts := []int{1, 10, 100, 1000}
	var keys strings.Builder
	for _, n := range counts {
		keys.WriteString(p.key(fmt.Sprintf("fast%d", n), "", n))
		keys.WriteString(p.key(fmt.Sprintf("slow%d", n), "/slow", n))
	}
	c, err := b.start(b.binary, siteConfig{keys: keys.String(), proxy: p.url})
	if err != nil {
		return err
	}
	defer c.stop()
	bare, err := b.startBare(p.url)
	if err != nil {
		return err
	}
	defer bare.stop()
	rows := []*row{{name: "reverse_proxy", address: "http://" + c.proxy, body: message + "}"}}
	for _, n := range counts {
		requests := max(b.requests/n, 20)
		rows = append(rows,
			&row{name: fmt.Sprintf("%d destinations", n), address: fmt.Sprintf("http://%s/notify/fast%d", c.gateway, n), body: message + "}", requests: requests},
			&row{name: fmt.Sprintf("net/http alone, %d", n), address: fmt.Sprintf("http://%s/%d", bare.gateway, n), body: message + "}", process: bare, requests: requests})
	}
	if err := b.measureRows(c, rows, b.requests); err != nil {
		return err
	}
	fmt.Printf("%-28s %8s %8s   %-36s   %s\n", p.name, "CPU µs", "allocs", "each further: CPU µs, allocs, of r_p", "50 ms each: p50 ms, worst ms")
	for i, r := range rows[1:] {
		m, n, one := r.median(), counts[i/2], rows[1+i%2]
		further, slow := "", ""
		if n > 1 {
			further = r.further(n, one, rows[0])
		}
		if r.process == nil {
			p50, worst, err := b.slow(c, n)
			if err != nil {
				return err
			}
			slow = fmt.Sprintf("%.0f, %.0f", ms(p50), ms(worst))
		}
		fmt.Printf("%-28s %8.0f %8.0f   %-36s   %s\n", r.name, us(m.cpu), m.allocs, further, slow)
	}
	fmt.Println()
	return nil
}

// further returns the CPU time and the allocations of each further destination of
// a message to n, and the ratio of that CPU time to base. one is the message to
// one destination. All are medians over the rounds.
func (r *row) further(n int, one, base *row) string {
	var cpu, allocs, ratio []float64
	for i, m := range r.rounds {
		cpu = append(cpu, float64(m.cpu-one.rounds[i].cpu)/float64(n-1))
		allocs = append(allocs, (m.allocs-one.rounds[i].allocs)/float64(n-1))
		ratio = append(ratio, cpu[i]/float64(base.rounds[i].cpu))
	}
	return fmt.Sprintf("%.1f, %.1f, %.2f", median(cpu)/1000, median(allocs), median(ratio))
}

// slow sends messages, one after the other, to n destinations that answer after
// 50 ms.
func (b *bench) slow(c *caddy, n int) (p50, worst time.Duration, err error) {
	var took []time.Duration
	for range 11 {
		begin := time.Now()
		if err := post(http.DefaultClient, fmt.Sprintf("http://%s/notify/slow%d", c.gateway, n), "application/json", strings.NewReader(message+"}")); err != nil {
			return 0, 0, err
		}
		took = append(took, time.Since(begin))
	}
	took = took[1:] // the first one opens the connections
	slices.Sort(took)
	return took[len(took)/2], took[len(took)-1], nil
}
