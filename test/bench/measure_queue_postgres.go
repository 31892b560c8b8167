package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// queuePostgres measures one, two and three gateways that share a queue in
// PostgreSQL, and one with a queue in a folder. It uses 16 destinations, so
// that the limit of four deliveries to one destination has no effect.
func (b *bench) queuePostgres() error {
	server, err := b.startPostgres()
	if errors.Is(err, errNoPostgres) {
		fmt.Println("queues in Postgres are not measured:", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer server.stop()
	const destinations = 16
	var keys strings.Builder
	var paths []string
	for i := range destinations {
		name := fmt.Sprintf("k%d", i)
		keys.WriteString(b.destinationKey(name, "/"+name, 1))
		paths = append(paths, "/notify/"+name)
	}
	fmt.Printf("%-28s %12s %12s %12s %12s %14s\n", "respond-async, 64 clients", "accepted/s", "p50 ms", "p99 ms", "delivered/s", "CPU µs of all")
	for gateways := range 4 {
		name, option := "a folder, gateways: 1", b.queueOption("compared")
		if gateways > 0 {
			database := fmt.Sprintf("bench%d", gateways)
			if err := server.execute("CREATE DATABASE " + database); err != nil {
				return err
			}
			name = fmt.Sprintf("Postgres, gateways: %d", gateways)
			option = "notify {\n\t\tqueue postgres " + server.dsn(database) + " {\n\t\t\tsecret a-secret-of-the-bench\n\t\t}\n\t}"
		}
		if err := b.queueShared(name, siteConfig{keys: keys.String(), global: option}, max(gateways, 1), paths); err != nil {
			return err
		}
	}
	return nil
}

// queueShared measures how many messages a second gateways with a shared queue
// accept and deliver.
func (b *bench) queueShared(name string, config siteConfig, gateways int, paths []string) error {
	r := &queueRow{name: name, paths: paths, async: true, drained: true}
	for range gateways {
		c, err := b.start(b.binary, config)
		if err != nil {
			return err
		}
		defer c.stop()
		r.processes = append(r.processes, c)
	}
	var delivered []float64
	for range b.rounds {
		begin := time.Now()
		m, err := b.rawLoad(r, queueClients, b.requests)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.rounds = append(r.rounds, m)
		delivered = append(delivered, float64(b.requests)/b.dest.lastArrival().Sub(begin).Seconds())
	}
	m := medianOf(r.rounds)
	fmt.Printf("%-28s %12.0f %12.2f %12.2f %12.0f %14.0f\n", name, m.perSecond, ms(m.p50), ms(m.p99), median(delivered), us(m.cpu))
	return nil
}

// errNoPostgres is returned if PostgreSQL is not installed.
var errNoPostgres = errors.New("PostgreSQL is not installed")

// postgresServer is a PostgreSQL server on loopback.
type postgresServer struct {
	cmd  *exec.Cmd
	port int
}

// startPostgres starts a server with an empty directory.
func (b *bench) startPostgres() (*postgresServer, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		path, err := exec.LookPath("initdb")
		if err != nil {
			return nil, errNoPostgres
		}
		found = []string{path}
	}
	bin := filepath.Dir(found[len(found)-1])
	dir, err := os.MkdirTemp("", "notify-bench-postgres-*")
	if err != nil {
		return nil, err
	}
	attr := &syscall.SysProcAttr{}
	if os.Getuid() == 0 { // initdb does not run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, errNoPostgres
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err
		}
	}
	b.temporary = append(b.temporary, dir)
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(bin, name), args...) //nolint:gosec // a program of PostgreSQL
		c.SysProcAttr, c.Dir = attr, dir
		return c
	}
	data := filepath.Join(dir, "data")
	if out, err := command("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &postgresServer{port: l.Addr().(*net.TCPAddr).Port}
	if err := l.Close(); err != nil {
		return nil, err
	}
	s.cmd = command("postgres", "-D", data, "-p", strconv.Itoa(s.port), "-h", "127.0.0.1", "-k", dir, "-c", "max_connections=200")
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for range 300 {
		if err = s.execute("SELECT 1"); err == nil {
			return s, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("the server does not start: %w", err)
}

func (s *postgresServer) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	_ = s.cmd.Wait()
}

func (s *postgresServer) dsn(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

func (s *postgresServer) execute(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := pgconn.Connect(ctx, s.dsn("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql).ReadAll()
	return err
}
