package notifier

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// A Service is one kind of destination. Describe states everything there is
// to know about its URLs and limits by binding fields of the service, the way
// package flag binds variables; Send says what goes over the wire.
//
// Describe must bind the same parameters on each call and have no side
// effects: it runs once when the service is registered and again for every
// URL. One value of a service serves all messages to one destination, from
// several goroutines at once, so Send changes fields only under a lock (see
// [Cached]). A service that keeps a connection implements io.Closer; it may be
// used again after Close.
type Service interface {
	Describe(s *Schema)
	Send(ctx context.Context, c *Client, m *Message) error
}

// A Finisher is a [Service] whose parameters must fit each other: Finish runs
// when all of them are set, and may adjust the schema's limits and format to
// the mode that they select. Its errors are shown to whoever wrote the URL and
// must not contain a parameter's value.
type Finisher interface {
	Finish(s *Schema) error
}

// A Rewriter is a [Service] whose URLs are in use with parts that the grammar
// takes for others, such as a user name with a slash in it: Rewrite returns
// the URL with such parts escaped, before it is taken apart.
type Rewriter interface {
	Rewrite(url string) string
}

// Schema is the description of a service and of one URL of it. The exported
// fields are for Describe to set.
type Schema struct {
	// Name is how the service calls itself, for example "Discord".
	Name string

	// Site is the address that tells more: the service's API documentation
	// where there is one, else its home page.
	Site string

	// Format is what the service takes natively; messages are converted to
	// it unless the URL's parameter format says otherwise. Default: [Text].
	Format Format

	// HardSpaces has every space of a plain text become a no-break space when
	// the text becomes HTML, and not only those that HTML would drop.
	HardSpaces bool

	// Limits are what a message may measure. Describe starts from a title
	// of 250 and a body of 32768 characters; a title of 0 means that the
	// service knows no title, and the core puts it into the body.
	Limits markup.Limits

	// Attachments says that the service sends files. A message that has
	// nothing but files fails at once for a service that does not.
	Attachments bool

	// Scheme is the name before "://" in the URL, in lower case. It is set
	// when Finish and Send run.
	Scheme string

	templates []*template
	natives   []*native
	params    []*Param
	byName    map[string]*Param
	server    *Server
	slash     *bool
	compiled  *compiled // shared by all schemas of one service
}

// compiled is what need not be worked out again for every URL of a service.
type compiled struct {
	patterns  map[string]*regexp.Regexp
	templates map[string]*template
	natives   map[string]*native
}

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
)

// Choice is one value of a parameter that takes few. Names and synonyms are
// accepted in any case, and cut short where that leaves no doubt.
type Choice struct {
	Name     string
	Value    int
	Synonyms []string
}

// Param is one parameter of a service. Its methods refine what the parameter
// takes and return it, so that they can be chained.
type Param struct {
	name     string
	doc      string
	kind     Kind
	def      string
	aliases  []string
	example  string
	secret   bool
	required bool
	lenient  bool
	common   bool
	whole    bool
	path     bool // items may repeat
	splitter func(rune) bool
	split    func(string) []string // instead of splitter
	pattern  *regexp.Regexp
	lo, hi   float64
	choices  []Choice
	prefix   string // of a map's keys
	header   bool   // a map's keys are names of HTTP headers
	item     func(string) (string, error)
	drop     bool
	key      string // behind it, an item of a list is a secret
	tokens   int    // from so many bytes on, an item of a list is a secret; 0 for never
	dropped  bool   // an item was left out
	parts    []listPart
	schema   *Schema

	set   func(string) error
	get   func() string
	reset func() // back to the default
	list  *[]string
	dict  *map[string]string
}

// listPart is the share of a list's items that begin with a prefix.
type listPart struct {
	prefix string
	to     *[]string
	doc    string
}

// URL states how the service's URLs are written; the first template that fits
// a URL is taken.
//
//	gotify[s]://{host}[:{port}][/{path...}]/{token}
//
// Brackets enclose what may be left out, {name} is the place of a parameter
// and {name...} that of all path segments that remain; {name...} in place of
// the host is the host and all path segments, and {name|list} there is name,
// or an item of the list where the query brings name. "gotify[s]" stands for
// the schemes gotify and gotifys; the longer one makes [Server.Secure] true.
// Aliases are separated by "|". A parameter that has a place outside brackets
// is required. Every parameter that has a place may come from the query as
// well; one that has none comes from the query only.
func (s *Schema) URL(templates ...string) {
	for _, text := range templates {
		t := s.compiled.templates[text]
		if t == nil {
			var err error
			if t, err = compileTemplate(text); err != nil {
				panic(s.Name + ": " + err.Error())
			}
			s.compiled.templates[text] = t
		}
		s.templates = append(s.templates, t)
	}
}

