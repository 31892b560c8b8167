package console

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/notifier"
)

func (h *builder) writeBuilderForm(w http.ResponseWriter, r *http.Request, at builderAt, f *builderForm) error {
	p := view.FormPage{
		Address: at.address, Key: at.key, Saves: at.saves, Tests: at.tests,
		Service: view.Service{Name: f.service.Name, Scheme: f.service.Schemes[0], Group: string(f.service.Groups[0])},
		Setup:   f.service.Setup, Site: f.service.Site, Natives: len(f.service.Natives) > 0 && f.form().Address == "",
		Template: f.form().Template, Form: f.number, Forms: f.formChoices(), Schemes: f.schemeChoices(), Tags: f.tagsField(), Shown: f.shown,
		Recognized: f.recognized, Note: f.note, Unread: f.unread, Result: f.result, Status: f.status, Line: f.line, URL: f.url,
		Warnings: f.warnings, Network: f.network,
	}
	if at.into {
		p.Into = h.savedKeysFor(r, f.into)
	}
	if f.provider != nil {
		p.Service.Name, p.Provider, p.Setup, p.Of = f.provider.Name, f.provider.Name, f.provider.Setup, f.service.Name
		p.Forms, p.Schemes = nil, nil
	}
	p.Sections, p.Problem = f.sections()
	if f.problem != "" {
		p.Problem = upperFirst(f.problem)
	}
	return h.WritePage(w, r, http.StatusOK, httpapi.RouteConsoleKeys, p)
}

// savedKeysFor returns the keys that a destination for a key of the configuration can be saved into instead.
func (h *builder) savedKeysFor(r *http.Request, chosen string) *view.SavedKeys {
	out := &view.SavedKeys{Chosen: chosen}
	if names, err := h.Resolved.Saved.Names(r.Context()); err == nil && len(names) <= MaxListedKeys {
		out.Names = names
	}
	return out
}

// formChoices returns the forms to choose from, or nil if there is only one.
func (f *builderForm) formChoices() (out []view.Choice) {
	if len(f.forms) < 2 {
		return nil
	}
	for i, form := range f.forms {
		out = append(out, view.Choice{
			Value: strconv.Itoa(i + 1), Label: upperFirst(cmp.Or(form.Way, describeForm(form))),
			Chosen: i+1 == f.number,
		})
	}
	return out
}

// describeForm returns the parts that a form needs, such as "host and token".
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

// schemeChoices returns the schemes to choose from, or nil if there is only one.
func (f *builderForm) schemeChoices() (out []view.Choice) {
	schemes := f.form().Schemes
	if len(schemes) < 2 {
		return nil
	}
	for _, s := range schemes {
		label := "without TLS, " + s.Name + "://"
		if s.Secure {
			label = "with TLS, " + s.Name + "://"
		}
		out = append(out, view.Choice{Value: s.Name, Label: label, Chosen: s.Name == f.values.Scheme})
	}
	// A URL that was taken apart may have another scheme with the same meaning.
	if !slices.ContainsFunc(out, func(c view.Choice) bool { return c.Chosen }) && f.values.Scheme != "" {
		out = append(out, view.Choice{Value: f.values.Scheme, Label: f.values.Scheme + "://", Chosen: true})
	}
	return out
}

// tagsField returns the field for the tags of the destination.
func (f *builderForm) tagsField() view.Field {
	field := view.Field{
		ID: "own-tags", Name: "tags", Label: "Tags in this key", Control: view.ControlText, Optional: true, Value: f.tags,
		Hint: "Separated by commas or spaces. Messages with one of the tags go to this destination.",
	}
	if f.tagsProblem != nil {
		field.Problem = f.tagsProblem.Error()
	}
	return field
}

// The sections of a form.
const (
	sectionMain   = iota // required fields, and the parts of the URL
	sectionParts         // fields that the service's address fills in
	sectionMore          // other parameters of the service
	sectionCommon        // parameters that all services have
)

