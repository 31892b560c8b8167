package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

func TestTextHasOneLinePerRecord(t *testing.T) {
	r := &Response{Records: []notifier.Record{{Time: time.Now(), Level: notifier.LevelError, Text: "a\nb\r\nc\x1b[1m\u202e"}}}
	if got := string(r.text()); strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "a b c[1m\n") {
		t.Errorf("%q", got)
	}
}

func TestTextAllocatesOnce(t *testing.T) {
	r := &Response{Records: slices.Repeat([]notifier.Record{{
		Time: time.Now(), Level: notifier.LevelInfo,
		Text: "Sent to JSON web.example (chat).",
	}}, 100)}
	if n := testing.AllocsPerRun(10, func() { r.text() }); n != 1 {
		t.Errorf("100 records cost %v allocations", n)
	}
}

// An optional destination whose failure does not count is not shown as an error.
func TestHTMLOptionalFailure(t *testing.T) {
	r := &Response{Status: 200, Records: []notifier.Record{
		{Level: notifier.LevelError, Text: "failed", Optional: true},
		{Level: notifier.LevelInfo, Text: "sent", Optional: true},
	}}
	if got := r.page("/notify/ops", true).Lines; len(got) != 2 || !got[0].Optional || got[1].Optional {
		t.Errorf("%+v", got)
	}
}
