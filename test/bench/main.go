//go:build linux

// Command bench compares the cost of the gateway with the cost of Caddy's reverse_proxy for the
// same requests to the same destination, on the same machine and in one run. It needs Linux.
// docs/speed.md explains the tables.
//
//	go run ./test/bench                  builds Caddy with this module, and measures everything
//	go run ./test/bench -only message    measures some groups: message, fanout, queue, dead, postgres, sizes
//	go run ./test/bench -caddy ./caddy   measures an existing binary
//	go run ./test/bench -check           fails if a message makes more allocations than it may
//
// All traffic stays on the loopback interface. CPU time and allocations belong to the Caddy process
// alone, not to the program that sends and receives the requests.
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
	dir      string // for files; removed at the end
	binary   string // Caddy with the module
	requests int    // in each round of a row
	rounds   int    // of a row; a value is their median
	check    bool   // a row that makes more allocations than it may is an error
	queued   int    // messages waiting in a full queue
	dest     *destination
}

// checkedRequests is the number of requests in each round with -check. What each round allocates once
// counts for all of them, so the limits hold for this number.
const checkedRequests = 8000

// groups are the groups of measurements, in the order of the tables.
var groups = []struct {
	name string
	run  func(*bench) error
}{
	{"message", (*bench).messages},
	{"fanout", (*bench).fanOut},
	{"queue", (*bench).queue},
	{"dead", (*bench).dead},
	{"postgres", (*bench).postgres},
	{"sizes", (*bench).sizes},
}

func main() {
	log.SetFlags(0)
	var b bench
	flag.StringVar(&b.binary, "caddy", "", "the Caddy binary with this module; built from ./cmd/caddy if empty")
	flag.IntVar(&b.requests, "requests", 5000, "requests in each round of a row")
	flag.IntVar(&b.rounds, "rounds", 5, "how often the rows of a table are measured in turn; the median counts")
	flag.IntVar(&b.queued, "queued", 100000, "messages that wait in the rows about a full queue, and for destinations that are down")
	flag.BoolVar(&b.check, "check", false, "fail if a message makes more allocations than it may; their number does not depend on the machine")
	bare := flag.String("bare", "", "serve as the server that sends with net/http alone, to this URL; bench starts it itself")
	only := flag.String("only", "", "the groups to measure, separated by commas; empty for all")
	flag.Parse()
	if b.check {
		b.requests = checkedRequests
	}
	if *bare != "" {
		log.Fatal("bench: ", serveBare(*bare))
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
	defer os.RemoveAll(b.dir)
	if b.binary == "" {
		b.binary = filepath.Join(b.dir, "caddy")
		if err := build(b.binary); err != nil {
			return err
		}
	}
	if b.binary, err = filepath.Abs(b.binary); err != nil {
		return err
	}
	b.dest = startDestination()
	defer b.dest.close()

	fmt.Printf("%d CPUs, load %s, %s; median of %d rounds of %d requests\n",
		runtime.NumCPU(), loadAverage(), runtime.Version(), b.rounds, b.requests)
	var errs []error
	for _, g := range groups {
		if only != "" && !slices.Contains(strings.Split(only, ","), g.name) {
			continue
		}
		if err := g.run(b); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", g.name, err))
		}
	}
	fmt.Printf("\nload at the end %s\n", loadAverage())
	return errors.Join(errs...)
}

// build builds the program as xcaddy.sh does.
func build(out string) error {
	c := exec.Command("go", "build", "-modfile", "newest.mod", "-trimpath", "-ldflags", "-s -w",
		"-tags", "nobadger,nomysql,nopgx", "-o", out, "./cmd/caddy")
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("building ./cmd/caddy: %w", err)
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
