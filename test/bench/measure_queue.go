//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
)

// sources measures a message in the format of another program.
func (b *bench) sources() error {
	c, err := b.start(b.binary, siteConfig{keys: b.destinationKey("one", "", 1)})
	if err != nil {
		return err
	}
	defer c.stop()
	alert := `{"receiver":"ops","status":"firing","version":"4","groupKey":"{}:{alertname=\"DiskFull\"}","externalURL":"http://alertmanager:9093",` +
		`"groupLabels":{"alertname":"DiskFull"},"commonLabels":{"alertname":"DiskFull","severity":"critical"},"commonAnnotations":{"summary":"Disk almost full"},` +
		`"alerts":[{"status":"firing","labels":{"alertname":"DiskFull","instance":"host-7","severity":"critical"},"annotations":{"summary":"Disk almost full",` +
		`"description":"Volume /data is at 91%"},"startsAt":"2026-01-01T00:00:00Z","endsAt":"0001-01-01T00:00:00Z","generatorURL":"http://prometheus:9090/graph"}]}`
	rows := []*row{
		{name: "reverse_proxy", address: "http://" + c.proxy, body: alert},
		{name: "notify, source alertmanager", address: "http://" + c.gateway + "/notify/one/alertmanager", body: alert},
	}
	if err := b.measureRows(c, rows, b.requests); err != nil {
		return err
	}
	printRows("an alert of Alertmanager", rows)
	return nil
}

// queueOption returns the global option with a queue in a folder.
func (b *bench) queueOption(name string) string {
	return "notify {\n\t\tqueue {\n\t\t\tpath " + filepath.Join(b.dir, name) + "\n\t\t}\n\t}"
}

// queueClients is the number of clients that send messages to a queue at once.
const queueClients = 64

// queue measures messages with a queue in a folder.
func (b *bench) queue() error {
	keys := b.destinationKey("one", "", 1) + b.destinationKey("hang", "/hang", 1)
	for _, part := range []func(keys string) error{b.queueFast, b.queueAccept, b.queueWaiting} {
		if err := part(keys); err != nil {
			return err
		}
		fmt.Println()
	}
	return nil
}

// pacedRate is the number of requests a second in rows with a fixed rate. The
// CPUs are not busy then, so that the times do not depend on the CPU time of a
// request.
const pacedRate = 500

// queueFast compares messages to a fast destination with and without a queue, as
// many as possible and at a fixed rate. These messages are not stored before the
// response.
func (b *bench) queueFast(keys string) error {
	without, err := b.start(b.binary, siteConfig{keys: keys})
	if err != nil {
		return err
	}
	defer without.stop()
	with, err := b.start(b.binary, siteConfig{keys: keys, global: b.queueOption("fast")})
	if err != nil {
		return err
	}
	defer with.stop()
	rows := []*queueRow{
		{name: "without a queue", processes: []*caddy{without}, paths: []string{"/notify/one"}},
		{name: "with a queue", processes: []*caddy{with}, paths: []string{"/notify/one"}},
	}
	if err := b.measureQueueRows(rows, b.clients, b.requests); err != nil {
		return err
	}
	printQueueRows("a message to a fast destination", rows)
	paced := []*queueRow{
		{name: "without a queue", processes: []*caddy{without}, paths: []string{"/notify/one"}, perSecond: pacedRate},
		{name: "with a queue", processes: []*caddy{with}, paths: []string{"/notify/one"}, perSecond: pacedRate},
	}
	if err := b.measureQueueRows(paced, b.clients, b.requests); err != nil {
		return err
	}
	printQueueRows(fmt.Sprintf("at %d requests a second", pacedRate), paced)
	return nil
}

// queueAccept measures messages that are stored before the response, and for
// comparison how many values bbolt stores when as many goroutines write. The
// destination does not answer, or it answers at once, so that the outcome of
// each message is stored as well.
func (b *bench) queueAccept(keys string) error {
	c, err := b.start(b.binary, siteConfig{keys: keys, global: b.queueOption("accept")})
	if err != nil {
		return err
	}
	defer c.stop()
	processes := []*caddy{c}
	held := &queueRow{name: "stored; the destination hangs", processes: processes, paths: []string{"/notify/hang"}, async: true}
	fast := &queueRow{name: "stored and delivered", processes: processes, paths: []string{"/notify/one"}, async: true, drained: true}
	rows := []*queueRow{held, fast}
	var grouped, batched []float64
	for range b.rounds {
		for _, r := range rows {
			m, err := b.rawLoad(r, queueClients, b.requests)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			r.rounds = append(r.rounds, m)
		}
		rate, err := b.commits(b.requests, groupCommit)
		if err != nil {
			return err
		}
		grouped = append(grouped, rate)
		if rate, err = b.commits(b.requests, batchCommit); err != nil {
			return err
		}
		batched = append(batched, rate)
	}
	printQueueRows(fmt.Sprintf("respond-async, %d clients", queueClients), rows)
	m := medianOf(held.rounds)
	fmt.Printf("%d goroutines that store 1 KB each in bbolt: %.0f/s with one that commits what waits, %.0f/s with Batch; the first row is %.2f and %.2f of that, and its CPU time would allow %.0f/s on each CPU\n",
		queueClients, median(grouped), median(batched), m.perSecond/median(grouped), m.perSecond/median(batched), float64(time.Second)/float64(m.cpu))
	return nil
}

