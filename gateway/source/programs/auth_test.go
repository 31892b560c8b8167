package programs

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// TestTokens checks that tokens are found in the places where programs put them.
func TestTokens(t *testing.T) {
	const token = "t0ken"
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, tt := range map[string]struct {
		source string
		r      source.Request
		ok     bool
	}{
		"query":             {"proxmox", source.Request{Query: url.Values{"token": {token}}}, true},
		"bearer":            {"proxmox", source.Request{Header: http.Header{"Authorization": {"bearer " + token}}}, true},
		"basic":             {"proxmox", source.Request{Header: http.Header{"Authorization": {basic("u:" + token)}}}, true},
		"gitlab":            {"gitlab", source.Request{Header: http.Header{"X-Gitlab-Token": {token}}}, true},
		"cloudflare":        {"cloudflare", source.Request{Header: http.Header{"Cf-Webhook-Auth": {token}}}, true},
		"seerr":             {"seerr", source.Request{Header: http.Header{"Authorization": {token}}}, true},
		"cloudevents":       {"cloudevents", source.Request{Query: url.Values{"access_token": {token}}}, true},
		"gotify":            {"gotify", source.Request{Header: http.Header{"X-Gotify-Key": {token}}}, true},
		"ntfy, password":    {"ntfy", source.Request{Header: http.Header{"Authorization": {basic("user:" + token)}}}, true},
		"ntfy, token alone": {"ntfy", source.Request{Header: http.Header{"Authorization": {basic(":" + token)}}}, true},
		"ntfy, in the query": {
			"ntfy",
			source.Request{Query: url.Values{"auth": {base64.RawURLEncoding.EncodeToString([]byte("Bearer " + token))}}},
			true,
		},
		"slack, path":           {"slack", source.Request{Path: "services/T/B/" + token}, true},
		"slack, field":          {"slack", source.Request{Body: []byte(`{"token":"` + token + `"}`)}, true},
		"slack, form":           {"slack", source.Request{Body: []byte("token=" + token)}, true},
		"discord, path":         {"discord", source.Request{Path: "123/" + token}, true},
		"discord, another path": {"discord", source.Request{Path: token + "/123"}, false},
		"pagerduty":             {"pagerduty", source.Request{Body: []byte(`{"routing_key":"` + token + `"}`)}, true},
		"opsgenie":              {"opsgenie", source.Request{Header: http.Header{"Authorization": {"GenieKey " + token}}}, true},
		"opsgenie's elsewhere":  {"gotify", source.Request{Header: http.Header{"Authorization": {"GenieKey " + token}}}, false},
		"wrong":                 {"gotify", source.Request{Query: url.Values{"token": {token + "x"}}}, false},
		"empty":                 {"gotify", source.Request{Query: url.Values{"token": {""}}}, false},
		"none":                  {"gotify", source.Request{}, false},
	} {
		s, err := source.New(source.Config{Name: tt.source, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Authenticate(t.Context(), &tt.r, nil)
		if e, ok := errors.AsType[*source.Error](err); (err == nil) != tt.ok || err != nil && (!ok || e.Status != 401) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAuthenticateHeader checks what is known of a request before its body is read.
func TestAuthenticateHeader(t *testing.T) {
	templates := source.Templates{Title: "x"}
	form := http.Header{"Content-Type": {"multipart/form-data; boundary=b"}}
	token := url.Values{"token": {"t0ken"}}
	for name, tt := range map[string]struct {
		c        source.Config
		r        source.Request
		verified bool
		refused  bool
	}{
		"no check":                        {source.Config{Name: "grafana"}, source.Request{}, true, false},
		"a token":                         {source.Config{Name: "grafana", Token: "t0ken"}, source.Request{Query: token}, true, false},
		"no token":                        {source.Config{Name: "grafana", Token: "t0ken"}, source.Request{}, false, true},
		"no token that the body may have": {source.Config{Name: "slack", Token: "t0ken"}, source.Request{}, false, false},
		"a token that the body may have":  {source.Config{Name: "slack", Token: "t0ken"}, source.Request{Path: "x/t0ken"}, true, false},
		"a signature": {
			source.Config{Name: "github", Scheme: "github", Secret: "s3cret"},
			source.Request{},
			false, false,
		},
		"a signature of SNS, which is always": {source.Config{Name: "sns"}, source.Request{}, false, false},
		"a token and a signature":             {source.Config{Name: "sns", Token: "t0ken"}, source.Request{Query: token}, false, false},
		"a signature, but no token":           {source.Config{Name: "sns", Token: "t0ken"}, source.Request{}, false, true},
		"a form with a signature": {
			source.Config{Name: "mine", Templates: templates, Scheme: "github", Secret: "s3cret"},
			source.Request{Header: form},
			false, true,
		},
		"a form with a token": {
			source.Config{Name: "mine", Templates: templates, Token: "t0ken"},
			source.Request{Header: form, Query: token},
			true, false,
		},
	} {
		s, err := source.New(tt.c)
		if err != nil {
			t.Fatal(err)
		}
		verified, err := s.AuthenticateHeader(&tt.r)
		if verified != tt.verified || (err != nil) != tt.refused {
			t.Errorf("%s: %t, %v", name, verified, err)
		}
		if e, ok := errors.AsType[*source.Error](err); err != nil && (!ok || e.Status != 401) {
			t.Errorf("%s: %v is not a 401", name, err)
		}
	}
}
