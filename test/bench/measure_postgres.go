//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// postgres measures one gateway and three that share a queue in PostgreSQL, without incidents and with
// one for each message. It uses 16 destinations, so that the limit of four deliveries to one has no effect.
func (b *bench) postgres() error {
	return b.withPostgres(func(server postgresServer) error {
		var rows []*row
		for _, gateways := range []int{1, 3} {
			keys, paths := b.dest.plain.keys("", 16)
			queue, err := server.queue(fmt.Sprintf("shared%d", gateways))
			if err != nil {
				return err
			}
			var processes []*process
			for range gateways {
				c, err := b.start(siteConfig{keys: keys, queue: queue})
				if err != nil {
					return err
				}
				defer c.stop()
				processes = append(processes, c)
			}
			var incidents []string
			for i := range b.requests {
				incidents = append(incidents, fmt.Sprint(paths[i%len(paths)], "?incident=", i))
			}
			name := fmt.Sprintf("gateways: %d", gateways)
			rows = append(rows,
				&row{name: name, paths: paths, processes: processes, clients: queueClients, async: true, drained: true},
				&row{name: name + ", incidents", paths: incidents, processes: processes, clients: queueClients, async: true, drained: true})
		}
		return b.table("respond-async, a queue in Postgres", rows...)
	})
}

// postgresServer is a PostgreSQL server on loopback.
type postgresServer struct{ port string }

// withPostgres calls measure with a new PostgreSQL server, or says that there is none.
func (b *bench) withPostgres(measure func(postgresServer) error) error {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		path, err := exec.LookPath("initdb")
		if err != nil {
			fmt.Println("\nqueues in Postgres are not measured: PostgreSQL is not installed")
			return nil
		}
		found = []string{path}
	}
	dir, err := os.MkdirTemp("", "notify-bench-postgres-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	attr := &syscall.SysProcAttr{}
	if os.Getuid() == 0 { // initdb does not run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return err
		}
	}
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(filepath.Dir(found[len(found)-1]), name), args...) //nolint:gosec // a program of PostgreSQL
		c.SysProcAttr, c.Dir = attr, dir
		return c
	}
	data := filepath.Join(dir, "data")
	if out, err := command("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(address)
	server := postgresServer{port: port}
	cmd := command("postgres", "-D", data, "-p", port, "-h", "127.0.0.1", "-k", dir, "-c", "max_connections=200")
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
	}()
	for range 300 {
		if err = server.execute("SELECT 1"); err == nil {
			return measure(server)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("the server does not start: %w", err)
}

// queue creates a database and returns the line of a queue in it.
func (s postgresServer) queue(database string) (string, error) {
	if err := s.execute("CREATE DATABASE " + database); err != nil {
		return "", err
	}
	return "queue postgres " + s.dsn(database) + " {\nsecret a-secret-of-the-bench\n}", nil
}

func (s postgresServer) dsn(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%s/%s?sslmode=disable", s.port, database)
}

func (s postgresServer) execute(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgconn.Connect(ctx, s.dsn("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql).ReadAll()
	return err
}
