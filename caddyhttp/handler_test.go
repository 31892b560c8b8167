package caddyhttp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

func TestRoutes(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, "key ops {\nurl "+s.url("/ops")+"\n}\ndefault_urls "+s.url("/default"), "")
	for _, tt := range []struct {
		method, path string
		want         int
		arrives      string
	}{
		{"POST", "/notify", 200, "default"},
		{"POST", "/notify/", 200, "default"},
		{"POST", "/notify/ops", 200, "ops"},
		{"POST", "/notify/ops/", 200, "ops"},
		{"POST", "/notify/OPS", 404, ""},
		{"POST", "/notify/other", 404, ""},
		{"POST", "/notify/o.ps", 404, ""},
		{"POST", "/notify/" + strings.Repeat("k", 129), 404, ""},
		{"POST", "/notify//", nextStatus, ""},
		{"POST", "/notify/ops//", nextStatus, ""},
		{"POST", "/notify/ops/more", nextStatus, ""},
		{"POST", "/notifyops", nextStatus, ""},
		{"POST", "/Notify", nextStatus, ""},
		{"POST", "/", nextStatus, ""},
		{"GET", "/", nextStatus, ""},
		{"GET", "/notify", 405, ""},
		{"PUT", "/notify/ops", 405, ""},
		{"HEAD", "/notify/ops/", 405, ""},
		{"OPTIONS", "/notify", 405, ""},
	} {
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader("body=hello"))
		r.Header.Set("Content-Type", typeForm)
		got := do(t, h, r)
		if got.status != tt.want {
			t.Errorf("%s %s: status %d, want %d", tt.method, tt.path, got.status, tt.want)
		}
		if allow := got.header.Get("Allow"); (allow == "GET, HEAD, POST") != (tt.want == 405) {
			t.Errorf("%s %s: Allow %q", tt.method, tt.path, allow)
		}
		if paths := s.paths(); paths != tt.arrives {
			t.Errorf("%s %s: messages at %q, want %q", tt.method, tt.path, paths, tt.arrives)
		}
	}
}

func TestFields(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, "default_urls "+s.url("/"), "")
	type want struct{ title, body, kind string }
	for name, tt := range map[string]struct {
		target, contentType, body string
		want                      want
	}{
		"JSON":                       {"/notify", typeJSON, `{"title":"T","body":"B","type":"warning"}`, want{"T", "B", "warning"}},
		"JSON with charset":          {"/notify", typeJSON + "; charset=utf-8", `{"body":"B"}`, want{"", "B", "info"}},
		"JSON by its other names":    {"/notify", "text/json", `{"body":"B"}`, want{"", "B", "info"}},
		"JSON by its x- names":       {"/notify", "application/x-json", `{"body":"B"}`, want{"", "B", "info"}},
		"JSON by suffix":             {"/notify", "application/ld+json", `{"body":"B"}`, want{"", "B", "info"}},
		"form":                       {"/notify", typeForm, "title=T&body=B+C%21&type=failure", want{"T", "B C!", "failure"}},
		"form without escapes":       {"/notify", typeForm, "body=91% full; act now", want{"", "91% full; act now", "info"}},
		"type in upper case":         {"/notify", typeJSON, `{"body":"B","type":"SUCCESS"}`, want{"", "B", "success"}},
		"null is absent":             {"/notify?title=Q", typeJSON, `{"body":"B","title":null,"type":null,"format":null}`, want{"Q", "B", "info"}},
		"unknown fields are ignored": {"/notify?x=y", typeJSON, `{"body":"B","x":{"y":[1]}}`, want{"", "B", "info"}},
		"query":                      {"/notify?title=T&type=success&format=html", typeForm, "body=B", want{"T", "B", "success"}},
		"the payload wins":           {"/notify?title=Q&type=success", typeJSON, `{"body":"B","title":"P","type":"failure"}`, want{"P", "B", "failure"}},
		"an empty field is absent":   {"/notify?title=Q", typeForm, "body=B&title=", want{"Q", "B", "info"}},
		"the last of two counts":     {"/notify", typeForm, "body=A&body=B", want{"", "B", "info"}},
		"a title of several lines":   {"/notify", typeJSON, `{"body":"B","title":"T\r\nU\nV\n"}`, want{"T U V", "B", "info"}},
		"a form that begins with {":  {"/notify", typeForm, "{a=1&body=B", want{"", "B", "info"}},
		"the last JSON field counts": {"/notify", typeJSON, `{"body":"A","body":"B"}`, want{"", "B", "info"}},
	} {
		if got := post(t, h, tt.target, tt.contentType, tt.body); got.status != 200 {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
			continue
		}
		a := s.one(t)
		if got := (want{a.Title, a.Message, a.Type}); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestFormat(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, "default_urls "+s.url("/?format=html"), "")
	for _, tt := range []struct{ target, body, want string }{
		{"/notify", `{"body":"<b>&"}`, "&lt;b&gt;&amp;"},
		{"/notify", `{"body":"<b>x</b>","format":"HTML"}`, "<b>x</b>"},
		{"/notify?format=html", `{"body":"<b>x</b>"}`, "<b>x</b>"},
		{"/notify", `{"body":"**x**","format":"markdown"}`, "<p><strong>x</strong></p>"},
	} {
		if got := post(t, h, tt.target, typeJSON, tt.body); got.status != 200 {
			t.Errorf("%s: %s", tt.body, got.body)
			continue
		}
		if got := strings.TrimSpace(s.one(t).Message); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.target, tt.body, got, tt.want)
		}
	}
}

