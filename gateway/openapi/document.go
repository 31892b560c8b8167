package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Route is a row of the table of routes.
type Route struct {
	Path    string // with names in braces
	Secrets Secrets
	About   About
}

// NotDescribed is for routes that the document leaves out: pages for browsers, and their files.
func NotDescribed() About { return About{} }

// document is the description of an API.
type document struct {
	OpenAPI    string                     `json:"openapi"`
	Info       info                       `json:"info"`
	Servers    []map[string]string        `json:"servers"`
	Tags       []map[string]string        `json:"tags"`
	Paths      paths                      `json:"paths"`
	Components map[string]json.RawMessage `json:"components"`
}

type info struct {
	Title       string            `json:"title"`
	Version     string            `json:"version"`
	Summary     string            `json:"summary"`
	License     map[string]string `json:"license"`
	Description string            `json:"description"`
}

// Document returns the description of routes. values has the values of path segments that can have
// only some, by their names in braces. components are shared by the operations.
func Document(version string, routes []Route, values map[string][]string, components json.RawMessage) ([]byte, error) {
	d := document{
		OpenAPI: "3.1.0",
		Info: info{
			"caddy-notify", version, "A notification gateway",
			map[string]string{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"Send one message, and the gateway sends it to every destination that a notification URL describes: chat, mail, SMS, push, incident " +
				"tools, webhooks. Each path may end in one slash. An operation with an empty `security` needs no secret: it shows none, or its " +
				"address is one. Caddy may ask for a login before each of them.",
		},
		// The server is relative to the address of the document, so it is right below every prefix.
		Servers: []map[string]string{{"url": "..", "description": "This gateway. The address is relative to the address of this document."}},
		Tags: []map[string]string{
			{"name": string(ofMessages), "description": "Messages, and what belongs to them: incidents, silences, questions, inboxes, devices."},
			{"name": string(ofConfiguration), "description": "These paths exist if the operator has turned on saved configurations (`configs`)."},
			{"name": string(ofPage), "description": "Pages to write a message on, for browsers."},
			{"name": string(ofDescription), "description": "The gateway and its API."},
		},
		Paths: paths{routes, values},
	}
	if err := json.Unmarshal(components, &d.Components); err != nil {
		return nil, err
	}
	shared, err := d.Paths.sharedAnswers()
	if err != nil {
		return nil, err
	}
	if d.Components["responses"], err = json.Marshal(shared); err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

// answerTexts returns the descriptions of answers that several operations share, by their names.
// An operation says more of its own.
func answerTexts() map[string]string {
	return map[string]string{
		"Outcome":      "Log records; `error` has the reason why the request was refused.",
		"Sent":         "The message was sent. `results` shows what came of it at each destination.",
		"Undelivered":  "A destination does not have the message. `results` shows which.",
		"Unsent":       "A destination does not have the message, or nothing was sent.",
		"Stored":       "The gateway has stored the message and sends it later.",
		"Unauthorized": "A secret is missing or wrong.",
		"TryAgain":     "The gateway cannot take the message at the moment.",
		"MessagePage":  "A page to write a message on.",
		"NoPage":       "The page is turned off.",
		"NotHTML":      "There is only a page, and the client does not prefer HTML.",
		"State":        "The state of a message.",
		"Asked":        "The state of a question.",
		"IncidentNow":  "The state of an incident.",
		"Storage":      "The state of the storage.",
		"Done":         "The request was carried out.",
		"TheSilence":   "A silence.",
		"TheDevice":    "A device.",
		"TheNtfyError": "What is wrong, in the form of ntfy.",

		"NoSuchKey":        noSuchKey,
		"SavedForbidden":   savedForbidden,
		"SilenceForbidden": silenceForbidden,
		"RulerForbidden":   rulerForbidden,
		"QueueUnusable":    queueUnusable,
		"QueueUnreadable":  queueUnreadable,
		"StorageUnusable":  storageUnusable,
	}
}

// sharedAnswers returns the answers that have a name, by it.
func (p paths) sharedAnswers() (map[string]Answer, error) {
	shared, texts := map[string]Answer{}, answerTexts()
	for _, r := range p.routes {
		for _, o := range r.About.Operations {
			for _, a := range o.Answers {
				if a.Name == "" {
					continue
				}
				name := a.Name
				a.Name, a.Description = "", texts[name]
				if other, ok := shared[name]; a.Description == "" || ok && !reflect.DeepEqual(a, other) {
					return nil, fmt.Errorf("an answer of the operation %s is called %s, which is not described or another answer", o.ID, name)
				}
				shared[name] = a
			}
		}
	}
	return shared, nil
}

// MarshalJSON implements json.Marshaler: an answer with a name is a reference. The description
// beside it takes the place of the component's (OpenAPI 3.1).
func (a Answer) MarshalJSON() ([]byte, error) {
	if a.Name != "" {
		ref := component("responses", a.Name)
		if a.Description != answerTexts()[a.Name] {
			ref = described(ref, a.Description)
		}
		return json.Marshal(ref)
	}
	type inline Answer
	return json.Marshal(inline(a))
}

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
			if o.Secrets == 0 {
				o.Secrets = r.Secrets
			}
			methods[strings.ToLower(o.Method)] = o
		}
		text, err := json.Marshal(methods)
		if err != nil {
			return nil, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(strconv.AppendQuote(out, PathOf(r.Path)), ':')
		out = append(out, text...)
	}
	return append(out, '}'), nil
}

// Secrets says which secret the client of an operation sends. Its bits are ways, one of which
// suffices.
type Secrets int

// The ways to authenticate.
const (
	WithoutSecret Secrets = 1 << iota
	WithToken             // of the key: a token or a reader
	WithLogin             // at the site, as somebody who may manage
	WithDevice            // the secret of the device
)

// MarshalJSON implements json.Marshaler: it returns a list of alternatives, which is empty if there
// is nothing to send.
func (s Secrets) MarshalJSON() ([]byte, error) {
	ways := []map[string][]string{}
	if s == WithoutSecret {
		return json.Marshal(ways)
	}
	for _, way := range []struct {
		bit     Secrets
		schemes []string
	}{
		{WithToken, []string{"bearer", "basic", "header", "query"}},
		{WithDevice, []string{"deviceSecret"}},
		{WithLogin, []string{"login"}},
	} {
		for _, scheme := range way.schemes {
			if s&way.bit != 0 {
				ways = append(ways, map[string][]string{scheme: {}})
			}
		}
	}
	if s&WithoutSecret != 0 {
		ways = slices.Insert(ways, 0, map[string][]string{})
	}
	return json.Marshal(ways)
}
