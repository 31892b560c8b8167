package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// copyDir copies a store that is closed.
func copyDir(t testing.TB, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// logged returns a logger, and a function that returns its output.
func logged() (*zap.Logger, func() string) {
	core, logs := observer.New(zapcore.DebugLevel)
	return zap.New(core), func() string {
		var b strings.Builder
		for _, e := range logs.All() {
			fmt.Fprintln(&b, e.Level, e.Message, e.ContextMap())
		}
		return b.String()
	}
}

// sample is a store with messages in all states.
type sample struct {
	dir     string
	entries map[uuid.UUID]*queue.Entry // as Get returns them
	bodies  map[uuid.UUID][]byte       // of messages that wait or are dead
	keys    map[uuid.UUID]string
}

func newSample(t testing.TB, n int) *sample {
	t.Helper()
	p := &sample{t.TempDir(), map[uuid.UUID]*queue.Entry{}, map[uuid.UUID][]byte{}, map[uuid.UUID]string{}}
	s, err := Open(Options{Path: p.dir, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	for i := range n {
		e := newEntry(randomText(random.IntN(3000)), "a", fmt.Sprint("b", i%7), "c")
		if i%50 == 0 {
			e.Message.Body = randomText(200_000)
		}
		if i%3 == 0 {
			e.Message.Key, e.Message.Request = fmt.Sprint("key ", i), []byte("request")
			p.keys[e.Message.ID] = e.Message.Key
		}
		if i%4 == 1 { // a message of an incident
			e.Jobs[2].Status, e.Jobs[2].Incident = queue.Held, "incident"
			e.Update = &queue.Update{
				Names: []queue.Hash{s.Hash(fmt.Sprint("line ", i))},
				Decide: func(tx *queue.Tx) error {
					tx.Put(s.Hash(fmt.Sprint("line ", i)), queue.Record{Data: randomText(random.IntN(300)), Due: time.Now().Add(time.Hour)})
					return nil
				},
			}
		}
		must(s.Accept(t.Context(), 1<<40, e))
		jobs, _, err := s.Claim(t.Context(), queue.Claim{Now: time.Now(), Max: 100})
		must(err)
		for _, j := range jobs {
			j.Updated, j.Result = time.Now(), []byte("result")
			switch (i + j.Index) % 5 {
			case 0:
				j.Status = queue.Dead
			case 1:
				j.Status, j.Due = queue.Queued, time.Now().Add(time.Hour)
			default:
				j.Status = queue.Delivered
			}
			must(s.Settle(t.Context(), &queue.Settlement{Job: &j}))
		}
		p.entries[e.Message.ID] = nil
		if i == n/2 { // reused pages that contain deleted records
			_, err := s.Forget(t.Context(), time.Now(), 1<<40)
			must(err)
		}
	}
	for id := range p.entries {
		e, err := s.Get(t.Context(), id)
		if errors.Is(err, queue.ErrNotFound) {
			delete(p.entries, id)
			delete(p.keys, id)
			continue
		}
		must(err)
		p.entries[id] = e
		m, release, err := s.Load(t.Context(), id)
		if err == nil {
			release()
			p.bodies[id] = m.Body
		} else if !errors.Is(err, queue.ErrNotFound) {
			t.Fatal(err)
		}
	}
	must(s.Close())
	return p
}

// losses is how a store differs from the sample.
type losses struct {
	open   int // texts, and deliveries that waited or were dead
	ended  int // results of ended deliveries, or whole messages without others
	queued int // ended deliveries that are queued or dead again
}

func open(j queue.Job) bool { return j.Status.Waits() || j.Status == queue.Dead }

// check compares a store with the sample and counts the losses. Each loss must
// be in the log, unless log is nil.
func (p *sample) check(t *testing.T, s *Store, log func() string) (l losses) {
	t.Helper()
	lose := func(count *int, id uuid.UUID, format string, args ...any) {
		t.Helper()
		*count++
		if log != nil && !strings.Contains(log(), id.String()) {
			t.Errorf("not reported: message %s: %s\n%s", id, fmt.Sprintf(format, args...), log())
		}
	}
	for id, want := range p.entries {
		e, err := s.Get(t.Context(), id)
		if err != nil {
			count := &l.ended
			if slices.ContainsFunc(want.Jobs, open) {
				count = &l.open
			}
			lose(count, id, "%v", err)
			continue
		}
		older := false
		for i := range want.Jobs {
			if i < len(e.Jobs) && e.Jobs[i].Status.Waits() {
				older = true
				continue // an older record is not a loss
			}
			if i < len(e.Jobs) && e.Jobs[i].Status == want.Jobs[i].Status && bytes.Equal(e.Jobs[i].Result, want.Jobs[i].Result) {
				continue
			}
			count := &l.ended
			if open(want.Jobs[i]) {
				count = &l.open
			}
			lose(count, id, "job %d", i)
		}
		body, ok := p.bodies[id]
		m, release, err := s.Load(t.Context(), id)
		if err == nil {
			release()
		}
		if ok && (err != nil || !bytes.Equal(m.Body, body)) {
			lose(&l.open, id, "the text: %v", err)
		}
		// A job that waits again, because its older record was found, needs the text.
		if !ok && !older && !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("a message that has ended has a text: %v", err)
		}
	}
	for _, status := range []queue.Status{queue.Queued, queue.Dead} {
		jobs, err := s.List(t.Context(), queue.JobID{}, 1<<20, status)
		if err != nil {
			t.Error(err)
		}
		for _, j := range jobs {
			if want := p.entries[j.Message]; want == nil || want.Jobs[j.Index].Status != status {
				l.queued++
			}
		}
	}
	// The store works after any loss. Damage that a commit finds is repaired
	// first, and the store is unavailable meanwhile.
	e := newEntry([]byte("new"), "new")
	err := s.Accept(t.Context(), 1<<40, e)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(coolDown / 10) {
		if _, unavailable := errors.AsType[*queue.UnavailableError](err); !unavailable {
			break
		}
		err = s.Accept(t.Context(), 1<<40, e)
	}
	if err != nil {
		t.Error(err)
	}
	jobs, _, err := s.Claim(t.Context(), queue.Claim{Now: time.Now(), Max: 1 << 20})
	if err != nil || len(jobs) == 0 {
		t.Errorf("claimed %d, %v", len(jobs), err)
	}
	var wg sync.WaitGroup
	for _, j := range jobs {
		wg.Go(func() {
			j.Status, j.Updated = queue.Delivered, time.Now()
			if err := s.Settle(t.Context(), &queue.Settlement{Job: &j}); err != nil {
				t.Errorf("job %v: %v", j.JobID, err)
			}
		})
	}
	wg.Wait()
	if _, err := s.Forget(t.Context(), time.Now().Add(time.Hour), 1<<40); err != nil {
		t.Error(err)
	}
	return l
}

// walk reads all pages of a database that are in use.
func walk(t *testing.T, path string) *walker {
	t.Helper()
	p, err := openPages(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.f.Close() })
	m, err := p.newest()
	if err != nil {
		t.Fatal(err)
	}
	w := newWalker(p, m)
	if err := w.database(); err != nil {
		t.Fatal(err)
	}
	return w
}

// used returns the offsets of all bytes in use in a database, and of the page headers with the
// first elements.
func used(t *testing.T, path string) (all, heads []int) {
	t.Helper()
	w := walk(t, path)
	for id, seen := range w.seen {
		for i := range pageSize {
			if seen {
				all = append(all, id*pageSize+i)
			}
			if seen && i < 64 {
				heads = append(heads, id*pageSize+i)
			}
		}
	}
	return all, heads
}

// flip flips n bits of a file at random places.
func flip(t *testing.T, path string, n int, places []int, random *rand.Rand) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		b[places[random.IntN(len(places))]] ^= 1 << random.IntN(8)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// openDamaged opens a copy of the sample after damage has changed its database,
// and checks it. aside reports whether the database was replaced.
func (p *sample) openDamaged(t *testing.T, damage func(path string)) (l losses, aside bool) {
	t.Helper()
	dir := t.TempDir()
	copyDir(t, dir, p.dir)
	path := filepath.Join(dir, "queue.db")
	damage(path)
	log, text := logged()
	s, err := Open(Options{Path: dir, Logger: log, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	l = p.check(t, s, text)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Fatal(text())
	}
	replaced, err := filepath.Glob(path + ".damaged-*")
	if err != nil {
		t.Fatal(err)
	}
	return l, len(replaced) > 0
}

// The maximum losses that one damaged bit causes. A message of the sample has
// three deliveries and a text; a page has the records of some twenty.
var oneBit = losses{open: 4, ended: 64, queued: 64}

func (l losses) check(t *testing.T, maxLoss losses) {
	t.Helper()
	if l.open > maxLoss.open || l.ended > maxLoss.ended || l.queued > maxLoss.queued {
		t.Errorf("lost: %+v, want at most %+v", l, maxLoss)
	}
}

// TestFlippedBits checks that the store opens after any bit of the database is
// flipped, and that each loss is logged with its ID. One in six flips kept a
// prototype from opening. If CI is not set, there are fewer flips.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	p := newSample(t, 60)
	all, heads := used(t, filepath.Join(p.dir, "queue.db"))
	anything := losses{1 << 20, 1 << 20, 1 << 20}
	for _, test := range []struct {
		name        string
		bits, times int
		places      []int
		maxLoss     losses // per run
	}{
		{"one bit", 1, racetest.Amount(100, 30), all, oneBit},
		{"one bit of a page's head", 1, racetest.Amount(100, 30), heads, oneBit},
		{"100 bits", 100, racetest.Amount(20, 6), all, anything},
		{"10 bits of pages' heads", 10, racetest.Amount(20, 6), heads, anything},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var sum losses
			replaced := 0
			for i := range test.times {
				l, aside := p.openDamaged(t, func(path string) {
					flip(t, path, test.bits, test.places, rand.New(rand.NewPCG(uint64(i), uint64(test.bits))))
				})
				if l.check(t, test.maxLoss); t.Failed() {
					t.Fatalf("run %d", i)
				}
				sum = losses{sum.open + l.open, sum.ended + l.ended, sum.queued + l.queued}
				if aside {
					replaced++
				}
			}
			t.Logf("%d runs: the file was replaced %d times, lost: %+v", test.times, replaced, sum)
		})
	}
}

