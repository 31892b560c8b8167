package markup

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestFitEnd checks for many limits, titles and bodies that each part is within the
// limits, that only the last one has the end, and that nothing of the body is lost.
func TestFitEnd(t *testing.T) {
	const end = "\n\nAcknowledge: https://alerts.example.com/notify/incidents/k4fzmoyq2xr6"
	words := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "w%d ", i)
			if i%7 == 6 {
				b.WriteString("\n")
			}
		}
		return strings.TrimSpace(b.String())
	}
	for _, l := range []Limits{
		{Title: 0, Body: 120},
		{Title: 0, Body: 160},
		{Title: 100, Body: 200},
		{Title: 250, Body: 400, InBody: true},
		{Title: 250, Body: 160, InBody: true},
		{Title: 0, Body: 500, Reserve: 300},
		{Title: 20, Body: 160, Unit: UTF8Bytes},
		{},
	} {
		for _, title := range []string{"", "Disk full", strings.Repeat("long title ", 15)} {
			for n := range 120 {
				body := words(n)
				for _, mode := range []Overflow{OverflowSplit, OverflowTruncate, OverflowUpstream} {
					parts := l.AppendFit(nil, title, body, Text, Text, mode, end)
					context := fmt.Sprintf("%+v, title %q, %d words, %s", l, title, n, mode)
					all := ""
					for i, p := range parts {
						size := utf8.RuneCountInString(p.Body)
						if l.InBody {
							size += utf8.RuneCountInString(p.Title)
						}
						if mode != OverflowUpstream && l.Body > 0 && size > l.Body-l.Reserve {
							t.Fatalf("%s: part %d of %d has %d characters: %q", context, i+1, len(parts), size, p.Body)
						}
						has := strings.Contains(p.Body, strings.TrimSpace(end))
						if has != (i == len(parts)-1) {
							t.Fatalf("%s: part %d of %d has the end: %t", context, i+1, len(parts), has)
						}
						all += p.Body + " "
					}
					if mode == OverflowUpstream && l.Body > 0 {
						if at := strings.Index(parts[0].Body, strings.TrimSpace(end)); at+
							len(strings.TrimSpace(end)) > l.Body && utf8.RuneCountInString(title) < 40 {
							t.Fatalf("%s: the end is at %d, beyond the limit", context, at)
						}
					}
					if mode == OverflowTruncate || title != "" && l.Title == 0 {
						continue
					}
					if got := strings.Fields(strings.Replace(all, strings.TrimSpace(end), "", 1)); strings.Join(got,
						" ") != strings.Join(strings.Fields(body), " ") {
						t.Fatalf("%s: %q", context, got)
					}
				}
			}
		}
	}
}
