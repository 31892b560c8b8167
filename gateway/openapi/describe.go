package openapi

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
)

// About describes a route, except for its path, methods and secrets.
type About struct {
	Key        string    // describes {KEY}; "" for the name of any key
	ID         Parameter // describes {ID}
	Operations []Operation
}

// Operation is a method of a route.
type Operation struct {
	Method      string         `json:"-"`
	ID          string         `json:"operationId"` // no other operation has it
	Tag         tag            `json:"tags"`
	Summary     string         `json:"summary"`
	Description string         `json:"description,omitempty"`
	Parameters  []any          `json:"parameters,omitempty"` // a Parameter, or a reference to a component
	Body        *Body          `json:"requestBody,omitempty"`
	Security    []Schema       `json:"security,omitempty"` // Document sets it
	Answers     map[int]Answer `json:"responses"`          // by status
}

// Parameter is a parameter of the path or of the query.
type Parameter struct {
	Name        string `json:"name"`
	In          string `json:"in"`
	Required    bool   `json:"required,omitempty"`
	MayBeEmpty  bool   `json:"allowEmptyValue,omitempty"`
	Description string `json:"description,omitempty"`
	Schema      Schema `json:"schema"`
	Example     string `json:"example,omitempty"`
}

// Body is the body of a request.
type Body struct {
	Required    bool             `json:"required"`
	Description string           `json:"description,omitempty"`
	Content     map[string]Media `json:"content"` // by media type
}

// Answer is an answer with one status.
type Answer struct {
	Description string            `json:"description"`
	Content     map[string]Media  `json:"content"` // by media type
	Headers     map[string]Schema `json:"headers,omitempty"`
}

// Media is a body of one media type.
type Media struct {
	Schema   Schema `json:"schema,omitempty"`
	Examples Schema `json:"examples,omitempty"`
	Encoding Schema `json:"encoding,omitempty"`
}

// Schema is a JSON Schema, or another object of the document.
type Schema = map[string]any

// tag is the group in which a reader of the document finds an operation.
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
func component(kind, name string) Schema { return Schema{"$ref": "#/components/" + kind + "/" + name} }

func bodyOf(name string) Schema { return component("schemas", name) }

func text() Schema { return Schema{"type": "string"} }

// described returns s with a description.
func described(s Schema, text string) Schema {
	s["description"] = text
	return s
}

func oneOf(values ...string) Schema { return Schema{"type": "string", "enum": values} }

func listOf(item Schema) Schema { return Schema{"type": "array", "items": item} }

func object(properties Schema, required ...string) Schema {
	s := Schema{"type": "object"}
	if properties != nil {
		s["properties"] = properties
	}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// inQuery returns a parameter of the query.
func inQuery(name string, s Schema, description string) Parameter {
	return Parameter{Name: name, In: "query", Description: description, Schema: s}
}

// common returns references to parameters that several operations share.
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
	mediaEvents = "text/event-stream"
	mediaAtom   = "application/atom+xml"
	mediaForm   = "application/x-www-form-urlencoded"
)

// says returns an answer with bodies, by media type, and shared headers.
func says(description string, content map[string]Schema, headers ...string) Answer {
	out := Answer{Description: description, Content: map[string]Media{}}
	for name, s := range content {
		out.Content[name] = Media{Schema: s}
	}
	return out.with(headers...)
}

// with returns an answer with further shared headers.
func (a Answer) with(headers ...string) Answer {
	for _, name := range headers {
		a = a.header(name, component("headers", strings.ReplaceAll(name, "-", "")))
	}
	return a
}

// header returns an answer with a header.
func (a Answer) header(name string, value Schema) Answer {
	headers := map[string]Schema{name: value}
	maps.Copy(headers, a.Headers)
	a.Headers = headers
	return a
}

// streamed returns an answer that may also be a stream of events.
func (a Answer) streamed() Answer {
	a.Content[mediaEvents] = Media{Schema: described(text(), eventLines)}
	return a
}

// recordsOr returns the bodies of an answer with log records. stream describes a stream of results;
// "" for none.
func recordsOr(json Schema, stream string) map[string]Schema {
	out := map[string]Schema{
		mediaText: described(text(), "One line for each log record: `YYYY-MM-DD HH:MM:SS,mmm [LEVEL] text`."),
		mediaJSON: json,
		mediaHTML: described(text(), "A page with the same records."),
	}
	if stream != "" {
		out[mediaStream] = described(text(), stream)
	}
	return out
}

func records() map[string]Schema  { return recordsOr(bodyOf("Answer"), "") }
func streamed() map[string]Schema { return recordsOr(bodyOf("Answer"), resultLines) }
func unsent() map[string]Schema   { return recordsOr(bodyOf("Answer"), unsentLine) }

// Descriptions of answers that several routes stream.
const (
	resultLines = "One JSON value on each line, sent as soon as it is known. The schema of a line is `StreamLine`. The HTTP status is 200 " +
		"once sending has begun, because the outcome is not known yet; the last line has the status."
	unsentLine = "One line, if nothing was sent because no destination has the tag."
	eventLines = "Server-sent events: `log` for each log record, and last `result`, or `error` if the gateway could neither send nor " +
		"store the message. Refused messages have the usual answer instead."
)

// aPage returns the answer with a page to write a message on.
func aPage() Answer {
	return says("The page.", map[string]Schema{mediaHTML: text()}).
		header("Content-Security-Policy", Schema{"description": "The Content Security Policy of the page.", "schema": text()})
}

