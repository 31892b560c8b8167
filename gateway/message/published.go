package message

import (
	"crypto/sha256"
	"encoding/base32"
)

// Published is what a publisher says to ntfy's clients. Other destinations get it in the
// text: Prefix before the title or, without one, the text, and Suffix at its end.
type Published struct {
	Tags           []string
	Priority       int    // 1 to 5; 0 for none
	Click          string // the address that a click opens
	Actions        string // the buttons, as JSON
	Prefix, Suffix string
}

// NtfyIDLength is the length of the IDs of ntfy.
const NtfyIDLength = 12

// PublishedID returns the ID of n letters and digits, n being at most 52, with which a program
// knows the message that has an ID at the gateway.
func PublishedID(id string, n int) string {
	sum := sha256.Sum256([]byte(id))
	return base32.StdEncoding.EncodeToString(sum[:])[:n]
}