// commits stores n values of 1 KB in a new database and returns how many it
// stored in a second. store returns a function that stores one value, and a
// function to call at the end.
func (b *bench) commits(n int, store func(*bbolt.DB) (put func(key []byte) error, end func())) (float64, error) {
	path := filepath.Join(b.dir, "control.db")
	defer os.Remove(path)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if err := db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(controlBucket); return err }); err != nil {
		return 0, err
	}
	put, end := store(db)
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, queueClients)
	begin := time.Now()
	for i := range queueClients {
		group.Go(func() {
			for k := next.Add(1); k <= int64(n) && errs[i] == nil; k = next.Add(1) {
				errs[i] = put(binary.BigEndian.AppendUint64(nil, uint64(k)))
			}
		})
	}
	group.Wait()
	took := time.Since(begin)
	end()
	return float64(n) / took.Seconds(), errors.Join(errs...)
}

var controlBucket = []byte("values")

func putControl(tx *bbolt.Tx, key []byte) error {
	return tx.Bucket(controlBucket).Put(key, make([]byte, 1000))
}

// batchCommit stores with bbolt's Batch.
func batchCommit(db *bbolt.DB) (put func(key []byte) error, end func()) {
	return func(key []byte) error {
		return db.Batch(func(tx *bbolt.Tx) error { return putControl(tx, key) })
	}, func() {}
}

// groupCommit stores with one goroutine that commits all values that wait.
func groupCommit(db *bbolt.DB) (put func(key []byte) error, end func()) {
	type value struct {
		key  []byte
		done chan error
	}
	values := make(chan value)
	go func() {
		for first := range values {
			all := []value{first}
			err := db.Update(func(tx *bbolt.Tx) error {
				for i := 0; i < len(all); i++ {
					if err := putControl(tx, all[i].key); err != nil {
						return err
					}
					select {
					case v, ok := <-values:
						if ok {
							all = append(all, v)
						}
					default:
					}
				}
				return nil
			})
			for _, v := range all {
				v.done <- err
			}
		}
	}()
	put = func(key []byte) error {
		v := value{key, make(chan error, 1)}
		values <- v
		return <-v.done
	}
	return put, func() { close(values) }
}

// queueWaiting measures messages while others wait, and then the start of a
// process that finds them.
func (b *bench) queueWaiting(keys string) error {
	config := siteConfig{keys: keys, global: b.queueOption("waiting")}
	c, err := b.start(b.binary, config)
	if err != nil {
		return err
	}
	var rows []*queueRow
	waiting := 0
	for _, n := range []int{0, 10_000, b.queued} {
		if n < waiting {
			continue
		}
		fill := &queueRow{name: "filling the queue", processes: []*caddy{c}, paths: []string{"/notify/hang"}, async: true}
		if n > waiting {
			if _, err := b.rawLoad(fill, queueClients, n-waiting); err != nil {
				c.stop()
				return err
			}
			waiting = n
		}
		at := []*queueRow{
			{name: fmt.Sprintf("delivered; %d wait", n), processes: fill.processes, paths: []string{"/notify/one"}},
			{name: fmt.Sprintf("respond-async; %d wait", n), processes: fill.processes, paths: []string{"/notify/one"}, async: true, drained: true},
		}
		if err := b.measureQueueRows(at, b.clients, b.requests/2); err != nil {
			c.stop()
			return err
		}
		rows = append(rows, at...)
	}
	printQueueRows("messages while others wait", rows)
	printMemory(c, waiting)
	c.stop()

	var first, resident, heap []float64
	for range b.rounds {
		if c, err = b.start(b.binary, config); err != nil {
			return err
		}
		first, resident = append(first, ms(c.answered)), append(resident, c.memory("VmRSS"))
		u, err := c.usage(true)
		c.stop()
		if err != nil {
			return err
		}
		heap = append(heap, u.settled/1e6)
	}
	fmt.Printf("a start with %d messages that wait: first answer after %.0f ms, %.1f MiB resident, Go heap %.1f MB\n", waiting, median(first), median(resident), median(heap))
	return nil
}