// TrailingSlash binds whether the path of the URL ends in a slash, for
// services that post to the very address that the URL names.
func (s *Schema) TrailingSlash(v *bool) { s.slash = v }

// Native states addresses that the service itself gives out and that are
// taken as URLs of it, such as that of a webhook. They are written like
// templates; {name} in the host matches up to the next dot. Their query may
// hold parameters like that of any URL. A query of the template, as in
// "https://hooks.example.com/triggers/{token}?mode=trigger", holds parameters
// that the address stands for; a {name} there is the first key of a query such
// as that of "https://notes.example.com/?tok3n".
func (s *Schema) Native(templates ...string) {
	for _, text := range templates {
		n := s.compiled.natives[text]
		if n == nil {
			var err error
			if n, err = compileNative(text); err != nil {
				panic(s.Name + ": " + err.Error())
			}
			s.compiled.natives[text] = n
		}
		s.natives = append(s.natives, n)
	}
}

func (s *Schema) add(p *Param) *Param {
	p.schema = s
	p.lo, p.hi = math.Inf(-1), math.Inf(1)
	if s.byName[p.name] != nil {
		panic(s.Name + ": parameter " + p.name + " is declared twice")
	}
	s.byName[p.name] = p
	s.params = append(s.params, p)
	return p
}

// String binds a text.
func (s *Schema) String(v *string, name, def, doc string) *Param {
	*v = def
	p := s.add(&Param{name: name, doc: doc, kind: KindString, def: def})
	p.reset = func() { *v = def }
	p.set = func(text string) error { *v = text; return nil }
	p.get = func() string { return *v }
	return p
}

// Secret binds a text that gives access, such as a token. It appears in no
// log line, error or answer.
func (s *Schema) Secret(v *string, name, doc string) *Param {
	p := s.String(v, name, "", doc)
	p.secret = true
	return p
}

// Int binds a whole number.
func (s *Schema) Int(v *int, name string, def int, doc string) *Param {
	*v = def
	p := s.add(&Param{name: name, doc: doc, kind: KindInt, def: strconv.Itoa(def)})
	p.reset = func() { *v = def }
	p.set = func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || float64(n) < p.lo || float64(n) > p.hi {
			return fmt.Errorf("is no whole number%s", p.span())
		}
		*v = n
		return nil
	}
	p.get = func() string { return strconv.Itoa(*v) }
	return p
}

// Float binds a number.
func (s *Schema) Float(v *float64, name string, def float64, doc string) *Param {
	*v = def
	format := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	p := s.add(&Param{name: name, doc: doc, kind: KindFloat, def: format(def)})
	p.reset = func() { *v = def }
	p.set = func(text string) error {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || f < p.lo || f > p.hi {
			return fmt.Errorf("is no number%s", p.span())
		}
		*v = f
		return nil
	}
	p.get = func() string { return format(*v) }
	return p
}

// Bool binds a switch, which is written yes, no, true, false, on, off, 1 or 0,
// or the beginning of such a word.
func (s *Schema) Bool(v *bool, name string, def bool, doc string) *Param {
	*v = def
	format := func(b bool) string {
		if b {
			return "yes"
		}
		return "no"
	}
	p := s.add(&Param{name: name, doc: doc, kind: KindBool, def: format(def)})
	p.reset = func() { *v = def }
	p.set = func(text string) error {
		b, ok := parseBool(text)
		if !ok {
			return fmt.Errorf("is neither yes nor no")
		}
		*v = b
		return nil
	}
	p.get = func() string { return format(*v) }
	return p
}

func parseBool(text string) (b, ok bool) {
	text = strings.ToLower(text)
	if text == "" {
		return false, false
	}
	for _, word := range []string{"yes", "true", "on", "1", "enable", "enabled", "allow", "always"} {
		if strings.HasPrefix(word, text) && text != "o" && text != "e" && text != "a" {
			return true, true
		}
	}
	for _, word := range []string{"no", "false", "off", "0", "disable", "disabled", "deny", "never"} {
		if strings.HasPrefix(word, text) && text != "o" && text != "d" {
			return false, true
		}
	}
	return false, false
}

