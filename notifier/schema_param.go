package notifier

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// Kind is the kind of value that a parameter takes.
type Kind string

// The kinds of parameters.
const (
	KindString Kind = "string"
	KindInt    Kind = "int"
	KindFloat  Kind = "float"
	KindBool   Kind = "bool"
	KindChoice Kind = "choice"
	KindList   Kind = "list"
	KindMap    Kind = "map"
	KindFile   Kind = "file"
)

// Param describes one parameter of a service. Its methods add to the
// description and return it, so that they can be chained. They panic if the
// parameter is of a kind that they do not apply to.
type Param struct {
	name     string
	index    int // in description.params
	kind     Kind
	doc      string
	def      string // the default, as a URL writes it
	aliases  []string
	example  []string
	secret   bool
	required bool
	lenient  bool
	common   bool // every service has it
	dialled  bool // see Dialled
	phones   bool // declared by Schema.Phones

	pattern    *lazyregexp.Regexp
	normalize  func(string) (string, error)
	secretPart func(string) (public, secret string)
	note       func(string) string
	enum       bool // declared by Schema.Enum
	first      bool // see FirstMatch

	numbers numberRules // KindInt and KindFloat
	choices []Choice    // KindChoice
	list    listRules   // KindList
	dict    mapRules    // KindMap
	file    fileRules   // KindFile

	variable    variable
	description *description
}

// declare adds a parameter, whose variable is v.
func (s *Schema) declare(kind Kind, name, def, doc string, v unsafe.Pointer) *Param {
	if s.byName[name] != nil {
		panic(s.Name + ": parameter " + name + " is declared twice")
	}
	p := &Param{name: name, index: len(s.params), kind: kind, def: def, doc: doc, variable: s.bind(v), description: s.description}
	s.byName[name] = p
	s.params = append(s.params, p)
	return p
}

// mustDescribe panics unless the service is being described and the parameter is
// of one of the kinds. No kinds means all.
func (p *Param) mustDescribe(kinds ...Kind) {
	if p.description.binder == nil {
		panic("parameter " + p.name + " can be described in Describe only")
	}
	if len(kinds) > 0 && !slices.Contains(kinds, p.kind) {
		panic(fmt.Sprintf("parameter %s is of kind %s, and its description is for %v", p.name, p.kind, kinds))
	}
}

// Alias declares other names for the parameter in the query.
func (p *Param) Alias(names ...string) *Param {
	p.mustDescribe()
	for _, n := range names {
		if p.description.byName[n] != nil {
			panic("the alias " + n + " of parameter " + p.name + " is taken")
		}
		p.description.byName[n] = p
	}
	p.aliases = append(p.aliases, names...)
	return p
}

// Secret marks the value as a secret, which no log line, error or answer shows.
func (p *Param) Secret() *Param {
	p.mustDescribe()
	p.secret = true
	return p
}

// SecretPart marks a part of the value, or of each item of a list, as a secret.
// f returns the value in two parts: one to show, and the secret, or "" if there
// is none.
func (p *Param) SecretPart(f func(value string) (public, secret string)) *Param {
	p.mustDescribe(KindString, KindList, KindFile)
	p.secretPart = f
	return p
}

// Required makes the parameter required. A parameter that has a place in the
// URL's template is required without it.
func (p *Param) Required() *Param {
	p.mustDescribe()
	p.required = true
	return p
}

// Lenient accepts an invalid value with a warning instead of refusing the URL. A
// number above the range is clipped to it, and any other invalid value means the
// default. It is for values that users have in their URLs already.
func (p *Param) Lenient() *Param {
	p.mustDescribe(KindString, KindInt, KindFloat, KindChoice)
	p.lenient = true
	return p
}

// FirstMatch makes the beginning of several choices mean the first one that is
// declared.
func (p *Param) FirstMatch() *Param {
	p.mustDescribe(KindChoice)
	p.first = true
	return p
}

// Strict refuses a URL with an invalid value of a switch, which is otherwise
// accepted as by [Param.Lenient]. It is for switches that security depends on.
func (p *Param) Strict() *Param {
	p.mustDescribe(KindBool)
	p.lenient = false
	return p
}

