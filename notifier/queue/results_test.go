package queue

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
)

// TestResults checks that each message of a batch is found, and that batches of
// similar results are small.
func TestResults(t *testing.T) {
	now := time.UnixMicro(1_790_000_000_123_456)
	var pending encodedResults
	var entries []*Entry
	for i := range 200 {
		e := &Entry{Message: &Message{
			ID: NewID(), Created: now.Add(time.Duration(i) * time.Microsecond),
			Summary: fmt.Appendf(nil, "summary %d", i/90),
		}}
		var jobs []FinalJob
		for k := range 1 + i/70 {
			result := fmt.Appendf(nil, `{"service":"JSON","destination":"json://host/","tags":[],"status":"delivered","attempts":1,`+
				`"elapsed_ms":%d,"error":null}`, i/7)
			jobs = append(jobs, FinalJob{Delivered, 1, result})
			e.Jobs = append(e.Jobs, Job{JobID: JobID{e.Message.ID, k}, Status: Delivered, Attempts: 1, Result: result})
		}
		from := len(pending.data)
		pending.data = wire.Append(pending.data, &recordedJobs{e.Message.Summary, jobs}, (*recordedJobs).fields)
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

// TestStoredResults reads a batch as earlier versions have stored it.
func TestStoredResults(t *testing.T) {
	batch,
		err := hex.DecodeString("0a3c0a1001990000000070008000000000000001108089bea2dbffad06221f120773756d6d6172790a0c080310001a06726573756c740" +
		"a0608041000" +
		"1a000a220a1001990000000070008000000000000002108089bea2dbffad06180e2201012810")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for r := range resultsOf(batch) {
		e := decodeJobs(r.id, r.created, r.jobs)
		want := []Job{
			{JobID: JobID{r.id, 0}, Status: Delivered, Attempts: n, Result: []byte("result")}, {JobID: JobID{r.id, 1}, Status: Failed},
		}
		if e == nil || string(e.Message.Summary) != "summary" || !reflect.DeepEqual(e.Jobs, want) ||
			!r.created.Equal(time.UnixMicro(1_790_000_000_123_456)) {
			t.Errorf("%+v", e)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d results", n)
	}
}

// FuzzFindResult checks that a damaged batch causes no panic.
func FuzzFindResult(f *testing.F) {
	id := NewID()
	pending := encodedResults{data: wire.Append(nil, &recordedJobs{jobs: []FinalJob{{Status: Delivered, Result: []byte("result")}}},
		(*recordedJobs).fields)}
	r := encodedResult{id: id, created: time.Now(), to: len(pending.data)}
	pending.ids = []encodedResult{r, r}
	f.Add(pending.batches(r.created)[0].Message.Summary)
	f.Fuzz(func(_ *testing.T, b []byte) { findResult(b, id) })
}