// A bad request gets a status, and an error that names what is wrong, and
// nothing is sent.
func TestBadRequests(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, "default_urls "+s.url("/")+"\nmax_body 1KiB\nkey ops {\nurl "+s.url("/ops")+" a\n}", "")
	for name, tt := range map[string]struct {
		target, contentType, body string
		status                    int
		text                      string
	}{
		"broken JSON":         {"/notify", typeJSON, `{"body":"x"`, 400, "too early"},
		"broken JSON value":   {"/notify", typeJSON, `{"body":x}`, 400, "the JSON is invalid: at byte 8"},
		"JSON with more":      {"/notify", typeJSON, `{"body":"x"} {}`, 400, "something follows"},
		"JSON array":          {"/notify", typeJSON, `["body"]`, 400, "must be an object"},
		"broken JSON array":   {"/notify", typeJSON, `[1,`, 400, "must be an object"},
		"JSON string":         {"/notify", typeJSON, `"body"`, 400, "must be an object"},
		"JSON null":           {"/notify", typeJSON, `null`, 400, "must be an object"},
		"JSON of spaces":      {"/notify", typeJSON, ` `, 400, "too early"},
		"JSON too deep":       {"/notify", typeJSON, `{"body":` + strings.Repeat("[", 900), 400, "too early"},
		"JSON no UTF-8":       {"/notify", typeJSON, "{\"body\":\"\xff\"}", 400, "UTF-8"},
		"form no UTF-8":       {"/notify", typeForm, "body=%ff", 400, "UTF-8"},
		"query no UTF-8":      {"/notify?title=%ff", typeForm, "body=x", 400, "UTF-8"},
		"body is a number":    {"/notify", typeJSON, `{"body":5}`, 400, "the field body is a number"},
		"title is an array":   {"/notify", typeJSON, `{"body":"x","title":["y"]}`, 400, "the field title is an array"},
		"type is a boolean":   {"/notify", typeJSON, `{"body":"x","type":true}`, 400, "the field type is a boolean"},
		"format is an object": {"/notify", typeJSON, `{"body":"x","format":{}}`, 400, "the field format is an object"},
		"urls is a number":    {"/notify", typeJSON, `{"body":"x","urls":1}`, 400, "the field urls is a number"},
		"urls holds a number": {"/notify", typeJSON, `{"body":"x","urls":["json://h",1]}`, 400, "the field urls[1] is a number"},
		"attach is a number":  {"/notify", typeJSON, `{"body":"x","attach":1}`, 400, "the field attach is a number"},
		"attach holds null":   {"/notify", typeJSON, `{"body":"x","attachments":[null]}`, 400, "the field attachments[0] is null"},
		"unknown type":        {"/notify", typeJSON, `{"body":"x","type":"critical"}`, 400, "type"},
		"unknown format":      {"/notify", typeForm, `body=x&format=rtf`, 400, "format"},
		"unknown query type":  {"/notify?type=critical", typeForm, `body=x`, 400, "type"},
		"no body":             {"/notify", typeJSON, `{"title":"x"}`, 400, "the field body is missing"},
		"body of spaces":      {"/notify", typeForm, `body=+%0a`, 400, "the field body is missing"},
		"no body but a query": {"/notify?body=x&title=y", "", "", 400, "the field body is missing"},
		"empty":               {"/notify", typeJSON, "", 400, "the field body is missing"},
		"tag of $":            {"/notify/ops", typeForm, "body=x&tag=$", 400, "the field tag"},
		"tag of a:b":          {"/notify/ops", typeForm, "body=x&tag=a:b", 400, "the field tag"},
		"tag of -a":           {"/notify/ops?tags=-a", typeForm, "body=x", 400, "the field tags"},
		"tag is a number":     {"/notify/ops", typeJSON, `{"body":"x","tag":5}`, 400, "the field tag"},
		"tag is an object":    {"/notify/ops", typeJSON, `{"body":"x","tags":{}}`, 400, "the field tags"},
		"tag holds a number":  {"/notify/ops", typeJSON, `{"body":"x","tag":["a",5]}`, 400, "the field tag"},
		"tag of no use":       {"/notify", typeJSON, `{"body":"x","tag":5}`, 400, "the field tag"},
		"tags of no use":      {"/notify", typeJSON, `{"body":"x","tags":["a",["b",{}]]}`, 400, "the field tags"},
		"null among tags":     {"/notify", typeJSON, `{"body":"x","tags":[null]}`, 400, "the field tags"},
		"urls, what they are": {"/notify", typeJSON, `{"body":"x","urls":5}`, 400, "it must be a string or an array of strings"},
		"attach, what it is":  {"/notify", typeJSON, `{"body":"x","attach":5}`, 400, "it must be a string, an object, or an array of strings and objects"},
		"JSON as a form":      {"/notify/ops", typeForm, ` {"body":"x"}`, 400, "Content-Type: application/json"},
		"an array as a form":  {"/notify", typeForm, `[{"body":"x"}]`, 400, "Content-Type: application/json"},
		"urls on a key":       {"/notify/ops", typeJSON, `{"body":"x","urls":5}`, 400, "the field urls"},
		"another media type":  {"/notify", "text/plain", "hello", 415, "Content-Type"},
		"no media type":       {"/notify", "", "body=x", 415, "Content-Type"},
		"broken media type":   {"/notify", "json", `{"body":"x"}`, 415, "Content-Type"},
		"JSON too large":      {"/notify", typeJSON, `{"body":"` + strings.Repeat("x", 1024) + `"}`, 413, "1.0 KiB"},
		"form too large":      {"/notify", typeForm, "body=" + strings.Repeat("x", 1024), 413, "1.0 KiB"},
	} {
		got := post(t, h, tt.target, tt.contentType, tt.body)
		if got.status != tt.status {
			t.Errorf("%s: status %d, want %d: %s", name, got.status, tt.status, got.body)
		}
		a := got.json(t)
		if a.Error == nil || !strings.Contains(*a.Error, tt.text) {
			t.Errorf("%s: the error does not say %q: %s", name, tt.text, got.body)
		}
		if !strings.Contains(got.body, `"details":[]`) || !strings.Contains(got.body, `"results":[]`) {
			t.Errorf("%s: details and results must be empty arrays: %s", name, got.body)
		}
		if sent := s.take(); len(sent) != 0 {
			t.Errorf("%s: %d messages were sent", name, len(sent))
		}
	}
}

