package api

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/message"
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
		"text":                   {"", plain, "91% full & rising\n", nil, received{body: "91% full & rising\n", typ: "info"}},
		"with a charset":         {"", plain + "; charset=utf-8", "a=b", nil, received{body: "a=b", typ: "info"}},
		"curl -d":                {"", typeForm, "backup done", nil, received{body: "backup done", typ: "info"}},
		"curl -d is not decoded": {"", typeForm, "91% + 2%20 & more", nil, received{body: "91% + 2%20 & more", typ: "info"}},
		"a text in brackets":     {"", typeForm, "[FIRING] disk full", nil, received{body: "[FIRING] disk full", typ: "info"}},
		"a form stays a form":    {"", typeForm, "body=91%25+full", nil, received{body: "91% full", typ: "info"}},
		"title and priority": {
			"", typeForm, "x",
			map[string]string{"Title": "T", "Priority": "5"},
			received{title: "T", body: "x", typ: "failure"},
		},
		"priority by name":          {"", plain, "x", map[string]string{"Priority": "high"}, received{body: "x", typ: "warning"}},
		"priority by a common word": {"", plain, "x", map[string]string{"Priority": "resolved"}, received{body: "x", typ: "success"}},
		"low priority":              {"", plain, "x", map[string]string{"Priority": "1"}, received{body: "x", typ: "info"}},
		"unknown priority":          {"", plain, "x", map[string]string{"Priority": "9"}, received{body: "x", typ: "info"}},
		"an encoded title": {
			"", plain, "x",
			map[string]string{"Title": "=?UTF-8?B?w5xiZXI=?="},
			received{title: "Über", body: "x", typ: "info"},
		},
		"a title that is not UTF-8": {"", plain, "x", map[string]string{"Title": "a\xffb"}, received{title: "aÿb", body: "x", typ: "info"}},
		"tags":                      {"/k", typeForm, "x", map[string]string{"Tags": "b"}, received{body: "x", typ: "info", urls: "json://b"}},
		"several tags": {
			"/k", plain, "x",
			map[string]string{"Tags": "a, b"},
			received{body: "x", typ: "info", urls: "json://a json://b"},
		},
		"the headers before the query string": {
			"/k?tag=a&title=Q", plain, "x",
			map[string]string{"Tags": "b", "Title": "T"},
			received{title: "T", body: "x", typ: "info", urls: "json://b"},
		},
		"headers of Apprise": {
			"/k", plain, "**x**",
			map[string]string{
				"X-Apprise-Title": "T", "Title": "other", "X-Apprise-Type": "warning", "Priority": "5", "X-Apprise-Tag": "b",
				"X-Apprise-Format": "markdown",
			},
			received{title: "T", body: "**x**", typ: "warning", urls: "json://b"},
		},
		"the query string": {
			"/k?tag=a&title=Q&type=failure", typeForm, "x", nil,
			received{title: "Q", body: "x", typ: "failure", urls: "json://a"},
		},
		"the headers mean nothing for a form": {"", typeForm, "body=x", map[string]string{"Title": "T"}, received{body: "x", typ: "info"}},
		"the headers mean nothing for JSON": {
			"", typeJSON, `{"body":"x"}`,
			map[string]string{"Title": "T"},
			received{body: "x", typ: "info"},
		},
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

