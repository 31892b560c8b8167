package bolt

import (
	"bytes"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// heapBytes returns how many bytes are in use.
func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one has found
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestRecordsMemory checks that the records of 100,000 open incidents, each with an ID and
// what a destination knows of it, and of 10,000 silences hold less than 60 MB. It
// logs how long the store takes to look for some of them.
func TestRecordsMemory(t *testing.T) {
	if !racetest.All() {
		t.Skip("stores 310,000 records")
	}
	s, err := Open(Options{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	before := heapBytes()
	put := func(kind string, n int, size int, group queue.Hash) {
		t.Helper()
		const atOnce = 5000
		data := bytes.Repeat([]byte("x"), size)
		for i := 0; i < n; i += atOnce {
			names, records := make([]queue.Hash, atOnce), make([]queue.Record, atOnce)
			for k := range names {
				names[k], records[k] = s.Hash(kind+strconv.Itoa(i+k)), queue.Record{Data: data, Due: now.Add(time.Hour), Group: group}
			}
			err := s.Update(t.Context(), &queue.Update{Names: names, Decide: func(tx *queue.Tx) error {
				for i, name := range names {
					tx.Put(name, records[i])
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	const incidents, silences = 100_000, 10_000
	put("incident", incidents, 300, s.Hash("open"))
	put("ID", incidents, 20, queue.Hash{})
	put("subject", incidents, 100, queue.Hash{})
	put("silence", silences, 200, s.Hash("silences"))
	if held := heapBytes() - before; held > 60_000_000 {
		t.Errorf("they hold %d bytes", held)
	} else {
		t.Logf("they hold %.1f MB", float64(held)/1e6)
	}
	took := func(what string, do func()) {
		begin := time.Now()
		do()
		t.Logf("%s: %v", what, time.Since(begin))
	}
	took("what is due", func() {
		if due, _, err := s.DueRecords(t.Context(), now, queue.DuePlace{}, 1000); err != nil || len(due) > 0 {
			t.Errorf("%d are due, %v", len(due), err)
		}
	})
	took("what is due, later", func() {
		if due, _, err := s.DueRecords(t.Context(), now.Add(2*time.Hour), queue.DuePlace{}, 1000); err != nil || len(due) != 1000 {
			t.Errorf("%d are due, %v", len(due), err)
		}
	})
	took("what is too much", func() {
		if due, err := s.SurplusRecords(t.Context(), 1000, 1000); err != nil || len(due) != 1000 {
			t.Errorf("%d are too many, %v", len(due), err)
		}
	})
	took("a page of incidents", func() {
		if page, err := s.Group(t.Context(), s.Hash("open"), queue.Hash{}, 50); err != nil || len(page) != 50 {
			t.Errorf("a page of %d, %v", len(page), err)
		}
	})
	took("their numbers", func() {
		if sizes, err := s.GroupSizes(t.Context()); err != nil || sizes[s.Hash("open")] != incidents {
			t.Errorf("%v, %v", sizes, err)
		}
	})
}
