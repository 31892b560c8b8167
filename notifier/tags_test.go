package notifier

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// parseTagsJSON parses a tag expression from JSON, as in a request.
func parseTagsJSON(t *testing.T, text string) (TagExpr, error) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s is not JSON: %v", text, err)
	}
	return ParseTags(v)
}

func TestParseTags(t *testing.T) {
	for _, test := range []struct{ json, want string }{
		// Commas and bars are OR; white space, plus and ampersand are AND
		// and bind tighter.
		{`"a"`, "a"},
		{`"a,b"`, "a,b"},
		{`"a|b"`, "a,b"},
		{`"a b"`, "a b"},
		{`"a+b"`, "a b"},
		{`"a & b"`, "a b"},
		{`"a\tb\nc"`, "a b c"},
		{`"a b, c d | e"`, "a b,c d,e"},

		// Case, repetition and extra separators have no effect, nor has the
		// order of an AND. The order of an OR decides about chains.
		{`"B,A,b"`, "b,a"},
		{`"Ops OPS ops"`, "ops"},
		{`"b a,a b"`, "a b"},
		{`" , a ,, + b |"`, "a,b"},
		{`"db-1,x_2,7"`, "db-1,x_2,7"},

		// The outer array is OR, inner arrays are AND, and each string in them
		// is an expression.
		{`["a","b"]`, "a,b"},
		{`["a b","c,d"]`, "a b,c,d"},
		{`[["a","b"]]`, "a b"},
		{`["a",["b","c"]]`, "a,b c"},
		{`[["a,b","c"]]`, "a c,b c"},
		{`[["a,b","c,d"]]`, "a c,a d,b c,b d"},
		{`[["a",["b",["c"]]]]`, "a b c"},

		// all is a tag like any other here.
		{`"all"`, "all"},
		{`"a,ALL"`, "a,all"},
		{`"all b"`, "all b"},
		{`[["all","b"],["all"]]`, "all b,all"},

		// Numbers before and after a tag.
		{`"2:ops"`, "2:ops"},
		{`"ops:3, 02:Ops:03|0:a"`, "ops:3,2:ops:3,0:a"},
		{`"7:2"`, "7:2"},
		{`"7:2:1"`, "7:2:1"},
		{`"ops:99"`, "ops:10"},
		{`"99999999999999999999:ops"`, "2147483646:ops"},
		{`["2:a b:1", ["a", "3:a"]]`, "2:a b:1,a 3:a"},

		// Empty expressions.
		{`null`, ""},
		{`""`, ""},
		{`" , | + & "`, ""},
		{`[]`, ""},
		{`[[]]`, ""},
		{`["", [" "]]`, ""},
		{`[["a",""]]`, "a"},
	} {
		e, err := parseTagsJSON(t, test.json)
		if err != nil {
			t.Errorf("%s: %v", test.json, err)
			continue
		}
		if got := e.String(); got != test.want {
			t.Errorf("%s: got %q, want %q", test.json, got, test.want)
		}
		if e.Empty() != (test.want == "") {
			t.Errorf("%s: Empty is %v", test.json, e.Empty())
		}
	}
}

