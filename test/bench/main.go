//go:build linux

// Command bench compares the cost of the gateway with that of Caddy's
// reverse_proxy for the same requests to the same destination, on the same
// machine and in one run. It needs Linux. docs/speed.md explains the tables.
//
//	go run ./test/bench                  builds Caddy with and without this module, and measures everything
//	go run ./test/bench -only message    measures some groups: message, fanout, sources, queue, hang, dead, backlog, full, postgres, rules, rulers, sizes, config, saved, binary
//	go run ./test/bench -caddy ./caddy   measures an existing binary
//
// All traffic stays on the loopback interface. CPU time and allocations are
// those of the Caddy process only, without the program that sends and receives
// the requests.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// bench is one run.
type bench struct {
	dir       string // folder for files, removed at the end
	binary    string // Caddy with the module
	requests  int    // in each round of a row
	clients   int    // concurrent requests
	rounds    int    // per row; a value is their median
	queued    int    // messages in the queue when it is full
	incidents int    // open incidents in the last rows about rules
	silences  int    // silences in the last rows about rules
	backlog   int    // maximum number of messages that wait in the rows of backlogs
	dest      *destination

	temporary []string // other folders, removed at the end
}

// groups are the groups of measurements, in the order of the tables.
var groups = []struct {
	name string
	run  func(*bench) error
}{
	{"message", (*bench).messages},
	{"fanout", (*bench).fanOut},
	{"sources", (*bench).sources},
	{"queue", (*bench).queue},
	{"hang", (*bench).queueHang},
	{"dead", (*bench).queueDead},
	{"backlog", (*bench).queueBacklog},
	{"full", (*bench).queueFull},
	{"postgres", (*bench).queuePostgres},
	{"rules", (*bench).rules},
	{"rulers", (*bench).rulers},
	{"sizes", (*bench).sizes},
	{"config", (*bench).configurations},
	{"saved", (*bench).savedKeys},
	{"binary", (*bench).binaries},
}

func main() {
	log.SetFlags(0)
	var b bench
	flag.StringVar(&b.binary, "caddy", "", "the Caddy binary with this module; built from ./cmd/caddy if empty")
	flag.IntVar(&b.requests, "requests", 5000, "requests in each round of a row")
	flag.IntVar(&b.clients, "clients", 32, "requests under way at once")
	flag.IntVar(&b.rounds, "rounds", 5, "how often the rows of a table are measured in turn; the median counts")
	flag.IntVar(&b.queued, "queued", 100000, "messages that wait in the queue in the last rows about it, and for destinations that are down")
	flag.IntVar(&b.incidents, "incidents", 100000, "incidents that are open in the last rows about rules")
	flag.IntVar(&b.silences, "silences", 10000, "silences in the last rows about rules")
	flag.IntVar(&b.backlog, "backlog", 100000, "the maximum number of messages that wait for a destination that is down, for rows with 0, 100000 and 800000")
	destination := flag.String("bare", "", "serve as the server that sends with net/http alone, to this URL; bench starts it itself")
	only := flag.String("only", "", "the groups to measure, separated by commas; empty for all")
	flag.Parse()
	if *destination != "" {
		log.Fatal("bench: ", serveBare(*destination))
	}
	if err := b.run(*only); err != nil {
		log.Fatal("bench: ", err)
	}
}

func (b *bench) run(only string) error {
	var err error
	if b.dir, err = os.MkdirTemp("", "notify-bench-*"); err != nil {
		return err
	}
	defer func() {
		for _, dir := range append(b.temporary, b.dir) {
			_ = os.RemoveAll(dir)
		}
	}()
	if b.binary == "" {
		b.binary = filepath.Join(b.dir, "caddy")
		if err := build(b.binary, "./cmd/caddy"); err != nil {
			return err
		}
	}
	if b.binary, err = filepath.Abs(b.binary); err != nil {
		return err
	}
	b.dest = startDestination()
	defer b.dest.close()

	fmt.Printf("%d CPUs, load %s, %s; %d clients, median of %d rounds of %d requests\n", runtime.NumCPU(), loadAverage(), runtime.Version(), b.clients, b.rounds, b.requests)
	var chosen []string
	if only != "" {
		chosen = strings.Split(only, ",")
	}
	var errs []error
	for _, g := range groups {
		if chosen != nil && !slices.Contains(chosen, g.name) {
			continue
		}
		fmt.Println()
		if err := g.run(b); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", g.name, err))
		}
	}
	fmt.Printf("\nload at the end %s\n", loadAverage())
	return errors.Join(errs...)
}

// backlogs are the numbers of messages that wait in rows about much that waits.
var backlogs = []int{0, 100_000, 800_000}

// reaches reports whether -backlog allows that n messages wait. Otherwise it prints that they
// are not measured.
func (b *bench) reaches(n int) bool {
	if n > b.backlog {
		fmt.Printf("%d wait: not measured; use -backlog %d\n", n, n)
	}
	return n <= b.backlog
}

// build builds a program as xcaddy.sh does.
func build(out, target string) error {
	c := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-tags", "nobadger,nomysql,nopgx", "-o", out, target)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("building %s: %w", target, err)
	}
	return nil
}

// loadAverage returns the load of the last minute, or "unknown".
func loadAverage() string {
	data, _ := os.ReadFile("/proc/loadavg")
	load, _, ok := strings.Cut(string(data), " ")
	if !ok {
		return "unknown"
	}
	return load
}

// median returns the value in the middle.
func median[T int | int64 | float64](values []T) T {
	values = slices.Clone(values)
	slices.Sort(values)
	return values[len(values)/2]
}