// TestPointerToOldPage checks that records are found when one damaged bit makes
// a page of the tree point to a page outside it that begins with the same key,
// such as an older copy. The pages themselves then look intact, and only
// records are missing. The store once lost the records of the page that the
// tree no longer reached.
func TestPointerToOldPage(t *testing.T) {
	t.Parallel()
	tried := 0
	for tried < 10 {
		p := newSample(t, 60)
		for at, id := range pointersToOldPages(t, filepath.Join(p.dir, "queue.db")) {
			tried++
			l, _ := p.openDamaged(t, func(path string) {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				number.PutUint64(b[at:], id)
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
			})
			l.check(t, oneBit)
		}
	}
}

// pointersToOldPages returns the offsets of the pointers of a database that lead to a page outside
// the tree with the same first key if one bit is flipped, and the number of that page.
func pointersToOldPages(t *testing.T, path string) map[uint64]uint64 {
	t.Helper()
	w := walk(t, path)
	first := func(id uint64) []byte {
		b := make([]byte, pageSize)
		if err := w.read(b, id); err != nil {
			t.Fatal(err)
		}
		if e, ok := parseElement(b, 0, number.Uint16(b[8:])); ok && number.Uint64(b) == id {
			return e.key
		}
		return nil
	}
	pointers := map[uint64]uint64{}
	b := make([]byte, pageSize)
	for id := uint64(2); id < w.meta.pages; id++ {
		if err := w.read(b, id); err != nil {
			t.Fatal(err)
		}
		if !w.seen[id] || number.Uint64(b) != id || number.Uint16(b[8:]) != flagBranch {
			continue
		}
		for i := range int(number.Uint16(b[10:])) {
			e, _ := parseElement(b, i, flagBranch)
			for bit := range 64 {
				other := e.page ^ 1<<bit
				if other >= 2 && other < w.meta.pages && !w.seen[other] && bytes.Equal(first(other), e.key) {
					pointers[id*pageSize+pageHeader+uint64(i)*elementSize+8] = other
				}
			}
		}
	}
	return pointers
}

