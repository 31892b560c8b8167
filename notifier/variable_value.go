package notifier

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// Destination returns the result of parse for the URL that [VariableURL.Fill] returns for values.
// It also returns an error if a value does not stay in the place of its variable. To find out, it
// compares the destination with one made from harmless values: both must have the same number of
// items in each list and the same text around each value, and no value may add a dot segment.
func (v *VariableURL) Destination(values map[string]string, parse func(url string) (*Destination, error)) (*Destination, error) {
	url, err := v.Fill(values)
	if err != nil {
		return nil, err
	}
	d, err := parse(url)
	if err != nil || len(values) == 0 {
		return d, err
	}
	if !v.stays(d, values) {
		d.Close()
		return nil, errBadValue
	}
	return d, nil
}

// stays reports whether values stay in the places of their variables in d.
func (v *VariableURL) stays(d *Destination, values map[string]string) bool {
	parsed, texts := false, true
	for _, value := range values {
		texts = texts && strings.ContainsFunc(value, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	}
	for _, harmless := range harmlessValues {
		words := map[string]string{}
		var of []string
		for i, m := range v.marks() {
			name := strings.ToLower(m.name)
			value, ok := values[name]
			if !ok || words[name] != "" {
				continue
			}
			if words[name] = value; !v.isClosed(m) {
				words[name] = harmless(value, i)
				of = append(of, strings.ToLower(words[name]))
			}
		}
		url, err := v.Fill(words)
		if err != nil || slices.Contains(of, "") {
			continue
		}
		want, err := ParseWithFiles(url, nil, Files{Dir: ".", Unread: true})
		if err != nil {
			continue
		}
		same := d.isLike(want, of, texts)
		want.Close()
		if same {
			return true
		}
		parsed = true
	}
	if parsed {
		return false
	}
	for _, m := range v.marks() { // only a few texts are possible there
		if value, ok := values[strings.ToLower(m.name)]; ok && !v.isClosed(m) && !isWord(value) {
			return false
		}
	}
	return true
}

// marks returns the places of the variables of v.
func (v *VariableURL) marks() (out []mark) {
	for _, m := range marksOf(v.URL) {
		if findVariable(v.Variables, m.name) != nil {
			out = append(out, m)
		}
	}
	return out
}

// isClosed reports whether a place in the query takes only numbers or only certain words.
func (v *VariableURL) isClosed(m mark) bool {
	if m.part != partQuery {
		return false
	}
	params := v.paramsNamed(m.param)
	for _, p := range params {
		switch p.kind {
		case KindInt, KindFloat, KindBool, KindChoice:
		default:
			return false
		}
	}
	return len(params) > 0
}

// harmlessValues are ways to replace the value in the i-th place by a harmless one: by telephone
// numbers, words and addresses, and by texts of the same length and the same sorts of characters,
// like tokens. Some places accept only one of these.
var harmlessValues = []func(value string, i int) string{
	func(_ string, i int) string { return "907551204" + strings.Repeat("8", i+1) + "67" },
	func(_ string, i int) string { return "zqvariable" + strings.Repeat("8", i+1) + "6zq" },
	func(_ string, i int) string { return "zqv" + strings.Repeat("8", i+1) + "6zq@zqv.example" },
	func(value string, _ int) string {
		n := 0
		return strings.Map(func(r rune) rune {
			n++
			switch {
			case unicode.IsUpper(r):
				return rune("ZQVKWX"[n%6])
			case unicode.IsDigit(r):
				return rune("907581"[n%6])
			case r == '-', r == '_':
				return r
			}
			return rune("zqvkwx"[n%6])
		}, value)
	},
}

// isWord reports whether a value has letters, digits and the characters - and _ only.
func isWord(value string) bool {
	return value != "" && !strings.ContainsFunc(value, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_'
	})
}

// isLike reports whether d has the parameters of another destination of its service, except for the
// texts in place of words. texts reports whether each of these has letters or digits.
func (d *Destination) isLike(o *Destination, words []string, texts bool) bool {
	if d.entry != o.entry || d.scheme.Name != o.scheme.Name || d.recipients > o.recipients || d.read != o.read {
		return false
	}
	for _, p := range d.schema.params {
		mine, others := d.fields(p), o.fields(p)
		if !maps.EqualFunc(mine, others, func(mine, others []string) bool {
			// A list has only one of equal items.
			if len(mine) > len(others) || len(mine) < len(others) && (p.kind != KindList || p.list.repeats || !texts) {
				return false
			}
			for i, text := range mine {
				like := others
				if len(mine) == len(others) {
					like = others[i : i+1]
				}
				if !slices.ContainsFunc(like, func(like string) bool {
					return isAround(like, words, text) && (p.kind == KindMap || !hasDotSegment(text) || hasDotSegment(like))
				}) {
					return false
				}
			}
			return true
		}) {
			return false
		}
	}
	return true
}

// fields returns the texts of a parameter: of each key of a map, and of each part of a list.
func (d *Destination) fields(p *Param) map[string][]string {
	out := map[string][]string{}
	switch p.kind {
	case KindMap:
		for key, value := range *d.entries(p) {
			out[key] = []string{value}
		}
	case KindList:
		out[""] = *d.list(p)
		for i := range p.list.prefixed {
			out[fmt.Sprint(i)] = *d.prefixed(p, i)
		}
	default:
		out[""] = []string{d.value(p)}
	}
	return out
}

// isAround reports whether a text, in lower case, equals like apart from the texts in place of
// words.
func isAround(like string, words []string, text string) bool {
	like, text = strings.ToLower(like), strings.ToLower(text)
	first := true
	for {
		at, length := -1, 0
		for _, w := range words {
			if i := strings.Index(like, w); i >= 0 && (at < 0 || i < at) {
				at, length = i, len(w)
			}
		}
		switch {
		case at < 0 && first:
			return like == text
		case at < 0:
			return strings.HasSuffix(text, like)
		case first && !strings.HasPrefix(text, like[:at]):
			return false
		}
		i := strings.Index(text, like[:at])
		if i < 0 {
			return false
		}
		text, like, first = text[i+at:], like[at+length:], false
	}
}

// hasDotSegment reports whether a text has a segment that a server may take for the folder or the
// one above it, in any spelling that some servers accept.
func hasDotSegment(text string) bool {
	for range 3 { // escapes of escapes
		text = percent.Decode(norm.NFKC.String(text))
	}
	for segment := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(`/\;?#`, r) }) {
		segment = strings.TrimFunc(segment, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}
