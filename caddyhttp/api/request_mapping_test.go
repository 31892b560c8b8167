package api

import (
	"errors"
	"testing"
)

func FuzzMapping(f *testing.F) {
	for _, seed := range [][3]string{
		{"a.b[0].c", "body", `{"a":{"b":[{"c":"x"}]}}`},
		{"type", "failure", `{"body":"x"}`},
		{"title", "body", `{"title":1,"body":"x"}`},
		{"a", "", `{}`},
		{"[0]", "attach", `[]`},
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
