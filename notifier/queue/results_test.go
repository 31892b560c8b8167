package queue

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

// TestPackedResults checks that each message of a batch is found, also in a batch
// of the first version, and that batches of similar results are small.
func TestPackedResults(t *testing.T) {
	now := time.UnixMicro(1_790_000_000_123_456)
	var pending encodedResults
	var entries []*Entry
	for i := range 200 {
		e := &Entry{Message: &Message{ID: NewID(), Created: now.Add(time.Duration(i) * time.Microsecond)}}
		for k := range 1 + i/70 {
			e.Jobs = append(e.Jobs, Job{
				JobID: JobID{e.Message.ID, k}, Status: Delivered, Attempts: 1,
				Result: fmt.Appendf(nil, `{"service":"JSON","destination":"json://host/","tags":[],"status":"delivered","attempts":1,"elapsed_ms":%d,"error":null}`, i/7),
			})
		}
		from := len(pending.data)
		pending.data = appendResult(pending.data, e.Message.ID, e.Message.Created, e.Jobs)
		pending.ids = append(pending.ids, encodedResult{e.Message.ID, from, len(pending.data)})
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
		if got := findResult(pending.data, want.Message.ID); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		var found []*Entry
		for _, b := range batches {
			if e := findPacked(b.Message.Summary[1:], want.Message.ID); e != nil {
				found = append(found, e)
			}
		}
		if len(found) != 1 || !reflect.DeepEqual(found[0], want) {
			t.Fatalf("packed: %+v, want %+v", found, want)
		}
	}
	if e := findPacked(batches[0].Message.Summary[1:], NewID()); e != nil {
		t.Errorf("an unknown message is found: %+v", e)
	}
}

// FuzzFindPacked checks that a damaged batch causes no panic.
func FuzzFindPacked(f *testing.F) {
	id := NewID()
	result := appendResult(nil, id, time.Now(), []Job{{Status: Delivered, Result: []byte("result")}})
	batch, before := packResult(nil, result, nil)
	batch, _ = packResult(batch, result, before)
	f.Add(batch)
	f.Fuzz(func(_ *testing.T, b []byte) { findPacked(b, id) })
}