// Choice binds a text that is one of a few.
func (s *Schema) Choice(v *string, name, def string, choices []string, doc string) *Param {
	*v = def
	p := s.add(&Param{name: name, doc: doc, kind: KindChoice, def: def})
	p.reset = func() { *v = def }
	for i, c := range choices {
		p.choices = append(p.choices, Choice{Name: c, Value: i})
	}
	p.set = func(text string) error {
		i := p.choose(text, false)
		if i < 0 {
			return p.noChoice()
		}
		*v = p.choices[i].Name
		return nil
	}
	p.get = func() string { return *v }
	return p
}

// Enum binds a number that has names, such as a priority. The number itself
// is accepted, too. def is one of the names, or "" for the number 0 where that
// is none of the choices: the parameter then counts as not given.
func (s *Schema) Enum(v *int, name, def string, choices []Choice, doc string) *Param {
	p := s.add(&Param{name: name, doc: doc, kind: KindChoice, def: def, choices: choices})
	p.set = func(text string) error {
		i := p.choose(text, true)
		if i < 0 {
			return p.noChoice()
		}
		*v = choices[i].Value
		return nil
	}
	p.get = func() string {
		for _, c := range choices {
			if c.Value == *v {
				return c.Name
			}
		}
		return ""
	}
	*v = 0
	if def != "" && p.set(def) != nil {
		panic(s.Name + ": the default of " + name + " is none of its choices")
	}
	initial := *v
	p.reset = func() { *v = initial }
	return p
}

// choose finds the choice that text means, or -1.
func (p *Param) choose(text string, numbers bool) int {
	found := -1
	for i, c := range p.choices {
		if strings.EqualFold(text, c.Name) || numbers && text == strconv.Itoa(c.Value) ||
			slices.ContainsFunc(c.Synonyms, func(s string) bool { return strings.EqualFold(s, text) }) {
			return i
		}
	}
	for i, c := range p.choices {
		if text == "" || len(text) > len(c.Name) || !strings.EqualFold(text, c.Name[:len(text)]) {
			continue
		}
		if found >= 0 && p.choices[found].Value != c.Value {
			return -1
		}
		found = i
	}
	return found
}

func (p *Param) noChoice() error {
	names := make([]string, len(p.choices))
	for i, c := range p.choices {
		names[i] = c.Name
	}
	if len(names) > 12 {
		names = append(names[:12], "…")
	}
	return fmt.Errorf("is none of %s", strings.Join(names, ", "))
}

// List binds a list of texts. In the path each segment is an item; in the
// query and within a segment commas, semicolons and white space separate
// items. An item that occurs twice counts once.
func (s *Schema) List(v *[]string, name, doc string) *Param {
	*v = nil
	p := s.add(&Param{name: name, doc: doc, kind: KindList, list: v})
	p.reset = func() {
		*v = nil
		for _, part := range p.parts {
			*part.to = nil
		}
	}
	p.splitter = func(r rune) bool { return r == ',' || r == ';' || r == ' ' || r == '\t' || r == '\n' || r == '\r' }
	return p
}

// Phones binds a list of telephone numbers. Each becomes its digits, with a +
// before them if it was written so; white space and the characters -, ., (
// and ) within a number do not count.
func (s *Schema) Phones(v *[]string, name, doc string) *Param {
	p := s.List(v, name, doc).Item(Phone)
	p.splitter = func(r rune) bool { return r == ',' || r == ';' }
	p.example = "15551234567"
	return p
}

// Path binds path segments that are a path, such as where on a server a
// service is mounted: their order counts, and they may be alike.
func (s *Schema) Path(v *[]string, name, doc string) *Param {
	p := s.List(v, name, doc).Whole()
	p.path = true
	return p
}

// Map binds what the query says under keys that begin with prefix, such as
// +Header=value, -parameter=value or :field=value. With an empty prefix it
// takes the keys that no parameter has. Keys keep their case. Values are
// treated as secrets, since headers often are.
func (s *Schema) Map(v *map[string]string, prefix, name, doc string) *Param {
	*v = nil
	p := s.add(&Param{name: name, doc: doc, kind: KindMap, prefix: prefix, dict: v, secret: true})
	p.reset = func() { *v = nil }
	return p
}

// Headers binds HTTP headers that the query says under keys with a + before
// the header's name: +X-Origin=gateway. Names and values must be such as a
// request can have (RFC 9110, sections 5.1 and 5.5).
func (s *Schema) Headers(v *map[string]string, name, doc string) *Param {
	p := s.Map(v, "+", name, doc)
	p.header = true
	return p
}

// Match demands that the value (of a list: each item) match the regular
// expression, whatever the case of letters.
func (p *Param) Match(pattern string) *Param {
	re := p.schema.compiled.patterns[pattern]
	if re == nil {
		re = regexp.MustCompile("(?i)" + pattern)
		p.schema.compiled.patterns[pattern] = re
	}
	p.pattern = re
	return p
}

