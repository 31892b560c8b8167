package source

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"testing"
)

// TestTokens checks that tokens are found in the places where programs put them.
func TestTokens(t *testing.T) {
	const token = "t0ken"
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, tt := range map[string]struct {
		source string
		r      Request
		ok     bool
	}{
		"query":                 {"proxmox", Request{Query: url.Values{"token": {token}}}, true},
		"bearer":                {"proxmox", Request{Header: http.Header{"Authorization": {"bearer " + token}}}, true},
		"basic":                 {"proxmox", Request{Header: http.Header{"Authorization": {basic("u:" + token)}}}, true},
		"gitlab":                {"gitlab", Request{Header: http.Header{"X-Gitlab-Token": {token}}}, true},
		"cloudflare":            {"cloudflare", Request{Header: http.Header{"Cf-Webhook-Auth": {token}}}, true},
		"seerr":                 {"seerr", Request{Header: http.Header{"Authorization": {token}}}, true},
		"cloudevents":           {"cloudevents", Request{Query: url.Values{"access_token": {token}}}, true},
		"gotify":                {"gotify", Request{Header: http.Header{"X-Gotify-Key": {token}}}, true},
		"ntfy, password":        {"ntfy", Request{Header: http.Header{"Authorization": {basic("user:" + token)}}}, true},
		"ntfy, token alone":     {"ntfy", Request{Header: http.Header{"Authorization": {basic(":" + token)}}}, true},
		"ntfy, in the query":    {"ntfy", Request{Query: url.Values{"auth": {base64.RawURLEncoding.EncodeToString([]byte("Bearer " + token))}}}, true},
		"slack, path":           {"slack", Request{Path: "services/T/B/" + token}, true},
		"slack, field":          {"slack", Request{Body: []byte(`{"token":"` + token + `"}`)}, true},
		"slack, form":           {"slack", Request{Body: []byte("token=" + token)}, true},
		"discord, path":         {"discord", Request{Path: "123/" + token}, true},
		"discord, another path": {"discord", Request{Path: token + "/123"}, false},
		"pagerduty":             {"pagerduty", Request{Body: []byte(`{"routing_key":"` + token + `"}`)}, true},
		"opsgenie":              {"opsgenie", Request{Header: http.Header{"Authorization": {"GenieKey " + token}}}, true},
		"opsgenie's elsewhere":  {"gotify", Request{Header: http.Header{"Authorization": {"GenieKey " + token}}}, false},
		"wrong":                 {"gotify", Request{Query: url.Values{"token": {token + "x"}}}, false},
		"empty":                 {"gotify", Request{Query: url.Values{"token": {""}}}, false},
		"none":                  {"gotify", Request{}, false},
	} {
		s, err := New(Config{Name: tt.source, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Authenticate(t.Context(), &tt.r, nil)
		if e, ok := errors.AsType[*Error](err); (err == nil) != tt.ok || err != nil && (!ok || e.Status != 401) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAuthenticateHeader checks what is known of a request before its body is read.
func TestAuthenticateHeader(t *testing.T) {
	templates := Templates{Title: "x"}
	form := http.Header{"Content-Type": {"multipart/form-data; boundary=b"}}
	token := url.Values{"token": {"t0ken"}}
	for name, tt := range map[string]struct {
		c        Config
		r        Request
		verified bool
		refused  bool
	}{
		"no check":                            {Config{Name: "grafana"}, Request{}, true, false},
		"a token":                             {Config{Name: "grafana", Token: "t0ken"}, Request{Query: token}, true, false},
		"no token":                            {Config{Name: "grafana", Token: "t0ken"}, Request{}, false, true},
		"no token that the body may have":     {Config{Name: "slack", Token: "t0ken"}, Request{}, false, false},
		"a token that the body may have":      {Config{Name: "slack", Token: "t0ken"}, Request{Path: "x/t0ken"}, true, false},
		"a signature":                         {Config{Name: "github", Scheme: "github", Secret: "s3cret"}, Request{}, false, false},
		"a signature of SNS, which is always": {Config{Name: "sns"}, Request{}, false, false},
		"a token and a signature":             {Config{Name: "sns", Token: "t0ken"}, Request{Query: token}, false, false},
		"a signature, but no token":           {Config{Name: "sns", Token: "t0ken"}, Request{}, false, true},
		"a form with a signature":             {Config{Name: "mine", Templates: templates, Scheme: "github", Secret: "s3cret"}, Request{Header: form}, false, true},
		"a form with a token":                 {Config{Name: "mine", Templates: templates, Token: "t0ken"}, Request{Header: form, Query: token}, true, false},
	} {
		s, err := New(tt.c)
		if err != nil {
			t.Fatal(err)
		}
		verified, err := s.AuthenticateHeader(&tt.r)
		if verified != tt.verified || (err != nil) != tt.refused {
			t.Errorf("%s: %t, %v", name, verified, err)
		}
		if e, ok := errors.AsType[*Error](err); err != nil && (!ok || e.Status != 401) {
			t.Errorf("%s: %v is not a 401", name, err)
		}
	}
}
