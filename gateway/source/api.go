package source

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
)

// API is an API that programs use to speak to a chat or push service. Its endpoints read requests
// and answer them as the service does. It replaces the templates.
type API struct {
	// Endpoints are what clients can ask for. The first one with the path and the method of a
	// request answers it.
	Endpoints []Endpoint

	// Clean removes a prefix that clients may add to a path. nil means that clients add none.
	Clean func(path string) string

	// Images means that messages can have Images.
	Images bool

	// Alerts means that the API belongs to an incident tool. Its texts must not mention people
	// unless the operator allows it, because clients quote foreign texts in alerts and do not write
	// for a chat.
	Alerts bool
}

// Endpoint is what clients of an API can ask for at some addresses.
type Endpoint struct {
	// Methods are the accepted methods; nil means POST and PUT.
	Methods []string

	// Paths are the accepted paths below the source's address. * is any segment, ** at the
	// beginning is one or more segments, and {token} is any segment that may be the token.
	//
	// A path with {token} is a webhook's. It counts only if nothing else matches, and it never
	// matches a path that begins with the segment api, so that no address of an API is taken for a
	// webhook.
	Paths []string

	// Other reports whether to accept a path that matches no endpoint except through {token}. nil
	// accepts none.
	Other func(path string) bool

	// Read returns the message of a request. If it is nil, a request sends nothing.
	Read func(ctx context.Context, r *Request) (*Message, error)

	// Beat returns the name of the beat that the address of a request stands for, or "". If it is
	// nil, no request is a beat.
	Beat func(r *Request) string

	// Reply returns the answer.
	Reply func(o Outcome) Reply

	// Public means that the answer needs neither a token nor an existing key.
	Public bool
}

var postMethods = []string{http.MethodPost, http.MethodPut}

// allowed returns the accepted methods.
func (e *Endpoint) allowed() []string {
	if e.Methods == nil {
		return postMethods
	}
	return e.Methods
}

// The ranks of matches. Among the endpoints that match a path, the lowest rank counts.
const (
	rankPath  = iota // by one of Paths
	rankOther        // by Other
	rankToken        // by one of Paths with {token}
	rankNone         // not at all
)

// match returns the rank of the match between path and the endpoint, and the path segment with the
// token, or "".
func (e *Endpoint) match(path string) (rank int, token string) {
	segments := strings.Split(path, "/")
	for _, p := range e.Paths {
		if end, many := strings.CutPrefix(p, "**"); many {
			if first, found := strings.CutSuffix(path, end); found && first != "" {
				return rankPath, ""
			}
			continue
		}
		rank, token = rankPath, ""
		ok := strings.Count(p, "/") == len(segments)-1
		for i, want := range strings.Split(p, "/") {
			if !ok {
				break
			}
			if want == "{token}" {
				rank, token = rankToken, segments[i]
			}
			ok = segments[i] == want || segments[i] != "" && (want == "*" || want == "{token}")
		}
		if ok && !(rank == rankToken && segments[0] == apiSegment) {
			return rank, token
		}
	}
	if e.Other != nil && e.Other(path) {
		return rankOther, ""
	}
	return rankNone, ""
}

// apiSegment is the first segment of the addresses of most APIs.
const apiSegment = "api"

// path returns the path of a request as endpoints have it.
func (a *API) path(path string) string {
	if a.Clean == nil {
		return path
	}
	return a.Clean(path)
}

// match is an endpoint that matches a path, with the path segment for the token, or "".
type match struct {
	*Endpoint
	token string
}

// matches returns the endpoints that match a path.
func (a *API) matches(path string) (out []match) {
	best := rankNone
	for i := range a.Endpoints {
		rank, token := a.Endpoints[i].match(a.path(path))
		if rank < best {
			best, out = rank, nil
		}
		if rank == best && rank != rankNone {
			out = append(out, match{&a.Endpoints[i], token})
		}
	}
	return out
}

