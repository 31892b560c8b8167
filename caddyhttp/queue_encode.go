package caddyhttp

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields are stored in the wire format of Protocol Buffers, which takes a
// fraction of the time of JSON, and lets a program skip the fields that it does
// not know. The numbers of fields must never change. Earlier builds stored JSON.

// appendText appends a field with a text, unless it is empty.
func appendText[T ~string | ~[]byte](b []byte, field protowire.Number, text T) []byte {
	if len(text) == 0 {
		return b
	}
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(text)))
	return append(b, text...)
}

// appendNumber appends a field with a number, unless it is 0 or less.
func appendNumber(b []byte, field protowire.Number, n int) []byte {
	if n <= 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(n))
}

// appendTrue appends a field if v is true.
func appendTrue(b []byte, field protowire.Number, v bool) []byte {
	if v {
		return appendNumber(b, field, 1)
	}
	return b
}

// isJSON reports whether a record is that of an earlier build. No other record
// begins with a brace: as the tag of a field, it would have the type of a group.
func isJSON(b []byte) bool { return len(b) > 0 && b[0] == '{' }

// decodeJSON decodes a record of an earlier build. It decodes into a copy, so that
// a caller's record need not be on the heap.
func decodeJSON[T any](b []byte, to *T) error {
	var record T
	err := json.Unmarshal(b, &record)
	*to = record
	return err
}

// decodeFields decodes a record. It calls text or number for each field.
func decodeFields(b []byte, text func(field protowire.Number, value []byte) error, number func(field protowire.Number, value int)) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("decoding the number of a field: %w", protowire.ParseError(n))
		}
		b = b[n:]
		switch kind {
		case protowire.BytesType:
			var value []byte
			if value, n = protowire.ConsumeBytes(b); n >= 0 {
				if err := text(field, value); err != nil {
					return fmt.Errorf("decoding field %d: %w", field, err)
				}
			}
		case protowire.VarintType:
			var value uint64
			if value, n = protowire.ConsumeVarint(b); n >= 0 {
				number(field, int(value)) //nolint:gosec // as appendNumber encodes it
			}
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return fmt.Errorf("decoding field %d: %w", field, protowire.ParseError(n))
		}
		b = b[n:]
	}
	return nil
}
