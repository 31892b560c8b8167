package inbox

import (
	"encoding/hex"
	"reflect"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// What stores have.
const (
	storedHead    = "490a0a736974652073006f707310c1849fd1edff96031881c097d1edff9603200328a01f"
	storedMessage = "6d0a0a736974652073006f70731283010a04303139301080a5dadbdbffad061880b5f7c4f6ffad0622076661696c7572652a094469736b2066756c" +
		"6c3213546865202a6469736b2a2069732066756c6c2e" +
		"3a086d61726b646f776e4001480152046469736b5a0767726166616e6162150a05612e747874120a746578742f706c61696e180562030a016268c092edededff9603"
)

// TestStoredRecords checks that records are as they always were, so that a later version
// reads them, and what is read of damaged ones.
func TestStoredRecords(t *testing.T) {
	t.Parallel()
	const place = "site s\x00ops"
	h := Head{Place: place, Last: 1_790_000_000_123_457, Gone: 1_790_000_000_000_001, Count: 3, Size: 4000}
	head := h.encode()
	if got := hex.EncodeToString(head); got != storedHead {
		t.Errorf("the head is stored as %s", got)
	}
	if got := decodeHead("", head); got != h {
		t.Errorf("the head is read as %+v", got)
	}
	if got := decodeHead("p", head[:len(head)-1]); got != (Head{Place: place, Last: h.Last, Gone: h.Gone, Count: h.Count}) {
		t.Errorf("a damaged head is read as %+v", got)
	}
	if got := decodeHead("p", nil); got != (Head{Place: "p"}) {
		t.Errorf("no head is read as %+v", got)
	}
	at := time.UnixMicro(1_790_000_060_123_456)
	m := &Message{
		Cursor: cursorAt(at), ID: "0190", Time: at, Expires: at.Add(time.Hour), Type: notifier.Failure, Title: "Disk full",
		Body:   "The *disk* is full.",
		Format: notifier.Markdown, Cut: true, Foreign: true, Incident: "disk", Source: "grafana",
		Files: []File{{"a.txt", "text/plain", 5}, {Name: "b"}},
	}
	b := encodeMessage(place, m)
	if got := hex.EncodeToString(b); got != storedMessage {
		t.Errorf("the message is stored as %s", got)
	}
	if gotPlace, got, ok := decodeMessage(b); !ok || gotPlace != place || !reflect.DeepEqual(got, m) {
		t.Errorf("the message is read as %q, %+v, %v", gotPlace, got, ok)
	}
	for n := range b {
		if _, _, ok := decodeMessage(b[:n]); ok {
			t.Errorf("a message that ends after %d bytes is read", n)
		}
	}
}
