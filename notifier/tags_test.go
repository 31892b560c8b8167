package notifier

import (
	"encoding/json"
	"errors"
	"reflect"
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

		// Order, case, repetition and extra separators have no effect.
		{`"B,A"`, "a,b"},
		{`"Ops OPS ops"`, "ops"},
		{`"b a,a b"`, "a b"},
		{`" , a ,, + b |"`, "a,b"},
		{`"db-1,x_2,7"`, "7,db-1,x_2"},

		// The outer array is OR, inner arrays are AND, and each string in them
		// is an expression.
		{`["a","b"]`, "a,b"},
		{`["a b","c,d"]`, "a b,c,d"},
		{`[["a","b"]]`, "a b"},
		{`["a",["b","c"]]`, "a,b c"},
		{`[["a,b","c"]]`, "a c,b c"},
		{`[["a,b","c,d"]]`, "a c,a d,b c,b d"},
		{`[["a",["b",["c"]]]]`, "a b c"},

		// all matches everything: it makes an OR match, and has no effect in an
		// AND.
		{`"all"`, "all"},
		{`"a,ALL"`, "all"},
		{`"all b"`, "b"},
		{`[["all","b"],["all"]]`, "all"},

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
		{`"a:b"`, `':'`},
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
	e, err := ParseTags("ops db, admins, x y z")
	if err != nil {
		t.Fatal(err)
	}
	tags := []string{"Ops", "staging", "Z"}
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
				if !e.Match(strings.Fields(g)) {
					t.Fatalf("%q does not match a destination with the tags %q", e, g)
				}
			}
		}
	})
}
