package notifier

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier/internal/urlsyntax"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// ServiceInfo describes a service for lists and documents.
type ServiceInfo struct {
	Name        string      `json:"name"`
	Site        string      `json:"site,omitempty"`
	Setup       string      `json:"setup,omitempty"`
	Schemes     []string    `json:"schemes"`
	Groups      []Group     `json:"groups"` // the first is the main one
	Words       []string    `json:"words,omitempty"`
	URLs        []string    `json:"urls"`           // the best for a newcomer first
	Ways        []string    `json:"ways,omitempty"` // a name for each of URLs
	Natives     []string    `json:"native_urls,omitempty"`
	Examples    []string    `json:"examples"` // one for each of URLs
	Params      []ParamInfo `json:"params"`
	Format      Format      `json:"format"`
	MaxTitle    int         `json:"max_title"`
	MaxBody     int         `json:"max_body"`
	Unit        markup.Unit `json:"unit"` // of MaxTitle and MaxBody
	Attachments bool        `json:"attachments"`

	// Incidents are the states of an incident that the service tells in its own way.
	Incidents []IncidentState `json:"incidents,omitempty"`

	// Acknowledge is where the service shows the link on which an incident can be
	// acknowledged.
	Acknowledge AcknowledgePlace `json:"acknowledge"`
}

// ParamInfo describes a parameter for lists and documents.
type ParamInfo struct {
	Name     string   `json:"name"`
	Doc      string   `json:"doc"`
	Kind     Kind     `json:"kind"`
	Default  string   `json:"default,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	Aliases  []string `json:"aliases,omitempty"`
	Prefix   string   `json:"prefix,omitempty"`
	Parts    []string `json:"parts,omitempty"` // as "@: a user"
	Min      *float64 `json:"min,omitempty"`
	Max      *float64 `json:"max,omitempty"`
	Required bool     `json:"required,omitempty"`
	InURL    bool     `json:"in_url,omitempty"` // it has a place outside the query
	Secret   bool     `json:"secret,omitempty"`
	Common   bool     `json:"common,omitempty"` // every service has it
	Example  string   `json:"example,omitempty"`
}

// Services lists the registered services by name.
func Services() []ServiceInfo {
	entries := slices.Clone(registry.entries)
	slices.SortFunc(entries, func(a, b *entry) int {
		return strings.Compare(strings.ToLower(a.schema.Name), strings.ToLower(b.schema.Name))
	})
	out := make([]ServiceInfo, 0, len(entries))
	for _, e := range entries {
		out = append(out, e.info())
	}
	return out
}

func (e *entry) info() ServiceInfo {
	s := e.schema
	info := ServiceInfo{
		Name: s.Name, Site: s.Site, Setup: s.Setup, Schemes: e.schemes, Format: s.Format,
		MaxTitle: s.Limits.Title, MaxBody: s.Limits.Body, Unit: cmp.Or(s.Limits.Unit, markup.Characters), Attachments: s.Attachments,
		Incidents: s.incidents, Acknowledge: cmp.Or(s.Acknowledge, AcknowledgeInText), Groups: s.groups, Words: s.words,
	}
	for _, t := range s.forms() {
		if t.Way != "" {
			info.Ways = append(info.Ways, t.Way)
		}
		info.URLs = append(info.URLs, t.Text)
		info.Examples = append(info.Examples, s.example(t))
	}
	for _, n := range s.natives {
		if !slices.Contains(info.URLs, n.Text) { // it is a template, too
			info.Natives = append(info.Natives, n.Text)
		}
	}
	for _, p := range s.params {
		i := s.paramInfo(p)
		ofServer := s.server != nil && slices.Contains([]string{"user", "password", "host", "port"}, p.name)
		if i.InURL || !ofServer {
			info.Params = append(info.Params, i)
		}
	}
	return info
}

func (s *Schema) paramInfo(p *Param) ParamInfo {
	i := ParamInfo{
		Name: p.name, Doc: p.doc, Kind: p.kind, Default: s.defaultOf(p), Aliases: p.aliases,
		Prefix: p.dict.prefix, Min: p.numbers.min, Max: p.numbers.max,
		Secret: p.secret, Common: p.common, Example: strings.Join(p.example, ","),
	}
	for _, c := range p.choices {
		i.Choices = append(i.Choices, c.Name)
	}
	for _, x := range p.list.prefixed {
		i.Parts = append(i.Parts, x.Prefix+": "+x.Doc)
	}
	optional := false
	for _, t := range s.templates {
		if !t.Has(p.name) {
			optional = true
			continue
		}
		i.InURL = true
		t.Places(func(name string, opt bool) { optional = optional || name == p.name && opt })
	}
	i.Required = p.required || i.InURL && !optional
	return i
}

// Values describes the values that the parameter takes, for example "0 to 10".
func (i ParamInfo) Values() string {
	switch {
	case i.Kind == KindBool:
		return "yes or no"
	case i.Kind == KindMap:
		return i.Prefix + "name=value"
	case i.Kind == KindList:
		return "list"
	case i.Kind == KindFile:
		return "file"
	case len(i.Choices) > 0:
		return strings.Join(i.Choices, ", ")
	case i.Min != nil && i.Max != nil:
		return formatNumber(*i.Min) + " to " + formatNumber(*i.Max)
	case i.Min != nil:
		return formatNumber(*i.Min) + " or more"
	case i.Max != nil:
		return "up to " + formatNumber(*i.Max)
	case i.Kind == KindInt:
		return "whole number"
	case i.Kind == KindFloat:
		return "number"
	}
	return "text"
}

// example returns a URL of the form of t, as [Param.Example] describes it.
func (s *Schema) example(t *urlsyntax.Template) string {
	values := func(name string) []string {
		p := s.byName[name]
		switch {
		case p.example != nil:
			return p.example
		case !p.required && !slices.Contains(t.Needed, name):
			return nil
		case len(p.choices) > 0:
			return []string{p.choices[0].Name}
		case p.kind == KindInt && p.numbers.min != nil:
			return []string{formatNumber(*p.numbers.min)}
		}
		return []string{p.name}
	}
	var out strings.Builder
	scheme := ""
	if t.Address == "" {
		scheme = t.ExampleScheme(values(t.Host.Name))
	}
	out.WriteString(t.Print(scheme, values, false))
	separator := "?"
	for _, p := range s.params {
		if p.required && !t.Has(p.name) {
			out.WriteString(separator + p.name + "=" + urlsyntax.Escape(values(p.name)[0]))
			separator = "&"
		}
	}
	return out.String()
}
