//go:build linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a measured process: Caddy, or the server of [serveBare].
type process struct {
	command  *exec.Cmd
	output   bytes.Buffer
	admin    string // address of the admin API
	gateway  string // address of the site of the gateway
	proxy    string // address of the site of reverse_proxy
	stores   bool   // it has a queue
	answered time.Duration
}

// siteConfig is the configuration of Caddy.
type siteConfig struct {
	keys  string // key blocks of the gateway
	queue string // lines of the block queue of the global option; no queue if empty
	proxy string // URL of the destination of reverse_proxy; over plain HTTP if empty
}

const caddyfile = `{
	admin %s
	auto_https off
	persist_config off
	%s
}
http://%s {
	notify {
%s
		egress {
			allow all
		}
	}
}
http://%s {
	reverse_proxy %s {
		%s
	}
}
`

// queueIn returns the line of a queue in a folder.
func (b *bench) queueIn(name string) string {
	return "queue {\npath " + filepath.Join(b.dir, name) + "\n}"
}

// start starts Caddy and waits until it answers.
func (b *bench) start(config siteConfig) (*process, error) {
	p := &process{stores: config.queue != ""}
	var err error
	for _, to := range []*string{&p.admin, &p.gateway, &p.proxy} {
		if *to, err = freeAddress(); err != nil {
			return nil, err
		}
	}
	global, to, transport := "", cmp.Or(config.proxy, b.dest.plain.url), ""
	if p.stores {
		global = "notify {\n" + config.queue + "\n}"
	}
	if strings.HasPrefix(to, "https:") {
		transport = "transport http {\ntls_insecure_skip_verify\n}"
	}
	file := filepath.Join(b.dir, "Caddyfile")
	text := fmt.Sprintf(caddyfile, p.admin, global, p.gateway, config.keys, p.proxy, to, transport)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p.command = exec.Command(b.binary, "run", "--config", file, "--adapter", "caddyfile") //nolint:gosec // the program to measure
	p.command.Env = append(os.Environ(), "HOME="+b.dir, "XDG_DATA_HOME="+b.dir, "XDG_CONFIG_HOME="+b.dir)
	return p, p.begin()
}

// freeAddress returns an unused address of the loopback interface.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// begin starts the process and waits until it answers and all apps have started.
// Caddy starts the apps in no fixed order, and the admin API shows the
// configuration when all have started.
func (p *process) begin() error {
	p.command.Stderr = &p.output
	begin := time.Now()
	if err := p.command.Start(); err != nil {
		return err
	}
	for time.Since(begin) < time.Minute {
		if answers("http://"+p.gateway+"/") && answers("http://"+p.admin+"/config/admin") {
			p.answered = time.Since(begin)
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	p.stop()
	return fmt.Errorf("%s did not start:\n%s", p.command.Path, p.output.String())
}

// answers reports whether a server answers, with any status.
func answers(url string) bool {
	resp, err := http.Get(url) //nolint:gosec // of the program to measure
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return true
}

func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	_ = p.command.Wait()
}

// usage has the counters of processes since their start.
type usage struct {
	cpu    time.Duration
	allocs float64
}

// usageOf returns the sum of the usage of processes.
func usageOf(processes []*process) (sum usage, err error) {
	for _, p := range processes {
		cpu, err := p.cpu()
		if err != nil {
			return usage{}, err
		}
		allocs, err := p.metric("go_memstats_mallocs_total")
		if err != nil {
			return usage{}, err
		}
		sum.cpu += cpu
		sum.allocs += allocs
	}
	return sum, nil
}

// metric returns a value of the process's metrics.
func (p *process) metric(name string) (float64, error) {
	resp, err := http.Get("http://" + p.admin + "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("the metrics have no %s: %w", name, lines.Err())
}

// heap returns the bytes in use after a garbage collection.
func (p *process) heap() (float64, error) {
	if err := readResponse(http.Get("http://" + p.admin + "/debug/pprof/heap?gc=1")); err != nil { //nolint:bodyclose // readResponse closes
		return 0, err
	}
	return p.metric("go_memstats_alloc_bytes")
}

// cpu returns the CPU time of the process, which is the sum of its threads.
func (p *process) cpu() (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.command.Process.Pid))
	if err != nil || len(threads) == 0 {
		return 0, errors.New("the CPU time of the process cannot be read; run it on Linux")
	}
	var sum time.Duration
	for _, thread := range threads {
		data, err := os.ReadFile(thread) //nolint:gosec // a file of the measured process
		if err != nil {
			continue // the thread has ended
		}
		text, _, _ := strings.Cut(string(data), " ")
		ns, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// memory returns a size of the process in MiB: VmRSS is the resident one, VmHWM
// its maximum.
func (p *process) memory(field string) float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

// besideDatabase returns the resident size of the process in MiB without the mapped database of its queue.
func (p *process) besideDatabase() (size float64) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", p.command.Process.Pid))
	counts := false
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		switch {
		case !strings.HasSuffix(fields[0], ":"): // the first line of a mapping
			counts = !strings.HasSuffix(fields[len(fields)-1], "/queue.db")
		case fields[0] == "Rss:" && counts:
			kb, _ := strconv.ParseFloat(fields[1], 64)
			size += kb / 1024
		}
	}
	return size
}

// resetPeak sets VmHWM to the current size.
func (p *process) resetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.command.Process.Pid), []byte("5"), 0o600)
}
