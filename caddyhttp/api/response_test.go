package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

func TestTextHasOneLinePerRecord(t *testing.T) {
	r := &Response{Records: []notifier.Record{{Time: time.Now(), Level: notifier.LevelError, Text: "a\nb\r\nc"}}}
	if got := string(r.text()); strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "a b c\n") {
		t.Errorf("%q", got)
	}
}

func TestTextAllocatesOnce(t *testing.T) {
	r := &Response{Records: slices.Repeat([]notifier.Record{{Time: time.Now(), Level: notifier.LevelInfo, Text: "Sent JSON notification."}}, 100)}
	if n := testing.AllocsPerRun(10, func() { r.text() }); n != 1 {
		t.Errorf("100 records cost %v allocations", n)
	}
}

// An optional destination whose failure does not count is not shown as an error.
func TestHTMLOptionalFailure(t *testing.T) {
	r := &Response{Status: 200, Records: []notifier.Record{{Level: notifier.LevelError, Text: "failed", Optional: true}, {Level: notifier.LevelInfo, Text: "sent", Optional: true}}}
	got := string(r.html(true))
	if !strings.Contains(got, `<li class="log_ERROR optional">`) || !strings.Contains(got, `<li class="log_INFO">`) {
		t.Error(got)
	}
}

func TestHTMLIsEscaped(t *testing.T) {
	r := &Response{Status: 424, Error: `<script>"&'`, Records: []notifier.Record{{Time: time.Now(), Level: notifier.LevelError, Text: "<img>"}}}
	got := string(r.html(true))
	if strings.Contains(got, "<script>") || strings.Contains(got, "<img>") || !strings.Contains(got, "&lt;img&gt;") {
		t.Error(got)
	}
}