func TestTooManyFields(t *testing.T) {
	h := newGateway(t, "", "")
	var object, form strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&object, `"f%d":1,`, i)
		fmt.Fprintf(&form, "f%d=1&", i)
	}
	for contentType, body := range map[string]string{typeJSON: "{" + object.String() + `"body":"x"}`, typeForm: form.String()} {
		if got := post(t, h, "/notify", contentType, body); got.status != 400 || !strings.Contains(got.body, "more than 1000 fields") {
			t.Errorf("%s: %d %s", contentType, got.status, got.body)
		}
	}
	if got := post(t, h, "/notify?"+form.String(), typeForm, "body=x"); got.status != 400 {
		t.Errorf("query: status %d", got.status)
	}
}

// A body without a length is read like any other, also when it is too large,
// and one without a type is refused only if there is one.
func TestChunkedBody(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, "default_urls "+s.url("/")+"\nmax_body 1KiB", "")
	for _, tt := range []struct {
		contentType, body string
		want              int
	}{
		{typeJSON, `{"body":"x"}`, 200},
		{typeJSON, `{"body":"` + strings.Repeat("x", 1024) + `"}`, 413},
		{"text/plain", "x", 415},
		{"text/plain", "", 400},
	} {
		r := httptest.NewRequest(http.MethodPost, "/notify", strings.NewReader(tt.body))
		r.ContentLength = -1
		r.Header.Set("Content-Type", tt.contentType)
		if got := do(t, h, r); got.status != tt.want {
			t.Errorf("%s %.20s: status %d, want %d: %s", tt.contentType, tt.body, got.status, tt.want, got.body)
		}
	}
}