// Note adds a warning for values that are valid but may not mean what the author
// of the URL expects. f returns the warning for a value as the URL writes it, or
// "". It continues a sentence that begins with the parameter.
func (p *Param) Note(f func(value string) string) *Param {
	p.mustDescribe(KindString, KindInt, KindFloat, KindBool, KindChoice)
	p.note = f
	return p
}

// Example sets the value that example URLs have for the parameter. It looks real: a token has the
// length and the letters of the service's tokens. For a list it is one or more items, for a map a
// pair, key=value.
//
// An example URL has a value at each required place of its template, and at an optional place if
// the parameter has an example. The value of a required place without an example is the parameter's
// name. The scheme is the one with TLS, unless the host ends in ".local".
func (p *Param) Example(values ...string) *Param {
	p.mustDescribe()
	p.example = values
	return p
}

// Match demands that the value, or each item of a list, matches the regular
// expression. The case of letters does not count.
func (p *Param) Match(pattern string) *Param {
	p.mustDescribe(KindString, KindList)
	p.pattern = lazyregexp.New("(?i)" + pattern)
	return p
}

// Normalize passes the value, or each item of a list, through f, which checks
// it and returns it in the form that the service wants. The text of an error
// continues a sentence that begins with the parameter, for example "is not a
// telephone number", and does not contain the value.
func (p *Param) Normalize(f func(value string) (string, error)) *Param {
	p.mustDescribe(KindString, KindInt, KindList)
	p.normalize = f
	return p
}

// Param returns the parameter that has been declared under a name, so that more
// can be added to its description: for example to one of [Schema.Server].
func (s *Schema) Param(name string) *Param {
	if p := s.byName[name]; p != nil {
		return p
	}
	panic(s.Name + ": no parameter is called " + name)
}

// described returns the parameter as error texts name it.
func (p *Param) described() string { return p.name + " (" + p.doc + ")" }

// cut returns the part of a value that may be shown, and the part that is a
// secret.
func (p *Param) cut(value string) (public, secret string) {
	switch {
	case p.secret:
		return "", value
	case p.secretPart != nil:
		return p.secretPart(value)
	}
	return value, ""
}

// masked returns a value with its secret masked.
func (p *Param) masked(value string) string {
	public, secret := p.cut(value)
	if secret != "" {
		return public + redact.Mask
	}
	return public
}

// secrets returns the values that must not be shown.
func (d *Destination) secrets() (secrets []string) {
	for _, p := range d.schema.params {
		if !p.secret && p.secretPart == nil {
			continue
		}
		if p.kind == KindMap {
			for key, text := range *d.entries(p) {
				if p.hides(key) {
					secrets = append(secrets, text)
				}
			}
			continue
		}
		for _, text := range d.texts(p) {
			if _, secret := p.cut(text); secret != "" {
				secrets = append(secrets, secret)
			}
		}
	}
	return secrets
}

// texts returns the value of a parameter as a URL writes it: no text if it has
// none, one for a single value, and one for each item of a list and for each
// value of a map.
func (d *Destination) texts(p *Param) []string {
	switch p.kind {
	case KindList:
		return d.items(p)
	case KindMap:
		return slices.Collect(maps.Values(*d.entries(p)))
	}
	if text := d.value(p); text != "" {
		return []string{text}
	}
	return nil
}

// has reports whether a parameter has a value.
func (d *Destination) has(p *Param) bool {
	switch p.kind {
	case KindList:
		return d.countItems(p) > 0
	case KindMap:
		return len(*d.entries(p)) > 0
	}
	return d.value(p) != ""
}

// A scalar is a variable that holds a single value.
type scalar interface {
	// set sets the variable to the URL's text for p. The error continues a sentence that begins
	// with the parameter.
	set(p *Param, text string) error

	// text returns the value as a URL writes it, or "" if it is not given.
	text(p *Param) string
}

