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
	"encoding"
	"fmt"
	"slices"
	"sync"
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

// Codec encodes a record, or decodes one. A method of the record names each field once, for
// both:
//
//	func (f *file) fields(c *wire.Codec) {
//		wire.Text(c, 1, &f.Name)
//		wire.Number(c, 2, &f.Size)
//	}
//
//	func (f *file) encode() []byte        { return wire.Append(nil, f, (*file).fields) }
//	func (f *file) decode(b []byte) error { return wire.Decode(b, f, (*file).fields) }
//
// A field that decodes into a value of another type has the zero value.
type Codec struct {
	decoding bool
	out      []byte // what is encoded
	in       Reader // what is decoded
	has      bool   // in is at a field
	took     bool   // a field was decoded since the last call of next
	err      error
}

// codecs are those that nobody uses. Each Append and Decode takes one: a value that is
// passed to a function value would be on the heap otherwise.
var codecs = sync.Pool{New: func() any { return new(Codec) }}

// maxRoom is the maximum size of the room for encoding that a codec keeps, in bytes.
const maxRoom = 64 << 10

// Append appends a record to b. fields names the fields of v.
func Append[T any](b []byte, v *T, fields func(*T, *Codec)) []byte {
	c := codecs.Get().(*Codec)
	fields(v, c)
	b = append(b, c.out...)
	if c.out = c.out[:0]; cap(c.out) > maxRoom {
		c.out = nil
	}
	codecs.Put(c)
	return b
}

// Decode decodes a record into v, whose fields are zero before. If the record is damaged, it
// returns an error, and v has what comes before the damage.
func Decode[T any](b []byte, v *T, fields func(*T, *Codec)) error {
	c := codecs.Get().(*Codec)
	c.decoding, c.in = true, NewReader(b)
	decodeRecord(c, 0, len(b), v, fields)
	err := c.err
	c.decoding, c.in, c.err = false, Reader{}, nil
	codecs.Put(c)
	return err
}

// decodeRecord decodes a record, which may be a field of the one that c decodes.
func decodeRecord[T any](c *Codec, from, to int, v *T, fields func(*T, *Codec)) {
	at, end := c.in.at, c.in.end
	c.in.at, c.in.end = from, to
	for c.took = false; c.next(); {
		fields(v, c)
	}
	c.fail(c.in.err)
	c.in.at, c.in.end = at, end
}

// The methods that append change no more of the codec than they must: the garbage collector
// would have to be told of each new slice.

func (c *Codec) varint(n uint64) {
	for ; n >= 0x80; n >>= 7 {
		c.out = append(c.out, byte(n)|0x80)
	}
	c.out = append(c.out, byte(n))
}

func (c *Codec) tag(f Field, kind protowire.Type) { c.varint(protowire.EncodeTag(f, kind)) }

func (c *Codec) number(f Field, n uint64) {
	c.tag(f, protowire.VarintType)
	c.varint(n)
}

func appendItem[T ~string | ~[]byte](c *Codec, f Field, item T) {
	c.tag(f, protowire.BytesType)
	c.varint(uint64(len(item)))
	c.out = append(c.out, item...)
}

// If reports whether fields follow that are stored only if a condition holds. Those that are
// there are always decoded.
func (c *Codec) If(holds bool) bool { return c.decoding || holds }

// next reports whether fields of the record are left. A record whose fields stand in the
// order in which they are named takes one turn; each field that nobody has taken is
// skipped.
func (c *Codec) next() bool {
	if !c.took {
		c.has = c.in.Next()
	}
	c.took = false
	return c.has && c.err == nil
}

// at reports whether the record that is decoded is at field f.
func (c *Codec) at(f Field) bool { return c.has && c.in.Field == f }

// done goes on to the next field of the record.
func (c *Codec) done() {
	c.took = true
	c.has = c.in.Next()
}

// fail ends decoding.
func (c *Codec) fail(err error) {
	if err != nil && c.err == nil {
		c.err = err
	}
}

// Text is a text. An empty one is left out.
func Text[T ~string](c *Codec, f Field, v *T) {
	if !c.decoding {
		if len(*v) > 0 {
			appendItem(c, f, *v)
		}
		return
	}
	for c.at(f) {
		*v = T(c.in.value())
		c.done()
	}
}

// Word is a text that most records share with others, such as the name of a state. Decoding
// makes no copy of one of the words.
func Word[T ~string](c *Codec, f Field, v *T, words []T) {
	if !c.decoding {
		if len(*v) > 0 {
			appendItem(c, f, *v)
		}
		return
	}
	for c.at(f) {
		*v = wordOf(c.in.value(), words)
		c.done()
	}
}

func wordOf[T ~string](b []byte, words []T) T {
	for _, w := range words {
		if string(w) == string(b) {
			return w
		}
	}
	return T(b)
}

// TextOrNil is a text, or nil, which is left out.
func TextOrNil(c *Codec, f Field, v **string) {
	if !c.decoding {
		if *v != nil {
			appendItem(c, f, **v)
		}
		return
	}
	for c.at(f) {
		text := c.in.Text()
		*v = &text
		c.done()
	}
}

