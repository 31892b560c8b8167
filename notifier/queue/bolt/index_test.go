package bolt

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestJobsMemory checks how much memory a waiting job holds.
func TestJobsMemory(t *testing.T) {
	if !racetest.All() {
		t.Skip("stores 200,000 jobs")
	}
	s, err := Open(Options{Path: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const jobs, most = 200_000, 90
	before := heapBytes()
	fill(t, s, jobs, []byte("text"))
	if each := float64(heapBytes()-before) / jobs; each > most {
		t.Errorf("a waiting job holds %.1f bytes, and may hold %d", each, most)
	} else {
		t.Logf("a waiting job holds %.1f bytes", each)
	}
}

// TestJobList compares a list with a map, while jobs are added in nearly the order of their IDs and
// removed in any order.
func TestJobList(t *testing.T) {
	var l jobList
	ids := map[queue.JobID]*job{}
	random := rand.New(rand.NewPCG(1, 2))
	check := func() {
		t.Helper()
		var got, want []queue.JobID
		for j := range l.all() {
			got = append(got, j.id())
		}
		for id := range ids {
			want = append(want, id)
		}
		slices.SortFunc(want, queue.JobID.Compare)
		if !slices.Equal(got, want) {
			t.Fatalf("%d jobs, want %d in order", len(got), len(want))
		}
		for i, chunk := range l {
			if len(chunk) == 0 || len(chunk) > jobChunk || cap(chunk) > jobChunk {
				t.Fatalf("chunk %d has %d jobs", i, len(chunk))
			}
		}
		if 2*len(l) > 2+8*len(ids)/jobChunk {
			t.Fatalf("%d jobs have %d chunks", len(ids), len(l))
		}
	}
	remove := func(keep int) {
		all := make([]*job, 0, len(ids))
		for j := range l.all() {
			all = append(all, j)
		}
		random.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
		for _, j := range all[keep:] {
			if l.find(j.id()) != j {
				t.Fatal("a job is not found")
			}
			l.remove(j)
			delete(ids, j.id())
			if l.find(j.id()) != nil {
				t.Fatal("a removed job is found")
			}
		}
	}
	for round := range 3 {
		for n := range uint64(6000) {
			var message uuid.UUID
			for i, at := 7, 10*n+uint64(random.IntN(300)); i >= 0; i, at = i-1, at/256 {
				message[i] = byte(at)
			}
			if l.has(message) {
				continue
			}
			of := 1 + random.IntN(3)*random.IntN(3)
			for i := range of {
				j := &job{message: message, index: uint16(2 * i)}
				l.add(j)
				ids[j.id()] = j
			}
			i := 0
			for j := range l.of(message) {
				if j.message != message || int(j.index) != 2*i {
					t.Fatalf("job %d of a message is %v", i, j.id())
				}
				i++
			}
			if i != of || !l.has(message) || l.find(queue.JobID{Message: message, Index: 1}) != nil {
				t.Fatalf("%d of %d jobs of a message", i, of)
			}
		}
		check()
		remove(1000 / (1 + round))
		check()
	}
	remove(0)
	check()
	if len(l) > 0 {
		t.Error("an empty list has chunks")
	}
}

// TestOldestWaits checks that a dead job is not the oldest one that waits.
func TestOldestWaits(t *testing.T) {
	x := newIndex()
	for i, status := range []queue.Status{queue.Dead, queue.Held, queue.Queued} {
		x.add(large{}, newJob{job{message: queue.NewID(), created: uint32(i)}, place{}, status})
	}
	if st := x.stats(); st.Oldest.Unix() != 1 || st.Queued != 2 || st.Dead != 1 {
		t.Errorf("%+v", st)
	}
}

// TestCountDue compares the number of due jobs in a heap with a count of all jobs.
func TestCountDue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		h, now, most, due := jobHeap{}, random.Int64N(20), random.IntN(10), 0
		for range random.IntN(40) {
			j := &job{message: queue.NewID(), due: random.Int64N(20)}
			heap.Push(&h, j)
			if j.due <= now {
				due++
			}
		}
		if got, want := h.countDue(now, most), min(due, most); got != want {
			t.Fatalf("%d of %d jobs are due at %d, want %d", got, len(h), now, want)
		}
	}
}
