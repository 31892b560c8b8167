package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// details is the response of /details: the catalogue, with the names of the
// Apprise API.
type details struct {
	Version string          `json:"version"`
	Schemas []serviceDetail `json:"schemas"`
	Asset   detailsAsset    `json:"asset"`
}

// detailsAsset is the identity of the site.
type detailsAsset struct {
	Name        string `json:"app_id"`
	Description string `json:"app_desc"`
	URL         string `json:"app_url"`
	Icon        string `json:"image_url_mask"`
	Logo        string `json:"image_url_logo"`
}

type serviceDetail struct {
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
		Templates []string               `json:"templates"`
		Tokens    map[string]any         `json:"tokens"` // those with a place in a template
		Args      map[string]any         `json:"args"`   // those of the query
		Kwargs    map[string]detailField `json:"kwargs"` // those whose names begin with a prefix
	} `json:"details"`
}

// detailField describes a parameter.
type detailField struct {
	Name     string   `json:"name"` // for people
	Type     string   `json:"type"`
	Values   []string `json:"values,omitempty"`
	Default  any      `json:"default,omitempty"`
	Min      *float64 `json:"min,omitempty"`
	Max      *float64 `json:"max,omitempty"`
	Delim    []string `json:"delim,omitempty"`  // of a list
	Prefix   string   `json:"prefix,omitempty"` // of kwargs
	MapTo    string   `json:"map_to"`
	Required bool     `json:"required"`
	Private  bool     `json:"private"`
}

// detailAlias is another name of a parameter.
type detailAlias struct {
	Of string `json:"alias_of"`
}

// allQuery is the query parameter of /details that lists the services that the site
// does not allow, too.
const allQuery = "all"

// serveDetails writes the catalogue: the services that the site allows or, with
// ?all=yes, all of them.
func (h *SavedKeys) serveDetails(w http.ResponseWriter, r *http.Request, _ string) error {
	all := r.URL.Query().Get(allQuery)
	// The Apprise API reads the first letter.
	isYes := all != "" && strings.ContainsAny(all[:1], "aAyY1tTeE+ ")
	return WriteJSON(w, http.StatusOK, newDetails(h.Resolved.Services, h.Resolved.Identity, isYes))
}

func newDetails(services *site.ServiceRule, identity *notifier.Identity, all bool) *details {
	out := &details{Version: version.Current, Asset: detailsAsset{
		Name: identity.Name, Description: identity.Description, URL: identity.URL, Logo: identity.Logo,
		Icon: strings.NewReplacer("{type}", "{TYPE}", "{size}", "{XY}").Replace(identity.Icon),
	}}
	for _, s := range notifier.Services() {
		enabled := services.Permits(s.Schemes)
		if !enabled && !all {
			continue
		}
		d := newServiceDetail(s)
		if all {
			d.Enabled = &enabled
		}
		out.Schemas = append(out.Schemas, d)
	}
	return out
}

func newServiceDetail(s notifier.ServiceInfo) serviceDetail {
	d := serviceDetail{Name: s.Name, Setup: setupPage(s.Name), Attachments: s.Attachments, Category: "native", Groups: s.Groups, Words: s.Words}
	if s.Site != "" {
		d.Site = &s.Site
	}
	schemes := s.Schemes
	if strings.HasPrefix(s.URLs[0], "https://") { // it has no scheme, but addresses
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
		d.Details.Templates = append(d.Details.Templates, DetailTemplates(url)...)
	}
	d.Details.Tokens = map[string]any{
		"schema": detailField{Name: "service", Type: "choice:string", Values: schemes, MapTo: "schema", Required: true},
	}
	d.Details.Args, d.Details.Kwargs = map[string]any{}, map[string]detailField{}
	for _, p := range s.Params {
		switch {
		case p.Kind == notifier.KindMap:
			d.Details.Kwargs[p.Name] = newDetailField(p)
			continue
		case p.InURL:
			d.Details.Tokens[p.Name] = newDetailField(p)
		default:
			d.Details.Args[p.Name] = newDetailField(p)
		}
		for _, alias := range p.Aliases {
			d.Details.Args[alias] = detailAlias{p.Name}
		}
	}
	return d
}

func newDetailField(p notifier.ParamInfo) detailField {
	f := detailField{
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

// setupPage returns the address of the section about a service in the list of
// services. The anchor is that of GitHub.
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

// DetailTemplates returns a template of a URL as Apprise writes them: one for each
// choice of optional parts, with {schema} for the scheme.
func DetailTemplates(url string) (out []string) {
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