// noPage returns the answer without a page.
func noPage() Answer {
	return says("The page is turned off, or the client does not prefer HTML.", map[string]Schema{
		mediaHTML: text(), mediaText: text(), mediaJSON: bodyOf("Answer"),
		mediaStream: described(text(), "One line, of the schema `StreamLine`."),
	}).header("Allow", Schema{"description": "The methods that the address supports.", "schema": text()})
}

// uuid returns a path parameter that is a UUID.
func uuid(description string) Parameter {
	return Parameter{Description: description, Schema: Schema{"type": "string", "format": "uuid"}}
}

// result returns an answer with log records, for a message or an error.
func result(description string) Answer {
	return says(description, streamed(), "Vary", "Cache-Control")
}

// unauthorized returns the answer to a client without the secret that it needs.
func unauthorized(description string) Answer { return result(description).with("WWW-Authenticate") }

// plainResult is result for routes whose answers are described without headers.
func plainResult(description string) Answer { return says(description, streamed()) }

// answersJSON returns an answer in JSON alone.
func answersJSON(description string, s Schema) Answer {
	return says(description, map[string]Schema{mediaJSON: s}, "Cache-Control")
}

// forms returns a required request body with the same schema in each media type.
func forms(s Schema, types ...string) *Body {
	out := &Body{Required: true, Content: map[string]Media{}}
	for _, name := range types {
		out.Content[name] = Media{Schema: s}
	}
	return out
}

// keySchema is the schema of the name of a key.
func keySchema() Schema { return Schema{"type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$"} }

// pathParameters returns the parameters of a path.
func (a *About) pathParameters(path string, values map[string][]string) (out []Parameter) {
	for segment := range strings.SplitSeq(path, "/") {
		if !strings.HasPrefix(segment, "{") {
			continue
		}
		p := Parameter{Name: strings.Trim(segment, "{}"), Schema: text()}
		switch p.Name {
		case "KEY":
			p.Description, p.Schema = "The name of a key. Upper and lower case differ.", keySchema()
			if a.Key != "" {
				p.Description = a.Key
			}
		case "ID":
			p.Description, p.Schema = a.ID.Description, a.ID.Schema
		case "SOURCE":
			p.Description, p.Schema, p.Example = "The name of the source.", Schema{"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}, "grafana"
		case "TOPICS":
			p.Description = "Any topic, or several with commas. Each has all messages of the key."
		}
		if some := values[p.Name]; len(some) > 0 {
			p.Schema = oneOf(some...)
		}
		p.In, p.Required = "path", true
		out = append(out, p)
	}
	return out
}

// Secrets says which secret of the key the client of a route sends.
type Secrets int

// The secrets of a route.
const (
	NoSecret    Secrets = iota
	MaybeSecret         // if the key has one
	NeedsSecret
)

// security returns the ways to send a secret.
func (s Secrets) security() (out []Schema) {
	if s == MaybeSecret {
		out = append(out, Schema{}) // the key may have no secret
	}
	if s != NoSecret {
		out = append(out, Schema{"bearer": []string{}}, Schema{"basic": []string{}}, Schema{"header": []string{}}, Schema{"query": []string{}})
	}
	return out
}

// Route is a row of the table of routes.
type Route struct {
	Path    string // with names in braces
	Secrets Secrets
	About   About
}

// NotDescribed is for routes that the document leaves out: pages for browsers, and their files.
func NotDescribed() About { return About{} }

// paths are the paths of the document, in the order of the table.
type paths struct {
	routes []Route
	values map[string][]string
}

// MarshalJSON implements json.Marshaler.
func (p paths) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for _, r := range p.routes {
		if len(r.About.Operations) == 0 {
			continue
		}
		methods := Schema{}
		if parameters := r.About.pathParameters(r.Path, p.values); len(parameters) > 0 {
			methods["parameters"] = parameters
		}
		for _, o := range r.About.Operations {
			o.Security = r.Secrets.security()
			methods[strings.ToLower(o.Method)] = o
		}
		text, err := json.Marshal(methods)
		if err != nil {
			return nil, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(strconv.AppendQuote(out, r.Path), ':')
		out = append(out, text...)
	}
	return append(out, '}'), nil
}

// Document returns the description of routes. values has the values of path segments that can have
// only some, by their names in braces. components are shared by the operations.
func Document(version string, routes []Route, values map[string][]string, components json.RawMessage) ([]byte, error) {
	return json.MarshalIndent(struct {
		OpenAPI    string          `json:"openapi"`
		Info       any             `json:"info"`
		Servers    any             `json:"servers"`
		Tags       any             `json:"tags"`
		Paths      paths           `json:"paths"`
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
			"caddy-notify", version, "A notification gateway",
			map[string]string{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"Send one message, and the gateway sends it to every destination that a notification URL describes: chat, mail, SMS, push, incident " +
				"tools, webhooks. Each path may end in one slash.",
		},
		// The server is relative to the address of the document, so it is right below every prefix.
		Servers: []map[string]string{{"url": "..", "description": "This gateway. The address is relative to the address of this document."}},
		Tags: []map[string]string{
			{"name": string(ofMessages)},
			{"name": string(ofConfiguration), "description": "These paths exist if the operator has turned on saved configurations (`configs`)."},
			{"name": string(ofPage)},
			{"name": string(ofDescription)},
		},
		Paths: paths{routes, values}, Components: components,
	}, "", "\t")
}