// A client that is cut off because it sends too slowly learns why.
func TestSlowBody(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, "default_urls "+s.url("/"), "")
	for contentType, begin := range map[string]string{
		typeJSON:                           `{"body":`,
		typeForm:                           "body=x",
		"multipart/form-data; boundary=b":  "--b\r\nContent-Disposition: form-data; name=\"body\"\r\n\r\nx",
		"multipart/form-data; boundary=bb": "--bb\r\nContent-Disposition: form-data; name=\"attach\"; filename=\"a\"\r\n\r\nx",
		"multipart/form-data; boundary=b3": "--b",
	} {
		r := httptest.NewRequest(http.MethodPost, "/notify", io.MultiReader(strings.NewReader(begin), iotest.ErrReader(os.ErrDeadlineExceeded)))
		r.Header.Set("Content-Type", contentType)
		if got := do(t, h, r); got.status != 408 || !strings.Contains(got.body, "too long to arrive") || len(s.take()) > 0 {
			t.Errorf("%s: status %d: %s", contentType, got.status, got.body)
		}
	}
}

func TestCompressedBody(t *testing.T) {
	h := newGateway(t, "", "")
	r := httptest.NewRequest(http.MethodPost, "/notify", strings.NewReader("\x1f\x8b"))
	r.Header.Set("Content-Type", typeJSON)
	r.Header.Set("Content-Encoding", "gzip")
	if got := do(t, h, r); got.status != 415 || !strings.Contains(got.body, "compressed") {
		t.Errorf("status %d: %s", got.status, got.body)
	}
}

func TestURLs(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, open, "")
	a, b := s.url("/a"), s.url("/b")
	object := func(urls any) string {
		text, err := json.Marshal(map[string]any{"body": "x", "urls": urls})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, tt := range map[string]struct {
		contentType, body string
		status            int
		arrives           string
	}{
		"string":                       {typeJSON, object(a), 200, "a"},
		"comma":                        {typeJSON, object(a + "," + b), 200, "a b"},
		"comma and space":              {typeJSON, object(a + " , " + b + ","), 200, "a b"},
		"lines":                        {typeJSON, object(a + "\n" + b), 200, "a b"},
		"a comma within":               {typeJSON, object(a + ",x"), 200, "a,x"},
		"array":                        {typeJSON, object([]string{a, b}), 200, "a b"},
		"array with empty texts":       {typeJSON, object([]string{"", a, " "}), 200, "a"},
		"form":                         {typeForm, "body=x&urls=" + a, 200, "a"},
		"form repeated":                {typeForm, "body=x&urls=" + a + "&urls=" + b, 200, "a b"},
		"one is unusable":              {typeJSON, object([]string{a, "nonsense://x", b}), 424, "a b"},
		"none is usable":               {typeJSON, object([]string{"nonsense://x"}), 400, ""},
		"no URL at all":                {typeJSON, object("nonsense"), 400, ""},
		"none given":                   {typeJSON, object(nil), 400, ""},
		"an empty list":                {typeJSON, object([]string{}), 400, ""},
		"too many":                     {typeJSON, object(strings.Repeat(a+" ", 1001)), 400, ""},
		"a tag means nothing":          {typeJSON, `{"body":"x","tag":["$",["-"]],"urls":"` + a + `"}`, 200, "a"},
		"a destination that refuses":   {typeJSON, object([]string{a, s.url("/refuse")}), 424, "a refuse"},
		"an optional one that refuses": {typeJSON, object([]string{a, s.url("/refuse?optional=yes")}), 200, "a refuse"},
	} {
		got := post(t, h, "/notify", tt.contentType, tt.body)
		if got.status != tt.status {
			t.Errorf("%s: status %d, want %d: %s", name, got.status, tt.status, got.body)
		}
		if paths := s.paths(); paths != tt.arrives {
			t.Errorf("%s: messages at %q, want %q", name, paths, tt.arrives)
		}
	}
}

