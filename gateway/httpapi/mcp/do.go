package mcp

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
)

// client makes requests to the HTTP API for an agent, with the address and the secrets of the
// agent's request.
type client struct {
	request *http.Request
	serve   func(http.ResponseWriter, *http.Request) bool
}

// tokenQuery is the query parameter with a token of a key.
const tokenQuery = "token"

// do makes a request. path begins with /notify/; body, which may be empty, and answer are
// JSON.
func (c *client) do(ctx context.Context, method, path string, query url.Values, body []byte) (status int, answer []byte) {
	q := c.request.Clone(ctx)
	q.Method, q.Proto, q.ProtoMajor, q.ProtoMinor = method, "HTTP/2.0", 2, 0
	q.Header = http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}}
	// headers that may have a token, and the header with the number of gateways passed
	for _, name := range []string{"Authorization", "X-Gotify-Key", "User-Agent"} {
		if v, ok := c.request.Header[name]; ok {
			q.Header[name] = v
		}
	}
	if token := c.request.URL.Query().Get(tokenQuery); token != "" {
		query = maps.Clone(query)
		if query == nil {
			query = url.Values{}
		}
		query.Set(tokenQuery, token)
	}
	q.URL = &url.URL{Path: path, RawQuery: query.Encode()}
	q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	if !c.serve(w, q) {
		return http.StatusNotFound, nil
	}
	return w.status, w.body.Bytes()
}

// recorder records the answer to a request.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }
