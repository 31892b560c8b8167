package caddyhttp

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// TestKeyURLJSON checks that a URL is always written as an object, and read from both forms.
func TestKeyURLJSON(t *testing.T) {
	for text, want := range map[string]struct {
		url     KeyURL
		written string // "" for text itself
	}{
		`{"url":"json://host"}`:                             {url: KeyURL{URL: "json://host"}},
		`{"url":"json://host","dir":"/etc","tags":["ops"]}`: {url: KeyURL{URL: "json://host", Dir: "/etc", Tags: []string{"ops"}}},
		`{"url":"ops=json://host"}`:                         {url: KeyURL{URL: "ops=json://host"}},
		`{"url":"json://host","tags":["a b"]}`:              {url: KeyURL{URL: "json://host", Tags: []string{"a b"}}},
		`"json://host/a?b=c"`:                               {KeyURL{URL: "json://host/a?b=c"}, `{"url":"json://host/a?b=c"}`},
		`"json://host/\"ä\\"`:                               {KeyURL{URL: `json://host/"ä\`}, `{"url":"json://host/\"ä\\"}`},
		`""`:                                                {KeyURL{}, `{}`},
		`"ops=json://host"`: {
			KeyURL{URL: "json://host", Tags: []string{"ops"}},
			`{"url":"json://host","tags":["ops"]}`,
		},
		`"ops,2:on-call_1=json://host/?a=b"`: {
			KeyURL{URL: "json://host/?a=b", Tags: []string{"ops", "2:on-call_1"}},
			`{"url":"json://host/?a=b","tags":["ops","2:on-call_1"]}`,
		},
		`"ops={env.A}="`: {KeyURL{URL: "{env.A}=", Tags: []string{"ops"}}, `{"url":"{env.A}=","tags":["ops"]}`},
	} {
		var got KeyURL
		if err := caddy.StrictUnmarshalJSON([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want.url) {
			t.Errorf("%s becomes %+v, %v", text, got, err)
		}
		if written, err := json.Marshal(got); err != nil || string(written) != cmp.Or(want.written, text) {
			t.Errorf("%s is written as %s, %v", text, written, err)
		}
	}
	for text, want := range map[string]string{
		`{"url":"json://host","tag":"ops"}`: "unknown field",
		`5`:                                 "cannot unmarshal number",
		`["json://host"]`:                   "cannot unmarshal array",
	} {
		if err := json.Unmarshal([]byte(text), new(KeyURL)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestKeyJSON checks that a key is always written as an object with objects as its URLs, whatever
// else it has, so that their addresses in /config stay the same. An array is read, too.
func TestKeyJSON(t *testing.T) {
	only := Key{URLs: []KeyURL{{URL: "json://host"}, {URL: "json://other", Tags: []string{"ops"}}}}
	const urls = `"urls":[{"url":"json://host"},{"url":"json://other","tags":["ops"]}]`
	keys := map[string]Key{
		"{" + urls + "}": only,
		`{}`:             {},
	}
	for i := range reflect.TypeFor[Key]().NumField() {
		key := only
		field := reflect.ValueOf(&key).Elem().Field(i)
		name, _, _ := strings.Cut(reflect.TypeFor[Key]().Field(i).Tag.Get("json"), ",")
		value := `["a"]`
		switch v := field.Addr().Interface().(type) {
		case *[]KeyURL:
			continue
		case *[]string:
			*v = []string{"a"}
		case *string:
			*v, value = "a", `"a"`
		case *map[string]string:
			*v, value = map[string]string{"a": "b"}, `{"a":"b"}`
		case **bool:
			*v, value = new(bool), "false"
		case *caddy.Duration:
			*v, value = 1, "1"
		case *[]*Expect:
			*v, value = []*Expect{{Every: 1}}, `[{"every":1}]`
		case *Rules: // its fields stand in the key's JSON
			*v, name, value = Rules{Dedupe: &Dedupe{Window: 1}}, "dedupe", `{"window":1}`
		default:
			t.Fatalf("the test knows no value for the field %s", name)
		}
		keys["{"+urls+`,"`+name+`":`+value+"}"] = key
	}
	for want, key := range keys {
		got, err := json.Marshal(key)
		if err != nil || string(got) != want {
			t.Errorf("%+v becomes %s, %v, want %s", key, got, err, want)
		}
		var back Key
		if err := caddy.StrictUnmarshalJSON(got, &back); err != nil || !reflect.DeepEqual(back, key) {
			t.Errorf("%s becomes %+v, %v", got, back, err)
		}
	}
	for text, want := range map[string][]KeyURL{
		`[]`:   {},
		`[ ]`:  {},
		`[""]`: {{}},
		"[\n\t\"json://host\" ,\"ops=json://other/],\"\n]":          {{URL: "json://host"}, {URL: "json://other/],", Tags: []string{"ops"}}},
		`["json://host/?a=b\u0026c", "json://h\u00f6st"]`:           {{URL: "json://host/?a=b&c"}, {URL: "json://höst"}},
		`["json://höst", {"url": "json://other", "tags": ["a b"]}]`: {{URL: "json://höst"}, {URL: "json://other", Tags: []string{"a b"}}},
		"[\"json://\xff\"]": {{URL: "json://\ufffd"}},
	} {
		back := Key{DefaultTag: "other", URLs: []KeyURL{{Dir: "/other"}}}
		if err := json.Unmarshal([]byte(text), &back); err != nil || !reflect.DeepEqual(back, Key{URLs: want}) {
			t.Errorf("%s becomes %+v, %v", text, back, err)
		}
	}
	// What Caddy and people write besides: fields in another order, spaces, short forms within.
	for text, want := range map[string]Key{
		`{ "urls": [ {"tags": ["ops"], "dir": "/etc", "url": "json://host"}, "a=json://other" ] }`: {URLs: []KeyURL{
			{URL: "json://host", Tags: []string{"ops"}, Dir: "/etc"}, {URL: "json://other", Tags: []string{"a"}},
		}},
		`{"urls":[{"url":"json://host/\"}]}"}],"fallback":"b"}`: {URLs: []KeyURL{{URL: `json://host/"}]}`}}, Fallback: "b"},
		`{"urls":[{"url":"json://{]}"}],"fallback":"b"}`:        {URLs: []KeyURL{{URL: `json://{]}`}}, Fallback: "b"},
		`{"fallback":"b","urls":[{"url":"json://host"}]}`:       {URLs: []KeyURL{{URL: "json://host"}}, Fallback: "b"},
		`{"urls":[{"URL":"json://host","tags":null}]}`:          {URLs: []KeyURL{{URL: "json://host"}}},
		`{"urls":null}`: {},
	} {
		var back Key
		if err := json.Unmarshal([]byte(text), &back); err != nil || !reflect.DeepEqual(back, want) {
			t.Errorf("%s becomes %+v, %v", text, back, err)
		}
	}
	for text, want := range map[string]string{
		`{"url":["json://host"]}`:               "unknown field",
		`{"urls":[{"link":"json://host"}]}`:     "unknown field",
		`{"urls":[{"url":["json://host"]}]}`:    "cannot unmarshal array",
		`{"urls":{"url":"json://host"}}`:        "cannot unmarshal object",
		`["json://host",5]`:                     "cannot unmarshal number",
		`["json://host",["a"]]`:                 "cannot unmarshal array",
		`[["json://host"]]`:                     "cannot unmarshal array",
		`"json://host"`:                         "cannot unmarshal string",
		`{"urls":[{"url":"a","tags":["b",5]}]}`: "cannot unmarshal number",
	} {
		if err := json.Unmarshal([]byte(text), new(Key)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestManyKeys checks that keys are read without a decoder for each: a Caddy with 30,000 keys
// reads them several times at its start.
func TestManyKeys(t *testing.T) {
	text := []byte(`{"urls":[{"url":"json://127.0.0.1/a"},{"tags":["ops","dev"],"url":"json://127.0.0.1/b?c=d"}]}`)
	var k Key
	if n := testing.AllocsPerRun(100, func() {
		if err := k.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
	}); n > 12 {
		t.Errorf("reading a key takes %v allocations", n)
	}
}
