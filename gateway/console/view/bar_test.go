package view

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestBar checks that a bar is well-formed, says its sum, and has a part and a tooltip for each
// half hour, whose marks fill it.
func TestBar(t *testing.T) {
	b := Bar{End: noon, Started: true}
	b.Parts[0] = BarPart{Delivered: 3}
	b.Parts[46] = BarPart{Delivered: 1000, Waited: 1, Failed: 1}
	b.Parts[47] = BarPart{Waited: 7, Failed: 1}
	want := "Last 24 hours, since the start of the gateway: 1003 delivered, 2 failed, deliveries waited in 2 half hours"
	if got := b.Sum(); got != want {
		t.Errorf("the sum is %q; want %q", got, want)
	}
	svg := string(b.SVG())
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v: %s", err, svg)
		}
	}
	if n := strings.Count(svg, "<title>"); n != BarParts {
		t.Errorf("%d tooltips", n)
	}
	for _, part := range []string{
		`role="img" aria-label="` + want + `"`,
		`<title>12:00–12:30 UTC: 3 delivered</title>`, `<rect class="delivered" x="0" y="0" width="4" height="24"/>`,
		`<title>11:00–11:30 UTC: 1000 delivered, 1 waited, 1 failed</title>`,
		`<rect class="failed" x="230" y="18" width="4" height="6"/><rect class="waited" x="230" y="12" width="4" height="6"/><rect ` +
			`class="delivered" x="230" y="0" width="4" height="12"/>`,
		`<title>11:30–12:00 UTC: 7 waited, 1 failed</title>`,
		`<rect class="failed" x="235" y="18" width="4" height="6"/><rect class="waited" x="235" y="0" width="4" height="18"/>`,
		`<title>10:30–11:00 UTC: nothing</title>`, `<rect class="low" x="225" y="18" width="4" height="6"/>`,
	} {
		if !strings.Contains(svg, part) {
			t.Errorf("the bar lacks %s: %s", part, svg)
		}
	}
	if empty := (&Bar{End: noon}).Sum(); empty != "Last 24 hours: nothing" {
		t.Errorf("an empty bar says %q", empty)
	}
}
