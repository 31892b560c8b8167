package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// The description of the API (OpenAPI 3.1) is made from the table of routes. A row of the
// table has the path, the methods and the access; its about says the rest. The bodies that
// several routes have in common are the components of package api.

// about is what the description says of a route.
type about struct {
	key        string    // what {KEY} is; "" for the name of any key
	id         parameter // what {ID} is
	operations []operation
}

// operation is what the description says of a method of a route.
type operation struct {
	method      string
	ID          string        `json:"operationId"`
	Tag         tag           `json:"tags"`
	Summary     string        `json:"summary"`
	Description string        `json:"description,omitempty"`
	Parameters  []any         `json:"parameters,omitempty"` // a parameter, or a component of package api
	Body        *body         `json:"requestBody,omitempty"`
	Security    []schema      `json:"security,omitempty"`
	Answers     map[int]reply `json:"responses"`
}

// parameter is a part of the path or of the query.
type parameter struct {
	Name        string `json:"name"`
	In          string `json:"in"`
	Required    bool   `json:"required,omitempty"`
	MayBeEmpty  bool   `json:"allowEmptyValue,omitempty"`
	Description string `json:"description,omitempty"`
	Schema      schema `json:"schema"`
	Example     string `json:"example,omitempty"`
}

// body is what a request has.
type body struct {
	Required    bool             `json:"required"`
	Description string           `json:"description,omitempty"`
	Content     map[string]media `json:"content"`
}

// reply is an answer with one status.
type reply struct {
	Description string            `json:"description"`
	Content     map[string]media  `json:"content"`
	Headers     map[string]schema `json:"headers,omitempty"`
}

// media is a body of one media type.
type media struct {
	Schema   schema `json:"schema,omitempty"`
	Examples schema `json:"examples,omitempty"`
	Encoding schema `json:"encoding,omitempty"`
}

// schema is a JSON Schema, or another object of the description.
type schema = map[string]any

// tag is the group in which a reader of the description finds an operation.
type tag string

const (
	ofMessages      tag = "messages"
	ofConfiguration tag = "configurations"
	ofPage          tag = "page"
	ofDescription   tag = "description"
)

// MarshalJSON implements json.Marshaler: an operation has a list of tags.
func (t tag) MarshalJSON() ([]byte, error) { return json.Marshal([]string{string(t)}) }

// component returns a reference to a component of package api.
func component(kind, name string) schema { return schema{"$ref": "#/components/" + kind + "/" + name} }

func bodyOf(name string) schema { return component("schemas", name) }

func text() schema { return schema{"type": "string"} }

// described returns s with a description.
func described(s schema, text string) schema {
	s["description"] = text
	return s
}

func oneOf(values ...string) schema { return schema{"type": "string", "enum": values} }

func listOf(item schema) schema { return schema{"type": "array", "items": item} }

