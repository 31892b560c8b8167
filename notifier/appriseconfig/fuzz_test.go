package appriseconfig

import (
	"errors"
	"strings"
	"testing"
)

// FuzzLoad checks that any file results in entries with their position, or in an
// error with the name of the file.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"a, 2:b=json://x?a=b\ng=a\n;c\ninclude y",
		"urls:\n- json://a:\n  - tag: [a, b]\n    +X: y\n- &x {json://b: , to: [c, d]}\n- *x\ngroups: [{a: b}]\ninclude: y",
		"urls: &a [*a]", "<<: [{tag: a}, {}]\nurls: [{json://a: {<<: {a: b}}}]", "---\n", "? {a: b}\n: c",
	} {
		f.Add("/f", seed)
		f.Add("/f.yml", seed)
	}
	f.Fuzz(func(t *testing.T, location, content string) {
		entries, _, err := load(location, map[string]string{location: content})
		e, ok := errors.AsType[*Error](err)
		if err != nil && (!ok || e.File == "") {
			t.Errorf("error %v", err)
		}
		for _, e := range entries {
			if e.File == "" || e.Line < 1 || !strings.Contains(e.URL, "://") && !strings.HasPrefix(e.URL, "${") {
				t.Errorf("entry %+v", e)
			}
		}
	})
}
