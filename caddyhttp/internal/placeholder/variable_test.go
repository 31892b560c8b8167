package placeholder

import (
	"strings"
	"testing"
)

// TestVariables checks that the values of variables are data, and that nothing but
// them is replaced.
func TestVariables(t *testing.T) {
	t.Setenv("X", "from the environment")
	v, err := NewVariables(map[string]string{
		"URL": "json://u:p@host/x", "Token": "{env.X}", "PW": "p@s/s?a&b=c", "HOST": "h.example:8080", "list": "a,b",
	})
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"${URL}":                    "json://u:p@host/x",
		"${url}?a=b":                "json://u:p@host/x?a=b",
		"json://u:${PW}@${HOST}/a":  "json://u:p%40s%2Fs%3Fa%26b%3Dc@h.example:8080/a",
		"json://host/${TOKEN}/x":    "json://host/from%20the%20environment/x",
		"json://host?+X=${pw}":      "json://host?+X=p%40s%2Fs%3Fa%26b%3Dc",
		"json://host/${list}":       "json://host/a,b",
		"json://host/%24%7BPW%7D":   "json://host/%24%7BPW%7D",
		"json://host/$PW/{PW}/${}":  "json://host/$PW/{PW}/${}",
		"json://host/{env.X}":       "json://host/{env.X}",
		"json://host/${env.X}":      "json://host/${env.X}",
		"json://host/{file./etc/x}": "json://host/{file./etc/x}",
	} {
		if got, err := v.Expand(url); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", url, got, err, want)
		}
	}
	for url, want := range map[string]string{
		"json://host/${X}":    "the variable ${X} is unknown; there are HOST, PW, Token, URL, list",
		"json://host/${HOME}": "the variable ${HOME} is unknown",
		"${PW}://host":        "${PW} stands for the schema of the URL",
	} {
		if got, err := v.Expand(url); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "p@s") {
			t.Errorf("%s is %q, %v; want the error %q", url, got, err, want)
		}
	}
	if !v.IsVariable("${URL}") || v.IsVariable("${URL}/x") || v.IsVariable("") || v.IsVariable("json://h") {
		t.Error("IsVariable")
	}
	var none *Variables
	if got, err := none.Expand("json://host/${X}"); err != nil || got != "json://host/${X}" || none.Has("${X}") || none.IsVariable("${X}") {
		t.Errorf("without variables: %q, %v", got, err)
	}
	for name, c := range map[string]struct {
		values map[string]string
		want   string
	}{
		"a name":            {map[string]string{"1X": "secret"}, "must not begin with a digit"},
		"a long name":       {map[string]string{strings.Repeat("x", 65): "secret"}, "1 to 64 letters"},
		"empty":             {map[string]string{"X": ""}, "the variable X is empty"},
		"blank":             {map[string]string{"X": " "}, "the variable X is empty"},
		"not set":           {map[string]string{"X": "{env.NOT_SET_AT_ALL}"}, "the variable X: {env.NOT_SET_AT_ALL} has no value"},
		"twice":             {map[string]string{"X": "secret", "x": "secret"}, "occurs twice, because names ignore case"},
		"not a placeholder": {map[string]string{"X": "{secret}"}, "is not a placeholder"},
	} {
		if _, err := NewVariables(c.values); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
