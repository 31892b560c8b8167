package integration

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startEtcd starts an etcd, in which Patroni keeps who is the primary, and returns its port.
func startEtcd(t *testing.T) int {
	t.Helper()
	port, peer := freePort(t), freePort(t)
	clients, peers := fmt.Sprintf("http://127.0.0.1:%d", port), fmt.Sprintf("http://127.0.0.1:%d", peer)
	start(t, port, program(t, "etcd", "etcd-server"), "--name", "etcd", "--data-dir",
		"data", "--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "etcd="+peers)
	return port
}

// cluster is two PostgreSQL servers under Patroni, one of which is the primary.
type cluster struct {
	synchronous bool
	nodes       [2]*node
}

// node is a server of a cluster, and the Patroni that starts, promotes and demotes it.
type node struct {
	*postgres
	name    string
	api     int // the port at which Patroni answers
	config  string
	patroni *server
}

// newCluster starts a cluster, which ends when the test does.
func newCluster(t *testing.T, etcd int, synchronous bool) *cluster {
	t.Helper()
	c := &cluster{synchronous: synchronous}
	for i := range c.nodes {
		n := &node{postgres: findPostgres(t), name: string(rune('a' + i)), api: freePort(t)}
		n.config = filepath.Join(filepath.Dir(n.dir), "patroni.yml")
		if err := os.WriteFile(n.config, []byte(n.settings(etcd, synchronous)), 0o644); err != nil {
			t.Fatal(err)
		}
		c.nodes[i] = n
	}
	for _, n := range c.nodes {
		n.begin(t)
		t.Cleanup(func() {
			n.signal(syscall.SIGKILL)
			if text, err := os.ReadFile(n.dir + ".log"); t.Failed() && err == nil {
				t.Logf("output of Patroni and PostgreSQL of %s:\n%s", n.name, text)
			}
		})
	}
	return c
}

// settings returns the configuration of a Patroni. With these times, a fail-over takes
// seconds; newer versions of Patroni raise ttl to 20 s. The machine stays when a server is
// killed, so what it has written needs no fsync.
func (n *node) settings(etcd int, synchronous bool) string {
	return fmt.Sprintf(`
scope: notify-%[1]t
name: %[2]s
restapi: {listen: "127.0.0.1:%[3]d", connect_address: "127.0.0.1:%[3]d"}
etcd3: {host: "127.0.0.1:%[4]d"}
bootstrap:
  dcs:
    ttl: 5
    loop_wait: 1
    retry_timeout: 3
    maximum_lag_on_failover: 1073741824
    synchronous_mode: %[1]t
    postgresql:
      use_pg_rewind: true
  initdb: [{encoding: UTF8}, {locale: C}, {auth: trust}, no-sync]
postgresql:
  listen: 127.0.0.1:%[5]d
  connect_address: 127.0.0.1:%[5]d
  data_dir: %[6]s
  bin_dir: %[7]s
  pgpass: %[6]s.pass
  authentication: {superuser: {username: postgres}, replication: {username: postgres}}
  basebackup: [checkpoint: fast, no-sync]
  parameters: {fsync: "off", unix_socket_directories: ""}
  pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
`, synchronous, n.name, n.api, etcd, n.port, n.dir, n.bin)
}

// begin starts Patroni, which starts the server.
func (n *node) begin(t *testing.T) {
	t.Helper()
	s := &server{cmd: exec.Command(program(t, "patroni", "patroni"), n.config)}
	// PostgreSQL writes there, too, so the end of a pipe would be its end.
	log, err := os.OpenFile(n.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.Dir = log, log, filepath.Dir(n.dir)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if n.attr != nil {
		s.cmd.SysProcAttr.Credential = n.attr.Credential
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.patroni = s
}

// signal sends a signal to Patroni and to all processes of the server. SIGKILL returns when
// all of them have ended.
func (n *node) signal(sig syscall.Signal) {
	n.signalPatroni(sig)
	for pids := n.processes(); len(pids) > 0; pids = n.processes() { // the parents are first, so that they start no others
		for _, pid := range pids {
			_ = syscall.Kill(pid, sig)
		}
		if sig != syscall.SIGKILL {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// signalPatroni sends a signal to Patroni alone. SIGKILL returns when it has ended.
func (n *node) signalPatroni(sig syscall.Signal) {
	_ = syscall.Kill(-n.patroni.cmd.Process.Pid, sig)
	if sig == syscall.SIGKILL {
		_ = n.patroni.cmd.Wait()
	}
}

// processes returns the processes with a file of the node in their command line, which are
// Patroni and the parent of the server's processes, and then their children.
func (n *node) processes() []int {
	var parents []int
	dir := []byte(filepath.Dir(n.dir) + "/")
	parent := map[int]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		words, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err != nil {
			continue // it has ended
		}
		if bytes.Contains(words, dir) {
			parents = append(parents, pid)
		}
		// After the name, which may contain anything, come the state and the parent.
		text, _ := os.ReadFile(file)
		if fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]); len(fields) > 1 {
			parent[pid], _ = strconv.Atoi(string(fields[1]))
		}
	}
	all := slices.Clone(parents)
	for pid, of := range parent {
		if slices.Contains(parents, of) && !slices.Contains(parents, pid) {
			all = append(all, pid)
		}
	}
	return all
}

// query returns what a server answers to a statement, without a line's end, or "" if it does not.
func (n *node) query(sql string) string {
	cmd := n.command("psql", "-d",
		fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=postgres connect_timeout=2", n.port),
		"-tA", "-c", sql)
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// isPrimary reports whether Patroni has made the server the primary.
func (n *node) isPrimary() bool { return n.is("primary") }

// is reports whether the server has a role of those that Patroni's API names.
func (n *node) is(role string) bool {
	client := http.Client{Timeout: time.Second}
	resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/%s", n.api, role))
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// ready waits until one server is the primary and the other one follows it, and would be the
// next primary. It returns both.
func (c *cluster) ready(t *testing.T) (primary, standby *node) {
	t.Helper()
	role, state := "asynchronous", "async"
	if c.synchronous {
		role, state = "synchronous", "sync"
	}
	within(t, 90*time.Second, "a standby follows a primary", func() bool {
		for i, n := range c.nodes {
			primary, standby = n, c.nodes[1-i]
			if primary.isPrimary() && standby.is(role) &&
				primary.query("SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'") == state {
				return true
			}
		}
		return false
	})
	return primary, standby
}

// dsn returns the connection string of a gateway.
func (c *cluster) dsn() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable&target_session_attrs=read-write",
		c.nodes[0].port, c.nodes[1].port)
}
