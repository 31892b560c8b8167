// Command bench compares the gateway with Caddy's reverse_proxy: the same
// requests to the same destination, on the same machine, in one run.
//
//	go run ./test/bench                 builds Caddy, measures, prints a table
//	go run ./test/bench -caddy ./caddy  measures an existing binary
//
// All traffic stays on the loopback interface. Each throughput row takes
// -seconds.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	log.SetFlags(0)
	caddy := flag.String("caddy", "", "the Caddy binary; built from ./cmd/caddy where empty")
	seconds := flag.Float64("seconds", 5, "how long to measure each throughput row, in seconds; at most 60")
	clients := flag.Int("clients", 32, "requests under way at once; at most 256")
	rounds := flag.Int("rounds", 3, "how often each pair of rows is measured in turn; the median counts")
	flag.Parse()
	*seconds, *clients, *rounds = min(*seconds, 60), min(*clients, 256), min(*rounds, 9)
	if err := run(*caddy, time.Duration(*seconds*float64(time.Second)), *clients, *rounds); err != nil {
		log.Fatal("bench: ", err)
	}
}

func run(binary string, duration time.Duration, clients, rounds int) error {
	dir, err := os.MkdirTemp("", "notify-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if binary == "" {
		binary = filepath.Join(dir, "caddy")
		build := exec.Command("go", "build", "-o", binary, "./cmd/caddy")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("building Caddy: %w", err)
		}
	}
	dest := startDestination()
	defer dest.server.Close()
	gateway, err := startCaddy(binary, dir, dest.address)
	if err != nil {
		return err
	}
	defer gateway.stop()

	fmt.Printf("%d clients, median of %d rounds of %s each\n\n", clients, rounds, duration)
	fmt.Printf("%-34s %10s %9s %9s %9s\n", "one destination", "req/s", "p50 ms", "p99 ms", "RSS MB")
	message := `{"title":"Disk almost full","body":"Volume /data is at 91% on host-7","type":"warning"`
	kinds := []struct{ name, address, body string }{
		{"reverse_proxy", gateway.proxy, message + "}"},
		{"notify, stateless", gateway.notify + "/notify", message + `,"urls":"json://` + dest.address + `/"}`},
		{"notify, stateful", gateway.notify + "/notify/one", message + "}"},
	}
	results := make([][]measure, len(kinds))
	for range rounds {
		for i, k := range kinds {
			m, err := load(k.address, k.body, duration, clients)
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			m.rss = gateway.rss("VmRSS")
			results[i] = append(results[i], m)
		}
	}
	var base float64
	for i, k := range kinds {
		slices.SortFunc(results[i], func(a, b measure) int { return int(a.perSecond - b.perSecond) })
		m := results[i][len(results[i])/2]
		if i == 0 {
			base = m.perSecond
		}
		fmt.Printf("%-34s %10.0f %9.2f %9.2f %9.1f   ratio %.2f\n", k.name, m.perSecond, ms(m.p50), ms(m.p99), m.rss, m.perSecond/base)
	}

	fmt.Printf("\n%-34s %10s %9s\n", "100 destinations of 50 ms each", "p50 ms", "worst ms")
	var took []time.Duration
	for range 10 {
		start := time.Now()
		if err := post(http.DefaultClient, gateway.notify+"/notify/hundred", "application/json", strings.NewReader(message+"}")); err != nil {
			return err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	fmt.Printf("%-34s %10.1f %9.1f   ratio %.2f to one destination\n", "notify, stateful", ms(took[5]), ms(took[9]), ms(took[5])/50)

	fmt.Printf("\n%-34s %10s %9s %9s\n", "10 destinations, 50 MB file", "idle MB", "peak MB", "above MB")
	idle, peak, err := attachment(gateway)
	if err != nil {
		return err
	}
	fmt.Printf("%-34s %10.1f %9.1f %9.1f\n", "notify, stateful, multipart", idle, peak, peak-idle)
	if n := dest.files.Load(); n != 10 {
		return fmt.Errorf("%d of 10 destinations got the file whole", n)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// destination stands for a service: it reads each request and answers 200.
type destination struct {
	server  *http.Server
	address string
	files   atomic.Int32
}

const fileSize = 50 << 20

func startDestination() *destination {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	d := &destination{address: l.Addr().String()}
	d.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		if n > fileSize {
			d.files.Add(1)
		}
		if strings.HasPrefix(r.URL.Path, "/slow") {
			time.Sleep(50 * time.Millisecond)
		}
	})}
	go d.server.Serve(l)
	return d
}

