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
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// caddy is a measured process.
type caddy struct {
	command  *exec.Cmd
	output   bytes.Buffer
	admin    string // address of the admin API
	gateway  string // address of the site of the gateway
	proxy    string // address of the site of reverse_proxy
	answered time.Duration
}

// siteConfig is the configuration of a measured process.
type siteConfig struct {
	keys   string // key blocks of the gateway
	global string // the global option notify, if any
	plain  string // what the site has instead of the gateway, for Caddy alone
	proxy  string // URL of the destination of reverse_proxy; that over plain HTTP if empty
	disk   string // folder that is a small file system for the process alone, if not empty
}

// text returns the Caddyfile.
func (s siteConfig) text(c *caddy, destination string) string {
	to, transport := cmp.Or(s.proxy, destination), ""
	if strings.HasPrefix(to, "https:") {
		transport = "transport http {\n\t\t\ttls_insecure_skip_verify\n\t\t}"
	}
	gateway := s.plain
	if gateway == "" {
		gateway = "notify {\n" + s.keys + "\t\tegress {\n\t\t\tallow all\n\t\t}\n\t}"
	}
	return fmt.Sprintf(`{
	admin %s
	auto_https off
	persist_config off
	%s
}
http://%s {
	%s
}
http://%s {
	reverse_proxy %s {
		%s
	}
}
`, c.admin, s.global, c.gateway, gateway, c.proxy, to, transport)
}

// start starts Caddy and waits until it answers.
func (b *bench) start(binary string, config siteConfig) (*caddy, error) {
	c := &caddy{}
	for _, to := range []*string{&c.admin, &c.gateway, &c.proxy} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		*to = l.Addr().String()
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(b.dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(config.text(c, b.dest.address)), 0o600); err != nil {
		return nil, err
	}
	c.command = exec.Command(binary, "run", "--config", file, "--adapter", "caddyfile") //nolint:gosec // the program to measure
	if config.disk != "" {
		onSmallDisk(c.command, config.disk)
	}
	c.command.Env = append(os.Environ(), "HOME="+b.dir, "XDG_DATA_HOME="+b.dir, "XDG_CONFIG_HOME="+b.dir)
	return c, c.begin()
}

// begin starts the process and waits until it answers and all apps have started.
// Caddy starts the apps in no fixed order, and the admin API shows the
// configuration when all have started.
func (c *caddy) begin() error {
	c.command.Stderr = &c.output
	begin := time.Now()
	if err := c.command.Start(); err != nil {
		return err
	}
	for time.Since(begin) < time.Minute {
		if answers("http://"+c.gateway+"/") && answers("http://"+c.admin+"/config/admin") {
			c.answered = time.Since(begin)
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	c.stop()
	return fmt.Errorf("%s did not start:\n%s", c.command.Path, c.output.String())
}

func answers(url string) bool {
	resp, err := http.Get(url) //nolint:gosec // of the program to measure
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return true
}

// stop ends the process. A process that a shell starts in the background may ignore
// os.Interrupt.
func (c *caddy) stop() {
	_ = c.command.Process.Signal(syscall.SIGTERM)
	_ = c.command.Wait()
}

// reload runs the command caddy reload with the configuration that is running,
// and returns how long it took, and the CPU time of both processes.
func (c *caddy) reload(b *bench) (took, used time.Duration, err error) {
	before, err := c.cpu()
	if err != nil {
		return 0, 0, err
	}
	command := exec.Command(c.command.Path, "reload", "--force", "--config", filepath.Join(b.dir, "Caddyfile"), "--adapter", "caddyfile", "--address", c.admin) //nolint:gosec // the program to measure
	begin := time.Now()
	if out, err := command.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("caddy reload: %w: %.500s", err, out)
	}
	took = time.Since(begin)
	after, err := c.cpu()
	return took, after - before + command.ProcessState.UserTime() + command.ProcessState.SystemTime(), err
}

// usage has the counters of a process since its start.
type usage struct {
	cpu     time.Duration
	allocs  float64
	bytes   float64
	settled float64 // bytes in use after a garbage collection; only with collect
}

// usage reads the counters. With collect, it collects garbage first.
func (c *caddy) usage(collect bool) (usage, error) {
	var u usage
	if collect {
		if err := drain("http://" + c.admin + "/debug/pprof/heap?gc=1"); err != nil {
			return u, err
		}
	}
	resp, err := http.Get("http://" + c.admin + "/metrics")
	if err != nil {
		return u, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		for _, counter := range []struct {
			name string
			to   *float64
		}{{"go_memstats_mallocs_total", &u.allocs}, {"go_memstats_alloc_bytes_total", &u.bytes}, {"go_memstats_alloc_bytes", &u.settled}} {
			if name == counter.name {
				if *counter.to, err = strconv.ParseFloat(value, 64); err != nil {
					return u, err
				}
			}
		}
	}
	if u.allocs == 0 {
		return u, fmt.Errorf("the metrics have no counters of allocations: %w", lines.Err())
	}
	u.cpu, err = c.cpu()
	return u, err
}

// cpu returns the CPU time of the process, which is the sum of its threads.
func (c *caddy) cpu() (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", c.command.Process.Pid))
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
func (c *caddy) memory(field string) float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.command.Process.Pid))
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

// resetPeak sets VmHWM to the current size.
func (c *caddy) resetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.command.Process.Pid), []byte("5"), 0o600)
}

// drain sends a GET request and discards the response.
func drain(url string) error {
	resp, err := http.Get(url) //nolint:gosec // an address of the measured process
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
