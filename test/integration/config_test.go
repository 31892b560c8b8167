package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
)

// TestConfigurations compares what Apprise loads of the configurations in
// notifier/appriseconfig/testdata/items.txt with what the gateway loads.
func TestConfigurations(t *testing.T) {
	python := program(t, "python3", "python3")
	if out, err := exec.Command(python, "-c", "import apprise").CombinedOutput(); err != nil {
		t.Skipf("the Python module apprise is not installed: %s", out)
	}
	text, err := os.ReadFile("../../notifier/appriseconfig/testdata/items.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := strings.Split(string(text), "\n=== ")[1:]
	var in bytes.Buffer
	for _, c := range cases {
		name, rest, _ := strings.Cut(c, "\n")
		content, _, _ := strings.Cut(rest, "--- ")
		format := "yaml"
		if strings.HasSuffix(name, "(text)") {
			format = "text"
		}
		// The error is about items that Apprise skips, too.
		entries, _, _ := appriseconfig.Load(context.Background(), "file:///f?format="+format, func(context.Context, string) ([]byte, error) {
			return []byte(content), nil
		})
		found := []map[string]any{}
		for _, e := range entries {
			tags := []string{}
			for _, tag := range e.Tags {
				_, tag = notifier.SplitTag(tag)
				tags = append(tags, tag)
			}
			found = append(found, map[string]any{"url": e.URL, "tags": tags})
		}
		if err := json.NewEncoder(&in).Encode(map[string]any{"format": format, "content": content, "entries": found}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(python, "config_apprise.py")
	cmd.Stdin = &in
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	results := json.NewDecoder(bytes.NewReader(out))
	var version string
	if err := results.Decode(&version); err != nil {
		t.Fatal(err)
	}
	var installed int
	if _, err := fmt.Sscanf(version, "1.%d.", &installed); err != nil {
		t.Fatalf("the version of Apprise is %s: %v", version, err)
	}
	for _, c := range cases {
		var r struct{ Theirs, Ours any }
		if err := results.Decode(&r); err != nil {
			t.Fatal(err)
		}
		same := true
		if _, note, ok := strings.Cut(c, "\napprise: "); ok {
			var since int
			if _, err := fmt.Sscanf(note, "before 1.%d,", &since); err != nil {
				same = false
			} else if installed < since {
				continue
			}
		}
		if reflect.DeepEqual(r.Theirs, r.Ours) != same {
			t.Errorf("%s\nApprise loads %v, the gateway %v", c, r.Theirs, r.Ours)
		}
	}
}
