package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// small is the size of a file system that many messages fill, in MiB.
var small = racetest.Amount(16, 8)

// fullDisk is a store on a small file system.
type fullDisk struct {
	*testing.T
	size     int // of the file system, in MiB
	dir      string
	now      time.Time // of claims
	store    *Store
	accepted map[uuid.UUID]bool
	arrived  map[uuid.UUID]int
}

func newFullDisk(t *testing.T, size int) *fullDisk {
	t.Helper()
	dir, _ := mount(t, "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", size), "tmpfs")
	d := &fullDisk{T: t, size: size, dir: dir, now: time.Now().Add(time.Minute), accepted: map[uuid.UUID]bool{}, arrived: map[uuid.UUID]int{}}
	d.open()
	return d
}

func (d *fullDisk) open() {
	d.Helper()
	if d.store != nil {
		if err := d.store.Close(); err != nil {
			d.Fatal(err)
		}
	}
	s, err := Open(Options{Path: filepath.Join(d.dir, "queue")})
	if err != nil {
		d.Fatal(err)
	}
	d.store = s
	d.Cleanup(func() { s.Close() })
}

// fill fills the disk with something else.
func (d *fullDisk) fill() (free func()) {
	d.Helper()
	name := filepath.Join(d.dir, "ballast")
	if err := os.WriteFile(name, make([]byte, d.size<<20), 0o600); err == nil {
		d.Fatal("the disk is not full")
	}
	return func() {
		d.Helper()
		if err := os.Remove(name); err != nil {
			d.Fatal(err)
		}
	}
}

// accept accepts a message. It reports false if the disk is full.
func (d *fullDisk) accept(e *queue.Entry) bool {
	d.Helper()
	err := d.store.Accept(d.Context(), 1<<40, e)
	if err == nil {
		d.accepted[e.Message.ID] = true
		return true
	}
	if _, ok := errors.AsType[*queue.UnavailableError](err); !ok {
		d.Fatal(err)
	}
	return false
}

// settleAll claims all jobs and settles them, many at once and in any order. It
// fails the test if that does not end.
func (d *fullDisk) settleAll(settle func(j *queue.Job)) {
	d.Helper()
	s := d.store
	for {
		jobs, _, err := s.Claim(d.Context(), queue.Claim{Now: d.now, Max: 256})
		if err != nil {
			d.Fatal(err)
		}
		if len(jobs) == 0 {
			return
		}
		rand.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
		var wg sync.WaitGroup
		for _, j := range jobs {
			d.arrived[j.Message]++
			wg.Go(func() {
				settle(&j)
				j.Updated = time.Now()
				j.Attempts++
				for range 60 {
					err := s.Settle(d.Context(), &queue.Settlement{Job: &j, Deferrable: true})
					if err == nil {
						return
					}
					time.Sleep(coolDown)
				}
				d.Error("a delivery cannot be settled")
			})
		}
		wg.Wait()
		if d.Failed() {
			d.FailNow()
		}
	}
}

func deliver(j *queue.Job) { j.Status, j.Result = queue.Delivered, make([]byte, 200) }

// drain checks that everything accepted is delivered, and once.
func (d *fullDisk) drain() {
	d.Helper()
	clear(d.arrived)
	d.settleAll(deliver)
	for id := range d.accepted {
		if d.arrived[id] != 1 {
			d.Errorf("message %s was delivered %d times", id, d.arrived[id])
		}
	}
	if st, err := d.store.Stats(d.Context()); err != nil || st.Queued+st.Sending > 0 {
		d.Errorf("%+v, %v", st, err)
	}
}

// TestFullDiskDrains checks that a store that has filled its disk delivers
// everything. bbolt writes changed pages to free ones; there once were none, so
// that the same 256 messages were sent again and again.
func TestFullDiskDrains(t *testing.T) {
	t.Parallel()
	type test struct {
		name  string
		disk  int        // its size in MiB
		size  func() int // of the texts
		min   int        // messages that fit on a disk of 16 MiB
		retry bool       // each delivery fails at first
		full  bool       // deliveries do not free enough room for all results
	}
	for _, test := range racetest.Part([]test{
		{"small texts", small, func() int { return 100 }, 4000, false, true},
		{"small texts, failing at first", small, func() int { return 100 }, 4000, true, true},
		{"texts of many sizes", 16, func() int { return rand.IntN(10_000) }, 500, true, true},
		{"large texts", 16, func() int { return 300_000 }, 20, true, false},
	}, 3) {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := newFullDisk(t, test.disk)
			for d.accept(newEntry(randomText(test.size()), fmt.Sprint("a", rand.IntN(100)))) {
			}
			free := d.fill()
			if len(d.accepted) < test.min*test.disk/16 {
				t.Errorf("only %d messages were accepted", len(d.accepted))
			}
			t.Logf("%d messages were accepted, %d pages are free", len(d.accepted), d.store.room(d.store.current()))
			if test.retry {
				d.settleAll(func(j *queue.Job) {
					j.Status, j.Due, j.Result = queue.Queued, time.Now().Add(time.Hour), bytes.Repeat([]byte("e"), 300)
				})
				d.now = d.now.Add(2 * time.Hour)
			}
			d.open()
			d.drain()
			kept := 0
			for id := range d.accepted {
				if _, err := d.store.Get(t.Context(), id); err == nil {
					kept++
				}
			}
			if test.full && kept == len(d.accepted) {
				t.Error("the results are kept although the disk is full")
			}
			t.Logf("%d pages are free, and %d results are kept", d.store.room(d.store.current()), kept)
			free()
			for !d.accept(newEntry([]byte("text"), "a")) {
				time.Sleep(coolDown)
			}
		})
	}
}

