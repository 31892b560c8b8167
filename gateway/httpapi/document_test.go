package httpapi_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// maxDocument bounds the description of the API: clients read it, and common parts are components.
const maxDocument = 117 << 10

// describedDocument is the description of the API, as generators of clients read it.
type describedDocument struct {
	text       string
	Paths      map[string]map[string]json.RawMessage
	Components map[string]map[string]any
}

// describedOperation is an operation of a [describedDocument].
type describedOperation struct {
	ID        string `json:"operationId"`
	Security  *[]map[string][]string
	Tags      []string
	Responses map[string]map[string]any
}

func readDocument(t *testing.T) *describedDocument {
	t.Helper()
	d := &describedDocument{text: newSite(t, site.Options{}).Get("/notify/openapi.json").Body}
	if err := json.Unmarshal([]byte(d.text), d); err != nil {
		t.Fatal(err)
	}
	return d
}

// operations calls f with each operation and its method and path.
func (d *describedDocument) operations(t *testing.T, f func(at string, o *describedOperation)) {
	t.Helper()
	for path, methods := range d.Paths {
		for method, text := range methods {
			if method == "parameters" {
				continue
			}
			var o describedOperation
			if err := json.Unmarshal(text, &o); err != nil {
				t.Fatal(err)
			}
			f(method+" "+path, &o)
		}
	}
}

// TestDescriptionOfOperations checks that each operation says how clients authenticate and has a name
// for a method of a generated client, and that no answer is described twice.
func TestDescriptionOfOperations(t *testing.T) {
	t.Parallel()
	d := readDocument(t)
	if len(d.text) > maxDocument {
		t.Errorf("the description has %d bytes, more than %d; common parts belong into components", len(d.text), maxDocument)
	}
	method := regexp.MustCompile("^[a-z]+([A-Z][A-Za-z]*)?$")
	ids, answers := map[string]string{}, map[string]string{}
	d.operations(t, func(at string, o *describedOperation) {
		if o.Security == nil {
			t.Errorf("%s does not say how clients authenticate", at)
		} else {
			for _, way := range *o.Security {
				for scheme := range way {
					if d.Components["securitySchemes"][scheme] == nil {
						t.Errorf("%s: there is no security scheme %s", at, scheme)
					}
				}
			}
		}
		if !method.MatchString(o.ID) || ids[strings.ToLower(o.ID)] != "" || len(o.Tags) == 0 {
			t.Errorf("%s: the operation ID %q is no name, or that of another operation, or a tag is missing", at, o.ID)
		}
		ids[strings.ToLower(o.ID)] = at
		for status, a := range o.Responses {
			if a["$ref"] != nil || len(a) == 1 {
				continue // a component, or nothing but a description
			}
			delete(a, "description")
			text, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			if other := answers[string(text)]; other != "" {
				t.Errorf("%s %s has the answer of %s; make it a component", at, status, other)
			}
			answers[string(text)] = at + " " + status
		}
	})
}

// TestDescriptionOfPaths checks that no address matches two paths of the description, neither of
// which is more specific: OpenAPI leaves open which of them counts.
func TestDescriptionOfPaths(t *testing.T) {
	t.Parallel()
	ambiguous := func(a, b string) bool {
		x, y := strings.Split(a, "/"), strings.Split(b, "/")
		if len(x) != len(y) {
			return false
		}
		var first, second bool // has a text where the other has a parameter
		for i := range x {
			switch p, q := strings.HasPrefix(x[i], "{"), strings.HasPrefix(y[i], "{"); {
			case !p && !q && x[i] != y[i]:
				return false
			case !p && q:
				first = true
			case p && !q:
				second = true
			}
		}
		return first == second
	}
	for _, pair := range [][2]string{{"/a/{x}/b", "/a/c/{y}"}, {"/a/{x}", "/a/{y}"}} {
		if !ambiguous(pair[0], pair[1]) {
			t.Errorf("%s and %s are not found to be ambiguous", pair[0], pair[1])
		}
	}
	d := readDocument(t)
	for a := range d.Paths {
		for b := range d.Paths {
			if a < b && ambiguous(a, b) {
				t.Errorf("%s and %s match the same addresses", a, b)
			}
		}
	}
}

// TestDescriptionOfComponents checks that every component is used, that none refers to itself, and
// that no two have one name, because a generator makes a type of each.
func TestDescriptionOfComponents(t *testing.T) {
	t.Parallel()
	d := readDocument(t)
	refs := regexp.MustCompile(`"\$ref":"#/components/([A-Za-z]+)/([A-Za-z]+)"`)
	used, kinds := map[string]bool{}, map[string]string{}
	for _, ref := range regexp.MustCompile(`"\$ref":"([^"]*)"`).FindAllString(d.text, -1) {
		m := refs.FindStringSubmatch(ref)
		if m == nil || d.Components[m[1]][m[2]] == nil {
			t.Errorf("%s leads nowhere", ref)
			continue
		}
		used[m[1]+"/"+m[2]] = true
	}
	d.operations(t, func(_ string, o *describedOperation) {
		for _, way := range *o.Security {
			for scheme := range way {
				used["securitySchemes/"+scheme] = true
			}
		}
	})
	// A generator makes a field with a default required, also in what is sent.
	var defaults func(place string, v any)
	defaults = func(place string, v any) {
		fields, _ := v.(map[string]any)
		if fields["default"] != nil && fields["type"] != nil && fields["properties"] == nil {
			t.Errorf("%s has a default; say it in its description", place)
		}
		for name, v := range fields {
			if name != "examples" {
				defaults(place+"/"+name, v)
			}
		}
	}
	for name, schema := range d.Components["schemas"] {
		defaults(name, schema)
	}
	leads := map[string][]string{}
	for kind, components := range d.Components {
		for name, component := range components {
			place := kind + "/" + name
			if !used[place] {
				t.Errorf("%s is not used", place)
			}
			if other := kinds[strings.ToLower(name)]; other != "" {
				t.Errorf("%s and %s have the same name", place, other)
			}
			kinds[strings.ToLower(name)] = place
			text, err := json.Marshal(component)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range refs.FindAllStringSubmatch(string(text), -1) {
				leads[place] = append(leads[place], m[1]+"/"+m[2])
			}
		}
	}
	var follow func(way []string)
	follow = func(way []string) {
		for _, next := range leads[way[len(way)-1]] {
			if slices.Contains(way, next) {
				t.Errorf("%s refers to itself", strings.Join(append(way, next), " → "))
				return
			}
			follow(append(slices.Clip(way), next))
		}
	}
	for place := range leads {
		follow([]string{place})
	}
}