// Range demands that a number lie between lo and hi, inclusive.
func (p *Param) Range(lo, hi float64) *Param { p.lo, p.hi = lo, hi; return p }

// Unset makes the default of a number stand for "not given", so that any
// value which the service takes can be given, 0 among them. The default is
// then neither documented nor bound by [Param.Range].
func (p *Param) Unset() *Param {
	get, unset := p.get, p.def
	p.def = ""
	p.get = func() string {
		if v := get(); v != unset {
			return v
		}
		return ""
	}
	return p
}

func (p *Param) span() string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	switch {
	case !math.IsInf(p.lo, 0) && !math.IsInf(p.hi, 0):
		return " from " + number(p.lo) + " to " + number(p.hi)
	case !math.IsInf(p.lo, 0):
		return " of at least " + number(p.lo)
	case !math.IsInf(p.hi, 0):
		return " of at most " + number(p.hi)
	}
	return ""
}

// Alias states other names under which the query may bring the parameter.
func (p *Param) Alias(names ...string) *Param {
	for _, n := range names {
		if p.schema.byName[n] != nil {
			panic(p.schema.Name + ": the alias " + n + " is taken")
		}
		p.schema.byName[n] = p
	}
	p.aliases = append(p.aliases, names...)
	return p
}

// Secret marks the value as one that gives access.
func (p *Param) Secret() *Param { p.secret = true; return p }

// Required demands a value for a parameter that has no place in the template.
func (p *Param) Required() *Param { p.required = true; return p }

// Lenient keeps the default where the value cannot be read, because URLs that
// users have already rely on it. Whoever loads the URL is warned.
func (p *Param) Lenient() *Param { p.lenient = true; return p }

// Example gives a value for example URLs, where the parameter's name is none.
// For a map it is a pair: key=value.
func (p *Param) Example(value string) *Param { p.example = value; return p }

// Whole keeps commas and spaces within the items of a list.
func (p *Param) Whole() *Param {
	p.whole = true
	return p
}

// Split says how a text becomes the items of a list, for items that hold the
// characters which separate those of other lists.
func (p *Param) Split(f func(string) []string) *Param { p.split = f; return p }

// Item checks and normalises each item of a list, or the value of a text.
func (p *Param) Item(f func(string) (string, error)) *Param {
	p.item = f
	if set := p.set; set != nil {
		p.set = func(text string) error {
			text, err := f(text)
			if err != nil {
				return err
			}
			return set(text)
		}
	}
	return p
}

// SecretAfter marks what stands behind sep in an item of a list as a secret,
// such as the key of a room: #room:key.
func (p *Param) SecretAfter(sep string) *Param { p.key = sep; return p }

// Tokens marks the items of a list that have so many bytes or more as secrets:
// in an address of the user's own, what gives access is often a part of the
// path, and it is longer than words are.
func (p *Param) Tokens(least int) *Param { p.tokens = least; return p }

// DropInvalid lets a list be empty where none of its items can be used, instead
// of refusing the URL, because URLs that users have already rely on it. Some
// that can and some that cannot be used are no mistake that needs it: the
// latter are left out, and whoever loads the URL is warned.
func (p *Param) DropInvalid() *Param { p.drop = true; return p }

// Dropped says, once the URL is read, whether an item was left out.
func (p *Param) Dropped() bool { return p.dropped }

// Part puts the items of a list that begin with prefix into a list of their
// own, without it: @user, #room.
func (p *Param) Part(prefix string, v *[]string, doc string) *Param {
	*v = nil
	p.parts = append(p.parts, listPart{prefix, v, doc})
	return p
}

// Server is where a self-hosted service stands, and how to sign in there.
type Server struct {
	Secure   bool // TLS, from the scheme
	User     string
	Password string
	Host     string
	Port     int // 0: the scheme's

	// hasPassword tells "user:@host", an empty password, from "user@host".
	hasPassword bool
}

// Login is the user and the password for HTTP Basic authentication; both are
// empty where the URL names no user. A URL with a user and without even the
// colon of a password signs in with the password "None": that is what servers
// have been seeing from the program that made these URLs known, and have been
// set up to take.
func (s *Server) Login() (user, password string) {
	if s.User != "" && s.Password == "" && !s.hasPassword {
		return s.User, "None"
	}
	return s.User, s.Password
}

