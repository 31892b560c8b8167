package view

import (
	"fmt"
	"html/template"
	"strings"
	"time"
)

// BarParts is the number of parts of a bar, of half an hour each.
const BarParts = 48

// PartLength is how long a part of a bar is.
const PartLength = 30 * time.Minute

// Bar shows the outcomes of deliveries in the last 24 hours, in parts of half an hour, the latest
// last.
type Bar struct {
	End     time.Time // end of the last part
	Started bool      // outcomes before the start of the gateway are unknown
	Parts   [BarParts]BarPart
}

// BarPart has the outcomes of deliveries in half an hour. A waiting delivery counts once in each
// half hour with a failed attempt.
type BarPart struct{ Delivered, Waited, Failed int }

// words returns a part in words.
func (p BarPart) words() string {
	var out []string
	for _, x := range []struct {
		n    int
		word string
	}{{p.Delivered, "delivered"}, {p.Waited, "waited"}, {p.Failed, "failed"}} {
		if x.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", x.n, x.word))
		}
	}
	if out == nil {
		return "nothing"
	}
	return strings.Join(out, ", ")
}

// Sum returns the bar in words, for readers who do not see it.
func (b *Bar) Sum() string {
	var sum BarPart
	slow := 0
	for _, p := range b.Parts {
		sum.Delivered, sum.Failed = sum.Delivered+p.Delivered, sum.Failed+p.Failed
		if p.Waited > 0 {
			slow++
		}
	}
	text := "Last 24 hours: "
	if b.Started {
		text = "Last 24 hours, since the start of the gateway: "
	}
	if slow == 0 {
		return text + sum.words()
	}
	if sum != (BarPart{}) {
		text += sum.words() + ", "
	}
	return text + "deliveries waited in " + Count(slow, "half hour", "half hours")
}

// The measures of a bar, in pixels.
const (
	barStep   = 5
	barWidth  = 4
	barHeight = 24
	barLow    = 6
)

// SVG returns the bar as a picture. Each part has a tooltip with its numbers over its whole height.
// page.js shows the times in tooltips in the reader's time zone.
func (b *Bar) SVG() template.HTML {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="bar" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s" data-end="%s">`,
		BarParts*barStep-1, barHeight, template.HTMLEscapeString(b.Sum()), b.End.UTC().Format(time.RFC3339))
	for i, p := range b.Parts {
		end := b.End.Add(-PartLength * time.Duration(BarParts-1-i))
		begin, x := end.Add(-PartLength), i*barStep
		fmt.Fprintf(&out, `<g><title>%s–%s UTC: %s</title>`, begin.UTC().Format("15:04"), end.UTC().Format("15:04"), p.words())
		fmt.Fprintf(&out, `<rect class="none" x="%d" y="0" width="%d" height="%d"/>`, x, barStep, barHeight)
		writePart(&out, x, p)
		out.WriteString(`</g>`)
	}
	out.WriteString(`</svg>`)
	return template.HTML(out.String()) //nolint:gosec // it consists of numbers
}

// writePart writes the marks of a part: one over the whole height, in which each outcome has its
// share, with a visible minimum.
func writePart(out *strings.Builder, x int, p BarPart) {
	rect := func(class string, y, height int) {
		fmt.Fprintf(out, `<rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`, class, x, y, barWidth, height)
	}
	total := p.Delivered + p.Waited + p.Failed
	if total == 0 {
		rect("low", barHeight-barLow, barLow)
		return
	}
	left, y := barHeight, barHeight
	share := func(n, others int) int {
		switch {
		case n == 0:
			return 0
		case others == 0:
			return left
		}
		return min(max(n*barHeight/total, barLow), left-barLow*min(others, 2))
	}
	others := func(all ...int) (n int) {
		for _, k := range all {
			if k > 0 {
				n++
			}
		}
		return n
	}
	for _, s := range []struct {
		class  string
		height func() int
	}{
		{"failed", func() int { return share(p.Failed, others(p.Waited, p.Delivered)) }},
		{"waited", func() int { return share(p.Waited, others(p.Delivered)) }},
		{"delivered", func() int { return share(p.Delivered, 0) }},
	} {
		if h := s.height(); h > 0 {
			left, y = left-h, y-h
			rect(s.class, y, h)
		}
	}
}
