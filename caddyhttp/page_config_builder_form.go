package caddyhttp

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// builderForm is a form for the URLs of a service, with its values.
type builderForm struct {
	service     *notifier.ServiceInfo
	forms       []*notifier.URLForm
	number      int // of the form, from 1 on
	values      notifier.URLValues
	tags        string
	problems    []*notifier.URLError
	tagsProblem error
	shown       bool // secrets are readable
}

// The prefixes of the names of fields in a request, before the name of a
// parameter. A map has a key and a value for each entry.
const (
	fieldParam    = "p."
	fieldMapKey   = "k."
	fieldMapValue = "v."
)

// postedForm returns the form that was posted, or nil if there is none for the
// service in the query string.
func (h *Handler) postedForm(r *http.Request) *builderForm {
	scheme := r.URL.Query().Get(buildQuery)
	forms := notifier.URLForms(scheme)
	number, err := strconv.Atoi(r.PostForm.Get("form"))
	if err != nil || number < 1 || number > len(forms) {
		return nil
	}
	f := &builderForm{service: notifier.FindService(scheme), forms: forms, number: number, tags: r.PostForm.Get("tags")}
	f.values = notifier.URLValues{Scheme: r.PostForm.Get("scheme"), Texts: map[string][]string{}, Maps: map[string]map[string]string{}}
	for _, field := range forms[number-1].Fields {
		f.readField(r, field)
	}
	return f
}

// readField reads the value of a field. White space at the beginning and end of a
// text comes from copying, and is left out.
func (f *builderForm) readField(r *http.Request, field notifier.URLField) {
	if field.Kind == notifier.KindMap {
		values := r.PostForm[fieldMapValue+field.Name]
		for i, key := range r.PostForm[fieldMapKey+field.Name] {
			if key = strings.TrimSpace(key); key == "" || i >= len(values) {
				continue
			}
			if f.values.Maps[field.Name] == nil {
				f.values.Maps[field.Name] = map[string]string{}
			}
			f.values.Maps[field.Name][key] = strings.TrimSpace(values[i])
		}
		return
	}
	posted := r.PostForm[fieldParam+field.Name]
	if len(posted) == 0 {
		return
	}
	// A checkbox that is off is not posted; the hidden field before it is.
	text := strings.TrimSpace(posted[len(posted)-1])
	switch {
	case field.Path:
		for segment := range strings.SplitSeq(text, "/") {
			if segment != "" {
				f.values.Texts[field.Name] = append(f.values.Texts[field.Name], percent.DecodeText(segment))
			}
		}
		f.values.Slash = f.forms[f.number-1].Slash && strings.HasSuffix(text, "/")
	case field.Kind == notifier.KindList:
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				f.values.Texts[field.Name] = append(f.values.Texts[field.Name], line)
			}
		}
	default:
		f.values.Texts[field.Name] = []string{text}
	}
}

// builderFormPage is the page of a form.
type builderFormPage struct {
	builderPage
	Service  *notifier.ServiceInfo
	ID       string // a scheme of the service
	Template string
	Forms    []builderChoice
	Form     int
	Schemes  []builderChoice
	Sections []builderSection
	Tags     builderField
	Problems []builderField // those that have one, for the summary
	Problem  string         // of the URL as a whole
	Shown    bool
}

// builderChoice is one of several values.
type builderChoice struct {
	Value, Label string
	Chosen       bool
}

// builderSection is a part of a form. The first is always open.
type builderSection struct {
	Title  string // "" for the first
	Open   bool
	Fields []builderField
}

// builderField is a field of a form.
type builderField struct {
	ID       string // of the element
	Name     string // of the field in the request
	Param    string // the name of the parameter
	Label    string
	Control  string // text, secret, number, check, select, lines or pairs
	Value    string
	Default  string
	Checked  bool
	Choices  []builderChoice
	Pairs    []builderPair
	Min, Max string
	Step     string
	Required bool
	Optional bool // marked as such, because it is among required fields
	Secret   bool
	Shown    bool // a secret is readable
	Hint     string
	Problem  string
	Focus    bool // the first with a problem
}

