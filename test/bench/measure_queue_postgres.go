//go:build linux

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
// that the limit of four deliveries to one destination has no effect. Then it
// measures how fast gateways deliver what waits, and accept while others wait.
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
	fmt.Println()
	if err := b.queueIncidents(server); err != nil {
		return err
	}
	fmt.Println()
	if err := b.queueDrained(server); err != nil {
		return err
	}
	fmt.Println()
	return b.queueFilled(server)
}

// postgresConfig returns a configuration with a queue in a database.
func postgresConfig(dsn, keys string) siteConfig {
	return siteConfig{keys: keys, global: "notify {\n\t\tqueue postgres " + dsn + " {\n\t\t\tsecret a-secret-of-the-bench\n\t\t}\n\t}"}
}

// queueIncidents measures messages to 16 keys, with and without an incident of its own each.
func (b *bench) queueIncidents(server *postgresServer) error {
	var keys strings.Builder
	var paths []string
	for i := range 16 {
		name := fmt.Sprintf("k%d", i)
		keys.WriteString(b.destinationKey(name, "/"+name, 1))
		paths = append(paths, "/notify/"+name)
	}
	fmt.Printf("%-44s %12s %12s %12s\n", fmt.Sprintf("respond-async, %d clients, Postgres", queueClients), "accepted/s", "p50 ms", "p99 ms")
	for _, gateways := range []int{1, 3} {
		for _, incidents := range []bool{false, true} {
			database := fmt.Sprintf("incidents%d%v", gateways, incidents)
			if err := server.execute("CREATE DATABASE " + database); err != nil {
				return err
			}
			m, err := b.acceptedBy(gateways, postgresConfig(server.dsn(database), keys.String()), &queueRow{paths: paths, async: true, drained: true, incidents: incidents})
			if err != nil {
				return err
			}
			name := fmt.Sprintf("gateways: %d, no incidents", gateways)
			if incidents {
				name = fmt.Sprintf("gateways: %d, an incident each", gateways)
			}
			fmt.Printf("%-44s %12.0f %12.2f %12.2f\n", name, m.perSecond, ms(m.p50), ms(m.p99))
		}
	}
	return nil
}

// acceptedBy measures a row with new gateways.
func (b *bench) acceptedBy(gateways int, config siteConfig, r *queueRow) (measure, error) {
	for range gateways {
		c, err := b.start(b.binary, config)
		if err != nil {
			return measure{}, err
		}
		defer c.stop()
		r.processes = append(r.processes, c)
	}
	for range b.rounds {
		m, err := b.rawLoad(r, queueClients, b.requests)
		if err != nil {
			return measure{}, err
		}
		r.rounds = append(r.rounds, m)
	}
	return medianOf(r.rounds), nil
}

// drainedMessages is the number of messages that gateways find when they start.
const drainedMessages = 10_000

// queueDrained measures how fast gateways deliver what waits for 16 fast
// destinations when they start.
func (b *bench) queueDrained(server *postgresServer) error {
	var keys strings.Builder
	var paths []string
	for i := range 16 {
		name := fmt.Sprintf("k%d", i)
		keys.WriteString(b.destinationKey(name, "/gate/"+name, 1))
		paths = append(paths, "/notify/"+name)
	}
	fmt.Printf("%-44s %12s\n", fmt.Sprintf("%d messages wait for a start", drainedMessages), "delivered/s")
	for i, test := range []struct {
		name     string
		gateways int
		delay    time.Duration // to and from the server together
	}{{"gateways: 1", 1, 0}, {"gateways: 3", 3, 0}, {"gateways: 1, 20 ms to the server and back", 1, 20 * time.Millisecond}} {
		database := fmt.Sprintf("drained%d", i)
		if err := server.execute("CREATE DATABASE " + database); err != nil {
			return err
		}
		rate, err := b.drainedRate(server, database, keys.String(), paths, test.gateways, test.delay)
		if err != nil {
			return fmt.Errorf("%s: %w", test.name, err)
		}
		fmt.Printf("%-44s %12.0f\n", test.name, rate)
	}
	return nil
}

