package api

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

func TestPlainText(t *testing.T) {
	g := newGateway(t, func(g *gateway) {
		g.targets = []notifier.Target{target(t, "json://a", "a"), target(t, "json://b", "b")}
	})
	const plain = "text/plain"
	for name, tt := range map[string]struct {
		path, contentType, body string
		headers                 map[string]string
		want                    received
	}{
		"text":                      {"", plain, "91% full & rising\n", nil, received{body: "91% full & rising\n", typ: "info"}},
		"with a charset":            {"", plain + "; charset=utf-8", "a=b", nil, received{body: "a=b", typ: "info"}},
		"curl -d":                   {"", typeForm, "backup done", nil, received{body: "backup done", typ: "info"}},
		"curl -d is not decoded":    {"", typeForm, "91% + 2%20 & more", nil, received{body: "91% + 2%20 & more", typ: "info"}},
		"a text in brackets":        {"", typeForm, "[FIRING] disk full", nil, received{body: "[FIRING] disk full", typ: "info"}},
		"a form stays a form":       {"", typeForm, "body=91%25+full", nil, received{body: "91% full", typ: "info"}},
		"title and priority":        {"", typeForm, "x", map[string]string{"Title": "T", "Priority": "5"}, received{title: "T", body: "x", typ: "failure"}},
		"priority by name":          {"", plain, "x", map[string]string{"Priority": "high"}, received{body: "x", typ: "warning"}},
		"priority by a common word": {"", plain, "x", map[string]string{"Priority": "resolved"}, received{body: "x", typ: "success"}},
		"low priority":              {"", plain, "x", map[string]string{"Priority": "1"}, received{body: "x", typ: "info"}},
		"unknown priority":          {"", plain, "x", map[string]string{"Priority": "9"}, received{body: "x", typ: "info"}},
		"an encoded title":          {"", plain, "x", map[string]string{"Title": "=?UTF-8?B?w5xiZXI=?="}, received{title: "Über", body: "x", typ: "info"}},
		"a title that is not UTF-8": {"", plain, "x", map[string]string{"Title": "a\xffb"}, received{title: "a\uFFFDb", body: "x", typ: "info"}},
		"tags":                      {"/k", typeForm, "x", map[string]string{"Tags": "b"}, received{body: "x", typ: "info", urls: "json://b"}},
		"several tags":              {"/k", plain, "x", map[string]string{"Tags": "a, b"}, received{body: "x", typ: "info", urls: "json://a json://b"}},
		"the headers before the query string": {
			"/k?tag=a&title=Q", plain, "x",
			map[string]string{"Tags": "b", "Title": "T"},
			received{title: "T", body: "x", typ: "info", urls: "json://b"},
		},
		"the query string":                       {"/k?tag=a&title=Q&type=failure", typeForm, "x", nil, received{title: "Q", body: "x", typ: "failure", urls: "json://a"}},
		"the headers mean nothing for a form":    {"", typeForm, "body=x", map[string]string{"Title": "T"}, received{body: "x", typ: "info"}},
		"the headers mean nothing for JSON":      {"", typeJSON, `{"body":"x"}`, map[string]string{"Title": "T"}, received{body: "x", typ: "info"}},
		"a mapping takes the text for the title": {"?:body=title&:body=fixed", plain, "x", nil, received{title: "x", body: "fixed", typ: "info"}},
	} {
		if tt.want.urls == "" {
			tt.want.urls = "json://a json://b"
		}
		r := httptest.NewRequest("POST", "/notify"+tt.path, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", tt.contentType)
		for name, value := range tt.headers {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != 200 {
			t.Errorf("%s: status %d: %s", name, w.Code, w.Body)
			continue
		}
		if got := g.one(t); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestPlainTextRefused(t *testing.T) {
	g := newGateway(t, func(g *gateway) { g.limits.MaxBody = 10 })
	for name, tt := range map[string]struct {
		contentType, body string
		status            int
		text              string
	}{
		"empty":                     {"text/plain", "", 400, "body is missing"},
		"blank":                     {"text/plain", " \n", 400, "body is missing"},
		"not UTF-8":                 {"text/plain", "\xff", 400, "UTF-8"},
		"too long":                  {"text/plain", "01234567890", 413, "larger"},
		"JSON without Content-Type": {typeForm, `{"body":1}`, 400, "Content-Type: application/json"},
		"HTML":                      {"text/html", "<p>x", 415, "text/plain"},
	} {
		got := post(g, "/notify", tt.contentType, tt.body)
		if got.status != tt.status || !strings.Contains(got.body, tt.text) {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
		}
	}
}
