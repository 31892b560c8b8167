package postgres

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
)

// server is a PostgreSQL server for tests, on loopback.
type server struct {
	*installation
	dir     string
	port    int
	options []string
	cmd     *exec.Cmd
	n       atomic.Int32
}

// installation is an installation of PostgreSQL, with the data of a new server.
// Tests copy the data, because initdb takes some seconds.
type installation struct {
	bin, dir string
	attr     *syscall.SysProcAttr
}

// installed returns the installation, or an error if there is none.
var installed = sync.OnceValues(func() (*installation, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		path, err := exec.LookPath("initdb")
		if err != nil {
			return nil, fmt.Errorf("PostgreSQL is not installed: %w", err)
		}
		found = []string{path}
	}
	in := &installation{bin: filepath.Dir(found[len(found)-1])}
	var uid, gid int
	if os.Getuid() == 0 { // initdb does not run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ = strconv.Atoi(u.Uid)
		gid, _ = strconv.Atoi(u.Gid)
		in.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	var err error
	if in.dir, err = os.MkdirTemp("", "postgres"); err != nil {
		return nil, err
	}
	if in.attr != nil {
		if err := os.Chown(in.dir, uid, gid); err != nil {
			return nil, err
		}
	}
	if err := in.run("initdb", "-D", filepath.Join(in.dir, "data"), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8",
		"--locale=C"); err != nil {
		return nil, err
	}
	return in, nil
})

// command returns a command that runs a program of PostgreSQL.
func (in *installation) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(in.bin, name), args...)
	cmd.SysProcAttr, cmd.Dir = in.attr, in.dir
	return cmd
}

func (in *installation) run(name string, args ...string) error {
	if out, err := in.command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// shared is the server for all tests that do not stop it.
var shared = sync.OnceValues(func() (*server, error) { return newServer("fsync=off") })

// TestMain runs child in a child process of a test.
func TestMain(m *testing.M) {
	if dsn := os.Getenv("QUEUE_TEST_CHILD"); dsn != "" {
		child(dsn)
		return
	}
	// The tests mostly wait for leases and servers, so run more of them at once
	// than there are processors.
	_ = flag.Set("test.parallel", "16")
	code := m.Run()
	if in, err := installed(); err == nil {
		if s, err := shared(); err == nil {
			s.stop(syscall.SIGINT)
		}
		os.RemoveAll(in.dir)
	}
	os.Exit(code)
}

// sharedServer returns the server, or skips the test if PostgreSQL is not
// installed.
func sharedServer(tb testing.TB) *server {
	tb.Helper()
	s, err := shared()
	if err != nil {
		tb.Skip(err)
	}
	return s
}

// ownServer starts a server for one test, or skips the test if PostgreSQL is not
// installed.
func ownServer(tb testing.TB) *server {
	tb.Helper()
	s, err := newServer()
	if err != nil {
		tb.Skip(err)
	}
	tb.Cleanup(func() { s.stop(syscall.SIGINT) })
	return s
}

// newServer creates and starts a server.
func newServer(options ...string) (*server, error) {
	in, err := installed()
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(porttest.Free())
	if err != nil {
		return nil, err
	}
	s := &server{installation: in, port: port, options: options}
	s.dir = filepath.Join(in.dir, strconv.Itoa(s.port))
	cp := exec.Command("cp", "-a", filepath.Join(in.dir, "data"), s.dir)
	if out, err := cp.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("copying the data: %w: %s", err, out)
	}
	if err := s.start(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *server) start() error {
	args := []string{"-D", s.dir, "-p", strconv.Itoa(s.port), "-h", "127.0.0.1", "-k", s.dir, "-c", "max_connections=200"}
	for _, o := range s.options {
		args = append(args, "-c", o)
	}
	s.cmd = s.command("postgres", args...)
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	// The last line of this file is the state. To connect repeatedly takes more
	// CPU time, because the server starts a process each time.
	state := filepath.Join(s.dir, "postmaster.pid")
	for range 1500 {
		text, _ := os.ReadFile(state)
		begins := strings.HasPrefix(string(text), strconv.Itoa(s.cmd.Process.Pid)+"\n") // else it is the last server's
		lines := strings.Fields(string(text))
		if state := lines[max(len(lines)-1, 0):]; begins && (state[0] == "ready" || state[0] == "standby") {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return fmt.Errorf("the server does not start: %s", text)
}

// standby starts a server that follows s, for one test.
func (s *server) standby(tb testing.TB) *server {
	tb.Helper()
	port, err := strconv.Atoi(porttest.Free())
	if err != nil {
		tb.Fatal(err)
	}
	other := &server{installation: s.installation, port: port}
	other.dir = filepath.Join(s.installation.dir, strconv.Itoa(other.port))
	err = s.run("pg_basebackup", "-D", other.dir, "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", "postgres", "-R", "-X", "stream", "-c",
		"fast", "--no-sync")
	if err == nil {
		err = other.start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { other.stop(syscall.SIGINT) })
	return other
}

func (s *server) stop(sig syscall.Signal) {
	_ = s.cmd.Process.Signal(sig)
	_ = s.cmd.Wait()
}

func (s *server) dsn(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// execute executes SQL.
func execute(tb testing.TB, dsn, sql string) []*pgconn.Result {
	tb.Helper()
	c, err := pgconn.Connect(tb.Context(), dsn)
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close(context.Background())
	results, err := c.Exec(tb.Context(), sql).ReadAll()
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return results
}

// schema creates an empty schema and returns its connection string. A database
// takes ten times as long.
func (s *server) schema(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("test%d", s.n.Add(1))
	execute(tb, s.dsn("postgres"), "CREATE SCHEMA "+name)
	return s.dsn("postgres") + "&search_path=" + name
}

// role returns the name of a role that no test has made, for one that makes it.
func (s *server) role() string { return fmt.Sprintf("role%d", s.n.Add(1)) }

// database creates an empty database and returns its connection string. Unlike
// schemas, databases have separate notifications.
func (s *server) database(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("test%d", s.n.Add(1))
	execute(tb, s.dsn("postgres"), "CREATE DATABASE "+name)
	return s.dsn(name)
}
