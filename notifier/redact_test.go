package notifier

import (
	"encoding/base64"
	"errors"
	"html"
	"io"
	"net/url"
	"strings"
	"testing"
)

// redacted masks the secrets in a text as a destination does that has them.
func redacted(text string, secrets ...string) string {
	d := &Destination{disguises: disguisesOf(secrets)}
	d.masking.Do(func() {})
	return d.redact(text)
}

func TestRedact(t *testing.T) {
	const secret = "s3cr/et&word"
	basic := base64.StdEncoding.EncodeToString([]byte("user:" + secret))
	for text, want := range map[string]string{
		"nothing in it":                       "nothing in it",
		"the token " + secret + ".":           "the token xxxxx.",
		"?t=" + url.QueryEscape(secret):       "?t=xxxxx",
		"<b>" + html.EscapeString(secret):     "<b>xxxxx",
		`{"t":"s3cr\/et&word"}`:               `{"t":"xxxxx"}`,
		`{"t":"s3cr/et\u0026word"}`:           `{"t":"xxxxx"}`,
		"Authorization: Basic " + basic + ";": "Authorization: Basic xxxxx;",
		basic + " " + basic:                   "xxxxx xxxxx",
	} {
		if got := redacted(text, secret, "abc"); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got := redacted("abc abcd abcdef", "abc", "abcd", "abcdef"); got != "abc xxxxx xxxxx" {
		t.Errorf("got %q", got)
	}
}

// An answer that is cut shows no part of a secret.
func TestExcerptHidesBeforeItCuts(t *testing.T) {
	const secret = "0123456789secret9876543210"
	c := &Client{redact: func(s string) string { return redacted(s, secret) }}
	for n := range 330 {
		if got := c.excerpt([]byte(strings.Repeat("x ", n/2) + secret)); strings.Contains(got, secret[:5]) {
			t.Fatalf("behind %d characters: %q", n, got)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("before", "s3cr/et&word", "after")
	f.Add("user:", "päss wörd", "")
	f.Add("", "xxxxxx", "x")
	f.Add("a", "\x00\"\\\n", "b")
	f.Fuzz(func(t *testing.T, before, secret, after string) {
		if len(secret) < 8 || strings.Contains("xxxxx"+mask, secret) || strings.Trim(secret, "x") == "" {
			return
		}
		for _, form := range []func(string) string{
			func(s string) string { return s },
			url.QueryEscape,
			html.EscapeString,
			func(s string) string { return base64.StdEncoding.EncodeToString([]byte(before + s + after)) },
		} {
			hidden := form(secret)
			// What the texts around it hold themselves is not of interest.
			if got := redacted(before+" "+hidden+" "+after, secret); strings.Contains(got, hidden) && !strings.Contains(before+mask+after, hidden) && len(form(secret)) < 4*len(secret) {
				t.Errorf("%q shows %q", got, hidden)
			}
		}
	})
}

// Errors of net/http become what a reader can use, without the URL.
func TestTransportError(t *testing.T) {
	for want, err := range map[string]error{
		"instead of answering": &url.Error{Op: "Get", URL: "http://h/secret", Err: io.EOF},
		"before it was asked":  &url.Error{Op: "Get", URL: "http://h/secret", Err: errors.New("readLoopPeekFailLocked: %!w(<nil>)")},
		"refused":              &url.Error{Op: "Get", URL: "http://h/secret", Err: errors.New("refused")},
	} {
		got := transportError(err).Error()
		if !strings.Contains(got, want) || strings.Contains(got, "secret") || strings.Contains(got, "readLoop") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
