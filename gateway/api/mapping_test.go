package api

import (
	"errors"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

func TestMapping(t *testing.T) {
	g := newGateway(t, nil)
	type want struct{ title, body, kind string }
	for name, tt := range map[string]struct {
		query, contentType, body string
		want                     want
	}{
		"one": {":message=body", typeJSON, `{"message":"B"}`, want{"", "B", "info"}},
		"several": {
			":message=body&:subject=title&:level=type", typeJSON,
			`{"message":"B","subject":"S","level":"Warning"}`,
			want{"S", "B", "warning"},
		},
		"form":                             {":message=body", typeForm, "message=B", want{"", "B", "info"}},
		"it overwrites":                    {":message=body", typeJSON, `{"message":"M","body":"B"}`, want{"", "M", "info"}},
		"an absent source changes nothing": {":message=body", typeJSON, `{"body":"B"}`, want{"", "B", "info"}},
		"a source of null changes nothing": {":message=body", typeJSON, `{"message":null,"body":"B"}`, want{"", "B", "info"}},
		"one source for two":               {":m=body&:m=title", typeJSON, `{"m":"M"}`, want{"M", "M", "info"}},
		"in their order":                   {":m=body&:body=title&:n=body", typeJSON, `{"m":"M","n":"N"}`, want{"M", "N", "info"}},
		"two fields change places":         {":title=body", typeJSON, `{"title":"T","body":"B"}`, want{"B", "T", "info"}},
		"a field moves":                    {":title=body", typeJSON, `{"title":"T"}`, want{"", "T", "info"}},
		"a field to itself":                {":body=body", typeJSON, `{"body":"B"}`, want{"", "B", "info"}},
		"empty removes":                    {":title=", typeJSON, `{"title":"T","body":"B"}`, want{"", "B", "info"}},
		"constant": {
			":type=failure&:title=Hello+World", typeJSON, `{"title":"T","body":"B"}`,
			want{"Hello World", "B", "failure"},
		},
		"constant without a body":      {":body=ping", "", "", want{"", "ping", "info"}},
		"constant for an absent field": {":type=failure", typeForm, "body=B", want{"", "B", "failure"}},
		"a mapping takes precedence":   {":t=title&title=Q", typeJSON, `{"t":"T","body":"B"}`, want{"T", "B", "info"}},
		"number":                       {":n=body&:b=title", typeJSON, `{"n":12.50,"b":true}`, want{"true", "12.50", "info"}},
		"nested":                       {":a.b[1].c=body", typeJSON, `{"a":{"b":[0,{"c":"B"}]}}`, want{"", "B", "info"}},
		"nested in arrays":             {":a[1][0]=body", typeJSON, `{"a":[1,["B"]]}`, want{"", "B", "info"}},
		"nested null":                  {":a.b=body", typeJSON, `{"a":{"b":null},"body":"B"}`, want{"", "B", "info"}},
		"nested is copied":             {":a.b=body&:a.b=title", typeJSON, `{"a":{"b":"B"}}`, want{"B", "B", "info"}},
		"nested below a field":         {":body.text=body", typeJSON, `{"body":{"text":"B"}}`, want{"", "B", "info"}},
		"a key with a dot in its name": {":a.b=body", typeJSON, `{"a.b":"B","a":{"b":"other"}}`, want{"", "B", "info"}},
		"a form key with brackets":     {":data[0]=body", typeForm, "data[0]=B", want{"", "B", "info"}},
		"the last of two nested names": {":a.b=body", typeJSON, `{"a":{"b":"A","b":"B"}}`, want{"", "B", "info"}},
		"case counts":                  {":Body=body", typeJSON, `{"Body":"B","body":"x"}`, want{"", "B", "info"}},
		"sixteen steps": {
			":a" + strings.Repeat(".a", 15) + "=body", typeJSON,
			strings.Repeat(`{"a":`, 16) + `"B"` + strings.Repeat("}", 16),
			want{"", "B", "info"},
		},
		"a missing path is empty":          {":a.b=body", typeJSON, `{"body":"B"}`, want{"", "B", "info"}},
		"a missing member is empty":        {":a.b=title", typeJSON, `{"a":{},"body":"B"}`, want{"", "B", "info"}},
		"a missing element is empty":       {":a[1]=title", typeJSON, `{"a":[1],"body":"B"}`, want{"", "B", "info"}},
		"a member of an array is empty":    {":a.b=title", typeJSON, `{"a":[1],"body":"B"}`, want{"", "B", "info"}},
		"an element of an object is empty": {":a[0]=title", typeJSON, `{"a":{},"body":"B"}`, want{"", "B", "info"}},
		"a part of a text is empty":        {":a.b=title", typeJSON, `{"a":"x","body":"B"}`, want{"", "B", "info"}},
		"a part of a form's text is empty": {":a.b=title", typeForm, `a=1&body=B`, want{"", "B", "info"}},
		"the first that is not empty":      {":a=body&:b=body&:c=body", typeJSON, `{"a":" ","b":"B","c":"C"}`, want{"", "B", "info"}},
		"the first that exists":            {":x.y=title&:b=title&:c=title", typeJSON, `{"b":"B","c":"C","body":"x"}`, want{"B", "x", "info"}},
		"an empty source changes nothing":  {":a=body", typeJSON, `{"a":"","body":"B"}`, want{"", "B", "info"}},
		"a constant is the default":        {":type=warning&:s=type", typeJSON, `{"body":"B"}`, want{"", "B", "warning"}},
		"a constant before a source":       {":type=warning&:s=type", typeJSON, `{"s":"down","body":"B"}`, want{"", "B", "failure"}},
		"a word for a type":                {":s=type", typeJSON, `{"s":"FIRING","body":"B"}`, want{"", "B", "failure"}},
		"a word for success":               {":a.s=type", typeJSON, `{"a":{"s":"resolved"},"body":"B"}`, want{"", "B", "success"}},
		"a word for a warning":             {":s=type", typeForm, `s=Degraded&body=B`, want{"", "B", "warning"}},
		"an unknown word is info":          {":s=type", typeJSON, `{"s":"purple","body":"B"}`, want{"", "B", "info"}},
		"JSON in a text":                   {":event::json.title=body", typeJSON, `{"event":"{\"title\":\"B\"}"}`, want{"", "B", "info"}},
		"JSON in JSON in a text": {
			":event::json.info::json.title=body", typeJSON,
			`{"event":"{\"info\":\"{\\\"title\\\":\\\"B\\\"}\"}"}`,
			want{"", "B", "info"},
		},
		"a list in a text": {":items::json[1].value=body", typeJSON, `{"items":"[{},{\"value\":\"B\"}]"}`, want{"", "B", "info"}},
		"a text in a list": {
			":items[1]::json.value=body", typeJSON, `{"items":["x","{\"value\":\"B\"}"]}`,
			want{"", "B", "info"},
		},
		"a nested text":                {":a.b::json.c=body", typeJSON, `{"a":{"b":"{\"c\":\"B\"}"}}`, want{"", "B", "info"}},
		"JSON that is a text":          {":event::json=body", typeJSON, `{"event":"\"B\""}`, want{"", "B", "info"}},
		"JSON that is a number":        {":event::json=body", typeJSON, `{"event":" 12.5 "}`, want{"", "12.5", "info"}},
		"JSON that is no text already": {":event::json.title=body", typeJSON, `{"event":{"title":"B"}}`, want{"", "B", "info"}},
		"JSON in a form":               {":payload::json.text=body", typeForm, `payload=%7B%22text%22%3A%22B%22%7D`, want{"", "B", "info"}},
		"the mark in a name":           {":event::json=body", typeJSON, `{"event::json":"B","event":"\"x\""}`, want{"", "B", "info"}},
		"the mark in the name of a member": {
			":a.b::json.c=body", typeJSON, `{"a":{"b::json":{"c":"B"},"b":"{\"c\":\"x\"}"}}`,
			want{"", "B", "info"},
		},
		"a text without JSON is empty": {":event::json.title=body&:event=body", typeJSON, `{"event":"B"}`, want{"", "B", "info"}},
		"a part of JSON is empty": {
			":event::json.title=body&:x=body", typeJSON, `{"event":"{\"title\":","x":"B"}`,
			want{"", "B", "info"},
		},
		"JSON in an absent text":        {":event::json.title=title", typeJSON, `{"body":"B"}`, want{"", "B", "info"}},
		"an object under another field": {":x=attach", typeJSON, `{"body":"B","x":{"base64":"eA=="}}`, want{"", "B", "info"}},
	} {
		got := post(g, "/notify?"+escaped(tt.query), tt.contentType, tt.body)
		if got.status != 200 {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
			continue
		}
		a := g.one(t)
		if got := (want{a.title, a.body, a.typ}); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

// escaped escapes brackets, as clients must.
func escaped(query string) string { return strings.NewReplacer("[", "%5B", "]", "%5D").Replace(query) }

// TestMappingOfUnknownType checks that a word of the source that is not a type
// causes a warning, and a constant that is not a type an error.
func TestMappingOfUnknownType(t *testing.T) {
	g := newGateway(t, nil)
	for _, path := range []string{"/notify", "/notify/k"} {
		got := post(g, path+"?:s=type", typeJSON, `{"s":"purple","body":"B"}`)
		if got.status != 200 || !strings.Contains(got.body, `The type \"purple\" is unknown`) &&
			!strings.Contains(got.body, `The type "purple" is unknown`) {
			t.Errorf("%s: status %d: %s", path, got.status, got.body)
		}
	}
	for _, query := range []string{"type=firing", ":type=firing"} {
		if got := post(g, "/notify?"+query, typeJSON, `{"body":"B"}`); got.status != 400 {
			t.Errorf("%s: status %d: %s", query, got.status, got.body)
		}
	}
}

func TestMappingOfTagsAndURLs(t *testing.T) {
	g := newGateway(t, func(g *gateway) {
		g.targets = []notifier.Target{target(t, "json://a", "a"), target(t, "json://b", "b")}
	})
	for _, tt := range []struct{ target, body, urls string }{
		{"/notify/k?:team=tag", `{"body":"x","team":"a"}`, "json://a"},
		{"/notify/k?:team=tags", `{"body":"x","team":["a","b"]}`, "json://a json://b"},
		{"/notify/k?:tag=b", `{"body":"x","tag":"a"}`, "json://b"},
		{"/notify?:to=urls", `{"body":"x","to":["json://c"]}`, "json://c"},
		{"/notify/k?:to=urls", `{"body":"x","to":["nonsense"]}`, "json://a json://b"}, // a key ignores URLs
	} {
		if got := post(g, tt.target, typeJSON, tt.body); got.status != 200 {
			t.Errorf("%s: status %d: %s", tt.target, got.status, got.body)
		}
		if urls := g.one(t).urls; urls != tt.urls {
			t.Errorf("%s: sent to %q, want %q", tt.target, urls, tt.urls)
		}
	}
}

func TestBadMappings(t *testing.T) {
	g := newGateway(t, nil)
	deep := strings.Repeat(".a", maxSteps)
	for name, tt := range map[string]struct{ query, body, source string }{
		"unknown target":           {":m=message", `{"m":"x","body":"B"}`, "m"},
		"an object in a text":      {":m::json=body", `{"m":"{\"a\":1}"}`, "m::json"},
		"a list in a text":         {":m::json=title", `{"m":"[1]","body":"B"}`, "m::json"},
		"removing JSON in a text":  {":m::json=", `{"m":"{}","body":"B"}`, "m::json"},
		"a constant for JSON":      {":m::json=failure", `{"m":"{}","body":"B"}`, "m::json"},
		"target in another case":   {":m=Body", `{"m":"x","body":"B"}`, "m"},
		"no source":                {":=body", `{"body":"B"}`, ""},
		"nested to constant":       {":body.x=failure", `{"body":"B"}`, "body.x"},
		"nested removal":           {":a.b=", `{"a":{"b":1},"body":"B"}`, "a.b"},
		"negative element":         {":a[-1]=title", `{"a":[1],"body":"B"}`, "a[-1]"},
		"element without a number": {":a[x]=title", `{"a":[1],"body":"B"}`, "a[x]"},
		"huge element":             {":a[99999999999]=title", `{"a":[1],"body":"B"}`, "a[99999999999]"},
		"open bracket":             {":a[0=title", `{"a":[1],"body":"B"}`, "a[0"},
		"closing bracket":          {":a]=title", `{"a":[1],"body":"B"}`, "a]"},
		"text behind a bracket":    {":a[0]b=title", `{"a":[1],"body":"B"}`, "a[0]b"},
		"empty step":               {":a..b=title", `{"a":{},"body":"B"}`, "a..b"},
		"dot at the end":           {":a.=title", `{"a":{},"body":"B"}`, "a."},
		"element of the payload":   {":[0]=title", `{"body":"B"}`, "[0]"},
		"too many steps":           {":a" + deep + "=title", `{"body":"B"}`, "a" + deep},
		"object for a body":        {":o=body", `{"o":{"a":1}}`, "o"},
		"array for a title":        {":o=title", `{"o":[1],"body":"B"}`, "o"},
		"object swapped into body": {":title=body", `{"title":"T","body":{}}`, "title"},
		"too many":                 {strings.Repeat(":m=body&", maxMappings+1), `{"m":"x"}`, ""},
	} {
		got := post(g, "/notify?"+escaped(tt.query), typeJSON, tt.body)
		if got.status != 400 {
			t.Errorf("%s: status %d, want 400: %s", name, got.status, got.body)
		}
		if !strings.Contains(got.body, `{"error":"`) || tt.source != "" && !strings.Contains(got.body, "the mapping ?:"+tt.source+":") {
			t.Errorf("%s: the error does not name the mapping: %s", name, got.body)
		}
		if n := len(g.take()); n != 0 {
			t.Errorf("%s: %d messages were sent", name, n)
		}
	}
}

// TestMappingWork checks that expensive mappings are refused.
func TestMappingWork(t *testing.T) {
	g := newGateway(t, nil)
	var mappings strings.Builder
	for range maxMappings {
		mappings.WriteString(":a[0].b=title&")
	}
	body := `{"body":"x","a":[{"b":"` + strings.Repeat("x", 2<<20) + `"}]}`
	got := post(g, "/notify?"+escaped(mappings.String()), typeJSON, body)
	if got.status != 400 || !strings.Contains(got.body, "too much JSON") {
		t.Errorf("status %d: %.200s", got.status, got.body)
	}
	// Values that are not JSON cost as much.
	body = `{"body":"x","a":"` + strings.Repeat("[", 2<<20) + `"}`
	got = post(g, "/notify?"+strings.Repeat(":a::json=title&", maxMappings), typeJSON, body)
	if got.status != 400 || !strings.Contains(got.body, "too much JSON") {
		t.Errorf("JSON in a text: status %d: %.200s", got.status, got.body)
	}
}

func FuzzMapping(f *testing.F) {
	for _, seed := range [][3]string{
		{"a.b[0].c", "body", `{"a":{"b":[{"c":"x"}]}}`},
		{"type", "failure", `{"body":"x"}`},
		{"title", "body", `{"title":1,"body":"x"}`},
		{"a", "", `{}`},
		{"[0]", "attach", `[]`},
		{"a::json[0]::json.b", "body", `{"a":"[\"{\\\"b\\\":1}\"]"}`},
		{"a[", "urls", `{"a":[`},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, source, target, text string) {
		m, err := newMapping(source, target)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Errorf("%v is not an Error", err)
			}
			return
		}
		if len(m.path) == 0 || len(m.path) > maxSteps {
			t.Errorf("%q has %d steps", source, len(m.path))
		}
		fields, err := readJSON([]byte(text))
		if err != nil {
			return
		}
		c := content{fields: fields}
		if err := c.applyMappings([]mapping{m}); err != nil {
			if e, ok := errors.AsType[*Error](err); !ok || e.Status != 400 {
				t.Errorf("%v is not a 400", err)
			}
			return
		}
		if target == "" && !c.fields[source].absent() {
			t.Errorf("%q was not removed", source)
		}
	})
}