// drainedRate fills a queue and returns how many messages gateways deliver in a
// second after their start.
func (b *bench) drainedRate(server *postgresServer, database, keys string, paths []string, gateways int, delay time.Duration) (float64, error) {
	b.dest.closed.Store(true)
	defer b.dest.closed.Store(false)
	dsn := server.dsn(database)
	c, err := b.start(b.binary, postgresConfig(dsn, keys))
	if err != nil {
		return 0, err
	}
	_, err = b.rawLoad(&queueRow{processes: []*caddy{c}, paths: paths, async: true}, queueClients, drainedMessages)
	c.stop()
	if err != nil {
		return 0, err
	}
	// What was being sent may be tried later.
	if err := server.executeIn(database, `UPDATE notify_queue_jobs SET due = 0, not_before = 0, status = 1, owner = NULL, lease = NULL WHERE status IN (1, 2);
		DELETE FROM notify_queue_destinations`); err != nil {
		return 0, err
	}
	b.dest.closed.Store(false)
	if delay > 0 {
		p, err := slowProxy(server.port, delay/2)
		if err != nil {
			return 0, err
		}
		defer p.Close()
		dsn = strings.Replace(dsn, fmt.Sprintf(":%d/", server.port), fmt.Sprintf(":%d/", p.Addr().(*net.TCPAddr).Port), 1)
	}
	before := b.dest.total.Load()
	begin := time.Now()
	for range gateways {
		c, err := b.start(b.binary, postgresConfig(dsn, keys))
		if err != nil {
			return 0, err
		}
		defer c.stop()
	}
	var first time.Time
	for end := time.Now().Add(drainTime); b.dest.total.Load() < before+drainedMessages; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return 0, errors.New("the messages are not delivered")
		}
		if first.IsZero() && b.dest.total.Load() > before {
			first = time.Now()
		}
	}
	if first.IsZero() { // all arrived while the gateways started
		first = begin
	}
	return drainedMessages / b.dest.lastArrival().Sub(first).Seconds(), nil
}

// queueFilled measures how many messages a gateway accepts while others wait,
// which are due much later.
func (b *bench) queueFilled(server *postgresServer) error {
	fmt.Printf("%-44s %12s %12s %12s\n", fmt.Sprintf("respond-async, %d clients, Postgres", queueClients), "accepted/s", "p50 ms", "p99 ms")
	for _, n := range backlogs {
		if !b.reaches(n) {
			continue
		}
		database := fmt.Sprintf("filled%d", n)
		if err := server.execute("CREATE DATABASE " + database); err != nil {
			return err
		}
		config := postgresConfig(server.dsn(database), b.destinationKey("hang", "/hang", 1))
		r := &queueRow{paths: []string{"/notify/hang"}, async: true}
		if n > 0 {
			c, err := b.start(b.binary, config)
			if err != nil {
				return err
			}
			_, err = b.rawLoad(&queueRow{processes: []*caddy{c}, paths: r.paths, async: true}, 1, 1)
			c.stop()
			if err != nil {
				return err
			}
			if err := server.executeIn(database, fmt.Sprintf(fillQueue, n)); err != nil {
				return err
			}
		}
		m, err := b.acceptedBy(1, config, r)
		if err != nil {
			return err
		}
		fmt.Printf("%-44s %12.0f %12.2f %12.2f\n", fmt.Sprintf("%d wait", n), m.perSecond, ms(m.p50), ms(m.p99))
	}
	return nil
}

// fillQueue copies the only message so often that %[1]d wait. The copies cannot
// be delivered, and are due in a year.
const fillQueue = `UPDATE notify_queue_jobs SET status = 1, owner = NULL, lease = NULL, due = created + 31536000000000;
	INSERT INTO notify_queue_messages (id, created, size, kept, jobs, waiting, dead, files, finished, head, body)
		SELECT md5('copy' || i)::UUID, created + i, size, kept, jobs, waiting, dead, files, finished, head, body
		FROM notify_queue_messages, generate_series(2, %[1]d) i;
	INSERT INTO notify_queue_jobs (message, idx, shard, created, destination, host, client, text, status, due, not_before, updated, record)
		SELECT md5('copy' || i)::UUID, idx, i %% 16, created, destination, host, client, text, status, due, not_before, updated, record
		FROM notify_queue_jobs, generate_series(2, %[1]d) i;
	UPDATE notify_queue_counts SET waiting = waiting + %[1]d - 1 WHERE shard = 0;
	ANALYZE notify_queue_messages;
	ANALYZE notify_queue_jobs`

// slowProxy starts a TCP proxy before a server on loopback, which delays what
// passes in each direction.
func slowProxy(server int, delay time.Duration) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	type part struct {
		data []byte
		at   time.Time
	}
	pass := func(to, from net.Conn) {
		parts := make(chan part, 1024)
		go func() {
			defer to.Close()
			for part := range parts {
				time.Sleep(time.Until(part.at))
				_, _ = to.Write(part.data) // the other side ends if this fails
			}
		}()
		defer close(parts)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if err != nil {
				return
			}
			parts <- part{data[:n], time.Now().Add(delay)}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", server))
			if err != nil {
				_ = c.Close()
				continue
			}
			go pass(s, c)
			go pass(c, s)
		}
	}()
	return l, nil
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

func (s *postgresServer) execute(sql string) error { return s.executeIn("postgres", sql) }

// executeIn executes SQL in a database. Filling one takes up to a minute.
func (s *postgresServer) executeIn(database, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	c, err := pgconn.Connect(ctx, s.dsn(database))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql).ReadAll()
	return err
}
