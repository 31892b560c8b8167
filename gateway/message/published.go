package message

import (
	"crypto/sha256"
	"encoding/base32"
)

// Published is the part of a message that is for ntfy's clients. Other destinations get it in the
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

// PublishedID returns an ID of n letters and digits (at most 52) for the message with an ID of the
// gateway. Programs know the message by it.
func PublishedID(id string, n int) string {
	sum := sha256.Sum256([]byte(id))
	return base32.StdEncoding.EncodeToString(sum[:])[:n]
}
