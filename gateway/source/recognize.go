package source

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// condition is a row of Format.Has.
type condition struct {
	fields   []fieldPath // at least one of them must exist
	optional bool
}

// fieldPath is the path of a field of a payload.
type fieldPath struct {
	text  string   // as written in Format.Has
	steps []string // names of members; elements stands for the elements of an array
	value string   // text that the field must have; "" for any
	edge  bool     // value needs only be at the beginning or the end of the text
}

// elements is the step of a fieldPath to all elements of an array.
const elements = "[]"

// parseHas parses the rows of Format.Has.
func parseHas(rows []string) (out []condition) {
	for _, row := range rows {
		var c condition
		row, c.optional = strings.CutSuffix(row, "?")
		for text := range strings.SplitSeq(row, "|") {
			p := fieldPath{text: text}
			path, value, exact := strings.Cut(text, "=")
			if !exact {
				path, value, p.edge = strings.Cut(text, "~")
			}
			p.value = value
			for name := range strings.SplitSeq(path, ".") {
				name, array := strings.CutSuffix(name, elements)
				if name != "" {
					p.steps = append(p.steps, name)
				}
				if array {
					p.steps = append(p.steps, elements)
				}
			}
			c.fields = append(c.fields, p)
		}
		out = append(out, c)
	}
	return out
}

// holds reports whether a payload meets the condition.
func (c condition) holds(data any) bool {
	return slices.ContainsFunc(c.fields, func(p fieldPath) bool { return p.in(data, p.steps) })
}

// in reports whether the field exists in v at the end of steps.
func (p fieldPath) in(v any, steps []string) bool {
	if len(steps) == 0 {
		if p.value == "" {
			return true
		}
		s := payload.Text(v)
		return s == p.value || p.edge && (strings.HasPrefix(s, p.value) || strings.HasSuffix(s, p.value))
	}
	if steps[0] == elements {
		list, _ := v.([]any)
		return slices.ContainsFunc(list, func(item any) bool { return p.in(item, steps[1:]) })
	}
	object, _ := v.(map[string]any)
	member, ok := object[steps[0]]
	return ok && p.in(member, steps[1:])
}

// missing returns the part of the field that a payload lacks: the first name of the path, or all of
// it if the payload has the first.
func (p fieldPath) missing(data any) string {
	if object, ok := data.(map[string]any); ok {
		if _, ok := object[p.steps[0]]; ok {
			return p.text
		}
	}
	return p.steps[0]
}

// accepts reports whether a payload meets the required conditions of the format.
func (f *Format) accepts(data any) bool {
	return len(f.conditions) > 0 && !slices.ContainsFunc(f.conditions, func(c condition) bool { return !c.optional && !c.holds(data) })
}

// score returns how well a payload fits the format.
func (f *Format) score(data any) (n int) {
	for _, c := range f.conditions {
		switch met := c.holds(data); {
		case met && c.optional:
			n++
		case met:
			n += 2
		}
	}
	return n
}

// isNamed reports whether headers name the program of the format.
func (f *Format) isNamed(h http.Header) bool {
	return f.Header != "" && len(h[f.header]) > 0 && h[f.header][0] != ""
}

// sortedFormats are the built-in formats. They are sorted once, because every message
// is compared with all of them.
var sortedFormats = sync.OnceValue(Formats)

// recognize returns the built-in formats that a payload fits best, in alphabetical
// order. Headers that name a program count more than fields.
func recognize(h http.Header, data any) (best []*Format) {
	named := slices.ContainsFunc(sortedFormats(), func(f *Format) bool { return f.isNamed(h) })
	highest := 0
	for _, f := range sortedFormats() {
		if named && !f.isNamed(h) || !named && !f.accepts(data) {
			continue
		}
		switch score := f.score(data); {
		case score > highest:
			best, highest = []*Format{f}, score
		case score == highest:
			best = append(best, f)
		}
	}
	return best
}

// Guess returns the built-in format of a payload sent without the name of a source. It returns nil
// if no single format fits best, or if the payload is a message for the gateway itself.
func Guess(r *Request) *Format {
	data := r.anyPayload()
	if direct.holds(data) {
		return nil
	}
	if best := recognize(r.Header, data); len(best) == 1 {
		return best[0]
	}
	return nil
}

// checkProgram returns an [*Error] if a payload belongs to another program. A source that the
// operator defines takes any payload.
func (s *Source) checkProgram(r *Request, data any) error {
	f := s.Format
	if formats[f.Name] != f {
		return nil
	}
	best := recognize(r.Header, data)
	if slices.ContainsFunc(best, func(b *Format) bool { return b == f || slices.Contains(f.Reads, b.Name) }) {
		return nil
	}
	sent := r.anyPayload()
	if len(best) == 0 {
		best = recognize(r.Header, sent)
	}
	return s.foreignError(r, data, sent, best)
}