// TestTextFormats checks the format of a body that is the message itself, and the
// title in the header Subject. Kopia sends reports as HTML or text with Subject and
// without Content-Type; see
// https://github.com/kopia/kopia/blob/v0.23.1/notification/sender/webhook/webhook_sender.go.
func TestTextFormats(t *testing.T) {
	const json = `{"body":"x"}`
	for name, tt := range map[string]struct {
		query, contentType, body string
		title, subject           string
		want                     notifier.Message
		warnings                 int
	}{
		"Markdown": {
			"", "text/markdown; charset=utf-8", "**x**", "", "",
			notifier.Message{Body: "**x**", Format: notifier.Markdown},
			0,
		},
		"HTML":                      {"", "text/html", "<p>x", "", "", notifier.Message{Body: "<p>x", Format: notifier.HTML}, 0},
		"Content-Type before query": {"?format=text", "text/html", "<p>x", "", "", notifier.Message{Body: "<p>x", Format: notifier.HTML}, 0},
		"the query for plain text": {
			"?format=markdown", "text/plain", "**x**", "", "",
			notifier.Message{Body: "**x**", Format: notifier.Markdown},
			0,
		},
		"no type": {"", "", "a=b & c", "", "", notifier.Message{Body: "a=b & c", Format: notifier.Text}, 0},
		"Kopia, text": {
			"", "", "Path: /home\n", "", "SUCCESS on db1",
			notifier.Message{Title: "SUCCESS on db1", Body: "Path: /home\n", Format: notifier.Text},
			0,
		},
		"Kopia, HTML": {
			"", "", "<!doctype html>\n<html>x", "", "FATAL on db1",
			notifier.Message{Title: "FATAL on db1", Body: "<!doctype html>\n<html>x", Format: notifier.HTML},
			0,
		},
		"Kopia, test": {
			"", "", "<p>This is a test</p>", "", "Test",
			notifier.Message{Title: "Test", Body: "<p>This is a test</p>", Format: notifier.HTML},
			0,
		},
		"text that begins with a sign": {"", "", "<3 db1", "", "", notifier.Message{Body: "<3 db1", Format: notifier.Text}, 0},
		"HTML as plain text":           {"", "text/plain", "<p>x", "", "", notifier.Message{Body: "<p>x", Format: notifier.Text}, 0},
		"Title before Subject":         {"", "text/plain", "x", "T", "S", notifier.Message{Title: "T", Body: "x", Format: notifier.Text}, 0},
		"JSON without a type":          {"", "", json, "", "", notifier.Message{Body: json, Format: notifier.Text}, 1},
		"JSON as plain text":           {"", "text/plain", json, "", "", notifier.Message{Body: json, Format: notifier.Text}, 0},
	} {
		r := httptest.NewRequest("POST", "/notify"+tt.query, strings.NewReader(tt.body))
		for name, value := range map[string]string{"Content-Type": tt.contentType, "Title": tt.title, "Subject": tt.subject} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		q, err := Read(httptest.NewRecorder(), r, message.Limits{MaxBody: 1 << 20})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m, err := q.Message()
		if err != nil || m.Title != tt.want.Title || m.Body != tt.want.Body || m.Format != tt.want.Format || len(q.warnings) != tt.warnings {
			t.Errorf("%s: got %+v, %v, warnings %v", name, m, err, q.warnings)
		}
		q.Close()
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
		"a picture":                 {"text/plain", "\xff\xd8\xff\xe0\x00\x10JFIF", 400, "the text is a file"},
		"too long":                  {"text/plain", "01234567890", 413, "larger"},
		"JSON without Content-Type": {typeForm, `{"body":1}`, 400, "Content-Type: application/json"},
		"empty HTML":                {"text/html", "", 400, "body is missing"},
		"blank, without a type":     {"", " ", 400, "body is missing"},
		"a type of none":            {"text", "x", 415, "text/plain"},
	} {
		got := post(g, "/notify", tt.contentType, tt.body)
		if got.status != tt.status || !strings.Contains(got.body, tt.text) {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
		}
	}
}

// TestFormatOfPlainText checks that the header with the format is read, and that a body with its
// own format keeps that.
func TestFormatOfPlainText(t *testing.T) {
	g := newGateway(t, nil)
	for contentType, want := range map[string]int{"text/plain": 400, "text/markdown": 200} {
		r := httptest.NewRequest("POST", "/notify/k", strings.NewReader("x"))
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("X-Apprise-Format", "rtf")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: status %d: %s", contentType, w.Code, w.Body)
		}
	}
}