// builderPair is an entry of a map.
type builderPair struct {
	Number     int // from 1 on
	Key, Value string
}

// emptyPairs is the number of empty entries of a map in the form.
const emptyPairs = 2

func (h *Handler) writeBuilderForm(w http.ResponseWriter, r *http.Request, key string, f *builderForm) error {
	form := f.forms[f.number-1]
	p := builderFormPage{builderPage: newBuilderPage(r, key, builderJS), Service: f.service, ID: f.service.Schemes[0], Template: form.Template, Form: f.number, Shown: f.shown}
	if len(f.forms) > 1 {
		for i, o := range f.forms {
			p.Forms = append(p.Forms, builderChoice{strconv.Itoa(i + 1), describeForm(o), o == form})
		}
	}
	p.Schemes = f.schemes(form)
	problems := map[string]string{}
	for _, e := range f.problems {
		text := *e
		text.Service = "" // the page is about one service
		switch known := slices.ContainsFunc(form.Fields, func(x notifier.URLField) bool { return x.Name == e.Param }); {
		case !known && p.Problem == "":
			p.Problem = upperFirst(text.Error())
		case known && problems[e.Param] == "":
			problems[e.Param] = text.Error()
		}
	}
	sections := []builderSection{{Open: true}, {Title: "More parameters of " + f.service.Name}, {Title: "Parameters that all services have"}}
	for _, field := range form.Fields {
		b := f.field(field, problems[field.Name])
		given := f.given(field)
		if field.Elsewhere && !given && b.Problem == "" {
			continue
		}
		at := 0
		switch {
		case field.Common:
			at = 2
		case !field.InURL && !field.Required:
			at = 1
		default:
			b.Optional = !field.Required
		}
		sections[at].Open = sections[at].Open || given || b.Problem != ""
		sections[at].Fields = append(sections[at].Fields, b)
	}
	p.Tags = builderField{
		ID: "own-tags", Name: "tags", Label: "Tags in this key", Control: "text", Optional: true, Value: f.tags,
		Hint: "Separated by commas or spaces. Messages with one of the tags go to this destination.",
	}
	if f.tagsProblem != nil {
		p.Tags.Problem = f.tagsProblem.Error()
	}
	for i := range sections {
		for k := range sections[i].Fields {
			if b := &sections[i].Fields[k]; b.Problem != "" {
				b.Focus = len(p.Problems) == 0
				p.Problems = append(p.Problems, *b)
			}
		}
		if len(sections[i].Fields) > 0 {
			p.Sections = append(p.Sections, sections[i])
		}
	}
	if p.Tags.Problem != "" {
		p.Tags.Focus = len(p.Problems) == 0
		p.Problems = append(p.Problems, p.Tags)
	}
	return writeConfigPage(w, r, http.StatusOK, builderFormTemplate(), p)
}