// scalar returns the variable of p at v. It returns nil for a list or a map.
func (p *Param) scalar(v unsafe.Pointer) scalar {
	switch p.kind {
	case KindString:
		return (*stringVar)(v)
	case KindInt:
		return (*intVar)(v)
	case KindFloat:
		return (*floatVar)(v)
	case KindBool:
		return (*boolVar)(v)
	case KindChoice:
		if p.enum {
			return (*enumVar)(v)
		}
		return (*choiceVar)(v)
	case KindFile:
		return (*fileVar)(v)
	case KindList, KindMap:
	}
	return nil
}

// set checks the URL's text for a parameter with a single value, and sets the variable to it.
func (d *Destination) set(p *Param, text string) error {
	text, err := p.check(text)
	if err != nil {
		return err
	}
	return p.scalar(d.change(p.variable)).set(p, text)
}

// value returns the single value of a parameter as a URL writes it, or "" if it
// is not given.
func (d *Destination) value(p *Param) string { return p.scalar(d.at(p.variable)).text(p) }

// check returns the value, or the item of a list, in the form that the service
// wants, or what is wrong with it.
func (p *Param) check(text string) (string, error) {
	if p.pattern != nil && !p.pattern.MatchString(text) {
		return "", errors.New("has the wrong form")
	}
	if p.normalize != nil {
		return p.normalize(text)
	}
	return text, nil
}

type stringVar string

// String binds a text.
func (s *Schema) String(v *string, name, def, doc string) *Param {
	*v = def
	return s.declare(KindString, name, def, doc, unsafe.Pointer(v))
}

func (v *stringVar) set(_ *Param, text string) error { *v = stringVar(text); return nil }
func (v *stringVar) text(*Param) string              { return string(*v) }

// Secret binds a text that gives access, such as a token. No log line, error or
// answer shows it.
func (s *Schema) Secret(v *string, name, doc string) *Param {
	return s.String(v, name, "", doc).Secret()
}

// numberRules are the bounds of a number.
type numberRules struct {
	min, max *float64 // nil for no bound
	missing  string   // the value that means "not given"; "" if there is none
}

// Range demands that a number is between min and max, inclusive. An infinite
// bound means no bound. For a [Schema.Enum], it accepts numbers without a name.
func (p *Param) Range(min, max float64) *Param {
	p.mustDescribe(KindInt, KindFloat, KindChoice)
	if !math.IsInf(min, 0) {
		p.numbers.min = new(min)
	}
	if !math.IsInf(max, 0) {
		p.numbers.max = new(max)
	}
	return p
}

// NoDefault makes the default of a number, which is then outside its range, mean "not given". It is
// used for a number for which 0 is a valid value. The default is not documented.
func (p *Param) NoDefault() *Param {
	p.mustDescribe(KindInt, KindFloat)
	p.def, p.numbers.missing = "", p.def
	return p
}

// includes reports whether n is within the bounds.
func (r *numberRules) includes(n float64) bool {
	return !math.IsNaN(n) && (r.min == nil || n >= *r.min) && (r.max == nil || n <= *r.max)
}

// clip returns the upper bound if n is above it, and "" otherwise: a number below
// the range means "not given", as it does in Apprise.
func (r *numberRules) clip(n float64) string {
	if r.max != nil && n > *r.max {
		return formatNumber(*r.max)
	}
	return ""
}

// String returns the bounds as they follow "a number", for example " from 1 to
// 10".
func (r *numberRules) String() string {
	switch {
	case r.min != nil && r.max != nil:
		return " from " + formatNumber(*r.min) + " to " + formatNumber(*r.max)
	case r.min != nil:
		return " of at least " + formatNumber(*r.min)
	case r.max != nil:
		return " of at most " + formatNumber(*r.max)
	}
	return ""
}

// shown returns the text of a number, or "" if it means "not given".
func (r *numberRules) shown(text string) string {
	if r.missing != "" && text == r.missing {
		return ""
	}
	return text
}

func formatNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

type intVar int

// Int binds a whole number.
func (s *Schema) Int(v *int, name string, def int, doc string) *Param {
	*v = def
	return s.declare(KindInt, name, strconv.Itoa(def), doc, unsafe.Pointer(v))
}

