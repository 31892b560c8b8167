package notifier

import (
	"errors"
	"strings"
	"unicode"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/notifier/internal/urlsyntax"
)

// VariableURL is a notification URL with variables such as ${NAME}, whose values each message can
// set. A value is data: it is percent-encoded for its place, and cannot change the structure of the
// URL.
type VariableURL struct {
	URL       string // with its variables
	Variables []Variable

	// Make returns [VariableURL.Destination] with values of a message by the names of
	// variables in lower case. The caller closes it.
	Make func(values map[string]string) (*Destination, error)
}

// Variable is a variable of a URL. Its name ignores case.
type Variable struct {
	Name    string
	Default *string // nil for none
}

// Errors about values of variables. They name neither the variable nor the value, because a client
// could learn from them what the operator or another client has written.
var (
	ErrNoValue  = errors.New("the message has no value for the template of this URL, so nothing was sent there; send it in the field template")
	errBadValue = errors.New("the URL cannot be used with the values that the message " +
		"has for its template, so nothing was sent there; correct the field template")
)

// Errors about a URL of the operator with a variable in a place whose value messages must not set.
var (
	errVariableHost = errors.New("a variable of the template decides which server the URL leads to, and who " +
		"sends a message could send the URL's secrets to a server of their own; write the server into the URL")
	errVariableFile = errors.New("a variable of the template decides which file the URL names, " +
		"and who sends a message could send any file; write the file into the URL")
)

// CheckValue returns an error if text cannot be the value of a variable: it has at most 1024
// characters, none of which is a control character.
func CheckValue(text string) error {
	switch {
	case len([]rune(text)) > maxValue:
		return errors.New("a value has at most 1024 characters")
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("a value must not have line breaks or other control characters")
	}
	return nil
}

const maxValue = 1024 // characters

// VariablesIn returns the declared variables that have a place in the URL, in their order there.
// A scheme and the name of a parameter are not places.
func VariablesIn(url string, declared []Variable) (out []Variable) {
	for _, m := range marksOf(url) {
		if v := findVariable(declared, m.name); v != nil && findVariable(out, m.name) == nil {
			out = append(out, *v)
		}
	}
	return out
}

func findVariable(all []Variable, name string) *Variable {
	for i := range all {
		if strings.EqualFold(all[i].Name, name) {
			return &all[i]
		}
	}
	return nil
}

// mark is where a URL has a variable.
type mark struct {
	begin, end int
	name       string
	part       urlPart
	param      string // of a value in the query: the name of the parameter, in lower case
}

// urlPart is a part of a URL.
type urlPart int

const (
	partLogin urlPart = iota // user and password
	partHost                 // host and port
	partPath
	partQuery
)

var variableMark = lazyregexp.New(`\$\{(\w{1,32})\}`)

// marksOf returns the places of a URL where a variable stands for a value.
func marksOf(url string) (marks []mark) {
	bounds, ok := urlsyntax.BoundsOf(url)
	if !ok {
		return nil
	}
	for _, at := range variableMark.FindAllStringSubmatchIndex(url, -1) {
		m := mark{begin: at[0], end: at[1], name: url[at[2]:at[3]]}
		switch {
		case m.begin < bounds.Authority:
			continue
		case m.begin < bounds.Host:
			m.part = partLogin
		case m.begin < bounds.Path:
			m.part = partHost
		case m.begin < bounds.Query:
			m.part = partPath
		default:
			m.part = partQuery
			begin := strings.LastIndexAny(url[bounds.Query:m.begin], "?&;") + bounds.Query + 1
			key, _, isValue := strings.Cut(url[begin:m.begin], "=")
			if !isValue {
				continue
			}
			m.param = strings.ToLower(percent.DecodeText(key))
		}
		marks = append(marks, m)
	}
	return marks
}

// Fill returns the URL with values by the names of variables in lower case, or their defaults. The
// error is [ErrNoValue] if a variable has neither. A value is text in its place, but the service
// may give it a special meaning there: see [VariableURL.Destination].
func (v *VariableURL) Fill(values map[string]string) (string, error) {
	var b strings.Builder
	end := 0
	for _, m := range marksOf(v.URL) {
		variable := findVariable(v.Variables, m.name)
		if variable == nil {
			continue
		}
		value, ok := values[strings.ToLower(m.name)]
		switch {
		case ok:
		case variable.Default == nil:
			return "", ErrNoValue
		default:
			value = *variable.Default
		}
		if CheckValue(value) != nil {
			return "", errBadValue
		}
		b.WriteString(v.URL[end:m.begin])
		b.WriteString(encodeValue(value, m.part))
		end = m.end
	}
	b.WriteString(v.URL[end:])
	return b.String(), nil
}

// encodeValue percent-encodes a value for a part of a URL. A host keeps the characters of an
// address with a port.
func encodeValue(value string, part urlPart) string {
	if part == partHost {
		return percent.Encode(value, ":[]")
	}
	return percent.Encode(value, "")
}

