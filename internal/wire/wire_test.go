package wire

import (
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

func TestFields(t *testing.T) {
	now := time.UnixMicro(1_790_000_000_123_456)
	before := time.UnixMicro(-5)
	var b []byte
	b = AppendItem(b, 1, "text")
	b = AppendItem(b, 2, []byte{})
	b = AppendNumber(b, 3, 1<<40)
	b = AppendNumber(b, 3, 0)
	b = protowire.AppendVarint(protowire.AppendTag(b, 4, protowire.VarintType), 0)
	b = AppendNumber(b, 5, 1)
	b = AppendNumber(b, 6, protowire.EncodeZigZag(now.UnixMicro()))
	b = AppendNumber(b, 7, protowire.EncodeZigZag(before.UnixMicro()))
	b = protowire.AppendFixed64(protowire.AppendTag(b, 100, protowire.Fixed64Type), 1) // of a later version
	b = AppendItem(b, 8, []byte("bytes"))
	var fields []Field
	r := NewReader(b)
	for r.Next() {
		fields = append(fields, r.Field)
		ok := false
		switch r.Field {
		case 1:
			ok = r.Text() == "text"
		case 2:
			ok = r.Bytes() == nil
		case 3:
			ok = r.Int64() == 1<<40 && r.Bytes() == nil
		case 4:
			ok = r.Int() == 0
		case 5:
			ok = r.Bool()
		case 6:
			ok = r.Time().Equal(now)
		case 7:
			ok = r.Time().Equal(before)
		case 8:
			ok = string(r.Bytes()) == "bytes" && cap(r.Bytes()) == 5
		}
		if !ok {
			t.Errorf("field %d: %q, %d", r.Field, r.value(), r.number)
		}
	}
	if r.Err() != nil || len(fields) != 8 {
		t.Errorf("fields %v, %v", fields, r.Err())
	}
}

func TestDamaged(t *testing.T) {
	b := AppendItem(nil, 1, "text")
	r := NewReader(b[:len(b)-1])
	if r.Next() || r.Err() == nil {
		t.Error("a record that ends too early is read")
	}
}
