package queued

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

var (
	at     = time.UnixMicro(1_790_000_000_123_456)
	reason = "the service answered 503 Service Unavailable"
)

// Examples have a value in every stored field.

func exampleText() *Text {
	return &Text{
		Title: "Disk full", Body: "Volume /data is at 91%\n", Type: notifier.Warning, Format: notifier.Markdown,
		Time: time.Date(2026, 11, 22, 10, 11, 12, 13, time.FixedZone("", 5400)), Hops: 300,
		Files:  []File{{Name: "a.txt", ContentType: "text/plain"}, {Name: "b", ContentType: ""}},
		Source: "http", Key: "ops", Site: "site", Untrusted: true, Targets: 7, Client: true, Asks: true, OpensAlert: true, Thread: "question",
		Policy: "policy", DevicePolicy: "another", Foreign: true, Dialect: markup.DialectSlack,
		Trace:    Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "vendor=value"},
		Incident: notifier.Incident{Name: "disk db1", State: notifier.Acknowledged, Alerts: "aaaabbbb ccccdddd", Ended: at}.For("ops", ""),
		Later: Later{
			At: at, Tags: "ops", Preferred: []string{"a"}, Values: []string{"room", "dev"}, Format: "ntfy", Sequence: "t/1", Home: "site x",
			First: "old", FromPublisher: true,
			Published: message.Published{Tags: []string{"b"}, Priority: 4, Click: "https://c", Actions: "[]", Prefix: "p ", Suffix: " s"},
		},
	}
}

func exampleState() *State {
	return &State{
		Key: "ops", Source: "log", Site: "site", Incident: "disk db1", Reported: true, Hash: "hash", URL: "json://host", Tags: []string{"a", "b"},
		Progress: []byte(`{"id":"x"}`), Text: []byte("sum"), Values: []string{"room", "dev"},
	}
}

func exampleResult() *message.Result {
	return &message.Result{
		Service: "JSON", Destination: "json://host/", Tags: []string{"a", ""}, Status: notifier.Failed, Attempts: 3, ElapsedMS: 77,
		Error: &reason, Optional: true,
		Rule: notifier.RuleSuperseded, By: "id",
	}
}

func exampleSummary() *Summary {
	return &Summary{
		Site: "site", Incident: "disk db1", Key: "ops", Source: "grafana", Type: notifier.Warning, Known: "known", Asks: true,
		At: site.Place{Home: "home", Key: "ops"}, Title: "Disk full",
		Chains: Chains{All: [][][]int{{{0, 2}, {1}}, {{3}, {4, 300}}}, Optional: []int{0, 4}},
	}
}

func exampleRuled() *Ruled {
	mark := rules.Mark{
		Job: queue.JobID{Message: uuid.UUID{1, 2}, Index: 3}, Type: notifier.Failure, State: notifier.Open, Time: at,
		Alerts: "aaaabbbb", Of: uuid.UUID{9},
	}
	return &Ruled{
		Lane: queue.Hash{1}, Subjects: []Subject{{queue.Hash{2}, mark}, {Name: queue.Hash{3}}}, Digest: true, Repeats: 5,
		Since:    time.UnixMicro(1_790_000_000_000_001),
		Incident: queue.Hash{4}, Step: 2, Opening: "k3x9", OpenFor: 14 * time.Minute,
	}
}

// form is the stored form of a type.
type form struct {
	example any
	encode  func() []byte
	decode  func([]byte) (any, error)

	// stored is the example as it is stored. It must not be regenerated, because existing queues
	// contain it.
	stored string
}

