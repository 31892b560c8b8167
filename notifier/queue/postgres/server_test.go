package postgres

import (
	"context"
	"fmt"
	"net"
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
)

// server is a PostgreSQL server of the tests, on loopback.
type server struct {
	bin, dir string
	port     int
	attr     *syscall.SysProcAttr
	options  []string
	cmd      *exec.Cmd
	n        atomic.Int32
}

// shared is one server for all tests that do not stop it.
var shared struct {
	once sync.Once
	s    *server
	skip string
}

// TestMain is the program itself in a child process of a test.
func TestMain(m *testing.M) {
	if dsn := os.Getenv("QUEUE_TEST_CHILD"); dsn != "" {
		child(dsn)
		return
	}
	code := m.Run()
	if shared.s != nil {
		shared.s.stop(syscall.SIGINT)
		os.RemoveAll(shared.s.dir)
	}
	os.Exit(code)
}

// sharedServer returns the server, or skips the test if none is installed.
func sharedServer(tb testing.TB) *server {
	tb.Helper()
	shared.once.Do(func() { shared.s, shared.skip = newServer("fsync=off") })
	if shared.s == nil {
		tb.Skip(shared.skip)
	}
	return shared.s
}

// newServer makes and starts a server, or tells why that cannot be done.
func newServer(options ...string) (*server, string) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		path, err := exec.LookPath("initdb")
		if err != nil {
			return nil, "PostgreSQL is not installed"
		}
		found = []string{path}
	}
	s := &server{bin: filepath.Dir(found[len(found)-1]), options: options}
	dir, err := os.MkdirTemp("", "postgres")
	if err != nil {
		return nil, err.Error()
	}
	s.dir = dir
	if os.Getuid() == 0 { // initdb does not run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, err.Error()
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		s.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err.Error()
		}
	}
	initdb := exec.Command(filepath.Join(s.bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
	initdb.SysProcAttr, initdb.Dir = s.attr, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Sprintf("initdb: %v: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err.Error()
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	if err := s.start(); err != nil {
		return nil, err.Error()
	}
	return s, ""
}

func (s *server) start() error {
	args := []string{"-D", filepath.Join(s.dir, "data"), "-p", strconv.Itoa(s.port), "-h", "127.0.0.1", "-k", s.dir, "-c", "max_connections=200"}
	for _, o := range s.options {
		args = append(args, "-c", o)
	}
	s.cmd = exec.Command(filepath.Join(s.bin, "postgres"), args...)
	s.cmd.SysProcAttr, s.cmd.Dir = s.attr, s.dir
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for range 300 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		c, err := pgconn.Connect(ctx, s.dsn("postgres"))
		if err == nil {
			c.Close(ctx)
			cancel()
			return nil
		}
		cancel()
		time.Sleep(100 * time.Millisecond)
	}
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return fmt.Errorf("the server does not start: %s", text)
}

func (s *server) stop(sig syscall.Signal) {
	_ = s.cmd.Process.Signal(sig)
	_ = s.cmd.Wait()
}

func (s *server) dsn(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// exec executes SQL in a database.
func (s *server) exec(tb testing.TB, database, sql string) []*pgconn.Result {
	tb.Helper()
	c, err := pgconn.Connect(tb.Context(), s.dsn(database))
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

// database makes an empty database and returns its connection string.
func (s *server) database(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("test%d", s.n.Add(1))
	s.exec(tb, "postgres", "CREATE DATABASE "+name)
	return s.dsn(name)
}

// databaseOf returns the name in a connection string.
func databaseOf(dsn string) string {
	_, name, _ := strings.Cut(dsn[len("postgres://"):], "/")
	name, _, _ = strings.Cut(name, "?")
	return name
}