func TestDefaultURLs(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, open+"default_urls "+s.url("/one")+" "+s.url("/two"), "")
	for _, tt := range []struct {
		body, arrives string
		status        int
	}{
		{`{"body":"x"}`, "one two", 200},
		{`{"body":"x","urls":""}`, "one two", 200},
		{`{"body":"x","urls":"` + s.url("/mine") + `"}`, "mine", 200},
		{`{"body":"x","urls":"nonsense://x"}`, "", 400},
	} {
		if got := post(t, h, "/notify", typeJSON, tt.body); got.status != tt.status {
			t.Errorf("%s: status %d: %s", tt.body, got.status, got.body)
		}
		if paths := s.paths(); paths != tt.arrives {
			t.Errorf("%s: messages at %q, want %q", tt.body, paths, tt.arrives)
		}
	}
}

func TestStatelessOff(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, "stateless off\nkey ops {\nurl "+s.url("/ops")+"\n}", "")
	for path, want := range map[string]int{"/notify": 403, "/notify/": 403, "/notify/ops": 200} {
		if got := post(t, h, path, typeForm, "body=x&urls="+s.url("/x")); got.status != want {
			t.Errorf("%s: status %d, want %d", path, got.status, want)
		}
	}
	if paths := s.paths(); paths != "ops" {
		t.Errorf("messages at %q", paths)
	}
}