// TestDamageFoundLater checks that a page damaged while the store is open does
// not end the process, and that the store repairs itself. It damages 30 pages, or
// 10 if CI is not set.
func TestDamageFoundLater(t *testing.T) {
	t.Parallel()
	p := newSample(t, 60)
	path := filepath.Join(p.dir, "queue.db")
	all, _ := used(t, path)
	for i := range racetest.Amount(30, 10) {
		dir := t.TempDir()
		copyDir(t, dir, p.dir)
		log, text := logged()
		s, err := Open(Options{Path: dir, Logger: log, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(filepath.Join(dir, "queue.db"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(uint64(i), 7))
		page := int64(all[random.IntN(len(all))] / pageSize * pageSize)
		for page < 2*pageSize {
			page = int64(all[random.IntN(len(all))] / pageSize * pageSize)
		}
		// The page's header, which bbolt checks. Other damage can make bbolt
		// read outside the page and is not tested here.
		if _, err := f.WriteAt([]byte{0xff, 0xff, 0xff}, page); err != nil {
			t.Fatal(err)
		}
		f.Close()
		// Read and write everything: some calls fail until the store has been
		// reopened.
		for range 3 {
			_ = s.view(func(tx *bbolt.Tx) error {
				for _, bucket := range buckets {
					_ = tx.Bucket([]byte(bucket)).ForEach(func(k, v []byte) error { return nil })
				}
				return nil
			})
			for s.Accept(t.Context(), 1<<40, newEntry([]byte("new"), "new")) != nil {
				time.Sleep(coolDown / 10)
			}
		}
		p.check(t, s, text)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("run %d\n%s", i, text())
		}
	}
}

// TestDamagedRecord checks that an update reads nothing in a damaged record, leaves it alone unless it
// changes it, and can delete it.
func TestDamagedRecord(t *testing.T) {
	s, err := Open(Options{Path: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	name := s.Hash("a")
	update := func(decide func(tx *queue.Tx)) {
		t.Helper()
		err := s.Update(t.Context(), &queue.Update{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
			decide(tx)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(damaged bool) {
		t.Helper()
		b, err := s.Record(t.Context(), name)
		if _, ok := errors.AsType[*queue.DamagedError](err); ok != damaged || b != nil {
			t.Errorf("the record is %q, %v", b, err)
		}
	}
	update(func(tx *queue.Tx) { tx.Put(name, queue.Record{Data: []byte("text"), Due: time.Now()}) })
	write := func(b *batch) error { return b.bucket(bucketRecords).Put(name[:], []byte("damaged")) }
	if err := s.do(t.Context(), &change{size: 100, pages: 10, check: func(*batch) error { return nil }, write: write}); err != nil {
		t.Fatal(err)
	}
	want(true)
	update(func(tx *queue.Tx) {
		if b := tx.Get(name); b != nil {
			t.Errorf("an update reads %q", b)
		}
	})
	want(true)
	update(func(tx *queue.Tx) { tx.Delete(name) })
	want(false)
}

// FuzzOpen checks that a store with arbitrary content opens or returns an error.
func FuzzOpen(f *testing.F) {
	p := newSample(f, 5)
	data, err := os.ReadFile(filepath.Join(p.dir, "queue.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{}, 0)
	f.Add([]byte{0xff}, 2*pageSize+10)
	f.Add(bytes.Repeat([]byte{0xff}, 100), 4*pageSize)
	f.Fuzz(func(t *testing.T, change []byte, at int) {
		b := bytes.Clone(data)
		if at >= 0 && at < len(b) {
			copy(b[at:], change)
		} else if at < 0 && -at < len(b) {
			b = b[:-at]
		}
		dir := t.TempDir()
		copyDir(t, dir, p.dir)
		if err := os.WriteFile(filepath.Join(dir, "queue.db"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Options{Path: dir, NoSync: true})
		if errors.Is(err, errSecret) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		p.check(t, s, nil)
	})
}
