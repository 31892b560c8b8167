package caddyhttp

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// TestKeyURLJSON checks the forms of a URL in JSON.
func TestKeyURLJSON(t *testing.T) {
	for _, c := range []struct {
		url  KeyURL
		want string
	}{
		{KeyURL{URL: "json://host/a?b=c&d"}, `"json://host/a?b=c\u0026d"`},
		{KeyURL{URL: `json://host/"ä\`}, `"json://host/\"ä\\"`},
		{KeyURL{}, `""`},
		{KeyURL{URL: "json://host", Tags: []string{"ops"}}, `"ops=json://host"`},
		{KeyURL{URL: "json://host/?a=b", Tags: []string{"ops", "2:on-call_1"}}, `"ops,2:on-call_1=json://host/?a=b"`},
		{KeyURL{URL: "{env.A}=", Tags: []string{"ops"}}, `"ops={env.A}="`},
		{KeyURL{URL: "json://host", Tags: []string{"a b"}}, `{"url":"json://host","tags":["a b"]}`},
		{KeyURL{URL: "json://host", Tags: []string{"a,b"}}, `{"url":"json://host","tags":["a,b"]}`},
		{KeyURL{URL: "json://host", Tags: []string{""}}, `"=json://host"`},
		{KeyURL{URL: "json://host", Tags: []string{"ops"}, Dir: "/etc"}, `{"url":"json://host","dir":"/etc","tags":["ops"]}`},
		{KeyURL{URL: "ops=json://host"}, `{"url":"ops=json://host"}`},
		{KeyURL{URL: "json://host", Dir: "/etc"}, `{"url":"json://host","dir":"/etc"}`},
	} {
		got, err := json.Marshal(c.url)
		if err != nil || string(got) != c.want {
			t.Errorf("%+v becomes %s, %v", c.url, got, err)
		}
		back := KeyURL{Dir: "/other", Tags: []string{"other"}}
		if c.want[0] == '{' {
			back = KeyURL{}
		}
		if err := caddy.StrictUnmarshalJSON(got, &back); err != nil || !reflect.DeepEqual(back, c.url) {
			t.Errorf("%s becomes %+v, %v", got, back, err)
		}
	}
	// Versions before the string wrote every URL as an object.
	var old KeyURL
	if err := json.Unmarshal([]byte(`{"url":"json://host"}`), &old); err != nil || old.URL != "json://host" {
		t.Errorf("an object without tags becomes %+v, %v", old, err)
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

// TestKeyJSON checks the forms of a key in JSON: an array if it has only URLs, and
// otherwise an object.
func TestKeyJSON(t *testing.T) {
	only := Key{URLs: []KeyURL{{URL: "json://host"}, {URL: "json://other", Tags: []string{"ops"}}}}
	keys := map[string]Key{
		`["json://host","ops=json://other"]`: only,
		`{}`:                                 {},
	}
	// A key with any other field is an object.
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
		keys[`{"urls":["json://host","ops=json://other"],"`+name+`":`+value+`}`] = key
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
	// The form of earlier versions.
	var old Key
	if err := json.Unmarshal([]byte(`{"urls":[{"url":"json://host"},{"url":"json://other","tags":["ops"]}]}`),
		&old); err != nil || !reflect.DeepEqual(old, only) {
		t.Errorf("objects become %+v, %v", old, err)
	}
	for text, want := range map[string]string{
		`{"url":["json://host"]}`: "unknown field",
		`["json://host",5]`:       "cannot unmarshal number",
		`["json://host",["a"]]`:   "cannot unmarshal array",
		`[["json://host"]]`:       "cannot unmarshal array",
		`"json://host"`:           "cannot unmarshal string",
	} {
		if err := json.Unmarshal([]byte(text), new(Key)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
