package notifier_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestFormsOfAllServices takes each URL of the golden files apart into the values
// of a form, and checks that the form makes the same destination of them.
func TestFormsOfAllServices(t *testing.T) {
	all := examples(t)
	for _, s := range catalogue() {
		for _, e := range all[s.Name] {
			d, err := notifier.Parse(e.url, nil)
			if err != nil {
				continue // it names a file
			}
			form, values := d.Form()
			got, problems := form.Build(values)
			if len(problems) > 0 {
				t.Errorf("%s: %s is refused as a form: %v", s.Name, e.url, problems[0])
				continue
			}
			if got != d.URL() {
				t.Errorf("%s: %s\nbecomes %s\n   want %s", s.Name, e.url, got, d.URL())
			}
		}
	}
}

// difficult has every character that has a meaning in URLs, and some beyond
// ASCII.
const difficult = `a/b?c#d@e%f g%2Fh+i:&=;,j[k]{l}|"<>\^ ü😀.`

// difficultItem is the same for a list, whose items have no separators.
var difficultItem = strings.NewReplacer(" ", "", ",", "", ";", "").Replace(difficult)

// reshaped are the parameters whose service changes such a value: it cuts the
// value, puts a slash before it or splits it.
var reshaped = []string{
	"D7 Networks password", "LINE targets", "Matrix path", "ntfy filename", "OneSignal language", "Viber from", "Zulip targets",
}

// TestFormsKeepDifficultValues checks that a parameter that takes any text keeps
// each character, at its place in each form of a service's URLs. A parameter that
// takes only some texts rejects the others.
func TestFormsKeepDifficultValues(t *testing.T) {
	kept := 0
	for _, s := range catalogue() {
		for _, example := range s.Examples {
			d, err := notifier.Parse(example, nil)
			if err != nil {
				t.Fatal(err)
			}
			form, values := d.Form()
			for _, f := range form.Fields {
				if f.Kind != notifier.KindString && f.Kind != notifier.KindList || f.Elsewhere || slices.Contains(reshaped, s.Name+" "+f.Name) {
					continue
				}
				before := values.Texts[f.Name]
				values.Texts[f.Name] = []string{difficult}
				if f.Split {
					values.Texts[f.Name] = []string{difficultItem}
				}
				url, problems := form.Build(values)
				want := values.Texts[f.Name]
				values.Texts[f.Name] = before
				if len(problems) > 0 {
					if strings.Contains(problems[0].Problem, "cannot hold") {
						t.Errorf("%s: %s: %v", s.Name, form.Template, problems[0])
					}
					continue
				}
				d, err := notifier.Parse(url, nil)
				if err != nil {
					t.Errorf("%s: %s is refused: %v", s.Name, url, err)
					continue
				}
				_, got := d.Form()
				if !slices.EqualFunc(got.Texts[f.Name], want, strings.EqualFold) {
					t.Errorf("%s: %s of %s is %q", s.Name, f.Name, url, got.Texts[f.Name])
				}
				kept++
			}
		}
	}
	if kept < 350 {
		t.Errorf("only %d parameters take any text", kept)
	}
}
