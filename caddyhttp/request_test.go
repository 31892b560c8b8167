package caddyhttp

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/notifier"
)

func TestSplitURLs(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                  nil,
		" , ":                               nil,
		"json://a":                          {"json://a"},
		"json://a,json://b":                 {"json://a", "json://b"},
		"json://a json://b":                 {"json://a", "json://b"},
		" json://a ,, json://b\n":           {"json://a", "json://b"},
		"json://a/x,y":                      {"json://a/x,y"},
		"json://a/x, y":                     {"json://a/x, y"},
		"json://a/x,y,json://b":             {"json://a/x,y", "json://b"},
		"json://a?to=b@c,d@e,mailto://f":    {"json://a?to=b@c,d@e", "mailto://f"},
		"json://a?u=http://b":               {"json://a?u=http://b"},
		"json://a?u=http%3A%2F%2Fb,xml://c": {"json://a?u=http%3A%2F%2Fb", "xml://c"},
		"nonsense,json://a":                 {"nonsense", "json://a"},
		"nonsense":                          {"nonsense"},
		"://,://":                           {"://,://"},
		"json://json://a":                   {"json://json://a"},
	} {
		if got := splitURLs(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzSplitURLs(f *testing.F) {
	f.Add("json://a,json://b")
	f.Add(" ,a://,://b c://d,e")
	f.Fuzz(func(t *testing.T, text string) {
		urls := splitURLs(text)
		rest := text
		for _, u := range urls {
			if strings.TrimFunc(u, isSeparator) != u || u == "" {
				t.Errorf("%q is not trimmed", u)
			}
			i := strings.Index(rest, u)
			if i < 0 || strings.TrimFunc(rest[:i], isSeparator) != "" {
				t.Fatalf("%q: something before %q got lost", text, u)
			}
			rest = rest[i+len(u):]
			if again := splitURLs(u); len(again) != 1 || again[0] != u {
				t.Errorf("%q splits again into %q", u, again)
			}
		}
		if strings.TrimFunc(rest, isSeparator) != "" {
			t.Errorf("%q: the end %q got lost", text, rest)
		}
	})
}

func TestParsePairs(t *testing.T) {
	for text, want := range map[string][]pair{
		"":                nil,
		"&&":              nil,
		"a=1&b=2&a=3":     {{"a", "1"}, {"b", "2"}, {"a", "3"}},
		"a":               {{"a", ""}},
		"=x":              {{"", "x"}},
		"a=b=c":           {{"a", "b=c"}},
		"a+b=c%20d%2Be":   {{"a b", "c d+e"}},
		"a=1;b=2":         {{"a", "1;b=2"}},
		"a=100%&b=%zz&c=": {{"a", "100%"}, {"b", "%zz"}, {"c", ""}},
		"a=%C3%A9%c3%a9":  {{"a", "éé"}},
		"a=%4":            {{"a", "%4"}},
	} {
		if got, err := parsePairs(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

// failingBody is a body whose reading ends with an error.
type failingBody struct{ err error }

func (b failingBody) Read([]byte) (int, error) { return 0, b.err }
func (b failingBody) Close() error             { return nil }

// A request_body directive before this handler has its own limit, and says so
// with an error of its own.
func TestLimitUpstream(t *testing.T) {
	h := newGateway(t, "", "")
	limit := &http.MaxBytesError{Limit: 1}
	for _, err := range []error{limit, caddyhttp.Error(http.StatusRequestEntityTooLarge, limit)} {
		for _, contentType := range []string{typeJSON, typeForm, "multipart/form-data; boundary=x"} {
			r := httptest.NewRequest(http.MethodPost, "/notify", failingBody{err})
			r.ContentLength = 10
			r.Header.Set("Content-Type", contentType)
			if got := do(t, h, r); got.status != 413 {
				t.Errorf("%s, %T: status %d: %s", contentType, err, got.status, got.body)
			}
		}
	}
}

// The request reader ends with a message or a refusal, whatever it is given.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][3]string{
		{"", "application/json", `{"body":"x","tag":[["a"]],"attach":[{"base64":"eA=="}],"urls":["json://h"]}`},
		{"type=info&tag=a", "application/x-www-form-urlencoded", "body=x&title=y&attach=http://127.0.0.1/"},
		{":a.b[0]=body", "text/json", `{"a":{"b":["x"]}}`},
		{"", "multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"attach\"; filename=\"a\"\r\n\r\n1\r\n--x--\r\n"},
		{"", "multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"payload\"\r\nContent-Type: application/json\r\n\r\n{\"body\":1}\r\n--x--\r\n"},
		{"%", "text/plain", "x"},
	} {
		f.Add(seed[0], seed[1], []byte(seed[2]))
	}
	base, err := defaultRules()
	if err != nil {
		f.Fatal(err)
	}
	limits := *base
	limits.maxBody, limits.maxSize, limits.maxCount = 64<<10, 1<<10, 3
	f.Fuzz(func(t *testing.T, query, contentType string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/notify", bytes.NewReader(body))
		r.URL.RawQuery = query
		r.Header["Content-Type"] = []string{contentType}
		spool := &notifier.Spool{MaxSize: limits.maxSize, MaxCount: limits.maxCount}
		defer spool.Close()
		refused := func(err error) bool {
			if err == nil {
				return false
			}
			e, ok := asRefusal(err)
			if !ok || e.status < 400 || e.status > 499 {
				t.Fatalf("no refusal but %v", err)
			}
			return true
		}
		q, err := readRequest(httptest.NewRecorder(), r, &limits, spool)
		if refused(err) {
			return
		}
		m, err := q.message()
		if refused(err) {
			return
		}
		if strings.TrimSpace(m.Body) == "" && len(q.sources)+len(q.files) == 0 {
			t.Error("a message of nothing")
		}
		if !utf8.ValidString(m.Body) || !utf8.ValidString(m.Title) {
			t.Error("a message that is no UTF-8")
		}
		_, err = q.tags()
		refused(err)
		_, err = q.urls()
		refused(err)
	})
}
