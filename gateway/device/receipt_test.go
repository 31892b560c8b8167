package device

import (
	"fmt"
	"testing"
	"time"
)

// TestReceipt follows a message to a device. Each case is what happens at some seconds:
// the push begins (b), its service takes it (p), the device confirms it (c).
func TestReceipt(t *testing.T) {
	type event struct {
		what string
		at   int
	}
	for name, tt := range map[string]struct {
		events          []event
		now             int
		received, known bool
		first, last     int // when the device confirmed it; 0 for never
	}{
		"waits":                          {[]event{{"b", 1}, {"p", 2}}, 61, false, false, 0, 0},
		"missing":                        {[]event{{"b", 1}, {"p", 2}}, 62, false, true, 0, 0},
		"confirmed":                      {[]event{{"b", 1}, {"p", 2}, {"c", 5}}, 6, true, true, 5, 5},
		"confirmed twice":                {[]event{{"b", 1}, {"p", 2}, {"c", 5}, {"c", 7}}, 8, true, true, 5, 7},
		"faster than the service":        {[]event{{"b", 1}, {"c", 3}, {"p", 5}}, 6, true, true, 3, 3},
		"confirmed, then pushed again":   {[]event{{"b", 1}, {"p", 2}, {"c", 5}, {"b", 100}, {"p", 101}}, 102, false, false, 5, 5},
		"not confirmed a second time":    {[]event{{"b", 1}, {"p", 2}, {"c", 5}, {"b", 100}, {"p", 101}}, 161, false, true, 5, 5},
		"confirmed a second time":        {[]event{{"b", 1}, {"p", 2}, {"c", 5}, {"b", 100}, {"p", 101}, {"c", 103}}, 104, true, true, 5, 103},
		"late":                           {[]event{{"b", 1}, {"p", 2}, {"c", 500}}, 501, true, true, 500, 500},
		"confirmed in the same instant":  {[]event{{"b", 1}, {"c", 1}, {"p", 1}}, 1, true, true, 1, 1},
		"nobody knows of the first push": {[]event{{"c", 9}}, 9, true, true, 9, 9},
	} {
		d := &Device{ID: "id", Name: "phone"}
		var x *Receipt
		began := time.Time{}
		for _, e := range tt.events {
			switch at := second(e.at); e.what {
			case "b":
				began = at
			case "p":
				x = d.pushed(ops, told, x, began, at)
			case "c":
				x = d.confirmed(ops, told, x, at)
			}
		}
		at := func(n int) time.Time {
			if n == 0 {
				return time.Time{}
			}
			return second(n)
		}
		if received, known := x.confirms(second(tt.now)); received != tt.received || known != tt.known || !x.Received.Equal(at(tt.first)) ||
			!x.Last.Equal(at(tt.last)) {
			t.Errorf("%s: received %t, known %t, first %s, last %s", name, received, known, x.Received, x.Last)
		}
		if x.Device != d.ID || x.Name != d.Name || x.Place != ops || x.Message != told || x.Target != Hash(d.ID) {
			t.Errorf("%s: %+v", name, x)
		}
	}
	if received, known := (*Receipt)(nil).confirms(second(0)); received || known {
		t.Error("what was never pushed is known")
	}
}

// TestExpire checks what becomes of a receipt, and when it counts as missing.
func TestExpire(t *testing.T) {
	const keep = time.Hour
	for name, tt := range map[string]struct {
		x    Receipt
		seen int // when the device has confirmed another message
		now  int
		want string // kept, checked, missing, due
	}{
		"it still waits":                      {Receipt{Sent: second(0)}, 0, 59, "true false 0 60"},
		"it is missing":                       {Receipt{Sent: second(1)}, 0, 61, "true true 1 3601"},
		"the device has confirmed it":         {Receipt{Began: second(1), Sent: second(2), Last: second(3)}, 0, 62, "true true 0 3602"},
		"it has confirmed only the last push": {Receipt{Began: second(5), Sent: second(6), Last: second(3)}, 0, 66, "true true 1 3606"},
		"it has confirmed a later message":    {Receipt{Sent: second(1)}, 7, 61, "true true 0 3601"},
		"it has counted":                      {Receipt{Sent: second(1), Checked: true}, 0, 3600, "true true 0 3601"},
		"it is old":                           {Receipt{Sent: second(1), Checked: true}, 0, 3601, "false true 0 3601"},
	} {
		s, x := &State{Seen: second(tt.seen)}, tt.x
		due := x.overdue(second(tt.now))
		kept := x.expire(s, keep, second(tt.now))
		if got := fmt.Sprint(kept, x.Checked, s.Missing, int(x.due(keep).Sub(second(0)).Seconds())); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		if due != (x.Checked && !tt.x.Checked) || x.overdue(second(tt.now)) {
			t.Errorf("%s: overdue %t", name, due)
		}
	}
}