// sectionOf returns the section of a field of a service with the help setup, which asks for tokens and
// keys that may be no part of the URL.
func sectionOf(field notifier.URLField, setup string) int {
	asked := field.Secret && (field.Kind == notifier.KindString || field.Kind == notifier.KindFile && strings.Contains(setup, "key file"))
	switch {
	case field.Common:
		return sectionCommon
	case field.InAddress:
		return sectionParts
	case !field.InURL && !field.Required && !asked:
		return sectionMore
	}
	return sectionMain
}

// sections returns the sections with fields, and the problem of the URL as a whole.
func (f *builderForm) sections() (out []view.Section, problem string) {
	problems, problem := f.problemTexts()
	if f.provider != nil {
		return []view.Section{{Open: true, Fields: f.accountFields()}}, problem
	}
	out = []view.Section{
		sectionMain:   {Open: true},
		sectionParts:  {Title: "The parts of the address"},
		sectionMore:   {Title: "More parameters of " + f.service.Name},
		sectionCommon: {Title: "Parameters that all services have"},
	}
	for _, field := range f.form().Fields {
		problem, at := problems[field.Name], sectionOf(field, f.service.Setup)
		used := f.given(field) || problem != ""
		if field.Elsewhere && !used {
			continue
		}
		shown := f.field(field)
		if field.InAddress && f.address != "" {
			shown.Value, used = "", problem != "" // the address contains it
		}
		shown.Problem, shown.Optional = problem, at == sectionMain && !field.Required
		s := &out[at]
		s.Open, s.Fields = s.Open || used, append(s.Fields, shown)
	}
	if f.form().Address != "" {
		out[sectionMain].Fields = slices.Insert(out[sectionMain].Fields, 0, f.addressField())
		for i := range out[sectionParts].Fields {
			out[sectionParts].Fields[i].Required = false
		}
	}
	// Required fields come first.
	slices.SortStableFunc(out[sectionMain].Fields, func(a, b view.Field) int {
		switch {
		case a.Required == b.Required || a.Name == addressField || b.Name == addressField:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return slices.DeleteFunc(out, func(s view.Section) bool { return len(s.Fields) == 0 }), problem
}

// addressField returns the field for the address that the service hands out.
func (f *builderForm) addressField() view.Field {
	return view.Field{
		ID: addressField, Name: addressField, Label: "The address that " + f.service.Name + " shows", Control: view.ControlSecret,
		Value:   f.address,
		Example: f.form().Address, Secret: true, Shown: f.shown, Problem: f.own[addressField],
	}
}

// accountFields returns the fields for an account at a provider.
func (f *builderForm) accountFields() []view.Field {
	return []view.Field{
		{
			ID: accountField, Name: accountField, Label: "E-mail address", Control: view.ControlText, Value: f.account.address,
			Example: f.provider.Example(), Required: true, Problem: f.own[accountField], Hint: "Messages come from it and go to it.",
		},
		{
			ID: passwordField, Name: passwordField, Label: f.provider.Password, Control: view.ControlSecret, Value: f.account.password,
			Required: true, Secret: true, Shown: f.shown, Problem: f.own[passwordField],
		},
	}
}

// problemTexts returns the first problem of each field, by parameter name, and the first problem of
// the URL as a whole.
func (f *builderForm) problemTexts() (fields map[string]string, whole string) {
	fields = map[string]string{}
	for _, e := range f.problems {
		text := *e
		text.Service = "" // the page is about one service
		isField := slices.ContainsFunc(f.form().Fields, func(x notifier.URLField) bool { return x.Name == e.Param })
		switch {
		case !isField && whole == "":
			whole = upperFirst(text.Error())
		case isField && fields[e.Param] == "":
			fields[e.Param] = text.Error()
		}
	}
	return fields, whole
}

// given reports whether a field has a value other than its default.
func (f *builderForm) given(field notifier.URLField) bool {
	texts := f.values.Texts[field.Name]
	return len(f.values.Maps[field.Name]) > 0 || len(texts) > 0 && texts[0] != "" && texts[0] != field.Default
}

// field returns a field with its value.
func (f *builderForm) field(field notifier.URLField) view.Field {
	out := view.Field{
		ID: "p-" + field.Name, Name: fieldParam + field.Name, Param: field.Name, Label: upperFirst(field.Doc), Control: view.ControlText,
		Default: field.Default, Example: field.Example, Required: field.Required, Secret: field.Secret, Shown: f.shown,
	}
	if field.Secret {
		out.Control = view.ControlSecret
	}
	texts := f.values.Texts[field.Name]
	if len(texts) > 0 {
		out.Value = texts[0]
	}
	switch field.Kind {
	case notifier.KindInt, notifier.KindFloat:
		setNumber(&out, field)
	case notifier.KindBool:
		out.Control, out.Checked = view.ControlCheck, out.Value == "yes" || out.Value == "" && field.Default == "yes"
	case notifier.KindChoice:
		setChoice(&out, field)
	case notifier.KindList:
		setList(&out, field, texts, f.values.Slash)
	case notifier.KindMap:
		setMap(&out, field, f.values.Maps[field.Name])
	case notifier.KindFile:
		out.Hint = "Only the content of the file in base64: a saved URL cannot name files on the gateway's machine."
	}
	return out
}

func setNumber(out *view.Field, field notifier.URLField) {
	out.Control, out.Step = view.ControlNumber, "1"
	if field.Kind == notifier.KindFloat {
		out.Step = "any"
	}
	bound := func(n *float64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatFloat(*n, 'f', -1, 64)
	}
	out.Min, out.Max = bound(field.Min), bound(field.Max)
	if out.Min != "" || out.Max != "" {
		out.Hint = upperFirst(field.Values()) + "."
	}
}

func setChoice(out *view.Field, field notifier.URLField) {
	out.Control = view.ControlSelect
	chosen, choices := out.Value, field.Choices
	switch {
	case field.Name == "format": // its default may depend on the other parameters
		out.Choices = []view.Choice{{Label: "default", Chosen: chosen == ""}}
	case chosen == "":
		chosen = field.Default
	}
	if !slices.Contains(choices, chosen) && len(out.Choices) == 0 {
		choices = slices.Insert(slices.Clone(choices), 0, chosen)
	}
	for _, c := range choices {
		out.Choices = append(out.Choices, view.Choice{Value: c, Label: c, Chosen: c == chosen})
	}
}

// setList sets the value of a list. A list of secrets has one line, which browsers
// can hide.
func setList(out *view.Field, field notifier.URLField, items []string, slash bool) {
	switch {
	case field.Path:
		out.Value = strings.TrimPrefix(notifier.Path(items...), "/")
		if slash {
			out.Value += "/"
		}
		out.Example = strings.ReplaceAll(field.Example, ",", "/")
		out.Hint = "As in a URL: a slash separates its parts."
	case field.Secret:
		out.Value = strings.Join(items, ", ")
		out.Hint = "Several are separated by commas."
	default:
		out.Control, out.Value = view.ControlLines, strings.Join(items, "\n")
		out.Hint = "One per line."
		if field.Split {
			out.Hint = "One per line, or separated by commas."
		}
	}
	for _, part := range field.Parts {
		prefix, doc, _ := strings.Cut(part, ": ")
		out.Hint += " " + prefix + " before one: " + doc + "."
	}
}

// emptyPairs is the number of empty entries of a map in the form.
const emptyPairs = 2

func setMap(out *view.Field, field notifier.URLField, entries map[string]string) {
	out.Control, out.Name = view.ControlPairs, field.Name
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		out.Pairs = append(out.Pairs, view.Pair{Number: len(out.Pairs) + 1, Key: key, Value: entries[key]})
	}
	for range emptyPairs {
		out.Pairs = append(out.Pairs, view.Pair{Number: len(out.Pairs) + 1})
	}
}

// lowerFirst returns a text with its first letter in lower case, unless it begins with an
// abbreviation.
func lowerFirst(text string) string {
	if len(text) > 1 && unicode.IsUpper(rune(text[1])) {
		return text
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// upperFirst returns a text with its first letter in upper case.
func upperFirst(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:]
}
