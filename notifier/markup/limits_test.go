package markup

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

func TestFit(t *testing.T) {
	long := strings.Repeat("0123456789", 30)
	for _, test := range []struct {
		name           string
		limits         Limits
		title, body    string
		format, source Format
		mode           Overflow
		want           []Part
	}{
		{"white space at the ends", Limits{Title: 10, Body: 10}, " t ", " b \n", Text, Text, OverflowUpstream, []Part{{"t", " b"}}},
		{"nothing at all", Limits{Title: 10, Body: 10}, "", "", Text, Text, OverflowSplit, []Part{{}}},
		{"upstream cuts nothing", Limits{Title: 1, Body: 1}, "title", "body", Text, Text, OverflowUpstream, []Part{{"title", "body"}}},
		{"no mode is upstream", Limits{Title: 1, Body: 1}, "title", "body", Text, Text, "", []Part{{"title", "body"}}},
		{"no limit", Limits{Title: 5}, "title", long, Text, Text, OverflowSplit, []Part{{"title", long}}},

		{"title into text", Limits{}, "title", "body", Text, Text, OverflowUpstream, []Part{{"", "title\r\nbody"}}},
		{"title into HTML", Limits{}, "title", "body", HTML, Text, OverflowUpstream, []Part{{"", "<b>title</b><br />\r\nbody"}}},
		{"title into Markdown", Limits{}, "- # title", "body", Markdown, Text, OverflowUpstream, []Part{{"", "# title\nbody"}}},
		{"title into what was HTML", Limits{}, "title", "body", Markdown, HTML, OverflowUpstream, []Part{{"", "# title\nbody"}}},
		{"title into what was Markdown", Limits{}, "# title", "body", Markdown, Markdown, OverflowUpstream, []Part{{"", "# title\r\nbody"}}},
		{"title of marks only", Limits{}, "---", "body", Markdown, Text, OverflowUpstream, []Part{{"", "body"}}},
		{"title alone", Limits{}, "title", "", Text, Text, OverflowUpstream, []Part{{"", "title"}}},

		{"lines", Limits{Title: 5, Body: 99, Lines: 2}, "", "a\r\nb\r\nc", Text, Text, OverflowUpstream, []Part{{"", "a\r\nb"}}},
		{"lines, the title's too", Limits{Body: 99, Lines: 2}, "t", "a\nb", Text, Text, OverflowUpstream, []Part{{"", "t\r\na"}}},
		{"few lines", Limits{Title: 5, Body: 99, Lines: 3}, "", "a\nb", Text, Text, OverflowUpstream, []Part{{"", "a\nb"}}},

		{"truncated", Limits{Title: 5, Body: 6}, "title and more", "body and more", Text, Text, OverflowTruncate, []Part{{"title", "body a"}}},
		{"truncated after a space", Limits{Title: 5, Body: 5}, "t", "body and more", Text, Text, OverflowTruncate, []Part{{"t", "body"}}},
		{"as long as possible", Limits{Title: 5, Body: 4}, "title", "body", Text, Text, OverflowTruncate, []Part{{"title", "body"}}},
		{"code points", Limits{Title: 2, Body: 3}, "漢字漢", "äöüß", Text, Text, OverflowTruncate, []Part{{"漢字", "äöü"}}},
		{"bytes", Limits{Title: 6, Body: 5, Unit: UTF8Bytes}, "漢字漢", "äöüß", Text, Text, OverflowTruncate, []Part{{"漢字", "äö"}}},
		{
			"parts in bytes",
			Limits{Title: 6, Body: 4, Unit: UTF8Bytes},
			"", "äöü a漢",
			Text, Text, OverflowSplit,
			[]Part{{"", "äö"}, {"", "ü"}, {"", "a漢"}},
		},
		{"UTF-16", Limits{Title: 6, Body: 3, Unit: UTF16Units}, "", "a🙂🙂", Text, Text, OverflowSplit, []Part{{"", "a🙂"}, {"", "🙂"}}},
		{
			"a character longer than the room",
			Limits{Title: 6, Body: 2, Unit: UTF8Bytes},
			"", "漢字", Text, Text, OverflowSplit,
			[]Part{{"", "漢"}, {"", "字"}},
		},
		{"reference not truncated", Limits{Title: 5, Body: 5}, "", "abc&amp;def", HTML, Text, OverflowTruncate, []Part{{"", "abc"}}},

		{
			"title in the body's room",
			Limits{Title: 250, Body: 32, InBody: true},
			"title", strings.Repeat("b", 40), Text, Text, OverflowTruncate,
			[]Part{{"title", strings.Repeat("b", 32-5-12)}},
		},
		{
			"no title in the body's room",
			Limits{Title: 250, Body: 32, InBody: true},
			"", strings.Repeat("b", 40), Text, Text, OverflowTruncate,
			[]Part{{"", strings.Repeat("b", 32)}},
		},
		{
			"reserve",
			Limits{Title: 250, Body: 32, InBody: true, Reserve: 2},
			"", strings.Repeat("b", 40), Text, Text, OverflowTruncate,
			[]Part{{"", strings.Repeat("b", 30)}},
		},

		{
			"reserve in every part",
			Limits{Title: 100, Body: 6, Reserve: 2},
			"t", "abc def ghi",
			Text, Text, OverflowSplit,
			[]Part{{"t", "abc"}, {"t", "def"}, {"t", "ghi"}},
		},
		{
			"reserve after the title",
			Limits{Title: 100, Body: 20, Reserve: 2, InBody: true},
			"t", "0123 abcdefghijklmnopqrs", Text, Text, OverflowSplit,
			[]Part{{"t", "0123"}, {"", "abcdefghijklmnopqr"}, {"", "s"}},
		},
		{
			"short title repeated",
			Limits{Title: 100, Body: 4},
			"t", "abc def ghi",
			Text, Text, OverflowSplit,
			[]Part{{"t", "abc"}, {"t", "def"}, {"t", "ghi"}},
		},
		{
			"parts counted",
			Limits{Title: 250, Body: 4},
			"t", "abc def ghi", Text, Text,
			OverflowSplit,
			[]Part{{"t [1/3]", "abc"}, {"t [2/3]", "def"}, {"t [3/3]", "ghi"}},
		},
		{"no title, no counter", Limits{Title: 250, Body: 4}, "", "abc def", Text, Text, OverflowSplit, []Part{{"", "abc"}, {"", "def"}}},
		{"merged title not repeated", Limits{Body: 4}, "t", "abc def", Text, Text, OverflowSplit, []Part{{"", "t"}, {"", "abc"}, {"", "def"}}},
		{
			"little room shared",
			Limits{Title: 250, Body: 20, InBody: true},
			"t", "0123456789abcdefghijklmnopqrstuv", Text, Text, OverflowSplit,
			[]Part{{"t", "0123456"}, {"", "789abcdefghijklmnopq"}, {"", "rstuv"}},
		},
		{
			"no room left",
			Limits{Title: 250, Body: 14, InBody: true},
			"ti", "0123456789abcdef", Text, Text, OverflowSplit,
			[]Part{{"ti", ""}, {"", "0123456789abcd"}, {"", "ef"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.limits.Fit(test.title, test.body, test.format, test.source, test.mode)
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The length of title and body together, with the line break between them, is
// within the limit that they share.
func TestFitSharedRoomCounted(t *testing.T) {
	body := strings.TrimSpace(strings.Repeat("some words that fill the line ", 500))
	parts := Limits{Title: 250, Body: 2000, InBody: true}.Fit("Long log", body, Text, Text, OverflowSplit)
	var all []string
	for i, p := range parts {
		if want := fmt.Sprintf("Long log [%d/%d]", i+1, len(parts)); p.Title != want {
			t.Errorf("part %d is titled %q", i, p.Title)
		}
		if n := len(p.Title) + len("\r\n") + len(p.Body); n > 2000 || n < 1900 && i < len(parts)-1 {
			t.Errorf("the length of part %d is %d", i, n)
		}
		all = append(all, p.Body)
	}
	if strings.Join(all, " ") != body {
		t.Error("the parts are not the whole text")
	}
}

func TestFitLongTitleCounted(t *testing.T) {
	parts := Limits{Title: 140, Body: 1}.Fit(strings.Repeat("t", 300), strings.Repeat("b", 12), Text, Text, OverflowSplit)
	if len(parts) != 12 {
		t.Fatalf("got %d parts", len(parts))
	}
	if want := strings.Repeat("t", 140-len(" [01/12]")) + " [01/12]"; parts[0].Title != want {
		t.Errorf("got %q, want %q", parts[0].Title, want)
	}
}

func TestFitCuts(t *testing.T) {
	long := strings.Repeat("0123456789", 3)
	for _, test := range []struct {
		name   string
		format Format
		room   int
		body   string
		want   []string
	}{
		{"after line breaks", Text, 12, "a b\nc d\ne f g h", []string{"a b\nc d", "e f g h"}},
		{"after spaces", Text, 8, "abc def ghi", []string{"abc def", "ghi"}},
		{"after tabs", Text, 6, "abc\tdef", []string{"abc", "def"}},
		{"after punctuation", Text, 6, "abcd.efghi", []string{"abcd.", "efghi"}},
		{"after punctuation that is wider", Text, 4, "漢字。漢字漢字", []string{"漢字。", "漢字漢字"}},
		{"punctuation far from the end", Text, 9, "a.bcdefghijk", []string{"a.bcdefgh", "ijk"}},
		{"anywhere", Text, 4, "abcdefghij", []string{"abcd", "efgh", "ij"}},
		{"between code points", Text, 2, "😀😀😀", []string{"😀😀", "😀"}},
		{"indentation stays", Text, 4, "abc\n  d", []string{"abc", "  d"}},
		{"blank parts are left out", Text, 2, "a\n\n\n\n\n\nb", []string{"a", "b"}},

		{"not in a reference", HTML, 6, "abcd&amp;efg", []string{"abcd", "&amp;e", "fg"}},
		{"not in a tag", HTML, 12, `ab <a href="x">cd</a>`, []string{"ab", `<a href="x">`, "cd</a>"}},
		{"in a tag that is too long", HTML, 14, `<a href="` + long + `">bcdefghijk</a>`, []string{"<a>bcdefgh</a>", "<a>ijk</a>"}},
		{"text has no tags", Text, 6, "a <b c>", []string{"a <b", "c>"}},
		{"text has no references", Text, 6, "abcd&amp;", []string{"abcd&a", "mp;"}},

		{"not in a link", Markdown, 20, "see the [log file](https://a.b) x", []string{"see the [log", "file](https://a.b) x"}},
		{"not in a link that fits", Markdown, 24, "see the [log file](https://a.b) x", []string{"see the", "[log file](https://a.b)", "x"}},
		{"not in a picture", Markdown, 12, "abcdefgh ![i](b)", []string{"abcdefgh", "![i](b)"}},
		{"not in a linked picture", Markdown, 14, "abc [![i j](b)](c)d", []string{"abc", "[![i j](b)](c)", "d"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, p := range (Limits{Title: 9, Body: test.room}).Fit("", test.body, test.format, test.format, OverflowSplit) {
				got = append(got, p.Body)
				if n := utf8.RuneCountInString(p.Body); n > test.room {
					t.Errorf("the length of %q is %d", p.Body, n)
				}
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A destination for plain text gets Markdown unchanged, so that its links must
// not be divided there either.
func TestFitKeepsMarkdownLinksInText(t *testing.T) {
	parts := Limits{Title: 9, Body: 12}.Fit("", "ab [c d](x)", Text, Markdown, OverflowTruncate)
	if want := []Part{{"", "ab [c d](x)"}}; !reflect.DeepEqual(parts, want) {
		t.Errorf("got %q, want %q", parts, want)
	}
	parts = Limits{Title: 9, Body: 9}.Fit("", "ab [c d](x)", Text, Markdown, OverflowTruncate)
	if want := []Part{{"", "ab"}}; !reflect.DeepEqual(parts, want) {
		t.Errorf("got %q, want %q", parts, want)
	}
}

// Cutting allocates about as much as it returns. With the race detector, more is allocated.
func TestFitCost(t *testing.T) {
	racetest.SkipIfSlow(t)
	const mega = 1 << 20
	for _, unit := range []string{"&a;", "[a](b)", "<a>", "[", "<a", "![a](b", "[![a](b)", "a "} {
		body := strings.Repeat(unit, mega/len(unit))
		for _, format := range []Format{Text, Markdown, HTML} {
			if n := allocated(func() { Limits{Body: 2000}.Fit("", body, format, format, OverflowSplit) }); n > 4*mega {
				t.Errorf("%s of %q: %d bytes are allocated for %d", format, unit, n, mega)
			}
		}
	}
}

// TestWholePieces checks which pieces are not divided.
func TestWholePieces(t *testing.T) {
	first := func(s string, format Format) string {
		o := outline{format: format, text: s, room: 100}
		return s[:o.next().end]
	}
	for s, want := range map[string]string{
		"<a b=c>d>": "<a b=c>", "</a>": "</a>", "<!-- a > b -->c": "<!-- a > b -->",
		"<": "<", "<a": "<", "<a <b>": "<", "<1>": "<", `<a b="c>d">e`: `<a b="c>d">`,
		"<style>a<b></style>c": "<style>a<b></style>", "<!-- a": "<", "a\u0301b": "a\u0301", "\r\n": "\r\n",
		"&amp;;": "&amp;", "&#10;": "&#10;", "&#;": "&", "&a": "&", "& a;": "&", "&" + strings.Repeat("a", 32) + ";": "&",
	} {
		if got := first(s, HTML); got != want {
			t.Errorf("%q begins with %q, want %q", s, got, want)
		}
	}
	for s, want := range map[string]string{
		"[a](b)c)": "[a](b)", "![a](b)": "![a](b)", "[a b](c \"d)e\")": "[a b](c \"d)e\")",
		"[a](b(c)d)": "[a](b(c)d)", "[](": "[", "[]()": "[]()",
		"[![a](b) ![c](d)](e)": "[![a](b) ![c](d)](e)", "[[a](b)](c)": "[", "[a] (b)": "[",
		"[a](b c)": "[", "[a](b((c)))": "[", "[a](b": "[", "[a](b \"c": "[",
		"[a](b\"c\")": "[a](b\"c\")", "[!a](b)": "[!a](b)", "!a": "!",
		"[a](b \"c\nd\")": "[", "[a [b] c](d)e": "[a [b] c](d)", "[a](<b c>)d": "[a](<b c>)",
		"`a``b`c": "`a``b`", "``a`b``c": "``a`b``", "`a": "`", "`[`](a)": "`[`",
		"[a`](b)`](c)d": "[a`](b)`](c)", "\\*a*": "\\*", "\\a": "\\", "<@1>a": "<@1>",
	} {
		if got := first(s, Markdown); got != want {
			t.Errorf("%q begins with %q, want %q", s, got, want)
		}
	}
}

func TestFitMaxParts(t *testing.T) {
	const mega = 1 << 20
	for name, body := range map[string]string{
		"letters":  strings.Repeat("a", mega),
		"words":    strings.Repeat("a ", mega/2),
		"lines":    strings.Repeat("a\n", mega/2),
		"brackets": strings.Repeat("[", mega),
		"links":    strings.Repeat("[a](b)", mega/6),
		"tags":     strings.Repeat("<a ", mega/3),
		"bytes":    strings.Repeat("\xff", mega),
	} {
		for _, inBody := range []bool{true, false} {
			for _, format := range []Format{Text, Markdown, HTML} {
				for _, room := range []int{1, 7} {
					parts := Limits{Title: 250, Body: room, InBody: inBody}.Fit("t", body, format, format, OverflowSplit)
					if len(parts) != MaxParts {
						t.Fatalf("%s, %s: %d parts", name, format, len(parts))
					}
					last := parts[MaxParts-1].Body
					if !strings.HasSuffix(last, "…") || utf8.RuneCountInString(last) > room {
						t.Errorf("%s, %s: the last part is %q", name, format, last)
					}
				}
			}
		}
	}
	parts := Limits{Title: 250, Body: 1}.Fit("t", strings.Repeat("a", MaxParts), Text, Text, OverflowSplit)
	if got, want := parts[MaxParts-1], (Part{"t [500/500]", "a"}); got != want {
		t.Errorf("as many parts as possible: the last is %q, want %q", got, want)
	}
	parts = Limits{Title: 250, Body: 1}.Fit("t", strings.Repeat("\n", mega)+"a", Text, Text, OverflowSplit)
	if want := []Part{{"t", "a"}}; !reflect.DeepEqual(parts, want) {
		t.Errorf("blank lines: got %q, want %q", parts, want)
	}
}
