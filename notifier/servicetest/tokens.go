package servicetest

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// TokenAPI is an [http.RoundTripper] that stands in for an API with sign-in: it
// gives out tokens that end in "token-1", "token-2" and so on, and refuses all
// but the last one. The patterns are matched against the method and URL of a
// request, with a space between.
type TokenAPI struct {
	// SignIn is the pattern of requests that sign in. If it is empty, no
	// request needs a token.
	SignIn string

	// Token returns the answer to a sign-in with the nth token.
	Token func(n int) string

	// Open is the pattern of requests that need no token.
	Open string

	// Expired is the answer to an expired token if it begins with "400 ".
	// By default such a request is answered with status 401.
	Expired string

	// Answers are pairs of a pattern and an answer. The first matching pattern counts; default: an
	// empty JSON object.
	Answers [][2]string

	// Refuse returns the status to refuse a request with, or 0.
	Refuse func(request string) int

	// Valid is the number of the valid token.
	Valid int

	// Requests and Bodies are the requests so far, and their bodies. Read
	// them when nothing is being sent.
	Requests, Bodies []string

	mu sync.Mutex
}

// OAuthToken is a Token function for a token endpoint (RFC 6749, section 5.1).
func OAuthToken(n int) string {
	return fmt.Sprintf(`{"access_token":"token-%d","expires_in":3600,"token_type":"bearer"}`, n)
}

// RoundTrip records a request and answers it.
func (a *TokenAPI) RoundTrip(q *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var body []byte
	if q.Body != nil {
		body, _ = io.ReadAll(q.Body)
	}
	request := q.Method + " " + q.URL.String()
	a.Requests = append(a.Requests, request)
	a.Bodies = append(a.Bodies, string(body))
	code, out := a.answer(q, request)
	return &http.Response{
		StatusCode: code, Request: q, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(out)), ContentLength: int64(len(out)),
	}, nil
}

func (a *TokenAPI) answer(q *http.Request, request string) (int, string) {
	matches := func(pattern string) bool {
		return pattern != "" && regexp.MustCompile(pattern).MatchString(request)
	}
	if a.Refuse != nil {
		if code := a.Refuse(request); code != 0 {
			return code, "{}"
		}
	}
	if matches(a.SignIn) {
		a.Valid++
		return 200, a.Token(a.Valid)
	}
	token := q.Header.Get("Authorization") + q.Header.Get("X-MediaBrowser-Token")
	if a.SignIn != "" && !matches(a.Open) && !strings.HasSuffix(token, fmt.Sprintf("token-%d", a.Valid)) {
		if text, ok := strings.CutPrefix(a.Expired, "400 "); ok {
			return 400, text
		}
		return 401, `{"error":"expired"}`
	}
	for _, x := range a.Answers {
		if matches(x[0]) {
			return 200, x[1]
		}
	}
	return 200, "{}"
}

// Count returns how many of the requests so far match the pattern.
func (a *TokenAPI) Count(pattern string) int {
	re := regexp.MustCompile(pattern)
	return len(slices.DeleteFunc(slices.Clone(a.Requests), func(s string) bool { return !re.MatchString(s) }))
}
