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

// API is an API that programs speak to a chat or push service. Its endpoints read
// requests and answer them as the service does. It replaces the templates.
type API struct {
	// Endpoints are what clients can ask for. If several have a path, the first one
	// that has the method, too, counts.
	Endpoints []Endpoint

	// Clean returns a path without what clients may add in front. nil means that
	// clients add nothing.
	Clean func(path string) string

	// Images means that messages can have Images.
	Images bool

	// Alerts means that the API is that of an incident tool. A text of the payload must not
	// mention people unless the operator says so: clients put texts of others into alerts,
	// and say nothing to a chat.
	Alerts bool
}

// Endpoint is what the clients of an API can ask for at some addresses.
type Endpoint struct {
	// Methods are the accepted methods; nil means POST and PUT.
	Methods []string

	// Paths are the accepted paths below the source's address. * is any segment, ** at
	// the beginning is one or more segments, and {token} is any segment that may be the
	// token.
	//
	// A path with {token} is that of a webhook. It counts only if nothing else matches,
	// and it matches nothing that begins with the segment api: an address of an API is
	// not taken for one with a token.
	Paths []string

	// Other reports whether a path is accepted that no endpoint has among paths without
	// {token}. nil accepts none.
	Other func(path string) bool

	// Read returns the message of a request. nil means that a request sends nothing.
	Read func(ctx context.Context, r *Request) (*Message, error)

	// Beat returns the name of the beat that a request is by its address, or "". nil means that
	// none is one.
	Beat func(r *Request) string

	// Reply returns the answer.
	Reply func(o Outcome) Reply

	// Public means that the answer needs neither a token nor a key that exists.
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

// The ranks of matches. Of the endpoints that have a path, those with the lowest rank
// count.
const (
	rankPath  = iota // by one of Paths
	rankOther        // by Other
	rankToken        // by one of Paths with {token}
	rankNone         // not at all
)

// match returns the rank of the match between path and the endpoint, and the segment of
// the path for the token, or "".
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

// path returns the path of an endpoint for the path of a request.
func (a *API) path(path string) string {
	if a.Clean == nil {
		return path
	}
	return a.Clean(path)
}

// match is an endpoint that has a path, and the segment of the path for the token, or "".
type match struct {
	*Endpoint
	token string
}

// matches returns the endpoints that have a path.
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

// methods returns the methods of requests to a path. There are none if the API has no
// such path.
func (a *API) methods(path string) (out []string) {
	for _, m := range a.matches(path) {
		out = append(out, m.allowed()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// endpoint returns the endpoint of a request and the segment of its path for the
// token. Without one for its method, the endpoint is the first with its path, which
// answers the error; without one of these, it is nil.
func (a *API) endpoint(r *Request) (*Endpoint, string) {
	all := a.matches(r.Path)
	if len(all) == 0 {
		return nil, ""
	}
	i := slices.IndexFunc(all, func(m match) bool { return slices.Contains(m.allowed(), cmp.Or(r.Method, http.MethodPost)) })
	m := all[max(i, 0)]
	return m.Endpoint, m.token
}

// pathToken returns the segment of the path of r for the token, or "".
func (a *API) pathToken(r *Request) string {
	_, token := a.endpoint(r)
	return token
}

// Beat returns the name of the beat that a request is by its address, or "".
func (s *Source) Beat(r *Request) string {
	if s.Format.API == nil {
		return ""
	}
	if e, _ := s.Format.API.endpoint(r); e != nil && e.Beat != nil {
		return e.Beat(r)
	}
	return ""
}

// readAPI returns the message of a request to an API. A type in the query string takes
// the place of one that follows from a priority or a colour.
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

// PublicReply returns the answer to a request that needs neither a token nor a key
// that exists, or nil if there is none.
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

// ReadQuery makes the query string the form of a request without a body, for an API whose server
// reads both alike.
func (r *Request) ReadQuery() {
	if len(bytes.TrimSpace(r.Body)) == 0 && len(r.Form) == 0 {
		r.Form = r.Query
	}
}

// JSONPayload returns the JSON payload of a request to an API: the body, or the last
// non-empty field of a form among names. If a form has none of these fields, the
// payload is an object with all fields of the form. JSONPayload sets r.Payload, too. program
// is named in errors.
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
