package services

import (
	"crypto/rand"
	"errors"

	"github.com/linxGnu/gosmpp/data"
)

// smppParts encodes a text in the default alphabet, or in UCS-2 if that lacks a
// character, and cuts it into parts of the size of a text message. If there are
// several parts, each leaves room for the header that joins them.
func smppParts(text string) (data.Encoding, [][]byte, error) {
	coding := data.GSM7BIT
	single, piece := 160, 153 // characters of 7 bits, one to an octet
	if len(data.ValidateGSM7String(text)) > 0 {
		coding, single, piece = data.UCS2, 140, 134
	}
	parts, size := [][]byte{nil}, 0
	for _, r := range text {
		// A character is two octets in UCS-2, or four outside the basic plane.
		// In the default alphabet it is one octet, or two with an escape. No
		// character is cut.
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
	if size <= single {
		one := make([]byte, 0, single)
		for _, p := range parts {
			one = append(one, p...)
		}
		return coding, [][]byte{one}, nil
	}
	if len(parts) > 255 {
		return nil, nil, errors.New("the text needs more than the 255 parts that " +
			"a text message can have; use overflow=truncate or overflow=split")
	}
	return coding, parts, nil
}

// smppGroup returns a random reference number for the parts of one message.
func smppGroup() byte {
	var b [1]byte
	_, _ = rand.Read(b[:]) // never fails
	return b[0]
}