func TestTags(t *testing.T) {
	s := newStation(t)
	urls := "url " + s.url("/a") + " a\nurl " + s.url("/ab") + " A b\nurl " + s.url("/always") + " c Always\nurl " + s.url("/none") + "\n"
	gateways := map[string]*Handler{
		"no default":   newGateway(t, "key k {\n"+urls+"}", ""),
		"a,c":          newGateway(t, "key k {\n"+urls+"default_tag a,c\n}", ""),
		"untagged":     newGateway(t, "key k {\n"+urls+"default_tag untagged\n}", ""),
		"never always": newGateway(t, "key k {\nurl "+s.url("/a")+" a\n}", ""),
	}
	for _, tt := range []struct {
		gateway, query, contentType, body string
		arrives                           string
	}{
		{"no default", "", typeForm, "body=x", "a ab always none"},
		{"no default", "", typeForm, "body=x&tag=", "a ab always none"},
		{"no default", "", typeForm, "body=x&tag=,", "a ab always none"},
		{"no default", "", typeForm, "body=x&tag=a", "a ab always"},
		{"no default", "", typeForm, "body=x&tags=A", "a ab always"},
		{"no default", "", typeForm, "body=x&tag=&tags=a", "a ab always"},
		{"no default", "", typeForm, "body=x&tag=b&tags=a", "ab always"},
		{"no default", "", typeForm, "body=x&tag=a+b", "ab always"},
		{"no default", "", typeForm, "body=x&tag=a%2Bb", "ab always"},
		{"no default", "", typeForm, "body=x&tag=a%26b", "ab always"},
		{"no default", "", typeForm, "body=x&tag=b&tag=c", "ab always"},
		{"no default", "", typeForm, "body=x&tag=a&tag=b", "a ab always"},
		{"no default", "", typeForm, "body=x&tag=all", "a ab always none"},
		{"no default", "", typeForm, "body=x&tag=z", "always"},
		{"no default", "?tag=b", typeForm, "body=x", "ab always"},
		{"no default", "?tags=b", typeForm, "body=x", "ab always"},
		{"no default", "?tag=b", typeForm, "body=x&tag=a", "a ab always"},
		{"no default", "?tag=a&tag=b", typeForm, "body=x", "a ab always"},
		{"no default", "", typeJSON, `{"body":"x","tag":"a|b"}`, "a ab always"},
		{"no default", "", typeJSON, `{"body":"x","tag":["a","b"]}`, "a ab always"},
		{"no default", "", typeJSON, `{"body":"x","tag":[["a","b"]]}`, "ab always"},
		{"no default", "", typeJSON, `{"body":"x","tags":["a b"]}`, "ab always"},
		{"no default", "?tag=b", typeJSON, `{"body":"x","tag":null}`, "ab always"},
		{"a,c", "", typeForm, "body=x", "a ab always"},
		{"a,c", "", typeForm, "body=x&tag=b", "ab always"},
		{"untagged", "", typeForm, "body=x", "none"},
		{"untagged", "", typeForm, "body=x&tag=all", "a ab always none"},
		{"never always", "", typeForm, "body=x&tag=z", ""},
	} {
		got := post(t, gateways[tt.gateway], "/notify/k"+tt.query, tt.contentType, tt.body)
		if paths := s.paths(); paths != tt.arrives {
			t.Errorf("%s %s %s: messages at %q, want %q", tt.gateway, tt.query, tt.body, paths, tt.arrives)
		}
		want := 200
		if tt.arrives == "" {
			want = 424
		}
		if got.status != want {
			t.Errorf("%s %s %s: status %d, want %d: %s", tt.gateway, tt.query, tt.body, got.status, want, got.body)
		}
	}
	if got := post(t, gateways["never always"], "/notify/k", typeForm, "body=x&tag=z"); !strings.Contains(got.body, "tag") {
		t.Errorf("the error does not speak of the tag: %s", got.body)
	}
}

// The keys of the app are everybody's; the site's own win. What a site does
// not set, it has from the app.
func TestGlobalSettings(t *testing.T) {
	s := newStation(t)
	global := "key ops {\nurl " + s.url("/app/ops") + "\n}\nkey dev {\nurl " + s.url("/app/dev") + "\n}\nstateless off\nmax_body 100B\n"
	inherits := newGateway(t, "", global)
	own := newGateway(t, "key ops {\nurl "+s.url("/site/ops")+"\n}\nstateless on\nmax_body 1KiB\ndefault_urls "+s.url("/d"), global)
	long := strings.Repeat("x", 200)
	for _, tt := range []struct {
		h          *Handler
		path, body string
		status     int
		arrives    string
	}{
		{inherits, "/notify/ops", "x", 200, "app/ops"},
		{inherits, "/notify/dev", "x", 200, "app/dev"},
		{inherits, "/notify/dev", long, 413, ""},
		{inherits, "/notify", "x", 403, ""},
		{own, "/notify/ops", "x", 200, "site/ops"},
		{own, "/notify/dev", "x", 200, "app/dev"},
		{own, "/notify/dev", long, 200, "app/dev"},
		{own, "/notify", "x", 200, "d"},
	} {
		if got := post(t, tt.h, tt.path, typeForm, "body="+tt.body); got.status != tt.status {
			t.Errorf("%s: status %d, want %d: %s", tt.path, got.status, tt.status, got.body)
		}
		if paths := s.paths(); paths != tt.arrives {
			t.Errorf("%s: messages at %q, want %q", tt.path, paths, tt.arrives)
		}
	}
}

