package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/golden"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// record is a record as a store keeps it.
type record struct {
	name   string
	value  any
	encode func() []byte
	decode func([]byte) (any, error)
}

func recordOf[T any](name string, value *T, fields func(*T, *wire.Codec)) record {
	return record{
		name, value, func() []byte { return wire.Append(nil, value, fields) },
		func(b []byte) (any, error) { return decode(b, fields) },
	}
}

func decode[T any](b []byte, fields func(*T, *wire.Codec)) (*T, error) {
	x := new(T)
	return x, wire.Decode(b, x, fields)
}

func (s *Subject) encode() []byte { return wire.Append(nil, s, (*Subject).Fields) }

func (l *Lane) encode() []byte { return wire.Append(nil, l, (*Lane).Fields) }

// encode returns the record of a group, and its pieces.
func (g *AlertGroup) encode() (record []byte, pieces [][]byte) {
	head, pieces := g.Cut()
	return wire.Append(nil, head, (*AlertGroup).Fields), pieces
}

// records returns an example of each record. Its fields have a value, so that each of them
// is stored.
func records() []record {
	at := func(minutes int) time.Time { return time.UnixMicro(1_790_000_000_123_456 + int64(minutes)*60_000_000) }
	job := func(n byte) queue.JobID { return queue.JobID{Message: uuid.UUID{n, 15: 0xff}, Index: int(n)} }
	mark := Mark{job(1), notifier.Failure, notifier.Open, at(1), "ab cd", uuid.UUID{9}}
	subject := &Subject{
		Told: mark, Next: Mark{Job: job(2), Type: notifier.Info, Time: at(2)}, Way: mark.In(job(3)), Passed: notifier.Warning,
		Silenced: uuid.UUID{7}, Counted: notifier.Failure, Repeats: 3, Since: at(4), Key: "ops", Forget: at(5), Group: queue.Hash{5, 15: 2},
	}
	lane := &Lane{
		Items: []Item{
			{
				Job: job(1), Type: notifier.Success, State: notifier.Resolved, Time: at(1), Alerts: "ab", Subject: "s", About: "a",
				Hold: ByRate, Until: at(2), After: job(4), Silence: uuid.UUID{8}, Passed: notifier.Failure, Past: true,
			},
			{Job: job(2), Type: notifier.Info, Time: at(3), After: job(3)},
			{Job: job(3), Type: notifier.Info, Time: at(4), Hold: BySilence, Until: at(5)},
			{Job: job(4), Type: notifier.Warning, State: notifier.Open, Time: at(5), Subject: "t", Hold: ByRate, Until: at(6), Opens: true},
		},
		Spent: []Spent{{id: "10[] 1m0s", Count: 4, Since: at(6)}, {id: "alerts 5[failure] 1h0m0s", Count: 1, Since: at(7)}},
		More:  [2]More{{ID: uuid.UUID{1}, Counts: Counts{1, 2, 0, 4}}, {ID: uuid.UUID{2}, Counts: Counts{3: 1}}},
		Over:  []SilencedCounts{{Silence: uuid.UUID{8}, Until: at(8), More: More{uuid.UUID{3}, Counts{0, 5}}}},
		Group: queue.Hash{4, 15: 1}, Origin: []byte("origin"),
	}
	step := StepJob{job(3), 2, 5, "target", queue.Hash{1, 2}}
	incident := &Incident{
		ID: "abcdefghijklmnopqrstuvwxyz", Home: "site s", Key: "ops", Source: "grafana",
		Name: "disk", Derived: "abc", Own: true, Site: "s", Title: "Disk full",
		Type: notifier.Failure, State: notifier.Resolved, Tags: []string{"a", "", "b"},
		Opened: at(1), Changed: at(2), Resolved: at(3), ResolvedBy: "Eve",
		Acknowledged: Acknowledgement{"Adam", at(4), at(5)},
		Escalation: Escalation{
			2, 5, at(6), true, true, at(7), true, true, "disk",
			[]StepTarget{{5, "target"}, {}},
			[]StepJob{step, {Job: job(4)}},
			[]StepJob{step},
		},
		Begun:       []BegunStep{{1, 5, at(6), StepTold}, {2, 5, at(7), StepSending}},
		Unconfirmed: []StepJob{{Job: job(4)}, step},
		HeldUntil:   at(9), Before: [2]time.Time{at(10), at(11)},
		Forget: at(8),
	}
	group := &AlertGroup{
		Site: "s", Home: "site s", Key: "ops", Name: "Disk", Labels: []string{"alertname", "Disk"},
		Gone: at(1), opened: true, since: at(6), next: at(2),
		Alerts: []RulerAlert{
			{
				Fingerprint: "ab", Labels: []string{"alertname", "Disk"},
				Annotations: []string{"summary", "full"}, Generator: "g", Starts: at(3), Ends: at(4),
				At: at(5), Resolved: true, told: true, lost: true, down: time.Minute,
			},
			{Fingerprint: "cd"},
		},
	}
	head := &AlertGroup{Key: "ops", Name: "Disk", changed: at(1), pieces: 2, pieceBytes: 1 << 20, numbers: 7}
	piece := &alertPiece{2, []RulerAlert{{Fingerprint: "ab", number: 6}, {Fingerprint: "cd", number: 7}}}
	beat := &Beat{
		Site: "s", Key: "ops", Name: "nightly", Gone: at(1), Last: at(2), State: BeatLate, Since: at(3), Missed: true,
		armed: armed{24 * time.Hour, time.Hour, "15 3 * * 1-5 UTC", 2 * time.Hour}, due: at(4), down: time.Minute,
		reached: true, Started: at(5), startDown: time.Second, overran: true, Ran: time.Hour, Exit: "3",
		Runs: []Run{{}, {At: at(6), Outcome: RunFailed, Took: time.Hour, Exit: "3", Due: at(5), Output: "no space left"}},
	}
	uptime := &Uptime{
		Seen: at(1), Down: time.Hour, Short: []time.Duration{time.Second, 0, 3 * time.Second},
		Back: at(2), ShortBack: []ended{{at(3)}, {}, {at(4)}}, Every: time.Second,
	}
	silence := Silence{
		ID: uuid.UUID{5}, Made: at(1), Until: at(2), Incident: "disk",
		Tag: "phone", Title: "Disk", Reason: "move", Who: "Eve", Count: 3,
	}
	silences := &KeySilences{
		Home: "site s", Key: "ops", Ended: at(3),
		All: Silences{silence, {ID: uuid.UUID{6}, Made: at(1), Until: at(4), Title: "Disk"}},
	}
	silence.From, silence.Tell, silence.Begun, silence.Window = at(1), true, true, uuid.UUID{7}
	silence.For, silence.UntilResolved = time.Hour, true
	planned := &KeySilences{Home: "site s", Key: "ops", Site: "s", All: Silences{silence}}
	return []record{
		recordOf("subject", subject, (*Subject).Fields),
		recordOf("subject of an ended problem", &Subject{Told: mark, Forget: at(5)}, (*Subject).Fields),
		recordOf("empty subject", new(Subject), (*Subject).Fields),
		recordOf("lane", lane, (*Lane).Fields),
		recordOf("empty lane", new(Lane), (*Lane).Fields),
		recordOf("incident", incident, (*Incident).Fields),
		recordOf("alert group", group, (*AlertGroup).Fields),
		recordOf("alert group in pieces", head, (*AlertGroup).Fields),
		recordOf("piece of an alert group", piece, (*alertPiece).fields),
		recordOf("beat", beat, (*Beat).Fields),
		recordOf("uptime", uptime, (*Uptime).Fields),
		recordOf("silences", silences, (*KeySilences).Fields),
		recordOf("planned silences", planned, (*KeySilences).Fields),
	}
}

