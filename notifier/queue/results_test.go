package queue

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

// TestResults checks that each message of a batch is found, and that batches of
// similar results are small.
func TestResults(t *testing.T) {
	now := time.UnixMicro(1_790_000_000_123_456)
	var pending encodedResults
	var entries []*Entry
	for i := range 200 {
		e := &Entry{Message: &Message{ID: NewID(), Created: now.Add(time.Duration(i) * time.Microsecond), Summary: fmt.Appendf(nil, "summary %d", i/90)}}
		for k := range 1 + i/70 {
			e.Jobs = append(e.Jobs, Job{
				JobID: JobID{e.Message.ID, k}, Status: Delivered, Attempts: 1,
				Result: fmt.Appendf(nil, `{"service":"JSON","destination":"json://host/","tags":[],"status":"delivered","attempts":1,"elapsed_ms":%d,"error":null}`, i/7),
			})
		}
		from := len(pending.data)
		pending.data = appendJobs(pending.data, e.Message.Summary, e.Jobs)
		pending.ids = append(pending.ids, encodedResult{e.Message.ID, e.Message.Created, from, len(pending.data)})
		entries = append(entries, e)
	}
	batches, packed := pending.batches(now), 0
	for _, b := range batches {
		packed += len(b.Message.Summary)
	}
	if packed > len(pending.data)/2 {
		t.Errorf("%d bytes are packed into %d", len(pending.data), packed)
	}
	for _, want := range entries {
		var found []*Entry
		for _, b := range batches {
			if e := findResult(b.Message.Summary, want.Message.ID); e != nil {
				found = append(found, e)
			}
		}
		if len(found) != 1 || !reflect.DeepEqual(found[0], want) {
			t.Fatalf("packed: %+v, want %+v", found, want)
		}
	}
	if e := findResult(batches[0].Message.Summary, NewID()); e != nil {
		t.Errorf("an unknown message is found: %+v", e)
	}
}

// FuzzFindResult checks that a damaged batch causes no panic.
func FuzzFindResult(f *testing.F) {
	id := NewID()
	jobs := appendJobs(nil, nil, []Job{{Status: Delivered, Result: []byte("result")}})
	r := encodedResult{id: id, created: time.Now()}
	f.Add(appendResult(appendResult(nil, r, jobs, nil), r, jobs, jobs))
	f.Fuzz(func(_ *testing.T, b []byte) { findResult(b, id) })
}
