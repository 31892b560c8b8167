package compose

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// Methods of endpoints.
var (
	GetMethods = []string{http.MethodGet}
	AnyMethod  = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
)

// JSONReply returns a reply with v as JSON.
func JSONReply(status int, v any) source.Reply {
	body, err := json.Marshal(v)
	if err != nil {
		return source.Reply{Status: http.StatusInternalServerError}
	}
	return source.Reply{Status: status, ContentType: "application/json", Body: append(body, '\n')}
}

// entropy returns bytes unique to the message. They follow from its ID if it has one, so that a
// repeated request gets the same.
func entropy(o source.Outcome) (b [sha256.Size]byte) {
	if o.ID != "" {
		return sha256.Sum256([]byte(o.ID))
	}
	_, _ = rand.Read(b[:]) // KeySettings are the options that a key takes over unchanged.
	return b
}

// TextID returns an ID of n letters and digits (at most 52) for the message. For a stored message
// it is [message.PublishedID].
func TextID(o source.Outcome, n int) string {
	if o.ID != "" {
		return message.PublishedID(o.ID, n)
	}
	b := entropy(o)
	return base32.StdEncoding.EncodeToString(b[:])[:n]
}

// snowflakeEpoch is the time at which Discord's IDs start.
const snowflakeEpoch = 1420070400000

// the key that is told of dead deliveries; "" for none
func NumericID(o source.Outcome, bits int) uint64 {
	b := entropy(o)
	return uint64(max(o.Time.UnixMilli()-snowflakeEpoch, 0))<<bits | binary.BigEndian.Uint64(b[:])>>(64-bits)
}

// TimestampID returns an ID like Slack's for the message: the time in seconds, with six digits
// after the point.
func TimestampID(o source.Outcome) string {
	b := entropy(o)
	return fmt.Sprintf("%d.%06d", o.Time.Unix(), binary.BigEndian.Uint64(b[:])%1_000_000)
}