func forms() map[string]form {
	text, state, result, summary, ruled := exampleText(), exampleState(), exampleResult(), exampleSummary(), exampleRuled()
	note := notifier.MissedMessage{State: notifier.Open, Time: at, Unclear: true}
	return map[string]form{
		"text": {
			text, text.Encode, func(b []byte) (any, error) { v := new(Text); return v, v.Decode(b) },
			"\n\tDisk full\x12\x17Volume /data is at " +
				"91%\n\x1a\awarning\"\bmarkdown*\x0f\x01\x00\x00\x00\x0e┡\xa8\x00\x00\x00\r\x00Z0\xac\x02:\x13\n\x05a.txt\x12\ntext/plain:\x03\n\x01b" +
				"B\x04httpJ\x03opsP\x01X\a`\x01j\x06policy\xc2\x01\aanotherr\x04sitez\bdisk db1\x82\x01 ksth6pnaez2h3ytgjq24mbc536vthitt" +
				"\x8a\x01\facknowledged\x90\x01\x01\x9a\x01\x05slack" +
				"\xa0\x01\x80\x89\xbe\xa2\xdb\xff\xad\x06\xaa\x01\x11aaaabbbb " +
				"ccccdddd\xb2\x01700-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\xba\x01\fvendor=value" +
				"\xf0\x01\x01\xfa\x01\bquestion\x82\x02T\b\x80\x89\xbe\xa2\xdb\xff\xad\x06\x12\x03ops\x1a\x01a\"\x04room\"\x03dev*\x04ntfy2\x03t/18\x01B\x1c\n\x01b\x10\x04\x1a\thttps://c\"\x02[]*\x02p 2\x02 sJ\x06site xR\x03old\x98\x02\x01",
		},
		"state": {
			state, state.Encode, func(b []byte) (any, error) { v := new(State); return v, v.Decode(b) },
			"\n\x03ops\x12\x03log\x18\x01\"\x04hash*\vjson://host2\x01a2\x01b:\n{\"id\":\"x\"}B\x04siteJ\bdisk db1R\x03sumZ\x04roomZ\x03dev",
		},
		"result": {
			result, func() []byte { return appendResult(nil, result) }, func(b []byte) (any, error) { v := DecodeResult(b); return &v, nil },
			"\n\x04JSON\x12\fjson://host/\x1a\x01a\x1a\x00\"\x06failed(\x030M:,the service answered 503 Service " +
				"Unavailable@\x01J\nsupersededR\x02id",
		},
		"summary": {
			summary, summary.Encode, func(b []byte) (any, error) { v := new(Summary); return v, v.Decode(b) },
			"\n\n\n\x04\b\x00\b\x02\n\x02\b\x01\n\v\n\x02\b\x03\n\x05\b\x04\b\xac\x02\x10\x00\x10\x04\x1a\x04site\"\bdisk db1*" +
				"\x03ops2\agrafana:\awarningB\x05known\xa0\x01\x01\xaa\x01\x04home\xb2\x01\x03ops\xba\x01\tDisk full",
		},
		"ruled": {
			ruled, ruled.Encode, func(b []byte) (any, error) { v, err := DecodeRuled(b); return &v, err },
			"\n\x10\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x12\\\n\x10\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
				"\x12H\n\x10\x01\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x03\x1a\afailure\"\x04open(\x80\x89\xbe\xa2\xdb\xff\xad\x06:\baaaabbbb" +
				"2\x10\t\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x12\x12\n\x10\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
				"\x18\x012\x10\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x008\x02B\x04k3x9H\x80\xa0\x9b\x9f\xb9\x18 \x05(\x82\x80\xaf\xa2\xdb\xff\xad\x06",
		},
		"note": {
			&notifier.Missed{Messages: []notifier.MissedMessage{note}},
			func() []byte { return Note(note.State, note.Time, note.Unclear) },
			func(b []byte) (any, error) {
				v := Missed(&queue.Job{Missed: queue.Missed{Notes: [][]byte{b}}})
				return &v, nil
			},
			"\n\x04open\x10\x80\x89\xbe\xa2\xdb\xff\xad\x06\x18\x01",
		},
	}
}

// TestStored checks that what earlier versions have stored can be read, and that this one
// stores the same.
func TestStored(t *testing.T) {
	for name, f := range forms() {
		if got := f.encode(); string(got) != f.stored {
			t.Errorf("%s is stored as\n%q\nbut queues that exist have\n%q", name, got, f.stored)
		}
		checkDecode(t, name, f, []byte(f.stored))
	}
}