func TestParseTagsErrors(t *testing.T) {
	deep := strings.Repeat("[", maxTagDepth+1) + `"a"` + strings.Repeat("]", maxTagDepth+1)
	product := `["a0,a1,a2,a3,a4,a5,a6,a7"` + strings.Repeat(`,"b0,b1,b2,b3,b4,b5,b6,b7"`, 3) + `,"c0,c1,c2,c3"]`
	for _, test := range []struct{ json, want string }{
		{`"a$b"`, `'$'`},
		{`"a:b"`, "a colon in a tag is for numbers"},
		{`"ops:"`, "a colon in a tag is for numbers"},
		{`":ops"`, "a colon in a tag is for numbers"},
		{`"2:"`, "a colon in a tag is for numbers"},
		{`"ops:3:4"`, "a colon in a tag is for numbers"},
		{`"1:2:ops"`, "a colon in a tag is for numbers"},
		{`"2:-a"`, "a colon in a tag is for numbers"},
		{`"a.b"`, `'.'`},
		{`"ä"`, `'ä'`},
		{`"a\u0000"`, `'\x00'`},
		{`"-a"`, `"-"`},
		{`"a,_b"`, `"_"`},
		{`["a","b;c"]`, `';'`},
		{`{"a":1}`, "text or an array"},
		{`5`, "text or an array"},
		{`true`, "text or an array"},
		{`[5]`, "texts and arrays of texts"},
		{`["a",null]`, "texts and arrays of texts"},
		{`[["a",{}]]`, "texts and arrays of texts"},
		{deep, "8 arrays deep"},
		{`"` + strings.Repeat("a,", maxTagTerms) + `a"`, "1024 tags"},
		{`[""` + strings.Repeat(`,""`, maxTagTerms) + `]`, "1024 tags"},
		{`[` + product + `]`, "1024 tags"},
		{`"` + strings.Repeat("a", maxTagText+1) + `"`, "16 KiB"},
	} {
		e, err := parseTagsJSON(t, test.json)
		name := test.json[:min(len(test.json), 40)]
		if _, ok := errors.AsType[*TagError](err); !ok {
			t.Errorf("%s: got %v and error %v, want a TagError", name, e, err)
		} else if !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %q does not contain %q", name, err, test.want)
		}
	}
}

func TestTagExprMatch(t *testing.T) {
	for _, test := range []struct {
		expr string
		tags string
		want bool
	}{
		{"ops", "ops", true},
		{"OPS", "Ops", true},
		{"ops", "db ops", true},
		{"ops", "db", false},
		{"ops", "", false},
		{"ops", "opsx", false},
		{"ops db", "ops", false},
		{"ops db", "db ops", true},
		{"ops db, admins", "admins", true},
		{"ops db, admins", "ops", false},
		{"all", "", true},
		{"all", "ops", true},
		{"all ops", "db", false},
		{"ops", "always", true},
		{"ops db", "Always x", true},
		{"always", "ops", false},
		{"ops", "all", false},
		{"", "", true},
		{"", "ops", true},
		{"ops", "2:ops", true},
		{"2:ops", "2:Ops", true},
		{"2:ops", "ops 1:ops", false},
		{"0:ops", "ops", true},
		{"2:ops", "3:always", true},
		{"ops:3", "ops", true},
		{"2:all", "ops", true},
	} {
		e, err := ParseTags(test.expr)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Match(strings.Fields(test.tags)); got != test.want {
			t.Errorf("%q for a destination tagged %q: got %v", test.expr, test.tags, got)
		}
	}
}

func TestTagExprMatchAllocatesNothing(t *testing.T) {
	e, err := ParseTags("ops db, 3:admins, x y z:2")
	if err != nil {
		t.Fatal(err)
	}
	tags := []string{"Ops", "2:staging", "1:Z"}
	if n := testing.AllocsPerRun(100, func() { e.Match(tags) }); n != 0 {
		t.Errorf("Match allocates %v times", n)
	}
}

func TestValidTag(t *testing.T) {
	for _, s := range []string{"a", "A-b_9", "0", "9-"} {
		if !ValidTag(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"", "-a", "_a", "a b", "a,b", "a:b", "ä", "aä", "a$"} {
		if ValidTag(s) {
			t.Errorf("%q is accepted", s)
		}
	}
}

func FuzzTags(f *testing.F) {
	for _, s := range []string{"a", "a b,c", "a+b|c & d", "all", "-a", "a:b", `["a",["b,c","d"]]`, `[[["a"]]]`, `["a$"]`, `[5]`, "ſ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		values := []any{s}
		var v any
		if json.Unmarshal([]byte(s), &v) == nil {
			values = append(values, v)
		}
		for _, v := range values {
			e, err := ParseTags(v)
			if err != nil {
				continue
			}
			again, err := ParseTags(e.String())
			if err != nil {
				t.Fatalf("%q, the expression of %q, is refused: %v", e.String(), s, err)
			}
			if !e.Empty() && !reflect.DeepEqual(e, again) || e.Empty() != again.Empty() {
				t.Fatalf("%q reads as %q, and that as %q", s, e, again)
			}
			for g := range strings.SplitSeq(e.String(), ",") {
				var tags []string
				for term := range strings.FieldsSeq(g) {
					if parsed, _ := parseTerm(term); parsed.number > 0 {
						parsed.attempts = 0
						term = parsed.String()
					} else {
						term = parsed.name
					}
					tags = append(tags, term)
				}
				if slices.ContainsFunc(tags, func(t string) bool { _, n := SplitTag(t); return strings.Count(" "+strings.Join(tags, " "), n) > 1 }) {
					continue // the same tag with two numbers fits nothing
				}
				if !e.Match(tags) {
					t.Fatalf("%q does not match a destination with the tags %q", e, g)
				}
			}
		}
	})
}