func (v *intVar) set(p *Param, text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || !p.numbers.includes(float64(n)) {
		return fmt.Errorf("must be a whole number%s", &p.numbers)
	}
	*v = intVar(n)
	return nil
}

func (v *intVar) text(p *Param) string { return p.numbers.shown(strconv.Itoa(int(*v))) }

type floatVar float64

// Float binds a number.
func (s *Schema) Float(v *float64, name string, def float64, doc string) *Param {
	*v = def
	return s.declare(KindFloat, name, formatNumber(def), doc, unsafe.Pointer(v))
}

func (v *floatVar) set(p *Param, text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !p.numbers.includes(f) {
		return fmt.Errorf("must be a number%s", &p.numbers)
	}
	*v = floatVar(f)
	return nil
}

func (v *floatVar) text(p *Param) string { return p.numbers.shown(formatNumber(float64(*v))) }

type boolVar bool

// Bool binds a switch. A URL writes yes, no, true, false, on, off, 1 or 0, or the
// beginning of one of these words. A switch is lenient unless it is [Param.Strict].
func (s *Schema) Bool(v *bool, name string, def bool, doc string) *Param {
	*v = def
	p := s.declare(KindBool, name, formatBool(def), doc, unsafe.Pointer(v))
	p.lenient = true
	return p
}

func (v *boolVar) set(_ *Param, text string) error {
	b, ok := parseBool(text)
	if !ok {
		return errors.New("must be yes or no")
	}
	*v = boolVar(b)
	return nil
}

func (v *boolVar) text(*Param) string { return formatBool(bool(*v)) }

// nearest returns the value that a lenient parameter gets instead of an invalid one, as a URL
// writes it, or "" for the default. A number above the range is clipped to it. A switch is read as
// Apprise reads it, by its first two letters: "none" is no.
func (p *Param) nearest(text string) string {
	switch p.kind {
	case KindInt, KindFloat, KindChoice:
		n, err := strconv.ParseFloat(text, 64)
		if err == nil || errors.Is(err, strconv.ErrRange) {
			return p.numbers.clip(n)
		}
		if p.enum {
			return p.closest(text)
		}
	case KindBool:
		if b, ok := parseBool(text[:min(2, len(text))]); ok {
			return formatBool(b)
		}
	}
	return ""
}