// SetDefaults gives each variable without a default the value that the function has for its name.
// value may be nil.
func (v *VariableURL) SetDefaults(value func(name string) (string, bool)) {
	for i := range v.Variables {
		if v.Variables[i].Default != nil || value == nil {
			continue
		}
		if text, ok := value(v.Variables[i].Name); ok {
			v.Variables[i].Default = &text
		}
	}
}

// CheckFixed returns an error if a message could decide which server the URL leads to, or which
// file it names. Otherwise a message could send the secrets of the operator's URL, or a file, to
// another server.
func (v *VariableURL) CheckFixed() error {
	b, _ := urlsyntax.BoundsOf(v.URL)
	// With _ as the host, the user's address names the mail server.
	hostOpen := b.Path > b.Host && strings.Contains(variableMark.ReplaceAllString(v.URL[b.Host:b.Path], ""), "_")
	for _, m := range marksOf(v.URL) {
		if findVariable(v.Variables, m.name) == nil {
			continue
		}
		if m.part == partHost || hostOpen && (m.part == partLogin || m.param == "user" || m.param == "from") {
			return errVariableHost
		}
		if m.part != partQuery {
			continue
		}
		for _, p := range v.paramsNamed(m.param) {
			switch {
			case p.dialled || p.name == "port":
				return errVariableHost
			case p.kind == KindFile:
				return errVariableFile
			}
		}
	}
	return nil
}

// paramsNamed returns the parameters with a name of the URL's service or, for an address that
// a service gives out, of all services.
func (v *VariableURL) paramsNamed(name string) (out []*Param) {
	entries := registry.entries
	scheme, _, _ := urlsyntax.CutScheme(v.URL)
	if e := registry.byScheme[scheme]; e != nil {
		entries = []*entry{e}
	}
	for _, e := range entries {
		if p := e.schema.byName[name]; p != nil {
			out = append(out, p)
		}
	}
	return out
}

// Schemes returns the schemes of the URL's service; nil for an address that a service gives
// out. The error is returned if there is no such service.
func (v *VariableURL) Schemes() ([]string, error) {
	scheme, _, ok := urlsyntax.CutScheme(v.URL)
	switch all := SchemesOf(scheme); {
	case all != nil:
		return all, nil
	case ok && (scheme == "http" || scheme == "https"):
		return nil, nil
	case !ok:
		_, err := splitURL(v.URL)
		return nil, err
	}
	return nil, errUnknownScheme(scheme)
}

// probes make values in place of variables while their URL is shown. Some places take only numbers,
// and some only words.
var probes = []string{"907551204%7", "zqvariable%zq"}

// String returns the URL with its secrets masked. The variables are as they were written.
func (v *VariableURL) String() string {
	marks := marksOf(v.URL)
	for _, probe := range probes {
		filled, names := VariableURL{URL: v.URL, Variables: v.Variables}, []string{}
		values := map[string]string{}
		for i, m := range marks {
			if findVariable(v.Variables, m.name) != nil {
				word := strings.ReplaceAll(probe, "%", strings.Repeat("8", i+1)+"6")
				values[strings.ToLower(m.name)] = word
				names = append(names, word, v.URL[m.begin:m.end])
			}
		}
		url, err := filled.Fill(values)
		if err != nil {
			continue
		}
		d, err := ParseWithFiles(url, nil, Files{Dir: ".", Unread: true})
		if err != nil {
			continue
		}
		shown := d.printWith(func(p *Param, text string) string {
			for i := 0; i < len(names); i += 2 {
				if text == names[i] {
					return text
				}
			}
			return p.masked(text)
		})
		d.Close()
		return strings.NewReplacer(names...).Replace(shown)
	}
	scheme, _, _ := urlsyntax.CutScheme(v.URL)
	return scheme + "://"
}

// With returns the target with a message's values for the variables of its URL, by their names in
// lower case, and reports whether there are any. The caller closes its destination, which is for
// this message only. If the URL cannot be used with the values, each delivery to it fails.
func (t Target) With(values map[string]string) (Target, bool) {
	if t.Variable == nil || len(values) == 0 {
		return t, false
	}
	t.Values = nil
	own := map[string]string{}
	for _, v := range t.Variable.Variables {
		name := strings.ToLower(v.Name)
		if value, ok := values[name]; ok {
			own[name] = value
			t.Values = append(t.Values, name, value)
		}
	}
	if t.Values == nil {
		return t, false
	}
	d, err := t.Variable.Make(own)
	if errors.Is(err, ErrNoValue) {
		d = Unfilled(t.Variable.URL, t.Policy(), ErrNoValue)
	} else if err != nil {
		d = Unfilled(t.Variable.URL, t.Policy(), errBadValue)
	}
	t.Destination = d
	return t, true
}

// WithStored is like [Target.With] for the field Values of a target.
func (t Target) WithStored(values []string) (Target, bool) {
	byName := map[string]string{}
	for i := 0; i+1 < len(values); i += 2 {
		byName[values[i]] = values[i+1]
	}
	return t.With(byName)
}