// Server binds the parameters user, password, host and port; those of them
// that have a place in a template count.
func (s *Schema) Server(v *Server) {
	*v = Server{}
	s.server = v
	s.String(&v.User, "user", "", "user name")
	s.Secret(&v.Password, "password", "password").Alias("pass")
	s.Host(&v.Host, "host", "name or address of the server")
	p := s.Int(&v.Port, "port", 0, "port of the server").Range(1, 65535).Example("8080")
	p.get = func() string {
		if v.Port == 0 {
			return ""
		}
		return strconv.Itoa(v.Port)
	}
	p.def = ""
}

// Host binds the name or address of a host.
func (s *Schema) Host(v *string, name, doc string) *Param {
	return s.String(v, name, "", doc).Match(hostPattern).Example("example.com")
}

const hostPattern = `^([\pL\pN_]([\pL\pN_-]{0,61}[\pL\pN_])?(\.[\pL\pN_]([\pL\pN_-]{0,61}[\pL\pN_])?)*\.?|\[[0-9a-f:.]+(%[\w.-]+)?\])$`

// URL is the address of the server with the segments as its path; each is
// escaped, and empty ones are left out. The scheme is http or https.
func (s *Server) URL(segments ...string) string {
	scheme := "http"
	if s.Secure {
		scheme = "https"
	}
	return s.URLWith(scheme, segments...)
}

// URLWith is like [Server.URL] with another scheme.
func (s *Server) URLWith(scheme string, segments ...string) string {
	host := strings.Replace(s.Host, "%", "%25", 1) // the zone of an IPv6 address (RFC 6874)
	if s.Port != 0 {
		host += ":" + strconv.Itoa(s.Port)
	}
	return scheme + "://" + host + Path(segments...)
}

// Path joins segments to the path of a URL: each is escaped and has a slash
// before it, and empty ones are left out.
func Path(segments ...string) string {
	var b strings.Builder
	for _, seg := range segments {
		if seg != "" {
			b.WriteString("/" + url.PathEscape(seg))
		}
	}
	return b.String()
}

// newSchema runs Describe and adds what all services have in common.
func newSchema(svc Service, common *options, c *compiled) *Schema {
	s := &Schema{
		Format:   Text,
		Limits:   markup.Limits{Title: 250, Body: 32768},
		byName:   map[string]*Param{},
		compiled: c,
	}
	svc.Describe(s)
	s.describeCommon(common)
	return s
}

// options are the parameters that every service has.
type options struct {
	format   string
	overflow string
	emojis   bool
	tz       string
	verify   bool
	redirect bool
	rto, cto float64
	retry    int
	wait     float64
	optional bool
	store    bool
}

func (s *Schema) describeCommon(o *options) {
	first := len(s.params)
	own := func(name string) bool { return s.byName[name] != nil }
	if !own("format") {
		// The default is the service's format, which may depend on the mode
		// that Finish finds; a format that is given counts in every mode.
		p := s.Choice(&o.format, "format", string(s.Format), []string{"text", "markdown", "html"}, "what the message is converted to").Lenient()
		p.reset = func() { o.format, p.def = "", string(s.Format) }
		p.get = func() string { return cmp.Or(o.format, p.def) }
		o.format = ""
	}
	s.Choice(&o.overflow, "overflow", string(markup.OverflowUpstream), []string{"upstream", "truncate", "split"}, "text too long: sent whole, in parts if that is refused; cut; or in parts").Lenient()
	s.Bool(&o.emojis, "emojis", false, "turn names such as :smile: into emojis")
	s.String(&o.tz, "tz", "", "time zone of the times in a message, as in Europe/Berlin").Item(timeZone)
	s.Bool(&o.verify, "verify", true, "check the certificate of a TLS server")
	if !own("redirect") {
		s.Bool(&o.redirect, "redirect", true, "follow HTTP redirects")
	}
	s.Float(&o.rto, "rto", 0, "seconds to wait for an answer; 0 for as long as the timeout allows").Range(0, 86400)
	s.Float(&o.cto, "cto", 10, "seconds to wait for a connection").Range(0.001, 86400)
	if !own("retry") {
		s.Int(&o.retry, "retry", 0, "how often to try again after a failure").Range(0, 10)
	}
	if !own("wait") {
		s.Float(&o.wait, "wait", 0.5, "seconds between two tries").Range(0, 20)
	}
	if !own("optional") {
		s.Bool(&o.optional, "optional", false, "let the request succeed though this destination fails")
	}
	s.Bool(&o.store, "store", true, "keep sessions and tokens for the next message")
	for _, p := range s.params[first:] {
		p.common = true
	}
}