// TestLaterVersion checks that fields of a later version, in each type of the wire format,
// are skipped.
func TestLaterVersion(t *testing.T) {
	later := wire.AppendItem(nil, 100, "later")
	later = wire.AppendNumber(later, 101, 1)
	later = protowire.AppendFixed64(protowire.AppendTag(later, 102, protowire.Fixed64Type), 1)
	for name, f := range forms() {
		checkDecode(t, name, f, append(later, f.stored...))
	}
}

func checkDecode(t *testing.T, name string, f form, b []byte) {
	t.Helper()
	got, err := f.decode(b)
	if text, ok := got.(*Text); ok && text.Time.Format(time.RFC3339Nano) == exampleText().Time.Format(time.RFC3339Nano) {
		text.Time = exampleText().Time // DeepEqual compares how the zone is held
	}
	if err != nil || !reflect.DeepEqual(got, f.example) {
		t.Errorf("%s is read as %+v, %v, want %+v", name, got, err, f.example)
	}
}

// TestExamples checks that the examples have a value in each field that is stored.
func TestExamples(t *testing.T) {
	result := exampleResult()
	result.Until, result.Step, result.Next = new(time.Time), 2, new(time.Time) // a job has them
	result.Name = "JSON host"                                                  // it follows from the service and the URL
	for _, v := range []any{*exampleText(), *exampleState(), *result, *exampleSummary(), *exampleRuled()} {
		for s, i := reflect.ValueOf(v), 0; i < s.NumField(); i++ {
			if s.Field(i).IsZero() {
				t.Errorf("the test has no value for %s.%s", s.Type(), s.Type().Field(i).Name)
			}
		}
	}
}

// TestZeroValues checks what decodes from nothing, and that an error without a text is
// not success.
func TestZeroValues(t *testing.T) {
	empty := ""
	for _, want := range []message.Result{{Tags: []string{}}, {Tags: []string{}, Error: &empty}} {
		if got := DecodeResult(appendResult(nil, &want)); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if b := appendResult(nil, &message.Result{ElapsedMS: -1}); len(b) != 0 {
		t.Errorf("a time that is negative is stored: %q", b)
	}
	if b := new(Ruled).Encode(); len(b) != 0 {
		t.Errorf("a job without rules has %q", b)
	}
	var text Text
	if b := text.Encode(); text.Decode(b) != nil || !text.Time.IsZero() {
		t.Errorf("%q is read as %+v", b, text)
	}
}

// TestDamaged checks that a damaged record is an error, and that what comes before the
// damage is used of a result and of a note.
func TestDamaged(t *testing.T) {
	for name, f := range forms() {
		for n := range len(f.stored) {
			_, _ = f.decode([]byte(f.stored[:n])) // without a panic
		}
		got, err := f.decode([]byte(f.stored[:len(f.stored)-1]))
		switch got := got.(type) {
		case *message.Result:
			want := *exampleResult()
			if want.By = ""; !reflect.DeepEqual(*got, want) {
				t.Errorf("a damaged result is read as %+v", got)
			}
		case *notifier.Missed:
			if want := (notifier.MissedMessage{State: notifier.Open, Time: at}); got.Messages[0] != want {
				t.Errorf("a damaged note is read as %+v", got)
			}
		default:
			if err == nil {
				t.Errorf("%s that ends too early is decoded", name)
			}
		}
	}
	damaged := wire.AppendItem(nil, 1, "\x0a\x05")
	for name, err := range map[string]error{
		"a time": new(Text).Decode(wire.AppendItem(nil, 5, "no time")), "a file": new(Text).Decode(wire.AppendItem(nil, 7, "\x0a\x05")),
		"a chain": new(Summary).Decode(damaged), "a number": new(Summary).Decode(wire.AppendItem(nil, 1, damaged)),
	} {
		if err == nil {
			t.Errorf("a record with %s that is damaged is decoded", name)
		}
	}
	if _, err := DecodeRuled(wire.AppendItem(nil, 2, wire.AppendItem(nil, 2, "\x0a\x05"))); err == nil {
		t.Error("a damaged mark is decoded")
	}
	if SiteID(&queue.Message{Summary: damaged}) != "" || Step(&queue.Job{Ruled: damaged[:1]}) != 0 {
		t.Error("a damaged record has a value")
	}
}