// describeForm returns what a form needs, such as "host and token".
func describeForm(form *notifier.URLForm) string {
	var names []string
	for _, f := range form.Fields {
		if f.InURL && f.Required {
			names = append(names, f.Name)
		}
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// schemes returns the schemes to choose from, or nil if there is one.
func (f *builderForm) schemes(form *notifier.URLForm) (out []builderChoice) {
	if len(form.Schemes) < 2 {
		return nil
	}
	for _, s := range form.Schemes {
		label := "without TLS, " + s.Name + "://"
		if s.Secure {
			label = "with TLS, " + s.Name + "://"
		}
		out = append(out, builderChoice{s.Name, label, s.Name == f.values.Scheme})
	}
	// A URL that was taken apart may have another scheme that means the same.
	if !slices.ContainsFunc(out, func(c builderChoice) bool { return c.Chosen }) && f.values.Scheme != "" {
		out = append(out, builderChoice{f.values.Scheme, f.values.Scheme + "://", true})
	}
	return out
}

// given reports whether a field is filled in with something other than its
// default.
func (f *builderForm) given(field notifier.URLField) bool {
	texts := f.values.Texts[field.Name]
	return len(f.values.Maps[field.Name]) > 0 || len(texts) > 0 && texts[0] != "" && texts[0] != field.Default
}

// field returns a field as the page shows it.
func (f *builderForm) field(field notifier.URLField, problem string) builderField {
	b := builderField{
		ID: "p-" + field.Name, Name: fieldParam + field.Name, Param: field.Name, Label: upperFirst(field.Doc), Control: "text",
		Default: field.Default, Required: field.Required, Secret: field.Secret, Shown: f.shown, Problem: problem,
	}
	texts := f.values.Texts[field.Name]
	if len(texts) > 0 {
		b.Value = texts[0]
	}
	if field.Secret {
		b.Control = "secret"
	}
	switch field.Kind {
	case notifier.KindInt, notifier.KindFloat:
		b.Control, b.Step = "number", "1"
		if field.Kind == notifier.KindFloat {
			b.Step = "any"
		}
		if field.Min != nil {
			b.Min = strconv.FormatFloat(*field.Min, 'f', -1, 64)
		}
		if field.Max != nil {
			b.Max = strconv.FormatFloat(*field.Max, 'f', -1, 64)
		}
		if field.Min != nil || field.Max != nil {
			b.Hint = upperFirst(field.Values()) + "."
		}
	case notifier.KindBool:
		b.Control, b.Checked = "check", b.Value == "yes" || b.Value == "" && field.Default == "yes"
	case notifier.KindChoice:
		b.Control = "select"
		chosen := b.Value
		if field.Name == "format" { // its default can depend on the other parameters
			b.Choices = append(b.Choices, builderChoice{"", "default", chosen == ""})
		} else if chosen == "" {
			chosen = field.Default
		}
		if !slices.Contains(field.Choices, chosen) && len(b.Choices) == 0 {
			b.Choices = append(b.Choices, builderChoice{chosen, chosen, true})
		}
		for _, c := range field.Choices {
			b.Choices = append(b.Choices, builderChoice{c, c, c == chosen})
		}
	case notifier.KindList:
		b.listField(field, texts, f.values.Slash)
	case notifier.KindMap:
		b.Control, b.Name = "pairs", field.Name
		entries := f.values.Maps[field.Name]
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			b.Pairs = append(b.Pairs, builderPair{len(b.Pairs) + 1, key, entries[key]})
		}
		for range emptyPairs {
			b.Pairs = append(b.Pairs, builderPair{Number: len(b.Pairs) + 1})
		}
	case notifier.KindFile:
		b.Hint = "Only the content of the file in base64: a saved URL cannot name files on the gateway's machine."
	}
	return b
}

// listField completes the field of a list. A list of secrets has one line, which
// browsers can hide.
func (b *builderField) listField(field notifier.URLField, items []string, slash bool) {
	switch {
	case field.Path:
		b.Value = strings.TrimPrefix(notifier.Path(items...), "/")
		if slash {
			b.Value += "/"
		}
		b.Hint = "As in a URL: a slash separates its parts."
	case field.Secret:
		b.Value = strings.Join(items, ", ")
		b.Hint = "Several are separated by commas."
	default:
		b.Control, b.Value = "lines", strings.Join(items, "\n")
		b.Hint = "One per line."
		if field.Split {
			b.Hint = "One per line, or separated by commas."
		}
	}
	for _, part := range field.Parts {
		prefix, doc, _ := strings.Cut(part, ": ")
		b.Hint += " " + prefix + " before one: " + doc + "."
	}
}

// upperFirst returns a text with a capital letter at its beginning.
func upperFirst(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:]
}