func formatBool(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// The words for the two values of a switch, as in Apprise.
var (
	yesWords = []string{"yes", "true", "on", "1", "enable", "enabled", "allow", "always"}
	noWords  = []string{"no", "false", "off", "0", "disable", "disabled", "deny", "never"}
)

// YesNo returns two choices with the words of a [Schema.Bool], for a switch whose
// default depends on other parameters.
func YesNo(yes, no int) []Choice {
	return []Choice{{Name: "yes", Value: yes, Synonyms: yesWords[1:]}, {Name: "no", Value: no, Synonyms: noWords[1:]}}
}

func parseBool(text string) (b, ok bool) {
	text = strings.ToLower(text)
	if text == "" {
		return false, false
	}
	for _, word := range yesWords {
		if strings.HasPrefix(word, text) && text != "o" && text != "e" && text != "a" {
			return true, true
		}
	}
	for _, word := range noWords {
		if strings.HasPrefix(word, text) && text != "o" && text != "d" {
			return false, true
		}
	}
	return false, false
}

// Choice is one value of a parameter with few values. A URL may write its name, one of its
// synonyms, or the beginning of one of these. Case does not count. If several choices begin so, a
// [Schema.Choice] takes the first of them, and an [Schema.Enum] none, unless it is
// [Param.FirstMatch].
type Choice struct {
	Name     string
	Value    int
	Synonyms []string
}

type choiceVar string

// Choice binds a text that is one of a few.
func (s *Schema) Choice(v *string, name, def string, choices []string, doc string) *Param {
	*v = def
	p := s.declare(KindChoice, name, def, doc, unsafe.Pointer(v))
	for i, c := range choices {
		p.choices = append(p.choices, Choice{Name: c, Value: i})
	}
	return p
}

func (v *choiceVar) set(p *Param, text string) error {
	i := p.choose(text, false)
	if i < 0 {
		return p.errNoChoice()
	}
	*v = choiceVar(p.choices[i].Name)
	return nil
}

func (v *choiceVar) text(*Param) string { return string(*v) }

type enumVar int

// Enum binds a number that has names, such as a priority. A URL may write the
// number instead of the name. def is one of the names, or "" for the number 0. If
// 0 is not the number of a choice, it means "not given".
func (s *Schema) Enum(v *int, name, def string, choices []Choice, doc string) *Param {
	p := s.declare(KindChoice, name, def, doc, unsafe.Pointer(v))
	p.enum, p.choices = true, slices.Clone(choices)
	*v = 0
	if def != "" && (*enumVar)(v).set(p, def) != nil {
		panic(s.Name + ": the default of " + name + " is none of its choices")
	}
	return p
}

func (v *enumVar) set(p *Param, text string) error {
	if n, err := strconv.Atoi(text); err == nil && p.numbers.max != nil && p.numbers.includes(float64(n)) {
		*v = enumVar(n)
		return nil
	}
	i := p.choose(text, true)
	if i < 0 {
		return p.errNoChoice()
	}
	*v = enumVar(p.choices[i].Value)
	return nil
}

func (v *enumVar) text(p *Param) string {
	for _, c := range p.choices {
		if c.Value == int(*v) {
			return c.Name
		}
	}
	if p.numbers.max != nil {
		return strconv.Itoa(int(*v))
	}
	return ""
}

// choose returns the index of the choice that text names, or -1. With numbers,
// the value of a choice names it, too.
func (p *Param) choose(text string, numbers bool) int {
	// Apprise prints "NotifyFormat.TEXT" instead of "text" for DingTalk.
	if class, name, ok := strings.Cut(text, "."); ok && (class == "NotifyFormat" || class == "OverflowMode") {
		text = name
	}
	for i, c := range p.choices {
		if strings.EqualFold(text, c.Name) || numbers && text == strconv.Itoa(c.Value) ||
			slices.ContainsFunc(c.Synonyms, func(s string) bool { return strings.EqualFold(s, text) }) {
			return i
		}
	}
	found := -1
	for i, c := range p.choices {
		if text == "" || !c.begins(text) {
			continue
		}
		if !numbers || p.first {
			return i
		}
		if found >= 0 && p.choices[found].Value != c.Value {
			return -1
		}
		found = i
	}
	return found
}

// begins reports whether the name or a synonym of the choice begins with text.
func (c *Choice) begins(text string) bool {
	return commonLetters(c.Name, text) == len(text) ||
		slices.ContainsFunc(c.Synonyms, func(s string) bool { return commonLetters(s, text) == len(text) })
}

// closest returns the name of the choice that has the longest beginning in common
// with text, or "" if there is none or several. Apprise reads priorities by their
// first letters: "error" is emergency.
func (p *Param) closest(text string) string {
	longest, name, value := 0, "", 0
	for _, c := range p.choices {
		for _, word := range append([]string{c.Name}, c.Synonyms...) {
			switch n := commonLetters(word, text); {
			case n > longest:
				longest, name, value = n, c.Name, c.Value
			case n == longest && value != c.Value:
				name = ""
			}
		}
	}
	return name
}

// commonLetters returns the length of the beginning that two words have in
// common, without regard to case, if it begins with a letter.
func commonLetters(a, b string) (n int) {
	a, b = strings.ToLower(a), strings.ToLower(b)
	for n < min(len(a), len(b)) && a[n] == b[n] && (n > 0 || a[0] >= 'a' && a[0] <= 'z') {
		n++
	}
	return n
}

func (p *Param) errNoChoice() error {
	names := make([]string, len(p.choices))
	for i, c := range p.choices {
		names[i] = c.Name
	}
	if len(names) > 12 {
		names = append(names[:12], "…")
	}
	if p.numbers.max != nil {
		names = append(names, "or a number"+p.numbers.String())
	}
	return fmt.Errorf("must be one of %s", strings.Join(names, ", "))
}
