package jsontemplate

import (
	"strings"
	"testing"
)

func TestReplace(t *testing.T) {
	values := map[string]string{
		"app_body": "say \"hi\"\n\\ {{app_title}}", "app_title": "T",
		"app_color_int": "3843043", "n": "1, \"x\": 2", "Team": "ops",
	}
	for template, want := range map[string]string{
		`{"a": "{{app_body}}"}`:                          `{"a": "say \"hi\"\n\\ {{app_title}}"}`,
		`{"a": {{ app_body }}}`:                          `{"a": "say \"hi\"\n\\ {{app_title}}"}`,
		`{"a": {{app_color_int}}, "b": {{n}}}`:           `{"a": 3843043, "b": "1, \"x\": 2"}`,
		`{"{{app_title}}": "\"{{APP_TITLE}}\\"}`:         `{"T": "\"T\\"}`,
		`{"a": "{{team}} {{unknown}} {app_title} {{}}"}`: `{"a": "ops {{unknown}} {app_title} {{}}"}`,
	} {
		if got, err := replace(template, values); got != want || err != nil {
			t.Errorf("%s becomes %s, want %s (%v)", template, got, want, err)
		}
	}
	values["app_body"] = strings.Repeat("x", 30000)
	if _, err := replace(strings.Repeat(`"{{app_body}}"`, 2000), values); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("a template with 2000 texts of 30 kB: %v", err)
	}
}

func TestFill(t *testing.T) {
	valid := func(template map[string]any) error { return Objects(template, "blocks", "type") }
	for template, want := range map[string]string{
		`{"blocks": [{"type": "divider"}]}`:                  "",
		"\ufeff{\"blocks\": [{\"type\": \"{{app_type}}\"}]}": "",
		"{\n\"blocks\": [\n}":                                "not JSON: there is a mistake in line 3",
		`[]`:                                                 "not a JSON object",
		`null`:                                               "must be a JSON object",
		`{"blocks": []}`:                                     `has no list "blocks"`,
		`{"blocks": ["x"]}`:                                  `item 1 is not an object with a text "type"`,
		`{"blocks": [{"type": "a"}, {"type": 1}]}`: `item 2 is not an object with a text "type"`,
	} {
		_, err := new(Template).fill([]byte(template), map[string]string{"app_type": "info"}, valid)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", template, err, want)
		}
	}
}
