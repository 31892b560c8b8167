package caddyhttp

import (
	"encoding/hex"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// storedSilences is a record of silences as stores have it.
const storedSilences = "710a0673697465207312036f70731880a5dadbdbffad06222b0a10050000000000000000000000000000001080a5dadbdbffad061880b5f7c4f6ffad062a05" +
	"70686f6e65222a0a10060000000000000000000000000000001080a5dadbdbffad061880b5f7c4f6ffad0632044469736b"

// TestStoredSilences checks that records of silences are as they always were, so that a
// later version reads them.
func TestStoredSilences(t *testing.T) {
	at := time.UnixMicro(1_790_000_060_123_456)
	s := &keySilences{Home: "site s", Key: "ops", Ended: at, All: rules.Silences{
		{ID: uuid.UUID{5}, Made: at, Until: at.Add(time.Hour), Tag: "phone"}, {ID: uuid.UUID{6}, Made: at, Until: at.Add(time.Hour), Title: "Disk"},
	}}
	b := s.record()
	if got := hex.EncodeToString(b); got != storedSilences {
		t.Errorf("got %s", got)
	}
	if got := decodeSilences(b); !reflect.DeepEqual(got, s) {
		t.Errorf("got %+v", got)
	}
	if got := decodeSilences(b[:len(b)-1]); !reflect.DeepEqual(got, new(keySilences)) {
		t.Errorf("a damaged record has %+v", got)
	}
}
