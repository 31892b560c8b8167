package view

import (
	"strings"
)

// ServicesPage is the first step to a new destination of a key: a field for a search or a pasted
// text, and the services by group.
type ServicesPage struct {
	Address string // address of the key's page, relative to this page
	Key     string
	Text    string       // text in the field
	Problem string       // why nothing is found; "" if something is, or for an empty field
	Device  *DeviceOffer // nil if devices are off or the text is not about one
	Guesses []Guess
	Found   []Service // services found by the search
	Senders []Sender  // programs that the text names, which send to the key
	Network *Network  // for the address of a server in a private network that may not be reached; else nil
	Groups  []ServiceGroup
}

// DeviceOffer offers to make a person's phone or browser a destination.
type DeviceOffer struct {
	Address string       // address of the key's page, which makes invitations
	Problem string       // why it cannot be invited yet; "" if it can
	Lacks   []CopiedLine // lines of the Caddyfile with which it can
}

// Sender is a program that sends to the key.
type Sender struct {
	Name  string
	Where []Part       // where to click in it
	Lines []CopiedLine // addresses to paste there
	Enter []Part       // what to enter besides
	Page  string       // the address of the page about it
}

// Part is a part of a text.
type Part struct {
	Text    string
	Code    bool
	Address string // of a link; "" for none
}

// Network says how the operator allows addresses of a private network.
type Network struct{ Line CopiedLine }

// NewNetwork returns the line that allows them.
func NewNetwork() *Network {
	return &Network{CopiedLine{Name: "The lines for the operator", Text: "egress {\n\tallow private_ranges\n}"}}
}

// Service is a service in a list.
type Service struct {
	Name, Scheme string
	Provider     string // provider whose form is meant; "" for the service's own form
	Group        string // its main group, for the colour of its mark
	Reason       string // why it is found; "" in a list of all
}

// Mark returns the letter that stands for the service.
func (s Service) Mark() string { return letterOf(s.Name) }

// Guess is a service that the text in the field may belong to.
type Guess struct {
	Service
	What string // description of the text, such as "the token of a bot"
	Note string // a sentence on a missing part; "" for none
}

// shownGuesses is how many possible services of a text are shown at once.
const shownGuesses = 6

// First are the likeliest services of the text.
func (p ServicesPage) First() []Guess { return p.Guesses[:min(len(p.Guesses), shownGuesses)] }

// Rest are the other possible services of the text.
func (p ServicesPage) Rest() []Guess { return p.Guesses[len(p.First()):] }

// ServiceGroup has the services for one purpose.
type ServiceGroup struct {
	Title    string
	Services []Service
}

var servicesParts = newParts(source{
	templates: []string{"builder_services.html", "builder_senders.html", "builder_step.html"},
	scripts:   []string{"builder.js"},
	styles:    []string{mainStyle},
	policy:    policyForms,
})

func (p ServicesPage) view() view { return view{title: builderTitle(p.Key), parts: servicesParts} }

// Summary says what is found, for screen readers, so that they need not read the lists.
func (p ServicesPage) Summary() string {
	var parts []string
	if n := len(p.Guesses); n > 0 {
		parts = append(parts, "The text may belong to "+Count(n, "service", "services")+".")
	}
	if n := len(p.Found); n > 0 {
		parts = append(parts, Count(n, "service", "services")+" found.")
	}
	if n := len(p.Senders); n > 0 {
		parts = append(parts, Count(n, "program", "programs")+" that can send to the key.")
	}
	if p.Device != nil && p.Device.Problem == "" && p.Text != "" {
		parts = append(parts, "This phone or browser can be invited.")
	}
	if p.Problem != "" {
		parts = append(parts, "Nothing found.")
	}
	return strings.Join(parts, " ")
}

// Total returns the number of services.
func (p ServicesPage) Total() int {
	names := map[string]bool{}
	for _, g := range p.Groups {
		for _, s := range g.Services {
			names[s.Name] = true
		}
	}
	return len(names)
}

// builderTitle is the title of the pages that make a URL.
func builderTitle(key string) string { return "Add a destination to " + key }

