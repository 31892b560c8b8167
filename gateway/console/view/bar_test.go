package view

import (
	"encoding/xml"
	"errors"
	"html/template"
	"io"
	"strings"
	"testing"
)

// TestBar checks that a bar is well-formed, says its numbers, and has a link to the messages of each
// half hour that has something, as a mark and in the list.
func TestBar(t *testing.T) {
	b := Bar{End: noon, Started: true, Messages: "../messages?key=a&half="}
	b.Parts[0] = BarPart{Delivered: 3}
	b.Parts[46] = BarPart{Delivered: 1000, Waited: 1, Failed: 1}
	b.Parts[47] = BarPart{Waited: 7, Failed: 1}
	if got, want := b.Sum(), "2 failed, 1003 delivered, waited in 2 half hours"; got != want {
		t.Errorf("the sum is %q; want %q", got, want)
	}
	var out strings.Builder
	if err := template.Must(layout().Clone()).ExecuteTemplate(&out, "bar", &b); err != nil {
		t.Fatal(err)
	}
	svg, list, _ := strings.Cut(out.String(), "</svg>")
	_, svg, _ = strings.Cut(svg+"</svg>", `<div class="bars">`)
	if want := `<li><a href="../messages?key=a&amp;half=20260228T1200Z"><span><time`; !strings.Contains(list, want) {
		t.Errorf("the list lacks %s: %s", want, list)
	}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v: %s", err, svg)
		}
	}
	if n := strings.Count(svg, "<title"); n != 3 {
		t.Errorf("%d tooltips", n)
	}
	for _, part := range []string{
		`<a href="../messages?key=a&amp;half=20260228T1200Z" tabindex="-1"><title data-part="0">12:00–12:30 UTC: 3 delivered</title>`,
		`<title data-part="46">11:00–11:30 UTC: 1 failed, 1 waited, 1000 delivered</title>`,
		`<title data-part="47">11:30–12:00 UTC: 1 failed, 7 waited</title>`, `M225 22h4v2h-4z"/>`,
	} {
		if !strings.Contains(svg, part) {
			t.Errorf("the bar lacks %s: %s", part, svg)
		}
	}
	all := b.Halves()
	if len(all) != 3 || all[0].Words() != "1 failed, 7 waited" || !all[0].Until.Equal(noon) ||
		all[2].Address != "../messages?key=a&half=20260228T1200Z" {
		t.Errorf("the list has %v", all)
	}
	// A row of a list of keys lists what failed or waited; without either, its numbers lead to the key.
	for _, tt := range []struct {
		bar   *Bar
		links int
		sum   string
	}{
		{&b, 2, "<summary>"},
		{&Bar{End: noon, Parts: [BarParts]BarPart{{Delivered: 5}}}, 0, `<a class="sum" href="../keys/a"><span`},
	} {
		var out strings.Builder
		if err := template.Must(layout().Clone()).ExecuteTemplate(&out, "key-bar", ListedKey{Address: "../keys/a", Bar: tt.bar}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "<li>"); n != tt.links || !strings.Contains(out.String(), tt.sum) {
			t.Errorf("%d half hours, want %d and %s: %s", n, tt.links, tt.sum, &out)
		}
	}
	empty := &Bar{End: noon}
	if got := empty.Sum(); got != "nothing" || empty.Halves() != nil {
		t.Errorf("an empty bar says %q", got)
	}
}

// TestBarScale checks the heights of the marks of a part: more is higher, 1 and 200 can be told apart
// and seen, also beside others, and nothing is higher than the bar. All full parts were alike once.
func TestBarScale(t *testing.T) {
	heights := func(p BarPart) (failed, all int) {
		for _, s := range p.shares() {
			if all += s.height; s.class == "failed" {
				failed = s.height
			}
			if (s.height > 0) != (s.n > 0) {
				t.Errorf("%+v: %d %s are %d high", p, s.n, s.class, s.height)
			}
		}
		if all > barHeight {
			t.Errorf("%+v is %d high", p, all)
		}
		return failed, all
	}
	for _, c := range []struct{ less, more BarPart }{
		{BarPart{Failed: 1}, BarPart{Failed: 200}},
		{BarPart{Failed: 1}, BarPart{Failed: 20}},
		{BarPart{Failed: 20}, BarPart{Failed: 200}},
		{BarPart{Failed: 1, Delivered: 200}, BarPart{Failed: 200, Delivered: 200}},
		{BarPart{Failed: 1, Waited: 5, Delivered: 5000}, BarPart{Failed: 5000, Waited: 5, Delivered: 5}},
	} {
		less, _ := heights(c.less)
		more, _ := heights(c.more)
		if more < less+4 {
			t.Errorf("the failures of %+v are %d high, those of %+v %d", c.less, less, c.more, more)
		}
	}
	for _, n := range []int{1, 2, 3, 10, 1000, 1 << 40} {
		heights(BarPart{n, n, n})
		heights(BarPart{n, 1, 1})
		heights(BarPart{1, 0, n})
	}
}
