package view

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// BarParts is the number of parts of a bar, of half an hour each.
const BarParts = 48

// HalfFormat is the format of the time at which a part begins, in the address of its messages.
const HalfFormat = "20060102T1504Z"

// PartLength is how long a part of a bar is.
const PartLength = 30 * time.Minute

// Bar shows the outcomes of deliveries in the last 24 hours, in parts of half an hour, the latest
// last.
type Bar struct {
	End      time.Time // end of the last part
	Started  bool      // outcomes before the start of the gateway are unknown
	Messages string    // the address of the messages of a part, up to the time at which it begins
	Parts    [BarParts]BarPart
}

// BarPart has the outcomes of deliveries in half an hour. A waiting delivery counts once in each
// half hour with a failed attempt.
type BarPart struct{ Delivered, Waited, Failed int }

// Count returns the number of outcomes.
func (p BarPart) Count() int { return p.Delivered + p.Waited + p.Failed }

// Words returns a part in words.
func (p BarPart) Words() string {
	var out []string
	for _, x := range []struct {
		n    int
		word string
	}{{p.Failed, "failed"}, {p.Waited, "waited"}, {p.Delivered, "delivered"}} {
		if x.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", x.n, x.word))
		}
	}
	if out == nil {
		return "nothing"
	}
	return strings.Join(out, ", ")
}

// Half is a part of a bar with its time and the address of its messages.
type Half struct {
	BarPart
	From, Until time.Time
	Address     string
	Index       int
}

// half returns the part with an index.
func (b *Bar) half(i int) Half {
	until := b.End.Add(-PartLength * time.Duration(BarParts-1-i))
	from := until.Add(-PartLength)
	return Half{b.Parts[i], from, until, b.Messages + from.UTC().Format(HalfFormat), i}
}

// Halves returns the parts that have something, the latest first.
func (b *Bar) Halves() (out []Half) {
	for i := BarParts - 1; i >= 0; i-- {
		if b.Parts[i].Count() > 0 {
			out = append(out, b.half(i))
		}
	}
	return out
}

// Troubles returns the parts in which something failed or waited, the latest first.
func (b *Bar) Troubles() []Half {
	return slices.DeleteFunc(b.Halves(), func(h Half) bool { return h.Failed+h.Waited == 0 })
}

// Of says which time the bar is of.
func (b *Bar) Of() string {
	if b.Started {
		return "Last 24 hours, since the start of the gateway:"
	}
	return "Last 24 hours:"
}

// Sum returns the numbers of the bar in words.
func (b *Bar) Sum() string {
	var sum BarPart
	slow := 0
	for _, p := range b.Parts {
		sum.Delivered, sum.Failed = sum.Delivered+p.Delivered, sum.Failed+p.Failed
		if p.Waited > 0 {
			slow++
		}
	}
	text := sum.Words()
	switch {
	case slow == 0:
		return text
	case sum == BarPart{}:
		text = ""
	default:
		text += ", "
	}
	return text + "waited in " + Count(slow, "half hour", "half hours")
}

// The measures of a bar, in pixels.
const (
	barStep   = 5
	barWidth  = 4
	barHeight = 24
	barLow    = 2 // of nothing
	barFirst  = 7 // of one outcome
	barShare  = 3 // of each kind of outcome, at least
	barFull   = 1000
)

// barScale returns the height for a number of outcomes. It is logarithmic, so that 1 and 200 can both
// be seen and told apart, and the same for all bars, so that they can be compared.
func barScale(n int) int {
	if n == 0 {
		return 0
	}
	part := math.Log(float64(n)) / math.Log(barFull)
	return min(barFirst+int(math.Round(part*(barHeight-barFirst))), barHeight)
}

// Width and Height are the size of the picture of a bar.
func (b *Bar) Width() int  { return BarParts*barStep - 1 }
func (b *Bar) Height() int { return barHeight }

// Low returns the path of the marks of parts that have nothing.
func (b *Bar) Low() string {
	var out strings.Builder
	for i, p := range b.Parts {
		if p.Count() == 0 {
			fmt.Fprintf(&out, "M%d %dh%dv%dh-%dz", i*barStep, barHeight-barLow, barWidth, barLow, barWidth)
		}
	}
	return out.String()
}

// Marks are the marks of one kind of outcome in the picture of a bar.
type Marks struct{ Class, Path string }

// Marks returns the marks of the outcomes. They are few paths, because a page has many bars.
func (b *Bar) Marks() (out []Marks) {
	var paths [3]strings.Builder
	var classes [3]string
	for i, p := range b.Parts {
		y := barHeight
		for k, s := range p.shares() {
			classes[k] = s.class
			if s.height > 0 {
				y -= s.height
				fmt.Fprintf(&paths[k], "M%d %dh%dv%dh-%dz", i*barStep, y, barWidth, s.height, barWidth)
			}
		}
	}
	for k := range paths {
		if paths[k].Len() > 0 {
			out = append(out, Marks{classes[k], paths[k].String()})
		}
	}
	return out
}

// X and Step are where a part begins in the picture, and its width.
func (h Half) X() int    { return h.Index * barStep }
func (h Half) Step() int { return barStep }

// share is the mark of one kind of outcome.
type share struct {
	class  string
	n      int
	height int
}

// shares divides the height of a part among its kinds of outcomes, by the scale and not by the numbers,
// so that one failure among 200 deliveries can be seen.
func (p BarPart) shares() []share {
	out := []share{{"failed", p.Failed, 0}, {"waited", p.Waited, 0}, {"delivered", p.Delivered, 0}}
	sum, kinds := 0, 0
	for _, s := range out {
		if sum += barScale(s.n); s.n > 0 {
			kinds++
		}
	}
	left := max(barScale(p.Count()), kinds*barShare)
	for i := range out {
		s := &out[i]
		if s.n == 0 {
			continue
		}
		if kinds--; kinds == 0 {
			s.height = left
			break
		}
		s.height = min(max(barScale(p.Count())*barScale(s.n)/sum, barShare), left-kinds*barShare)
		left -= s.height
	}
	return out
}
