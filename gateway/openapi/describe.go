package openapi

import (
	"encoding/json"
	"maps"
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
	Secrets     Secrets        `json:"security"`  // if they differ from those of the route
	Answers     map[int]Answer `json:"responses"` // by status
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
	Ref         string           `json:"-"` // the component that the body is; "" for none
	Required    bool             `json:"required"`
	Description string           `json:"description,omitempty"`
	Content     map[string]Media `json:"content"` // by media type
}

// MarshalJSON implements json.Marshaler.
func (b *Body) MarshalJSON() ([]byte, error) {
	if b.Ref != "" {
		return json.Marshal(component("requestBodies", b.Ref))
	}
	type inline Body
	return json.Marshal((*inline)(b))
}

// Answer is an answer with one status.
type Answer struct {
	Name        string            `json:"-"` // as a component that several operations share; "" for none
	Description string            `json:"description"`
	Content     map[string]Media  `json:"content,omitempty"` // by media type
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

// called returns a with its name among the responses of [sharedAnswers].
func (a Answer) called(name string) Answer {
	a.Name = name
	return a
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
	a.Name, a.Headers = "", headers
	return a
}

// streamed returns the answer to a message that was sent, which may also be a stream of events.
func (a Answer) streamed() Answer {
	a.Content[mediaEvents] = Media{Schema: bodyOf("EventLines")}
	return a.called("Sent")
}

// recordsOr returns the bodies of an answer with log records. stream is the schema of a stream of
// results; nil for none.
func recordsOr(json, stream Schema) map[string]Schema {
	out := map[string]Schema{mediaText: bodyOf("Lines"), mediaJSON: json, mediaHTML: bodyOf("Page")}
	if stream != nil {
		out[mediaStream] = stream
	}
	return out
}

// undelivered returns the answer about a message that some destinations do not have.
func undelivered(description string) Answer {
	return says(description, recordsOr(bodyOf("Answer"), nil), "Vary", "Cache-Control").called("Undelivered")
}

// unsent returns the answer about a message that was not sent, or that some destinations do not
// have. It is a stream only of the former.
func unsent(description string) Answer {
	return says(description, recordsOr(bodyOf("Answer"), bodyOf("UnsentLine")), "Vary", "Cache-Control").called("Unsent")
}

// aPage returns the answer with a page to write a message on.
func aPage() Answer {
	return says("The page.", map[string]Schema{mediaHTML: bodyOf("Page")}, "Content-Security-Policy").called("MessagePage")
}

// noPage returns the answer without a page.
func noPage() Answer {
	return says("The page is turned off.", recordsOr(bodyOf("Answer"), bodyOf("UnsentLine")), "Allow").
		called("NoPage")
}

// notHTML returns the answer to a client that does not prefer HTML, where there is only a page.
func notHTML() Answer {
	bodies := recordsOr(bodyOf("Answer"), bodyOf("UnsentLine"))
	delete(bodies, mediaHTML)
	return says("There is only a page, and the client does not prefer HTML.", bodies).called("NotHTML")
}

// uuid returns a path parameter that is a UUID.
func uuid(description string) Parameter {
	return Parameter{Description: description, Schema: Schema{"type": "string", "format": "uuid"}}
}

// result returns an answer with log records, for a message or an error.
func result(description string) Answer {
	name := "Outcome"
	for common, text := range answerTexts() {
		if text == description {
			name = common
		}
	}
	return says(description, recordsOr(bodyOf("Answer"), bodyOf("ResultLines")), "Vary", "Cache-Control").called(name)
}

// unauthorized returns the answer to a client without the secret that it needs.
func unauthorized(description string) Answer {
	return result(description).with("WWW-Authenticate").called("Unauthorized")
}

// tryAgain returns the answer to a client that is told when to send its message again.
func tryAgain(description string) Answer {
	return result(description).with("Retry-After").called("TryAgain")
}

// redirected returns the answer to a browser, which is sent to the console.
func redirected() Answer {
	return says("The request prefers `text/html`; the page of the console is at `Location`.", nil)
}

// answersJSON returns an answer in JSON alone.
func answersJSON(description string, s Schema) Answer {
	a := says(description, map[string]Schema{mediaJSON: s}, "Cache-Control")
	if ref, ok := s["$ref"].(string); ok {
		a.Name = "The" + ref[strings.LastIndexByte(ref, '/')+1:]
	}
	return a
}

// forms returns a required request body with the same schema in each media type.
func forms(s Schema, types ...string) *Body {
	out := &Body{Required: true, Content: map[string]Media{}}
	for _, name := range types {
		out.Content[name] = Media{Schema: s}
	}
	return out
}

// PathOf returns a path of the table as the document has it: methods of generated clients have the
// names in braces as parameters.
func PathOf(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if strings.HasPrefix(segment, "{") {
			segments[i] = strings.ToLower(segment)
		}
	}
	return strings.Join(segments, "/")
}

// pathParameters returns the parameters of a path.
func (a *About) pathParameters(path string, values map[string][]string) (out []any) {
	for segment := range strings.SplitSeq(path, "/") {
		if !strings.HasPrefix(segment, "{") {
			continue
		}
		name := strings.Trim(segment, "{}")
		p := Parameter{Name: strings.ToLower(name), In: "path", Required: true, Schema: text()}
		switch name {
		case "KEY":
			key := component("parameters", "Key")
			if a.Key != "" {
				key = described(key, a.Key)
			}
			out = append(out, key)
			continue
		case "ID":
			p.Description, p.Schema = a.ID.Description, a.ID.Schema
		case "SOURCE":
			p.Description, p.Schema, p.Example = "The name of the source.", Schema{"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}, "grafana"
		case "TOPICS":
			p.Description = "Any topic, or several with commas. Each has all messages of the key."
		}
		if some := values[name]; len(some) > 0 {
			p.Schema = oneOf(some...)
		}
		out = append(out, p)
	}
	return out
}