// Bytes are any number of bytes. None are left out. Decoding copies them.
func Bytes(c *Codec, f Field, v *[]byte) {
	if !c.decoding {
		if len(*v) > 0 {
			appendItem(c, f, *v)
		}
		return
	}
	for c.at(f) {
		*v = slices.Clone(c.in.Bytes())
		c.done()
	}
}

// Part is like [Bytes], but decoding makes no copy: the bytes are part of the record.
func Part(c *Codec, f Field, v *[]byte) {
	if !c.decoding {
		Bytes(c, f, v)
		return
	}
	for c.at(f) {
		*v = c.in.Bytes()
		c.done()
	}
}

// Array is an array of bytes, such as a hash. It is left out if all bytes are 0.
func Array(c *Codec, f Field, v []byte) {
	if !c.decoding {
		if slices.ContainsFunc(v, func(b byte) bool { return b != 0 }) {
			appendItem(c, f, v)
		}
		return
	}
	for c.at(f) {
		copy(v, c.in.value())
		c.done()
	}
}

// Number is a number that is not negative. 0 is left out.
func Number[T ~int | ~int64 | ~uint64 | ~uint8](c *Codec, f Field, v *T) {
	if !c.decoding {
		if *v != 0 {
			c.number(f, uint64(*v))
		}
		return
	}
	for c.at(f) {
		*v = T(c.in.number) //nolint:gosec // as it was appended
		c.done()
	}
}

// True is a bool. False is left out.
func True(c *Codec, f Field, v *bool) {
	if !c.decoding {
		if *v {
			c.number(f, 1)
		}
		return
	}
	for c.at(f) {
		*v = c.in.Bool()
		c.done()
	}
}

// Time is a time, precise to a microsecond and without its zone. A zero time is left out.
func Time(c *Codec, f Field, v *time.Time) {
	if !c.decoding {
		if !v.IsZero() {
			c.number(f, protowire.EncodeZigZag(v.UnixMicro()))
		}
		return
	}
	for c.at(f) {
		*v = c.in.Time()
		c.done()
	}
}

// Binary is a value that encodes itself. It is left out if it cannot be encoded.
func Binary[T any, P interface {
	*T
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}](c *Codec, f Field, v P) {
	if !c.decoding {
		if b, err := v.MarshalBinary(); err == nil && len(b) > 0 {
			appendItem(c, f, b)
		}
		return
	}
	for c.at(f) {
		c.fail(v.UnmarshalBinary(c.in.value()))
		c.done()
	}
}

// Texts is a list of texts, with a field for each.
func Texts[T ~string](c *Codec, f Field, v *[]T) {
	if !c.decoding {
		for _, item := range *v {
			appendItem(c, f, item)
		}
		return
	}
	for c.at(f) {
		*v = append(*v, T(c.in.value()))
		c.done()
	}
}

// Numbers is a list of numbers that are not negative, with a field for each.
func Numbers[T ~int | ~int64 | ~uint8](c *Codec, f Field, v *[]T) {
	if !c.decoding {
		for _, item := range *v {
			c.number(f, uint64(item))
		}
		return
	}
	for c.at(f) {
		*v = append(*v, T(c.in.number)) //nolint:gosec // as it was appended
		c.done()
	}
}

// NumberArray is an array of numbers that are not negative, with a field for each, also if it
// is 0. Further ones are skipped.
func NumberArray[T ~int | ~int64 | ~uint8](c *Codec, f Field, v []T) {
	if !c.decoding {
		Numbers(c, f, &v)
		return
	}
	for i := 0; c.at(f); i++ {
		if i < len(v) {
			v[i] = T(c.in.number) //nolint:gosec // as it was appended
		}
		c.done()
	}
}

// Record is a record within the record. It is left out if all its fields are.
func Record[T any](c *Codec, f Field, v *T, fields func(*T, *Codec)) {
	if !c.decoding {
		appendRecord(c, f, v, fields, false)
		return
	}
	for c.at(f) {
		decodeRecord(c, c.in.from, c.in.to, v, fields)
		c.done()
	}
}

// Records is a list of records, with a field for each.
func Records[S ~[]T, T any](c *Codec, f Field, v *S, fields func(*T, *Codec)) {
	if !c.decoding {
		for i := range *v {
			appendRecord(c, f, &(*v)[i], fields, true)
		}
		return
	}
	for c.at(f) {
		*v = append(*v, *new(T))
		decodeRecord(c, c.in.from, c.in.to, &(*v)[len(*v)-1], fields)
		c.done()
	}
}

// appendRecord appends a record within the record, with its length before it.
func appendRecord[T any](c *Codec, f Field, v *T, fields func(*T, *Codec), empty bool) {
	before := len(c.out)
	c.tag(f, protowire.BytesType)
	from := len(c.out)
	fields(v, c)
	n := len(c.out) - from
	if n == 0 && !empty {
		c.out = c.out[:before]
		return
	}
	// The length takes few bytes, which move what was appended.
	var room [10]byte
	length := protowire.AppendVarint(room[:0], uint64(n))
	c.out = append(c.out, length...)
	copy(c.out[from+len(length):], c.out[from:from+n])
	copy(c.out[from:], length)
}