// TestTagExprSelect checks that numbers of tags mean the same as in Apprise 1.13.
func TestTagExprSelect(t *testing.T) {
	// Each destination is written as its tags, and each result as the index of
	// the destination, with chain, number and tries.
	for _, tt := range []struct {
		expr    string
		targets []string
		want    string
	}{
		{"ops", []string{"ops", "1:ops", "2:ops", "db"}, "0=ops/0 1=ops/1 2=ops/2"},
		{"OPS", []string{"1:Ops", "always", "10:ops"}, "0=ops/1 1=/0 2=ops/10"},
		{"2:ops", []string{"ops", "1:ops", "2:ops", "2:always"}, "2=/0 3=/0"},
		{"0:ops", []string{"ops", "0:ops", "1:ops"}, "0=/0 1=/0"},
		{"2:ops,db", []string{"2:ops", "1:db", "2:db"}, "0=/0 1=/0 2=/0"}, // one number makes all flat
		{"a,b", []string{"1:a 2:b", "1:b", "3:a"}, "0=a/1 1=b/1 2=a/3"},   // the first term that fits
		{"b,a", []string{"1:a 2:b", "1:b", "3:a"}, "0=b/2 1=b/1 2=a/3"},
		{"a b", []string{"3:a 2:b", "1:a b", "1:a"}, "0=/2 1=/0"}, // the lowest number of both
		{"a b,c", []string{"3:a 2:b", "1:c", "3:a 4:b 2:c"}, "0=/2 1=c/1 2=c/2"},
		{"all", []string{"1:ops", "2:ops"}, "0=/0 1=/0"},
		{"", []string{"1:ops", "2:ops", ""}, "0=/0 1=/0 2=/0"},
		{"ops,all", []string{"1:ops", "2:ops", ""}, "0=ops/1 1=ops/2 2=/0"},
		{"all ops", []string{"1:ops", "2:ops", ""}, "0=/1 1=/2"},
		{"ops:3", []string{"ops", "2:ops", "always"}, "0=ops/0*4 1=ops/2*4 2=/0"},
		{"ops:0", []string{"ops"}, "0=ops/0*1"},
		{"ops:99", []string{"ops"}, "0=ops/0*11"},
		{"2:ops:3", []string{"ops", "2:ops"}, "1=/0*4"},
		{"a:1,b:2", []string{"a b", "b", "a"}, "0=a/0*2 1=b/0*3 2=a/0*2"},
		{"b,a:1 b", []string{"a b", "b"}, "0=b/0*2 1=b/0"},
		{"2:a:1,b:2", []string{"1:a b", "2:a b"}, "0=/0*3 1=/0*2"},
		{"7:2", []string{"7:2", "2"}, "0=/0"}, // the tag 2 with the number 7
		{"ops", []string{"3:ops 1:ops"}, "0=ops/1"},
	} {
		e, err := ParseTags(tt.expr)
		if err != nil {
			t.Fatalf("%s: %v", tt.expr, err)
		}
		var targets []Target
		for i, tags := range tt.targets {
			targets = append(targets, Target{Tags: strings.Fields(tags), Progress: &Progress{id: strconv.Itoa(i)}})
		}
		var got []string
		for _, x := range e.Select(targets) {
			s := fmt.Sprintf("%s=%s/%d", x.Progress.id, x.Chain, x.Number)
			if x.Attempts > 0 {
				s += fmt.Sprintf("*%d", x.Attempts)
			}
			got = append(got, s)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%q for %q: got %s, want %s", tt.expr, tt.targets, s, tt.want)
		}
	}
}