// FormPage is the second step: a form for the URL of a service. It tests the URL,
// and saves it or shows the line for a Caddyfile.
type FormPage struct {
	Address     string // see ServicesPage
	Key         string
	Service     Service
	Provider    string // for a form that asks for an account there; "" for the whole form
	Of          string // the name of the provider's service; "" without a provider
	Setup, Site string // links of the service
	Template    string // template of the URL
	Form        int    // number of the form, from 1
	Forms       []Choice
	Schemes     []Choice
	Natives     bool // addresses that the service hands out fill in the form, and no field is for one
	Sections    []Section
	Tags        Field
	Problem     string // problem of the URL as a whole, or why it is not saved
	Shown       bool   // secrets are readable
	Recognized  string // description of the text that filled in the form; "" for none
	Note        string // note about that text
	Unread      string // a pasted text that does not fill in the form
	Saves       bool   // the key is a saved one; else the form shows the line for a Caddyfile
	Tests       bool   // the form can send a test message
	Result      string // result of a test; "" before the first
	Status      string // status of the result, as in Destination
	Line        string // line for a Caddyfile; "" until asked for
	URL         string // set if the person must write it into the key; else ""
	Warnings    []string
	Into        *SavedKeys // keys that the destination can be saved into instead; nil for none
	Network     *Network   // set if the URL leads to a private network that may not be reached
}

// SavedKeys are keys to choose from, or to name a new one.
type SavedKeys struct {
	Names  []string
	Chosen string // "" for none
}

// Choice is one of several values.
type Choice struct {
	Value, Label string
	Chosen       bool
}

// Section is a part of a form.
type Section struct {
	Title  string // "" for one that is always open
	Open   bool
	Fields []Field
}

// Field is a field of a form.
type Field struct {
	ID       string // ID of the element
	Name     string // name of the field in the request
	Param    string // the name of the parameter
	Label    string
	Control  Control
	Value    string
	Default  string
	Example  string   // an example of a value
	Checked  bool     // for ControlCheck
	Choices  []Choice // for ControlSelect
	Pairs    []Pair   // for ControlPairs
	Min, Max string   // for ControlNumber, like Step
	Step     string
	Required bool
	Optional bool // shown as optional, because it is among required fields
	Secret   bool
	Shown    bool // a secret is readable
	Hint     string
	Problem  string
}

// Control is the kind of a field.
type Control string

// The kinds of fields.
const (
	ControlText   Control = "text"
	ControlSecret Control = "secret"
	ControlNumber Control = "number"
	ControlCheck  Control = "check"
	ControlSelect Control = "select"
	ControlLines  Control = "lines" // a list, one item a line
	ControlPairs  Control = "pairs" // a map
)

// Pair is an entry of a map.
type Pair struct {
	Number     int // from 1 on
	Key, Value string
}

var formParts = newParts(source{
	templates: []string{"builder_form.html", "builder_field.html", "builder_senders.html", "builder_step.html"},
	scripts:   []string{"builder.js"},
	styles:    []string{mainStyle},
	policy:    policyForms,
})

// shownField is a field as the template shows it.
type shownField struct {
	Field
	Focus bool // it is the first field with a problem
}

// shownSection is a section as the template shows it.
type shownSection struct {
	Section
	Fields []shownField
}

func (p FormPage) view() view {
	data := struct {
		FormPage
		Sections []shownSection
		Tags     shownField
		Problems []Field // fields with a problem, for the summary
	}{FormPage: p}
	show := func(f Field) shownField {
		if f.Problem == "" {
			return shownField{Field: f}
		}
		data.Problems = append(data.Problems, f)
		return shownField{f, len(data.Problems) == 1}
	}
	for _, s := range p.Sections {
		shown := shownSection{Section: s}
		for _, f := range s.Fields {
			shown.Fields = append(shown.Fields, show(f))
		}
		data.Sections = append(data.Sections, shown)
	}
	data.Tags = show(p.Tags)
	return view{title: "Add " + p.Service.Name + " to " + p.Key, parts: formParts, data: data}
}