func object(properties schema, required ...string) schema {
	s := schema{"type": "object"}
	if properties != nil {
		s["properties"] = properties
	}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// inQuery returns a parameter of the query.
func inQuery(name string, s schema, description string) parameter {
	return parameter{Name: name, In: "query", Description: description, Schema: s}
}

// common returns references to parameters that several operations have.
func common(names ...string) []any {
	out := make([]any, len(names))
	for i, name := range names {
		out[i] = component("parameters", name)
	}
	return out
}

// The media types of answers.
const (
	mediaText   = "text/plain"
	mediaJSON   = "application/json"
	mediaHTML   = "text/html"
	mediaStream = "application/x-ndjson"
	mediaForm   = "application/x-www-form-urlencoded"
)

// says returns an answer with bodies, by media type, and the headers that several answers
// have in common.
func says(description string, content map[string]schema, headers ...string) reply {
	out := reply{Description: description, Content: map[string]media{}}
	for name, s := range content {
		out.Content[name] = media{Schema: s}
	}
	return out.with(headers...)
}

// with returns an answer with further headers that several answers have in common.
func (a reply) with(headers ...string) reply {
	for _, name := range headers {
		a = a.header(name, component("headers", strings.ReplaceAll(name, "-", "")))
	}
	return a
}

// header returns an answer with a header.
func (a reply) header(name string, value schema) reply {
	headers := map[string]schema{name: value}
	maps.Copy(headers, a.Headers)
	a.Headers = headers
	return a
}

// records returns the bodies of an answer that has log records.
func records() map[string]schema {
	return map[string]schema{
		mediaText: described(text(), "One line for each log record: `YYYY-MM-DD HH:MM:SS,mmm [LEVEL] text`."),
		mediaJSON: bodyOf("Answer"),
		mediaHTML: described(text(), "A page with the same records."),
	}
}

// streamed returns the bodies of an answer that may be a stream of results.
func streamed() map[string]schema {
	out := records()
	out[mediaStream] = described(text(), "One JSON value on each line, sent as soon as it is known. The schema of a line is `StreamLine`. The HTTP status is 200 once sending has begun, because the outcome is not known yet; the last line has the status.")
	return out
}

// result returns an answer with log records: that of a message, or an error.
func result(description string) reply {
	return says(description, streamed(), "Vary", "Cache-Control")
}

// unauthorized returns the answer to a client without the secret that it needs.
func unauthorized(description string) reply { return result(description).with("WWW-Authenticate") }

// plainResult is result for routes whose answers are described without headers.
func plainResult(description string) reply { return says(description, streamed()) }

// answersJSON returns an answer in JSON alone.
func answersJSON(description string, s schema) reply {
	return says(description, map[string]schema{mediaJSON: s}, "Cache-Control")
}

// forms returns a request's body that is required, with the same schema in each media type.
func forms(s schema, types ...string) *body {
	out := &body{Required: true, Content: map[string]media{}}
	for _, name := range types {
		out.Content[name] = media{Schema: s}
	}
	return out
}

// keySchema is the schema of the name of a key.
func keySchema() schema { return schema{"type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$"} }

// pathParameters returns the parameters of a path.
func (a *about) pathParameters(pattern string) (out []parameter) {
	for segment := range strings.SplitSeq(pattern, "/") {
		if !strings.HasPrefix(segment, "{") {
			continue
		}
		p := parameter{Name: strings.Trim(segment, "{}"), Schema: text()}
		switch p.Name {
		case "KEY":
			p.Description, p.Schema = "The name of a key. Upper and lower case differ.", keySchema()
			if a.key != "" {
				p.Description = a.key
			}
		case "ID":
			p.Description, p.Schema = a.id.Description, a.id.Schema
		case "SOURCE":
			p.Description, p.Schema, p.Example = "The name of the source.", schema{"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}, "grafana"
		case "TOPICS":
			p.Description = "Any topic, or several with commas. Each has all messages of the key."
		case "VERB":
			p.Schema = oneOf(NtfyVerbs...)
		}
		p.In, p.Required = "path", true
		out = append(out, p)
	}
	return out
}

// security returns the secrets of a key with which a client may use a route, by its access.
func (spec *RouteSpec) security() []schema {
	if !strings.Contains(spec.Pattern, "{KEY}") {
		return nil
	}
	secrets := []schema{{"bearer": []string{}}, {"basic": []string{}}, {"header": []string{}}, {"query": []string{}}}
	switch spec.access {
	case site.AccessSender, site.AccessReader:
		return append([]schema{{}}, secrets...) // the key may have no secret
	case site.AccessInbox:
		return secrets
	}
	return nil
}

// describedPaths are the paths of the description, in the order of the table.
type describedPaths []RouteSpec

// MarshalJSON implements json.Marshaler.
func (p describedPaths) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for _, spec := range p {
		a := spec.about()
		path := strings.TrimSuffix(spec.Pattern, "/{REST...}")
		methods := schema{}
		if parameters := a.pathParameters(path); len(parameters) > 0 {
			methods["parameters"] = parameters
		}
		for _, o := range a.operations {
			o.Security = spec.security()
			methods[strings.ToLower(o.method)] = o
		}
		text, err := json.Marshal(methods)
		if err != nil {
			return nil, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(strconv.AppendQuote(out, path), ':')
		out = append(out, text...)
	}
	return append(out, '}'), nil
}

// notDescribed is the about of routes that the description leaves out: pages for browsers
// alone, and their files.
func notDescribed() about { return about{} }

// describeAPI returns the description, with a version of the module.
func describeAPI(version string) ([]byte, error) {
	described := slices.DeleteFunc(RouteSpecs(), func(spec RouteSpec) bool { return len(spec.about().operations) == 0 })
	return json.MarshalIndent(struct {
		OpenAPI    string          `json:"openapi"`
		Info       any             `json:"info"`
		Servers    any             `json:"servers"`
		Tags       any             `json:"tags"`
		Paths      describedPaths  `json:"paths"`
		Components json.RawMessage `json:"components"`
	}{
		OpenAPI: "3.1.0",
		Info: struct {
			Title       string            `json:"title"`
			Version     string            `json:"version"`
			Summary     string            `json:"summary"`
			License     map[string]string `json:"license"`
			Description string            `json:"description"`
		}{
			"caddy-notify", version, "A notification gateway", map[string]string{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"Send one message, and the gateway sends it to every destination that a notification URL describes: chat, mail, SMS, push, incident tools, webhooks. Each path may end in one slash.",
		},
		// The server is relative to the address of the document, so that it is right below every prefix.
		Servers: []map[string]string{{"url": "..", "description": "This gateway. The address is relative to that of this document."}},
		Tags: []map[string]string{
			{"name": string(ofMessages)},
			{"name": string(ofConfiguration), "description": "These paths exist if the operator has turned on saved configurations (`configs`)."},
			{"name": string(ofPage)}, {"name": string(ofDescription)},
		},
		Paths: described, Components: api.Components(),
	}, "", "\t")
}