// checkProgramOfAPI is like checkProgram for an API, whose read function decides what clients may
// send: it returns an error only if the payload belongs to another program. err is the error of the
// read function.
func (s *Source) checkProgramOfAPI(r *Request, err error) error {
	best := recognize(r.Header, r.Payload)
	if len(best) == 0 || slices.Contains(best, s.Format) {
		return err
	}
	if err == nil && slices.ContainsFunc(best, func(b *Format) bool { return slices.Contains(s.Format.Reads, b.Name) }) {
		return nil
	}
	return s.foreignError(r, r.Payload, r.Payload, best)
}

// foreignError returns the error for a payload that does not belong to the source's program. It
// says what data lacks, which formats fit best, and what sent, the payload as it arrived, has.
func (s *Source) foreignError(r *Request, data, sent any, best []*Format) *Error {
	var reasons []string
	if i := slices.IndexFunc(s.Format.conditions, func(c condition) bool { return !c.optional && !c.holds(data) }); i >= 0 {
		reasons = append(reasons, quote(s.Format.conditions[i].fields[0].missing(data))+" is missing")
	}
	switch len(best) {
	case 0:
		if isRuler(sent) {
			reasons = append(reasons, RulerHint(r.Address[:strings.LastIndexByte(r.Address, '/')+1]))
		}
		if direct.holds(sent) {
			reasons = append(reasons, "it looks like a message for the address of the key, without /"+s.config.Name)
		}
	case 1:
		reasons = append(reasons, "it looks like one of "+best[0].Program+", whose address ends with /"+best[0].Name)
	default:
		var programs, addresses []string
		for _, f := range best {
			programs, addresses = append(programs, f.Program), append(addresses, "/"+f.Name)
		}
		reasons = append(reasons, "it looks like one of "+enumerate(programs, "or")+", whose addresses end with "+enumerate(addresses, "and"))
	}
	reasons = append(reasons, s.describe(sent))
	return Errorf(http.StatusBadRequest, "this is no payload of %s: %s", s.Format.Program, strings.Join(reasons, "; "))
}

// isRuler reports whether a payload is an array of alerts, as rulers such as Prometheus post it to
// the API of Alertmanager.
func isRuler(data any) bool {
	return fieldPath{steps: []string{elements, "labels"}}.in(data, []string{elements, "labels"})
}

// IsRulerPath reports whether a path ends like the path of the alerts in the API of Alertmanager.
func IsRulerPath(path string) bool {
	path = strings.TrimSuffix(path, "/")
	return strings.HasSuffix(path, "/api/v2/alerts") || strings.HasSuffix(path, "/api/v1/alerts")
}

// RulerHint says where rulers post. key is the address of the key, with a slash at its end.
func RulerHint(key string) string {
	return "it looks like the alerts that Prometheus or another ruler posts, whose address is " + key + site.SourceRuler +
		"; its configuration has that as path_prefix"
}

// direct is a field that messages for the gateway's own API have.
var direct = parseHas([]string{"body"})[0]

// describe names the fields of a payload, without their values.
func (s *Source) describe(data any) string {
	object, ok := data.(map[string]any)
	if !ok {
		return "it is no object"
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		names = append(names, quote(s.publicName(name)))
	}
	return "it has " + enumerate(names, "and")
}

// fieldName matches the names of fields that an error shows. A longer name, or one with
// other characters, can be a value: the body of a form without = is a name.
var fieldName = lazyregexp.New(`^[\pL_$@][\pL\d_.:@$-]{0,31}$`)

// maxDigits is the maximum number of digits of a field name that an error shows. A token
// has more.
const maxDigits = 3

// publicName returns the name of a field for an error, or "…" if it may be a secret.
func (s *Source) publicName(name string) string {
	digits := strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return c
		}
		return -1
	}, name)
	if !fieldName.MatchString(name) || len(digits) > maxDigits ||
		redact.NewMasker([]string{s.config.Token, s.config.Secret}).Mask(name) != name {
		return "…"
	}
	return name
}

func quote(s string) string { return `"` + s + `"` }

// maxNames is the maximum number of names that an error lists.
const maxNames = 6

// enumerate returns names as a list in a sentence: a, b and c.
func enumerate(names []string, conjunction string) string {
	if more := len(names) - maxNames; more > 0 {
		names = append(slices.Clone(names[:maxNames]), fmt.Sprintf("%d more", more))
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " " + conjunction + " " + names[last]
}

// formFields are the fields of forms in which programs send JSON.
var formFields = []string{"payload", "payload_json", "data"}

// anyPayload returns the payload of a request in an unknown format, or nil: the JSON of the body or
// of a form.
func (r *Request) anyPayload() any {
	form := r.Form
	if form == nil && !payload.LooksLikeJSON(r.Text()) {
		form, _ = r.parseForm()
	}
	body := r.Text()
	for _, name := range formFields {
		if value := form.Get(name); payload.LooksLikeJSON([]byte(value)) {
			body = []byte(value)
		}
	}
	data, err := payload.Decode(body)
	if err != nil {
		return FormFields(form)
	}
	return data
}