func TestServices(t *testing.T) {
	s := newStation(t)
	for _, tt := range []struct {
		services string
		usable   bool
	}{
		{"allow json", true},
		{"allow jsons", true}, // any schema of a service stands for all
		{"allow JSON xml", true},
		{"allow xml", false},
		{"deny xml", true},
		{"deny jsons", false},
		{"allow json xml\ndeny json", false},
	} {
		h := newGateway(t, open+"services {\n"+tt.services+"\n}", "")
		want := map[bool]int{true: 200, false: 400}[tt.usable]
		if got := post(t, h, "/notify", typeForm, "body=x&urls="+s.url("/a")); got.status != want {
			t.Errorf("%s: a client's URL: status %d, want %d: %s", tt.services, got.status, want, got.body)
		}
		_, err := provision(t, "services {\n"+tt.services+"\n}\nkey k {\nurl "+s.url("/a")+"\n}", "")
		if (err == nil) != tt.usable {
			t.Errorf("%s: a key's URL: error %v", tt.services, err)
		}
		_, err = provision(t, "key k {\nurl "+s.url("/a")+"\n}", "services {\n"+tt.services+"\n}")
		if (err == nil) != tt.usable {
			t.Errorf("%s of the app: a key's URL: error %v", tt.services, err)
		}
	}
	h := newGateway(t, open+"services {\ndeny xml\n}", "")
	got := post(t, h, "/notify", typeForm, "body=x&urls="+s.url("/a")+",xml://127.0.0.1:1/b")
	if got.status != 424 || !strings.Contains(got.body, "the service XML may not be used here") {
		t.Errorf("one of two denied: status %d: %s", got.status, got.body)
	}
}

func TestHops(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, "default_urls "+s.url("/"), "")
	for value, want := range map[string]int{
		"0": 200, "1": 200, "01": 200, " 1 ": 200,
		"2": 508, "99999999999999999999999": 508,
		"": 400, "-1": 400, "+1": 400, "1.0": 400, "x": 400,
	} {
		r := httptest.NewRequest(http.MethodPost, "/notify", strings.NewReader("body=x"))
		r.Header.Set("Content-Type", typeForm)
		r.Header.Set("X-Apprise-Recursion-Count", value)
		if got := do(t, h, r); got.status != want {
			t.Errorf("%q: status %d, want %d", value, got.status, want)
		}
		if sent := len(s.take()); (sent == 1) != (want == 200) {
			t.Errorf("%q: %d messages", value, sent)
		}
	}
}

// A gateway that sends to another one, and so on, comes to an end, whatever the
// service: here each gateway is the next one's destination, and a client has
// brought the URL that leads there.
func TestHopsOfAnyService(t *testing.T) {
	var address string
	seen := 0
	next := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen++
		h := newGateway(t, open, "")
		form := "body=x&urls=form://" + address + "/?%252BUser-Agent=other"
		out := httptest.NewRequest(http.MethodPost, "/notify", strings.NewReader(form))
		out.Header = http.Header{"Content-Type": {typeForm}, "User-Agent": r.Header["User-Agent"]}
		got := do(t, h, out)
		w.WriteHeader(got.status)
	}))
	defer next.Close()
	address = strings.TrimPrefix(next.URL, "http://")
	resp, err := http.Post(next.URL, typeForm, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if seen != 3 || resp.StatusCode != http.StatusFailedDependency {
		t.Errorf("%d gateways had it; status %d", seen, resp.StatusCode)
	}
}

// A gateway behind this one is told how many gateways the message has passed.
func TestHopsAreCounted(t *testing.T) {
	seen := make(chan string, 1)
	peer := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("X-Apprise-Recursion-Count")
	}))
	defer peer.Close()
	h := newGateway(t, "key k {\nurl apprise://"+strings.TrimPrefix(peer.URL, "http://")+"/key\n}", "")
	r := httptest.NewRequest(http.MethodPost, "/notify/k", strings.NewReader("body=x"))
	r.Header.Set("Content-Type", typeForm)
	r.Header.Set("X-Apprise-Recursion-Count", "1")
	if got := do(t, h, r); got.status != 200 {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	if n := <-seen; n != "2" {
		t.Errorf("the next gateway was told %q, want 2", n)
	}
}