// notStored are the fields that records do not have.
var notStored = []string{"Item.Incident", "Item.Title", "Item.Own", "RulerAlert.piece"}

// setFields notes which fields of v and of what is in it have a value, and which are there.
func setFields(v reflect.Value, set map[string]bool) {
	switch {
	case v.Kind() == reflect.Pointer:
		setFields(v.Elem(), set)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			setFields(v.Index(i), set)
		}
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
		for f, x := range v.Fields() {
			if name := v.Type().Name() + "." + f.Name; !slices.Contains(notStored, name) {
				set[name] = set[name] || !x.IsZero()
				setFields(x, set)
			}
		}
	}
}

// TestRecords checks that the encoding of records does not change, so that all versions read them,
// and that a record reads back as it was. A record of a later version may have further fields. A
// record that is cut is refused, unless a field ends there.
func TestRecords(t *testing.T) {
	var out strings.Builder
	set := map[string]bool{}
	for _, r := range records() {
		setFields(reflect.ValueOf(r.value), set)
		b := r.encode()
		fmt.Fprintf(&out, "%s: %x\n", r.name, b)
		later := []byte{0xa0, 0x06, 0x01} // field 100
		for _, b := range [][]byte{b, append(later, b...)} {
			if got, err := r.decode(b); err != nil || !reflect.DeepEqual(got, r.value) {
				t.Errorf("%s: got\n%+v, %v, want\n%+v", r.name, got, err, r.value)
			}
		}
		fmt.Fprint(&out, "  can end after")
		for n := range len(b) {
			if _, err := r.decode(b[:n]); err == nil {
				fmt.Fprint(&out, " ", n)
			}
		}
		fmt.Fprintln(&out)
	}
	for name, isSet := range set {
		if !isSet {
			t.Errorf("no example sets %s", name)
		}
	}
	golden.Check(t, "testdata/records.txt", out.String())
}

// TestRecordsOfDamage checks which fields in a record may be of another kind, and which must
// not be damaged.
func TestRecordsOfDamage(t *testing.T) {
	for _, r := range records() {
		for f := range byte(15) {
			if _, err := r.decode([]byte{(f + 1) << 3, 1}); err != nil {
				t.Errorf("%s: a number in field %d: %v", r.name, f+1, err)
			}
		}
	}
	for _, c := range []struct {
		name string
		err  bool
		text string
	}{
		{"subject", true, "\x0a\x01\x0a"},
		{"lane", true, "\x0a\x01\x0a"},
		{"lane", true, "\x0a\x03\x0a\x01\x0a"},
		{"lane", true, "\x12\x01\x0a"},
		{"lane", true, "\x1a\x01\x0a"},
		{"lane", true, "\x2a\x03\x1a\x01\x0a"},
	} {
		for _, r := range records() {
			if _, err := r.decode([]byte(c.text)); r.name == c.name && (err != nil) != c.err {
				t.Errorf("%s: %q: %v", c.name, c.text, err)
			}
		}
	}
}

func BenchmarkRecords(b *testing.B) {
	all := records()
	full := &Lane{Spent: []Spent{{id: "10[] 1m0s", Count: 4, Since: time.Now()}}}
	for i := range MaxItems {
		full.Items = append(full.Items, Item{
			Job: queue.JobID{Message: uuid.New(), Index: i}, Type: notifier.Failure, State: notifier.Open,
			Time: time.Now(), Subject: "sixteen bytes 16", Hold: ByQuiet, Until: time.Now(),
		})
	}
	all = append(all, recordOf("full lane", full, (*Lane).Fields))
	for _, r := range all {
		record := r.encode()
		b.Run("encode/"+r.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.encode()
			}
		})
		b.Run("decode/"+r.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = r.decode(record)
			}
		})
	}
}