// caddy is a measured process.
type caddy struct {
	command       *exec.Cmd
	notify, proxy string
}

func startCaddy(binary, dir, dest string) (*caddy, error) {
	ports := make([]int, 2)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		ports[i] = l.Addr().(*net.TCPAddr).Port
		l.Close()
	}
	var keys strings.Builder
	fmt.Fprintf(&keys, "\t\tkey one {\n\t\t\turl json://%s/\n\t\t}\n\t\tkey hundred {\n", dest)
	for i := range 100 {
		fmt.Fprintf(&keys, "\t\t\turl json://%s/slow/%d\n", dest, i)
	}
	keys.WriteString("\t\t}\n\t\tkey ten {\n")
	for i := range 10 {
		fmt.Fprintf(&keys, "\t\t\turl form://%s/file/%d\n", dest, i)
	}
	keys.WriteString("\t\t}\n")
	config := fmt.Sprintf(`{
	admin off
	auto_https off
	persist_config off
}
http://127.0.0.1:%d {
	notify {
%s		egress {
			allow all
		}
	}
}
http://127.0.0.1:%d {
	reverse_proxy %s
}
`, ports[0], keys.String(), ports[1], dest)
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	c := &caddy{
		command: exec.Command(binary, "run", "--config", file, "--adapter", "caddyfile"),
		notify:  fmt.Sprintf("http://127.0.0.1:%d", ports[0]),
		proxy:   fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
	}
	var errors bytes.Buffer
	c.command.Stderr = &errors
	c.command.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	for range 200 {
		if conn, err := net.Dial("tcp", strings.TrimPrefix(c.notify, "http://")); err == nil {
			conn.Close()
			return c, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.stop()
	return nil, fmt.Errorf("caddy did not start:\n%s", errors.String())
}

func (c *caddy) stop() {
	c.command.Process.Signal(os.Interrupt)
	c.command.Wait()
}

// rss returns a size of the process in megabytes: VmRSS is the current one, VmHWM
// the maximum. It returns 0 on a system without /proc.
func (c *caddy) rss(field string) float64 {
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

type measure struct {
	perSecond float64
	p50, p99  time.Duration
	rss       float64
}

func post(client *http.Client, address, kind string, body io.Reader) error {
	resp, err := client.Post(address, kind, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != 200 {
		err = fmt.Errorf("status %d: %.200s", resp.StatusCode, text)
	}
	return err
}

// load posts the body repeatedly for the duration.
func load(address, body string, duration time.Duration, clients int) (measure, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	warm := time.Now().Add(duration / 5)
	end := warm.Add(duration)
	var wg sync.WaitGroup
	times := make([][]time.Duration, clients)
	errs := make([]error, clients)
	for i := range clients {
		wg.Go(func() {
			for {
				start := time.Now()
				if start.After(end) {
					return
				}
				if err := post(client, address, "application/json", strings.NewReader(body)); err != nil {
					errs[i] = err
					return
				}
				if start.After(warm) {
					times[i] = append(times[i], time.Since(start))
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return measure{}, err
		}
	}
	all := slices.Concat(times...)
	slices.Sort(all)
	if len(all) == 0 {
		return measure{}, fmt.Errorf("no response in %s", duration)
	}
	return measure{
		perSecond: float64(len(all)) / duration.Seconds(),
		p50:       all[len(all)/2],
		p99:       all[len(all)*99/100],
	}, nil
}

// attachment sends a large file to ten destinations. It returns the memory of the
// process before, and its maximum.
func attachment(c *caddy) (idle, peak float64, err error) {
	time.Sleep(time.Second)
	idle = c.rss("VmRSS")
	c.resetPeak()
	r, w := io.Pipe()
	form := multipart.NewWriter(w)
	go func() {
		form.WriteField("title", "With a file")
		form.WriteField("body", "see attached")
		part, _ := form.CreateFormFile("attach", "disk.img")
		block := make([]byte, 1<<20)
		for range fileSize >> 20 {
			if _, err := part.Write(block); err != nil {
				break
			}
		}
		form.Close()
		w.Close()
	}()
	err = post(http.DefaultClient, c.notify+"/notify/ten", form.FormDataContentType(), r)
	return idle, c.rss("VmHWM"), err
}
