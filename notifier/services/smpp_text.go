package services

import (
	"crypto/rand"
	"errors"

	"github.com/linxGnu/gosmpp/data"
)

// smppParts encodes a text in the default alphabet, or in UCS-2 if that lacks
// a character, and cuts it into what fits into one text message each. The
// pieces of a message that is cut leave room for the header that joins them.
func smppParts(text string) (data.Encoding, [][]byte, error) {
	var coding data.Encoding = data.GSM7BIT
	whole, piece := 160, 153 // characters of 7 bits, one to an octet
	if len(data.ValidateGSM7String(text)) > 0 {
		coding, whole, piece = data.UCS2, 140, 134
	}
	parts, size := [][]byte{nil}, 0
	for _, r := range text {
		// One character is two octets in UCS-2, four if it is not of the
		// basic plane, and in the default alphabet one or, behind an escape,
		// two. None may be cut.
		octets, err := coding.Encode(string(r))
		if err != nil {
			return nil, nil, errors.New("the text cannot be encoded")
		}
		last := len(parts) - 1
		if len(parts[last])+len(octets) > piece {
			parts = append(parts, nil)
			last++
		}
		parts[last] = append(parts[last], octets...)
		size += len(octets)
	}
	if size <= whole {
		one := make([]byte, 0, whole)
		for _, p := range parts {
			one = append(one, p...)
		}
		return coding, [][]byte{one}, nil
	}
	if len(parts) > 255 {
		return nil, nil, errors.New("the text needs more than the 255 parts that a text message can have; use overflow=truncate or overflow=split")
	}
	return coding, parts, nil
}

// smppGroup is a number that the parts of one message have in common.
func smppGroup() byte {
	var b [1]byte
	_, _ = rand.Read(b[:]) // never fails
	return b[0]
}