// methods returns the methods accepted for a path. There are none if no endpoint matches.
func (a *API) methods(path string) (out []string) {
	for _, m := range a.matches(path) {
		out = append(out, m.allowed()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// endpoint returns the endpoint for a request and the path segment with the token. If no endpoint
// has the method, it returns the first one with the path, which answers the error, or nil.
func (a *API) endpoint(r *Request) (*Endpoint, string) {
	all := a.matches(r.Path)
	if len(all) == 0 {
		return nil, ""
	}
	i := slices.IndexFunc(all, func(m match) bool { return slices.Contains(m.allowed(), cmp.Or(r.Method, http.MethodPost)) })
	m := all[max(i, 0)]
	return m.Endpoint, m.token
}

// pathToken returns the path segment of r with the token, or "".
func (a *API) pathToken(r *Request) string {
	_, token := a.endpoint(r)
	return token
}

// Beat returns the name of the beat that the address of a request stands for, or "".
func (s *Source) Beat(r *Request) string {
	if s.Format.API == nil {
		return ""
	}
	if e, _ := s.Format.API.endpoint(r); e != nil && e.Beat != nil {
		return e.Beat(r)
	}
	return ""
}

// readAPI returns the message of a request to an API. A type in the query string replaces the type
// that follows from a priority or a colour.
func (s *Source) readAPI(ctx context.Context, r *Request) (*Message, error) {
	e, _ := s.Format.API.endpoint(r)
	if e == nil {
		return nil, Errorf(http.StatusNotFound, "%s has no such address", s.Format.Program)
	}
	if e.Read == nil {
		return &Message{Skip: true}, nil
	}
	m, err := e.Read(ctx, r)
	if r.Payload != nil {
		err = s.checkProgramOfAPI(r, err)
	}
	if err != nil {
		return nil, err
	}
	if r.Query.Get("type") != "" {
		m.Type = ""
	}
	if !s.config.Images {
		m.Images = nil
	}
	m.Foreign = m.Foreign || !s.mentions()
	return m, nil
}

// Reply returns the answer in the format of the API, or nil if the format is not an
// API.
func (s *Source) Reply(o Outcome) *Reply {
	if s.Format.API == nil {
		return nil
	}
	e, _ := s.Format.API.endpoint(o.Request)
	if e == nil {
		return nil
	}
	reply := e.Reply(o)
	return &reply
}

// PublicReply returns the answer to a request that needs neither a token nor an existing key, or
// nil if r is another request.
func (s *Source) PublicReply(r *Request) *Reply {
	if s.Format.API == nil {
		return nil
	}
	e, _ := s.Format.API.endpoint(r)
	if e == nil || !e.Public || !slices.Contains(e.allowed(), r.Method) {
		return nil
	}
	reply := e.Reply(Outcome{Status: http.StatusOK, Time: r.Time, Request: r, Message: &Message{Skip: true}})
	return &reply
}

// ReadQuery uses the query string as the form of a request without a body, for an API whose server
// reads both alike.
func (r *Request) ReadQuery() {
	if len(bytes.TrimSpace(r.Body)) == 0 && len(r.Form) == 0 {
		r.Form = r.Query
	}
}

// JSONPayload returns the JSON payload of a request to an API: the body, or the last non-empty form
// field among names. If a form has none of these fields, the payload is an object with all its
// fields. JSONPayload sets r.Payload, too. program is named in errors.
func (r *Request) JSONPayload(program string, names ...string) (any, error) {
	form := r.Form
	if form == nil && !payload.LooksLikeJSON(r.Text()) {
		var err error
		if form, err = r.parseForm(); err != nil {
			return nil, err
		}
	}
	text := r.Text()
	for _, name := range names {
		if value := form.Get(name); value != "" {
			text = []byte(value)
		}
	}
	if form != nil && (r.Form != nil || len(form) > 0) && string(text) == string(r.Text()) {
		r.Payload = FormFields(form)
		return r.Payload, nil
	}
	data, err := payload.Decode(text)
	if err != nil {
		return nil, Errorf(http.StatusBadRequest, "the payload of %s must be JSON: %w", program, err)
	}
	r.Payload = data
	return data, nil
}
