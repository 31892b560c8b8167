// Package catalogue describes the services in the form of the Apprise API.
package catalogue

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Catalogue is the answer to /details. The Apprise API has the same names.
type Catalogue struct {
	Version string    `json:"version"`
	Schemas []service `json:"schemas"`
	Asset   asset     `json:"asset"`
}

// asset is the identity of the site.
type asset struct {
	Name        string `json:"app_id"`
	Description string `json:"app_desc"`
	URL         string `json:"app_url"`
	Icon        string `json:"image_url_mask"`
	Logo        string `json:"image_url_logo"`
}

type service struct {
	Name        string  `json:"service_name"`
	Site        *string `json:"service_url"`
	Setup       string  `json:"setup_url"`
	Attachments bool    `json:"attachment_support"`
	Category    string  `json:"category"`

	// These are not in the Apprise API.
	Groups []notifier.Group `json:"groups"`
	Words  []string         `json:"words,omitempty"`

	Enabled         *bool    `json:"enabled,omitempty"` // with ?all
	Protocols       []string `json:"protocols"`
	SecureProtocols []string `json:"secure_protocols"`
	Details         struct {
		Templates []string         `json:"templates"`
		Tokens    map[string]any   `json:"tokens"` // parameters in a template
		Args      map[string]any   `json:"args"`   // parameters of the query
		Kwargs    map[string]field `json:"kwargs"` // parameters whose names begin with a prefix
	} `json:"details"`
}

// field describes a parameter.
type field struct {
	Name     string   `json:"name"` // for people
	Type     string   `json:"type"`
	Values   []string `json:"values,omitempty"`
	Default  any      `json:"default,omitempty"`
	Min      *float64 `json:"min,omitempty"`
	Max      *float64 `json:"max,omitempty"`
	Delim    []string `json:"delim,omitempty"`  // for lists
	Prefix   string   `json:"prefix,omitempty"` // for kwargs
	MapTo    string   `json:"map_to"`
	Required bool     `json:"required"`
	Private  bool     `json:"private"`
}

// alias is another name of a parameter.
type alias struct {
	Of string `json:"alias_of"`
}

// New returns the catalogue of the services allowed by a site with an identity or, with all, of all
// services.
func New(services *site.ServiceRule, identity *notifier.Identity, all bool) *Catalogue {
	out := &Catalogue{Version: version.Current, Asset: asset{
		Name: identity.Name, Description: identity.Description, URL: identity.URL, Logo: identity.Logo,
		Icon: strings.NewReplacer("{type}", "{TYPE}", "{size}", "{XY}").Replace(identity.Icon),
	}}
	for _, s := range notifier.Services() {
		enabled := services.Permits(s.Schemes)
		if !enabled && !all {
			continue
		}
		d := newService(s)
		if all {
			d.Enabled = &enabled
		}
		out.Schemas = append(out.Schemas, d)
	}
	return out
}

func newService(s notifier.ServiceInfo) service {
	d := service{Name: s.Name, Setup: setupPage(s.Name), Attachments: s.Attachments, Category: "native", Groups: s.Groups, Words: s.Words}
	if s.Site != "" {
		d.Site = &s.Site
	}
	schemes := s.Schemes
	if strings.HasPrefix(s.URLs[0], "https://") { // it has addresses but no scheme
		schemes = []string{"https"}
	}
	for _, scheme := range schemes {
		if plain, ok := strings.CutSuffix(scheme, "s"); ok && slices.Contains(schemes, plain) {
			d.SecureProtocols = append(d.SecureProtocols, scheme)
		} else {
			d.Protocols = append(d.Protocols, scheme)
		}
	}
	for _, url := range s.URLs {
		d.Details.Templates = append(d.Details.Templates, Templates(url)...)
	}
	d.Details.Tokens = map[string]any{
		"schema": field{Name: "service", Type: "choice:string", Values: schemes, MapTo: "schema", Required: true},
	}
	d.Details.Args, d.Details.Kwargs = map[string]any{}, map[string]field{}
	for _, p := range s.Params {
		switch {
		case p.Kind == notifier.KindMap:
			d.Details.Kwargs[p.Name] = newField(p)
			continue
		case p.InURL:
			d.Details.Tokens[p.Name] = newField(p)
		default:
			d.Details.Args[p.Name] = newField(p)
		}
		for _, name := range p.Aliases {
			d.Details.Args[name] = alias{p.Name}
		}
	}
	return d
}

func newField(p notifier.ParamInfo) field {
	f := field{
		Name: p.Doc, Type: string(p.Kind), Values: p.Choices, Min: p.Min, Max: p.Max, Prefix: p.Prefix,
		MapTo: p.Name, Required: p.Required, Private: p.Secret,
	}
	switch p.Kind {
	case notifier.KindChoice:
		f.Type = "choice:string"
	case notifier.KindList:
		f.Type = "list:string"
		if f.Delim = []string{",", " "}; p.InURL {
			f.Delim = []string{"/"}
		}
	case notifier.KindMap, notifier.KindFile:
		f.Type = "string"
	}
	switch p.Kind {
	case notifier.KindBool:
		f.Default = p.Default == "yes"
	case notifier.KindInt, notifier.KindFloat:
		if n, err := strconv.ParseFloat(p.Default, 64); err == nil {
			f.Default = n
		}
	default:
		if p.Default != "" {
			f.Default = p.Default
		}
	}
	return f
}

// setupPage returns the address of a service's section in the list of services. The anchor follows
// GitHub's rule.
func setupPage(service string) string {
	const page = "https://github.com/caddy-notify/caddy-notify/blob/main/docs/services.md#"
	return page + strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case strings.ContainsRune("./()", r):
			return -1
		}
		return r
	}, strings.ToLower(service))
}

// Templates returns the templates of a URL as Apprise writes them: one for each choice of optional
// parts, with {schema} for the scheme.
func Templates(url string) (out []string) {
	_, rest, _ := strings.Cut(url, "://")
	for _, text := range withoutBrackets(rest) {
		out = append(out, "{schema}://"+Place.ReplaceAllString(text, "{$1}"))
	}
	return out
}

// Place matches the place of a parameter: {name}, {name...} or {name|list}.
var Place = lazyregexp.New(`\{(\w+)(?:\.\.\.|\|\w+)?\}`)

// withoutBrackets returns a text without and with each part in brackets.
func withoutBrackets(s string) []string {
	before, rest, ok := strings.Cut(s, "[")
	if !ok {
		return []string{s}
	}
	end, depth := 0, 1
	for ; depth > 0; end++ {
		switch rest[end] {
		case '[':
			depth++
		case ']':
			depth--
		}
	}
	var out []string
	for _, after := range withoutBrackets(rest[end:]) {
		out = append(out, before+after)
		for _, inner := range withoutBrackets(rest[:end-1]) {
			out = append(out, before+inner+after)
		}
	}
	return out
}
