package wire

import (
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

type kind string

type part struct{ Name string }

func (p *part) fields(c *Codec) { Text(c, 1, &p.Name) }

type whole struct {
	Text    kind
	Nil     *string
	Bytes   []byte
	Array   [4]byte
	Number  int
	True    bool
	Time    time.Time
	Zone    time.Time
	Texts   []kind
	Numbers []uint8
	Part    part
	Parts   []part
	Slice   []byte // of the record
}

func (w *whole) fields(c *Codec) {
	Text(c, 1, &w.Text)
	TextOrNil(c, 2, &w.Nil)
	Bytes(c, 3, &w.Bytes)
	Array(c, 4, w.Array[:])
	Number(c, 5, &w.Number)
	True(c, 6, &w.True)
	Time(c, 7, &w.Time)
	Binary(c, 8, &w.Zone)
	Texts(c, 9, &w.Texts)
	Numbers(c, 10, &w.Numbers)
	Record(c, 11, &w.Part, (*part).fields)
	Records(c, 12, &w.Parts, (*part).fields)
	Part(c, 13, &w.Slice)
}

func example() *whole {
	empty := ""
	return &whole{
		Text: "text", Nil: &empty, Bytes: []byte("bytes"), Array: [4]byte{0, 1}, Number: 1 << 40, True: true, Time: time.UnixMicro(-5),
		Zone: time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600)), Texts: []kind{"a", "", "b"}, Numbers: []uint8{0, 255},
		Part: part{string(make([]byte, 200))}, Parts: []part{{"x"}, {}, {"y"}}, Slice: []byte("slice"),
	}
}

func TestCodec(t *testing.T) {
	for name, w := range map[string]*whole{"all": example(), "nothing": {}} {
		b := Append([]byte("before"), w, (*whole).fields)
		if string(b[:6]) != "before" {
			t.Errorf("%s: %q is not appended", name, b)
		}
		var back whole
		if err := Decode(b[6:], &back, (*whole).fields); err != nil || !reflect.DeepEqual(&back, w) {
			t.Errorf("%s: decoded as %+v, %v; want %+v", name, back, err, w)
		}
	}
	if b := Append(nil, &part{}, (*part).fields); b != nil {
		t.Errorf("zero values are encoded: %q", b)
	}
}

// choices has fields that are stored only sometimes.
type choices struct {
	State  kind
	Counts [3]int
	Reason string // stored if there is a State
	Place  uint64
}

func (x *choices) fields(c *Codec) {
	Word(c, 1, &x.State, []kind{"open", "resolved"})
	NumberArray(c, 2, x.Counts[:])
	if c.If(x.State != "") {
		Text(c, 3, &x.Reason)
	}
	Number(c, 4, &x.Place)
}

func TestChoices(t *testing.T) {
	for _, x := range []choices{{"open", [3]int{1, 0, 2}, "r", 1 << 63}, {"other", [3]int{}, "", 0}, {"", [3]int{}, "not stored", 0}} {
		var back choices
		err := Decode(Append(nil, &x, (*choices).fields), &back, (*choices).fields)
		if x.State == "" {
			x.Reason = ""
		}
		if err != nil || back != x {
			t.Errorf("decoded as %+v, %v; want %+v", back, err, x)
		}
	}
	var b []byte
	b = AppendItem(b, 3, "r") // before what it depends on
	for n := range 5 {        // more than there is room for
		b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), uint64(n))
	}
	var back choices
	if err := Decode(b, &back, (*choices).fields); err != nil || back != (choices{Counts: [3]int{0, 1, 2}, Reason: "r"}) {
		t.Errorf("decoded as %+v, %v", back, err)
	}
}

// What was encoded stays as it is while others encode.
func TestAppendShares(t *testing.T) {
	a := Append(nil, &part{"a"}, (*part).fields)
	before := string(a)
	b := Append(a, &part{"b"}, (*part).fields)
	if string(a) != before || string(b) != before+string(Append(nil, &part{"b"}, (*part).fields)) {
		t.Errorf("%q, then %q", a, b)
	}
}

// Fields may stand in any order, and some may be of a later version.
func TestOtherOrder(t *testing.T) {
	b := AppendItem(nil, 99, "later")
	b = AppendNumber(b, 5, 7)
	b = AppendItem(b, 9, "a")
	b = AppendItem(b, 1, "text")
	b = AppendItem(b, 9, "b")
	b = AppendItem(b, 98, "later")
	var w whole
	if err := Decode(b, &w, (*whole).fields); err != nil || !reflect.DeepEqual(w, whole{Text: "text", Number: 7, Texts: []kind{"a", "b"}}) {
		t.Errorf("%+v, %v", w, err)
	}
}

// A damaged record is an error, wherever the damage is, and never a panic.
func TestDamagedRecord(t *testing.T) {
	b := Append(nil, example(), (*whole).fields)
	for n := range len(b) {
		var w whole
		_ = Decode(b[:n], &w, (*whole).fields)
	}
	var w whole
	if err := Decode(b[:len(b)-1], &w, (*whole).fields); err == nil || w.Text != "text" {
		t.Errorf("a record that ends too early: %v, %q", err, w.Text)
	}
	if err := Decode(AppendItem(nil, 11, "\x0a\x05"), &w, (*whole).fields); err == nil {
		t.Error("a damaged record within the record is decoded")
	}
	if err := Decode(AppendItem(nil, 8, "no time"), &w, (*whole).fields); err == nil {
		t.Error("a value that cannot be decoded is decoded")
	}
}

func BenchmarkCodec(b *testing.B) {
	record := Append(nil, example(), (*whole).fields)
	b.Run("append", func(b *testing.B) {
		w, room := example(), make([]byte, 0, 2*len(record))
		b.ReportAllocs()
		for b.Loop() {
			_ = Append(room, w, (*whole).fields)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var w whole
			_ = Decode(record, &w, (*whole).fields)
		}
	})
}
