// Package wire encodes records in the wire format of Protocol Buffers. A reader
// skips fields that it does not know, so fields can be added. The number of a
// field must never change.
//
// A [Codec] names each field once, for both ways. [AppendItem], [AppendNumber] and a [Reader] are
// for records that need more than that.
//
// Zero values are left out, except where a function says so.
package wire

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field is the number of a field.
type Field = protowire.Number

// AppendItem appends a text or bytes, also if they are empty.
func AppendItem[T ~string | ~[]byte](b []byte, f Field, item T) []byte {
	b = protowire.AppendTag(b, f, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(item)))
	return append(b, item...)
}

// AppendNumber appends a number that is not negative, unless it is 0.
func AppendNumber[T ~int | ~int64 | ~uint64 | ~uint8](b []byte, f Field, n T) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, f, protowire.VarintType), uint64(n))
}

// Reader reads a record, one field after the other:
//
//	for r := wire.NewReader(b); r.Next(); {
//		switch r.Field {
//		case fieldName:
//			name = r.Text()
//		}
//	}
//	return r.Err()
//
// A method returns zero if the value has another type than the method reads.
type Reader struct {
	Field Field // of the last call of Next

	// Places in the record are numbers, not slices, which the garbage collector would have to
	// be told of at each field.
	record   []byte
	at, end  int // what is left
	from, to int // the bytes of the field; none if it is a number
	number   uint64
	err      error
}

// NewReader returns a reader of a record.
func NewReader(b []byte) Reader { return Reader{record: b, end: len(b)} }

// Next reads the next field. It reports false at the end, and if the record is
// damaged.
func (r *Reader) Next() bool {
	for r.at < r.end {
		rest := r.record[r.at:r.end]
		tag, n := consumeVarint(rest)
		f, kind := protowire.DecodeTag(tag)
		if n >= 0 && f < protowire.MinValidNumber {
			_, _, n = protowire.ConsumeTag(rest) // which is an error
		}
		if n < 0 {
			return r.fail(n)
		}
		at := r.at + n
		rest = rest[n:]
		r.Field, r.from, r.to, r.number = f, 0, 0, 0
		known := true
		switch kind {
		case protowire.BytesType:
			if length, m := consumeVarint(rest); m > 0 && length <= uint64(len(rest)-m) {
				n = m + int(length) //nolint:gosec // of what is there
				r.from, r.to = at+m, at+n
			} else {
				_, n = protowire.ConsumeBytes(rest) // which is an error
			}
		case protowire.VarintType:
			r.number, n = consumeVarint(rest)
		default:
			n, known = protowire.ConsumeFieldValue(f, kind, rest), false
		}
		if n < 0 {
			return r.fail(n)
		}
		r.at = at + n
		if known {
			return true
		}
	}
	return false
}

// consumeVarint is [protowire.ConsumeVarint], faster for the numbers below 128 that most tags
// and lengths are.
func consumeVarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return protowire.ConsumeVarint(b)
}

func (r *Reader) fail(n int) bool {
	r.err = fmt.Errorf("decoding field %d: %w", r.Field, protowire.ParseError(n))
	r.at = r.end
	return false
}

// Err returns an error if the record is damaged.
func (r *Reader) Err() error { return r.err }

// Bytes returns the value of the field, which is part of the record; nil if it is
// empty.
func (r *Reader) Bytes() []byte {
	if r.from == r.to {
		return nil
	}
	return slices.Clip(r.value())
}

func (r *Reader) value() []byte { return r.record[r.from:r.to] }

// Text returns the value of the field.
func (r *Reader) Text() string { return string(r.value()) }

// Int64 returns the value of the field.
func (r *Reader) Int64() int64 { return int64(r.number) } //nolint:gosec // as it was appended

// Int returns the value of the field.
func (r *Reader) Int() int { return int(r.Int64()) }

// Bool returns the value of the field.
func (r *Reader) Bool() bool { return r.number != 0 }

// Time returns the value of the field.
func (r *Reader) Time() time.Time { return time.UnixMicro(protowire.DecodeZigZag(r.number)) }