// TestFullDiskGivesUp checks that a store that has filled its disk can give up
// all that waits. The fallback gets a message about the first delivery; one for
// each once took all pages, so that nothing could be stored any more.
func TestFullDiskGivesUp(t *testing.T) {
	racetest.SkipIfSlow(t)
	t.Parallel()
	d := newFullDisk(t, small)
	for d.accept(newEntry(randomText(100), fmt.Sprint("a", rand.IntN(100)))) {
	}
	d.fill()
	s, next := d.store, 0
	jobs, _, err := s.Claim(t.Context(), queue.Claim{Now: d.now, Max: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != len(d.accepted) {
		t.Fatalf("%d claimed, %d accepted", len(jobs), len(d.accepted))
	}
	for _, j := range jobs {
		j.Status, j.Updated, j.Reason, j.Result = queue.Dead, time.Now(), "no such user", make([]byte, 200)
		e := newEntry(randomText(300), "fallback")
		e.Jobs[0].State = make([]byte, 100)
		err := s.Settle(t.Context(), &queue.Settlement{Job: &j, Next: e})
		if err != nil {
			t.Fatalf("after %d: %v; %d pages are free", next, err, s.room(s.current()))
		}
		next++
	}
	t.Logf("%d given up; %d pages are free", next, s.room(s.current()))
	clear(d.accepted)
	d.settleAll(deliver)
	if n := len(d.arrived); n == 0 || n > next/10 {
		t.Errorf("the fallback got %d messages", len(d.arrived))
	}
	if st, err := s.Stats(t.Context()); err != nil || st.Dead != next || st.Queued+st.Sending != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestOthersFillDisk checks that a store loses no message and delivers all when
// another program fills the disk, and that it accepts messages again without a
// restart when there is room.
func TestOthersFillDisk(t *testing.T) {
	t.Parallel()
	d := newFullDisk(t, small)
	for range 3 {
		for range 100 {
			if !d.accept(newEntry(randomText(1000), "a")) {
				t.Fatal("a message is refused on an empty disk")
			}
		}
		free := d.fill()
		for d.accept(newEntry(randomText(10_000), "a")) {
		}
		file := newEntry(nil, "a")
		file.Message.Files = []queue.File{{Size: 2 << 20, ReaderAt: bytes.NewReader(make([]byte, 2<<20))}}
		if d.accept(file) {
			t.Error("a file is accepted without space for it")
		}
		for id := range d.accepted {
			if _, release, err := d.store.Load(t.Context(), id); err != nil {
				t.Errorf("message %s: %v", id, err)
			} else {
				release()
			}
		}
		d.open()
		d.drain()
		clear(d.accepted)
		free()
		for !d.accept(newEntry([]byte("text"), "a")) {
			time.Sleep(coolDown)
		}
	}
}

// TestRoomBesideReaders checks that messages are accepted on a disk with room
// while others read. Pages that have been replaced are free only as long as
// nobody reads, and a store once took a reader for a full disk.
func TestRoomBesideReaders(t *testing.T) {
	t.Parallel()
	s, err := Open(Options{Path: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			_ = s.view(func(*bbolt.Tx) error {
				time.Sleep(50 * time.Microsecond)
				return nil
			})
			time.Sleep(50 * time.Microsecond)
		}
	})
	defer wg.Wait()
	defer close(done)
	for range 40 {
		if err := s.Accept(t.Context(), 1<<40, newEntry([]byte("text"), "json://host")); err != nil {
			t.Fatal(err)
		}
		large := &change{
			pages: s.room(s.current()) + growStep, adds: true, check: func(*batch) error { return nil },
			write: func(*batch) error { return nil },
		}
		if err := s.do(t.Context(), large); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDiskUpdates checks that a full disk refuses updates that add records, as it refuses
// messages. Updates that end something are stored, so that all waiting messages are delivered.
func TestFullDiskUpdates(t *testing.T) {
	t.Parallel()
	d := newFullDisk(t, small)
	update := func(name string, maxSize int64, size int) error {
		return d.store.Update(t.Context(), &queue.Update{
			Names: []queue.Hash{d.store.Hash(name)}, MaxSize: maxSize,
			Decide: func(tx *queue.Tx) error {
				tx.Put(d.store.Hash(name), queue.Record{Data: randomText(size), Due: d.now})
				return nil
			},
		})
	}
	n := 0
	for ; update(fmt.Sprint("silence", n), 1<<40, 2000) == nil; n++ {
		if n%10 == 0 && !d.accept(newEntry(randomText(100), "a")) {
			break
		}
	}
	free := d.fill()
	if n < 500 {
		t.Errorf("only %d records were stored", n)
	}
	for i := range 100 {
		if err := update(fmt.Sprint("another silence", i), 1<<40, 100); !errors.Is(err, queue.ErrDiskFull) {
			t.Fatalf("a record is added to a full disk: %v", err)
		}
	}
	for i := range n { // acknowledgements, for example
		if err := update(fmt.Sprint("silence", i), 0, 2000); err != nil {
			t.Fatalf("after %d: %v; %d pages are free", i, err, d.store.room(d.store.current()))
		}
	}
	replaced := 0
	for ; replaced < 10_000; replaced++ {
		e := newEntry(randomText(2000), "digest")
		e.Unlimited = true
		if !d.accept(e) {
			break
		}
	}
	if replaced == 0 || replaced == 10_000 {
		t.Errorf("%d messages are accepted in place of others", replaced)
	}
	d.open()
	d.drain()
	free()
	for i := range n {
		if err := update(fmt.Sprint("silence", i), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	for update("another silence", 1<<40, 100) != nil {
		time.Sleep(coolDown)
	}
	t.Logf("%d records; %d messages in place of others", n, replaced)
}
