package tally

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ops  = site.KeyID{Site: "s", Key: "ops"}
)

// target returns a target without a service.
func target(t *testing.T) notifier.Target {
	t.Helper()
	d := notifier.Unusable("test://a", nil, errors.New("x"))
	return notifier.Target{Destination: d}
}

// TestObserve checks which attempts count as which outcome.
func TestObserve(t *testing.T) {
	to := target(t)
	delivered, temporary, permanent := notifier.Result{Status: notifier.Delivered}, notifier.Result{Status: notifier.Failed, Temporary: true},
		notifier.Result{Status: notifier.Failed}
	for name, c := range map[string]struct {
		result  notifier.Result
		repeats bool
		last    time.Time
		want    Counts
	}{
		"delivered":                     {delivered, true, time.Time{}, Counts{Delivered: 1}},
		"delivered after it waited":     {delivered, true, noon, Counts{Delivered: 1}},
		"tried again":                   {temporary, true, time.Time{}, Counts{Waited: 1}},
		"tried again, in the half hour": {temporary, true, noon.Add(-time.Second + Length), Counts{}},
		"tried again, before":           {temporary, true, noon.Add(-time.Second), Counts{Waited: 1}},
		"not tried again":               {temporary, false, time.Time{}, Counts{Failed: 1}},
		"refused":                       {permanent, true, time.Time{}, Counts{Failed: 1}},
		"skipped":                       {notifier.Result{Status: notifier.Skipped}, true, time.Time{}, Counts{}},
	} {
		var c2 Counter
		c2.Observe(noon.Add(29*time.Minute), ops, to, &c.result, c.repeats, c.last)
		for _, id := range []ID{OfKey(ops), OfDestination(ops, to)} {
			var parts [Kept]Counts
			c2.Sum(noon.Add(29*time.Minute), id, &parts)
			if parts[Kept-1] != c.want {
				t.Errorf("%s: %+v; want %+v", name, parts[Kept-1], c.want)
			}
		}
	}
}

// TestCounter checks that each half hour has a part of its own for 24 hours.
func TestCounter(t *testing.T) {
	var c Counter
	c.Add(noon, ops, "a", Counts{Delivered: 1})
	c.Add(noon.Add(Length-1), ops, "b", Counts{Failed: 1})
	c.Add(noon.Add(Length), ops, "a", Counts{Delivered: 3})
	sum := func(at time.Time, id ID) (parts [Kept]Counts) {
		c.Sum(at, id, &parts)
		return parts
	}
	if parts := sum(noon.Add(Length), OfKey(ops)); parts[Kept-2] != (Counts{Delivered: 1, Failed: 1}) ||
		parts[Kept-1] != (Counts{Delivered: 3}) {
		t.Errorf("the key has %+v", parts[Kept-2:])
	}
	if parts := sum(noon.Add(Length), OfHash(ops, "a")); parts[Kept-2] != (Counts{Delivered: 1}) || parts[Kept-1] != (Counts{Delivered: 3}) {
		t.Errorf("the destination has %+v", parts[Kept-2:])
	}
	if parts := sum(noon.Add(Length), OfHash(site.KeyID{Site: "other", Key: "ops"}, "a")); parts != ([Kept]Counts{}) {
		t.Errorf("the destination of another site has %+v", parts)
	}
	if parts := sum(noon.Add(Kept*Length), OfKey(ops)); parts[0] != (Counts{Delivered: 3}) || parts[1] != (Counts{}) {
		t.Errorf("after 24 hours, the key has %+v", parts[:2])
	}
	c.Add(noon.Add(Kept*Length), ops, "a", Counts{Delivered: 1})
	if len(c.slots) != 2 {
		t.Errorf("%d half hours are in memory", len(c.slots))
	}
}

// TestChanged checks that a half hour is stored again only if it has changed, also while it
// is being stored.
func TestChanged(t *testing.T) {
	var c Counter
	c.Add(noon, ops, "a", Counts{Delivered: 1})
	first := c.Changed()
	if len(first) != 1 || first[0].Slot != SlotOf(noon) || len(first[0].Series) != 2 || first[0].Process != c.Process() {
		t.Fatalf("%+v", first)
	}
	c.Add(noon, ops, "a", Counts{Delivered: 1})
	c.Saved(&first[0])
	second := c.Changed()
	if len(second) != 1 || second[0].Series[0].Delivered != 2 {
		t.Fatalf("what came meanwhile is not stored: %+v", second)
	}
	c.Saved(&second[0])
	if again := c.Changed(); again != nil {
		t.Errorf("stored again: %+v", again)
	}
	if other := (&Counter{}); other.Process() == c.Process() {
		t.Error("two processes have one name")
	}
}

// TestRecord checks the stored form, of which later versions may have more fields.
func TestRecord(t *testing.T) {
	r := Record{Process: [16]byte{1, 2}, Slot: 987654, Series: []Series{{ID{3}, Counts{1, 2, 3}}, {ID{4}, Counts{Failed: 300}}}}
	b := wire.Append(nil, &r, (*Record).Fields)
	for _, stored := range [][]byte{b, append(slices.Clip(b), 0x7a, 1, 'x')} {
		var got Record
		if err := wire.Decode(stored, &got, (*Record).Fields); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v, want %+v", got, r)
		}
	}
	if strings.Contains(string(b), "ops") {
		t.Error("the record names a key")
	}
	others := Others{}
	others.Add(&r)
	others.Add(&Record{Process: [16]byte{9}, Slot: r.Slot, Series: []Series{{ID{3}, Counts{10, 0, 0}}}})
	var parts [Kept]Counts
	others.Sum(r.Slot.End().Add(-time.Second), ID{3}, &parts)
	if parts[Kept-1] != (Counts{11, 2, 3}) {
		t.Errorf("the sum of two gateways is %+v", parts[Kept-1])
	}
}

// TestMaxSeries checks that a half hour has a bounded number of series.
func TestMaxSeries(t *testing.T) {
	var c Counter
	for i := range maxSeries {
		c.Add(noon, site.KeyID{Site: "s", Key: string(rune(i))}, "a", Counts{Delivered: 1})
	}
	c.Add(noon, ops, "a", Counts{Delivered: 1})
	if n := len(c.Changed()[0].Series); n != maxSeries {
		t.Errorf("%d are counted", n)
	}
}

// BenchmarkAdd measures the cost of counting a delivery.
func BenchmarkAdd(b *testing.B) {
	var c Counter
	b.ReportAllocs()
	for b.Loop() {
		c.Add(noon, ops, "abcdefghijklmnopqrstuvwxyz0123456789abcdefg", Counts{Delivered: 1})
	}
}
